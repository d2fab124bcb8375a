"""A span of another tool as an operation, with the inputs and outputs that the usual attributes give.

The names of the attributes are in `foreign_spans.toml`. Equal values of two spans are two variables, since nothing says
that they are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from tracing.files.depth import structured
from tracing.graph.elements import Link, Operation, Session, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.documents import FreeIds, Troubles, first_of, text_or_none
from tracing.interchange.spans import Span
from tracing.interchange.speech import INSTRUCTIONS, TOOL_CALLS, role_of, speech_of, unspoken
from tracing.package_data import packaged_tables


@dataclass(frozen=True, slots=True)
class _Content:
    """What an attribute holds: its role, and its kind if it is a single value."""

    role: str
    kind: str = "value"


@dataclass(frozen=True, slots=True)
class _Conventions:
    """The tables of `foreign_spans.toml`, which says what they are."""

    model: tuple[str, ...]
    prompt_tokens: tuple[str, ...]
    completion_tokens: tuple[str, ...]
    cost: tuple[str, ...]
    session: tuple[str, ...]
    kind: tuple[str, ...]
    kinds: Mapping[str, str]
    inputs: Mapping[str, _Content]
    outputs: Mapping[str, _Content]
    input_events: Mapping[str, str]
    output_events: Mapping[str, str]


@cache
def _conventions() -> _Conventions:
    return msgspec.convert(packaged_tables("tracing.interchange", "foreign_spans.toml"), _Conventions)


_DETAILS = "gen_ai.client.inference.operation.details"
"""Event that holds the messages in place of the span."""

_NO_SPEECH = "value"
"""Kind of a message that says nothing, such as a tool call, and of what tools return."""

_DEEPEST_NAME, _LONGEST_NUMBER = 12, 6


def operation_of(
    span: Span, graph: ExecutionGraph, operation_ids: dict[str, str], ids: FreeIds, troubles: Troubles
) -> None:
    """Add a foreign span to the graph as an operation with its variables and its session.

    Its id is added to `operation_ids`, by "trace id/span id".
    """
    names = _conventions()
    trace = str(span.origin.get("trace_id"))
    if f"{trace}/{span.id}" in operation_ids:
        troubles.add("is the id of several spans; the latest was used as the parent of others", f"span {span.id!r}")
    oid = ids.free(graph.operations, span.id)
    operation_ids[f"{trace}/{span.id}"] = oid
    session = text_or_none(first_of(span.attributes, names.session)) or text_or_none(trace)
    if session is not None and session not in graph.sessions:
        graph.add_session(Session(session, session))
    links: dict[bool, list[Link]] = {True: [], False: []}
    for number, (read, role, kind, value) in enumerate(_contents(span)):
        vid = ids.free(graph.variables, f"{oid}/{'input' if read else 'output'} {number}")
        graph.add_variable(Variable(vid, role, kind, value, session=session))
        links[read].append((role, vid))
    model = text_or_none(first_of(span.attributes, names.model))
    has_ended = span.end is not None and span.end >= span.start
    if not has_ended and span.end is not None:
        troubles.add("ends before it begins; its end counts as unknown", f"span {span.id!r}")
    graph.add_operation(
        Operation(
            oid,
            span.name,
            kind_of(span.attributes, span.kind),
            tuple(links[True]),
            tuple(links[False]),
            session=session,
            started=span.start / 10**9,
            ended=span.end / 10**9 if has_ended and span.end is not None else None,
            status="error" if span.ok is False else "ok" if has_ended else "open",
            error=_error(span),
            model=model,
            calls=int(model is not None),
            prompt_tokens=_count(first_of(span.attributes, names.prompt_tokens)),
            completion_tokens=_count(first_of(span.attributes, names.completion_tokens)),
            cost=_amount(first_of(span.attributes, names.cost)),
            attributes={
                **span.attributes,
                "span": {
                    **span.origin,
                    "events": [[event.name, event.time, dict(event.attributes)] for event in span.events],
                },
            },
        )
    )


def _contents(span: Span) -> Iterator[tuple[bool, str, str, Any]]:
    """(is an input, role, kind, value) of all inputs and outputs of a span."""
    holders = [span.attributes, *(event.attributes for event in span.events if event.name == _DETAILS)]
    conventions = _conventions()
    for read, table in ((True, conventions.inputs), (False, conventions.outputs)):
        spoken = False
        for name, content in table.items():
            value = next((holder[name] for holder in holders if holder.get(name) is not None), None)
            if value is None:
                value = _numbered(span.attributes, name)
            if value is None:
                continue
            value = structured(value)
            if content.kind in ("value", "message") and not spoken and (messages := _messages_in(value)):
                content, value = _Content(content.role, "message"), messages
            spoken = spoken or content.kind == "message"
            for role, kind, part in _parts(content, value):
                yield read, role, kind, part
    for event in span.events:
        read = event.name in conventions.input_events
        spoken_kind = conventions.input_events.get(event.name) or conventions.output_events.get(event.name)
        if spoken_kind is not None:
            names = ("content", "gen_ai.prompt", "gen_ai.completion", "gen_ai.event.content", "message")
            value = first_of(event.attributes, names)
            role = event.name.split(".")[1]
            whole = value is None or role == "tool" or event.attributes.get("tool_calls") is not None
            message = dict(event.attributes) if whole else structured(value)
            for kind, part in _message_values(message, spoken_kind if role != "tool" else _NO_SPEECH):
                yield read, role, kind, part


def _parts(content: _Content, value: Any) -> Iterator[tuple[str, str, Any]]:
    """A list of messages becomes one value a message, in its speaker's role; an object of inputs one value a key."""
    if content.kind == "message" and isinstance(value, list):
        for raw in value:
            message = _plain(raw)
            role = role_of(message) if isinstance(message, Mapping) else ""
            nobody = unspoken(message) if isinstance(message, Mapping) else None
            kind = "prompt" if nobody == INSTRUCTIONS else _NO_SPEECH if nobody is not None else content.kind
            for part_kind, part in _message_values(message, kind):
                yield role or content.role, part_kind, part
    elif content.kind == "context" and isinstance(value, list):
        for document in value:
            yield content.role, content.kind, document
    elif content.kind == "value" and isinstance(value, dict) and value:
        for role, argument in value.items():
            yield role, "value", argument
    elif content.kind in ("message", "prompt"):
        for kind, part in _message_values(value, content.kind):
            yield content.role, kind, part
    else:
        yield content.role, content.kind, value


