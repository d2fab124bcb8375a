"""The model call of a recorded execution, and its prompt as it stands in what was asked."""

from __future__ import annotations

import re
import string
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tracing.graph.execution_graph import ExecutionGraph, Operation
from tracing.llm.booking import REPLY, REQUEST
from tracing.systems.layouts import RECORDED_REPLY, Parts


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """What an execution asked a model, itself or by operations inside it.

    Attributes:
        count: calls that it made.
        request: of the only one, as a chat-completions request; None if that was not recorded.
        reply: what was replied to it.
        template: text of the prompt that the execution read; None if that was not recorded.
    """

    count: int
    request: Mapping[str, Any] | None
    reply: str
    template: str | None


def recorded_calls(prompt: str, operation: str, graph: ExecutionGraph) -> dict[str, RecordedCall]:
    """By id, the calls of the executions of an operation, which a prompt steers.

    They are recorded by `exchanges_recorded`, or by `tracing.instrument.openai`.
    """
    inside = defaultdict[str | None, list["Operation"]](list)
    for step in graph.operations.values():
        inside[step.parent].append(step)

    def steps(step: Operation) -> Iterator[Operation]:
        yield step
        for inner in inside[step.id]:
            yield from steps(inner)

    return {
        execution.id: _call_of(prompt, execution, list(steps(execution)), graph)
        for execution in graph.find_operations(name=operation)
    }


def _call_of(prompt: str, execution: Operation, steps: Sequence[Operation], graph: ExecutionGraph) -> RecordedCall:
    read = [graph.variables[vid] for vid in execution.input_ids()]
    template = next((str(item.value) for item in read if (item.kind, item.name) == ("prompt", prompt)), None)
    count, request, reply = sum(step.calls for step in steps), None, ""
    for step in steps if count == 1 else ():
        requests = [item for item in map(graph.variables.__getitem__, step.input_ids()) if item.kind == REQUEST]
        replies = [item for item in map(graph.variables.__getitem__, step.output_ids()) if item.kind == RECORDED_REPLY]
        if isinstance(step.attributes.get(REQUEST), Mapping):
            request, reply = step.attributes[REQUEST], str(step.attributes.get(REPLY, ""))
        elif len(requests) == len(replies) == 1 and isinstance(requests[0].value, list):
            request, reply = {**requests[0].attributes, "messages": requests[0].value}, str(replies[0].value)
    return RecordedCall(count, request, reply, template)


@dataclass(frozen=True, slots=True)
class FilledPrompt:
    """A prompt in one of the texts of a request.

    Attributes:
        place: number of the text, from 0.
        before, after: the rest of that text.
        values: placeholder → what fills it.
    """

    place: int
    before: str
    after: str
    values: Mapping[str, str]
    _doubled: bool = False
    """Literal braces stand in it as in the template: placeholders were replaced, not formatted."""
    _stripped: bool = False

    def with_text(self, template: str) -> str:
        """The text with another template in the place of the prompt, filled alike."""
        pieces = _pieces(template, doubled=self._doubled, stripped=self._stripped)
        return self.before + _filled(*pieces, self.values) + self.after


def filled_prompt(template: str, texts: Sequence[str], parts: Parts, values: Mapping[str, str]) -> FilledPrompt | None:
    """Where a prompt stands in the texts of a request; None if it does not, or that is not clear.

    Args:
        template: its text.
        texts: of the messages.
        parts: placeholder → the recorded inputs that fill it.
        values: how the prompt's layout writes these. Where the system writes them otherwise, the values are what stands
            between the literal texts of the template.

    Example:
        >>> filled = filled_prompt("Notes: {notes}\\nAsked: {asked}", ["Notes: a; b\\nAsked: Who?"], {}, {})
        >>> filled.values
        {'notes': 'a; b', 'asked': 'Who?'}
        >>> filled.with_text("{asked} It is in: {notes}")
        'Who? It is in: a; b'
    """
    for doubled in (False, True) if re.search("{{|}}", template) else (False,):
        for stripped in (False, True):
            literals, names = _pieces(template, doubled=doubled, stripped=stripped)
            matches = [
                (place, *match) for place, text in enumerate(texts) for match in _matches(literals, names, text, values)
            ]
            exact = [match for match in matches if match[2] is values]
            likely = exact or [
                match
                for match in matches
                if all(item.text in value for name, value in match[2].items() for item in parts.get(name, ()))
            ]
            if len(likely) == 1:
                ((place, before, between, after),) = likely
                return FilledPrompt(place, before, after, between, doubled, stripped)
    return None


def prompt_in(template: str, text: str) -> FilledPrompt | None:
    """Where a prompt stands in a text, if possible as the whole of it, each value as short as can be; None if nowhere.

    Example:
        >>> prompt_in("Asked: {asked}\\nReply:", "Asked: Who?\\nReply:").with_text("{asked} Say it.")
        'Who? Say it.'
    """
    for stripped in (False, True):
        pieces = _pieces(template, doubled=False, stripped=stripped)
        matches = [
            FilledPrompt(0, before, after, values, False, stripped)
            for before, values, after in _matches(*pieces, text, {})
        ]
        whole = [match for match in matches if not (match.before + match.after).strip()]
        if matches:
            return (whole or matches)[0]
    return None


def _pieces(template: str, *, doubled: bool, stripped: bool) -> tuple[list[str], list[str]]:
    """The literal texts of a template, and the placeholders between them."""
    text = template.strip() if stripped else template
    if doubled:
        pieces = re.split(r"(?<!\{)\{(\w+)\}(?!\})", text)
        return pieces[::2], pieces[1::2]
    literals, names = [""], list[str]()
    for literal, name, *_ in string.Formatter().parse(text):
        literals[-1] += literal
        if name is not None:
            names.append(name)
            literals.append("")
    return literals, names


def _filled(literals: Sequence[str], names: Sequence[str], values: Mapping[str, str]) -> str:
    return "".join(chain.from_iterable(zip(literals, [*(values.get(name, "") for name in names), ""], strict=True)))


def _matches(
    literals: Sequence[str], names: Sequence[str], text: str, values: Mapping[str, str]
) -> Iterator[tuple[str, Mapping[str, str], str]]:
    """What stands before a template, fills it, and stands after it.

    That is `values` if they do, and otherwise what is between the literal texts, where each stands as early as can be,
    and where each stands as late.
    """
    filled = _filled(literals, names, values)
    if text.count(filled) == 1:
        before, _, after = text.partition(filled)
        yield before, values, after
        return
    if not names or not "".join(literals).strip():
        return
    late = _between([literal[::-1] for literal in reversed(literals)], text[::-1])
    ways = [_between(literals, text), late and [part[::-1] for part in reversed(late)]]
    for way in ways[: 1 if ways[0] == ways[1] else 2]:
        if way:
            before, *inner, after = way
            between = dict(zip(names, inner, strict=True))
            # A placeholder that stands in it twice has one value.
            if [between[name] for name in names] == inner:
                yield before, between, after


def _between(literals: Sequence[str], text: str) -> list[str] | None:
    """What stands before, between and after literal texts, each as early as can be; None if one is missing."""
    parts: list[str] = []
    for number, literal in enumerate(literals, start=1):
        if literal and literal not in text:
            return None
        if literal:
            part, _, text = text.partition(literal)
        else:
            part, text = (text, "") if number == len(literals) else ("", text)
        parts.append(part)
    return [*parts, text]
