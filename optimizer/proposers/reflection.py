"""Rewrites by reflection: an author reads failures of one kind at a time, and writes itemised changes of the prompt.

Each request shows one kind of failure, since mixed ones make authors write nothing useful (CluE, arXiv 2604.11610),
with what the operation should have made of its inputs where that is known, and what earlier changes brought. Each
change becomes a rewrite of its own, so that races tell what each line brings; those that gained are offered together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from optimizer.proposers.author import CASES_SHOWN, TEMPERATURE, Author, cut
from optimizer.proposers.examples import Example, Symptom, symptoms_of
from optimizer.proposers.line_changes import LineChange, all_applied, changes_between, free_instructions
from optimizer.proposers.rewrites import Means, Rewrite, RewriteRequest, new_rewrites
from optimizer.proposers.structure import TEXTS
from optimizer.proposers.turns import by_turns, going_round
from tracing.errors import ModelError
from tracing.llm.reply_json import object_in
from tracing.package_data import packaged_text
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace

if TYPE_CHECKING:
    from tracing.llm.models import ChatModel

CHANGES = 3
"""Changes that one request asks for."""

REQUESTS = 2
"""Times as many requests as would be enough if each brought all its changes, at most."""

JOINED = 3
"""Most changes that are offered together."""

EACH_WAY = 3
"""Best and worst changes tried before that an author is shown, at most."""

_LONGEST_LINE, _REPLY_TOKENS = 200, 300
_KINDS: Mapping[Symptom, str] = TEXTS["failures"]
_REQUEST = packaged_text("optimizer.proposers", "reflection.txt").removesuffix("\n")
_SCHEMA = {
    "type": "object",
    "properties": {
        "changes": {
            "type": "array",
            "minItems": 1,
            "maxItems": CHANGES,
            "items": {
                "type": "object",
                "properties": {
                    "change": {"enum": ["add", "replace", "drop"]},
                    "line": {"type": "integer"},
                    "text": {"type": "string", "maxLength": _LONGEST_LINE},
                },
                "required": ["change", "line", "text"],
            },
        }
    },
    "required": ["changes"],
}


class ReflectionProposer:
    """Asks the author model for changes of single lines, by kind of failure, the most frequent kind first.

    Args:
        author: the model that writes.
    """

    name = "reflection"

    def __init__(self, author: ChatModel) -> None:
        self.author = author
        self._writer = Author(author)

    def propose(self, request: RewriteRequest) -> list[Rewrite]:
        """At most `request.count` rewrites: earlier changes that gained, together, and then new ones, each alone.

        Raises:
            BudgetExceededError: a hard budget does not allow the next model call.
        """
        return new_rewrites(request, self.name, self._texts(request))

    def _texts(self, request: RewriteRequest) -> Iterator[tuple[str, str]]:
        yield from _joined(request)
        kinds = failures_by_kind(request.failed, request)
        requests = REQUESTS * math.ceil(request.count / CHANGES) if kinds else 0
        # Each request is made only when its texts are wanted: `new_rewrites` stops at the count.
        for number, (kind, examples) in enumerate(islice(cycle(kinds), requests)):
            shown = going_round(examples, request.seed + number // len(kinds) * CASES_SHOWN, CASES_SHOWN)
            for change in self._changes(request, kind, shown, number):
                text = change.applied(request.text)
                if text is not None:
                    yield text, f"for {kind}: {change}"

    def _changes(
        self, request: RewriteRequest, kind: Symptom, examples: Sequence[Example], number: int
    ) -> list[LineChange]:
        """What the author would change so that this kind of failure ends; none if the reply is of no use."""
        instructions = free_instructions(request.text, request.prompt.contract.markers)
        text = request_for(request, kind, examples, instructions)
        messages = [{"role": "user", "content": text}]
        try:
            with trace(), operation("reflect", kind="llm"):  # the meter counts by operation
                reply = self._writer.chat(
                    messages,
                    max_tokens=_REPLY_TOKENS,
                    schema=_SCHEMA,
                    temperature=TEMPERATURE,
                    sample=request.seed * 1000 + number,
                )
        except ModelError:
            return []
        rows = (object_in(reply.text) or {}).get("changes")
        changes = list(filter(None, (_change_of(row, instructions) for row in rows))) if isinstance(rows, list) else []
        if reply.text and not changes:
            self._writer.tell("form", "its reply holds no change of a line")
        return changes


def reflection(means: Means) -> ReflectionProposer:
    """Changes of single lines by the author."""
    return ReflectionProposer(means.author)


def failures_by_kind(failed: Iterable[Example], request: RewriteRequest) -> list[tuple[Symptom, list[Example]]]:
    """Failed executions by what is visibly wrong with them, the most frequent kind first; in each, all conversations
    take turns.
    """
    kinds: dict[Symptom, list[Example]] = defaultdict(list)
    for example in failed:
        for kind in symptoms_of(example, request.stage):
            kinds[kind].append(example)
    ranked = sorted(kinds.items(), key=lambda group: (-len(group[1]), group[0]))
    return [(kind, _spread(examples)) for kind, examples in ranked]


def _spread(examples: Iterable[Example]) -> list[Example]:
    by_conversation: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        by_conversation[example.case.conversation].append(example)
    return list(by_turns(by_conversation.values()))


def request_for(
    request: RewriteRequest, kind: Symptom, examples: Sequence[Example], instructions: Sequence[str]
) -> str:
    """What the author is asked: the instructions by number, some failures of one kind, and what was tried."""
    return _REQUEST.format(
        purpose=request.prompt.purpose,
        instructions="\n".join(f"{number}. {text}" for number, text in enumerate(instructions, start=1)) or "(none)",
        kind=_KINDS[kind],
        cases="\n".join(f"Case {number}:\n{case_text(example)}" for number, example in enumerate(examples, start=1)),
        earlier=_earlier_note(request),
        count=CHANGES,
    )


def case_text(example: Example) -> str:
    """An execution behind a wrong answer, as the author reads it."""
    question = example.case.question
    lines = [f"{name}: {cut(text)}" for name, text in example.inputs.items()]
    lines.append(f"It made: {cut(example.output)}")
    if example.right is not None:
        lines.append(f"Right would have been: {cut(example.right)}")
    reasons = [blame.reason for blame in example.attribution.decisive] if example.attribution else []
    lines += [f"Why: {reason}" for reason in reasons[:1]]
    lines.append(f"So {question.question!r} was answered {example.case.reply!r}; right is {question.answers[0]!r}.")
    return "\n".join(lines)


def _earlier_note(request: RewriteRequest) -> str:
    """The best and the worst of the changes tried before, with what they gained; empty if there are none."""
    ranked = _earlier_changes(request)
    shown = ranked if len(ranked) <= 2 * EACH_WAY else [*ranked[:EACH_WAY], *ranked[-EACH_WAY:]]
    lines = [f"{gain:+.2f}: {'; '.join(map(str, changes))}" for gain, changes in shown]
    return "\n".join(("Changes tried before, with what they brought:", *lines, "", "")) if lines else ""


def _earlier_changes(request: RewriteRequest) -> list[tuple[float, list[LineChange]]]:
    """What texts tried before change in the champion's instructions, with what they gained over it, the best first."""
    champion = request.candidate[request.prompt.name]
    earlier = sorted(request.earlier, key=lambda text: -text.gain)
    compared = ((text.gain, changes_between(champion, text.text)) for text in earlier)
    return [(gain, changes) for gain, changes in compared if changes]


def _joined(request: RewriteRequest) -> Iterator[tuple[str, str]]:
    """The single changes of the champion that gained on recorded inputs, two and three of them together."""
    gained: list[LineChange] = []
    for gain, changes in _earlier_changes(request):
        replaced = {change.before for change in gained if change.before}
        if gain > 0 and len(changes) == 1 and changes[0].before not in replaced:
            gained += changes
    for count in range(2, min(JOINED, len(gained)) + 1):
        text = all_applied(gained[:count], request.candidate[request.prompt.name])
        if text is not None:
            yield text, "together: " + "; ".join(map(str, gained[:count]))


def _change_of(row: Any, instructions: Sequence[str]) -> LineChange | None:
    """The change that a row of a reply asks for; None if it makes no sense."""
    if not isinstance(row, dict):
        return None
    change, line, text = row.get("change"), row.get("line"), row.get("text")
    after = " ".join(text.split()) if isinstance(text, str) else ""
    if change == "add":
        return LineChange("", after) if after and not set("{}") & set(after) else None
    if change not in ("replace", "drop") or not isinstance(line, int) or not 1 <= line <= len(instructions):
        return None
    after = "" if change == "drop" else after
    return LineChange(instructions[line - 1], after) if change == "drop" or after else None