def _messages_in(value: Any) -> list[Any]:
    """The messages of a whole request or reply of a chat model; none of anything else."""
    listed = value.get("messages") if isinstance(value, dict) else value
    choices = value.get("choices", value.get("generations")) if isinstance(value, dict) else None
    if isinstance(choices, list) and len(choices) == 1 and isinstance(choices[0], list):
        choices = choices[0]
    if isinstance(choices, list):
        listed = [choice.get("message") for choice in choices if isinstance(choice, dict)]
    if isinstance(listed, list) and len(listed) == 1 and isinstance(listed[0], list):  # LangChain's, a list a prompt
        listed = listed[0]
    if isinstance(value, dict) and "role" in value and ("content" in value or "parts" in value):
        listed = [value]
    sound = isinstance(listed, list) and all(isinstance(message, dict) and role_of(message) for message in listed)
    return listed if sound and isinstance(listed, list) else []


def _message_values(message: Any, kind: str) -> Iterator[tuple[str, Any]]:
    """The kinds and values of a message: its text, and the whole where it calls a tool or says nothing.

    The message as it was stays in the attributes of its operation.
    """
    speech = speech_of(message)
    speaks = bool(speech.text) and kind != _NO_SPEECH
    if speaks:
        yield kind, speech.text
    if not speaks or TOOL_CALLS in speech.omitted:
        yield _NO_SPEECH, message


def _plain(message: Any) -> Any:
    """A message out of the object around it, with the fields whose names have dots nested, and parts as a list."""
    if not isinstance(message, Mapping):
        return message
    fields = _nested(message) if any("." in key for key in message) else message
    inner = fields.get("message") if isinstance(fields, Mapping) else None
    message = inner if isinstance(inner, Mapping) else fields
    parts = structured(message.get("content")) if isinstance(message, Mapping) else None
    listed = isinstance(parts, list) and parts and all(isinstance(part, Mapping) and "type" in part for part in parts)
    return {**message, "content": parts} if listed else message


def _numbered(attributes: Mapping[str, Any], name: str) -> list[Any] | None:
    """Messages or documents whose fields are separate attributes, such as `gen_ai.prompt.0.content`."""
    start = f"{name}."
    listed = {key[len(start) :]: value for key, value in attributes.items() if key.startswith(start)}
    elements = _nested({key: value for key, value in listed.items() if key.partition(".")[0].isdecimal()})
    return [element.get("document", element) if isinstance(element, dict) else element for element in elements] or None


def _nested(fields: Mapping[str, Any]) -> Any:
    """Fields as objects in objects, by the dots in their names, and as lists where all names are numbers.

    A field whose place is taken keeps its whole name.
    """
    nested = _Names()
    for name, value in fields.items():
        holder: Any = nested
        *outer, last = name.split(".", _DEEPEST_NAME)
        for key in outer:
            holder = holder.setdefault(key, _Names()) if isinstance(holder, _Names) else None
        if isinstance(holder, _Names) and last not in holder:
            holder[last] = value
        else:
            nested[name] = value
    return _with_lists(nested)


class _Names(dict[str, Any]):
    """An object that stands for the first part of several names; other objects are values."""


def _with_lists(names: dict[str, Any]) -> Any:
    fields = {key: _with_lists(value) if isinstance(value, _Names) else value for key, value in names.items()}
    numbered = all(key.isdecimal() and len(key) < _LONGEST_NUMBER for key in fields)
    return [fields[key] for key in sorted(fields, key=int)] if numbered else fields


def kind_of(attributes: Mapping[str, Any], usual: str = "function") -> str:
    """The kind of operation that the attributes of a span tell; the usual one if they tell none.

    Example:
        >>> kind_of({"openinference.span.kind": "LLM"}), kind_of({"gen_ai.operation.name": "execute_tool"})
        ('llm', 'tool')
    """
    kind = first_of(attributes, _conventions().kind)
    word = kind.lower() if isinstance(kind, str) and kind else usual
    return _conventions().kinds.get(word, word)


def _error(span: Span) -> str | None:
    if span.ok is not False:
        return None
    for event in span.events:
        if event.name == "exception":
            words = [event.attributes.get(name) for name in ("exception.type", "exception.message")]
            return ": ".join(str(word) for word in words if word) or None
    return span.error or str(span.attributes.get("error.type", "")) or None


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 2**63 else 0


def _amount(value: Any) -> float:
    return float(value) if type(value) in (int, float) and 0 <= value < 1e300 else 0.0
