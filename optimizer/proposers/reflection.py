"""Rewrites by reflection: an author reads failures of one kind at a time, and writes itemised changes of the prompt.

Each request shows one kind of failure, since mixed ones make authors write nothing useful (CluE, arXiv 2604.11610),
with what the operation should have made of its inputs where that is known, and what earlier changes brought. Each
change becomes a rewrite of its own, so that races tell what each line brings; those that gained are offered together.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import cycle, islice
from typing import TYPE_CHECKING

from optimizer.proposers.author import CASES_SHOWN, TEMPERATURE, Author, cut
from optimizer.proposers.examples import Example, Symptom, symptoms_of
from optimizer.proposers.line_changes import LineChange, all_applied, changes_between, free_instructions
from optimizer.proposers.rewrites import Means, Rewrite, RewriteRequest, kind_of, new_rewrites
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

_LONGEST_LINE, _REPLY_TOKENS = 160, 200
_KINDS: Mapping[Symptom, str] = TEXTS["failures"]
_REQUEST = packaged_text("optimizer.proposers", "reflection.txt").removesuffix("\n")
# Asked for more than plain lines, a small model fills the fields with speech of the cases.
_SCHEMA = {
    "type": "object",
    "properties": {
        "lines": {
            "type": "array",
            "minItems": 1,
            "maxItems": CHANGES,
            "items": {"type": "string", "maxLength": _LONGEST_LINE},
        }
    },
    "required": ["lines"],
}
_NUMBERED = re.compile(r"(drop )?(\d+)(?(1)|[.)]\s+)(.*)", re.DOTALL)
"""A line that begins with the number of the instruction in whose place it stands, or drops one."""

_ALIKE = 0.6
"""Likeness (`difflib`) from which a line without a number stands in place of the instruction that it resembles."""


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
        refused: Counter[str] = Counter()
        rewrites = new_rewrites(request, self.name, self._within_contract(request, refused))
        if refused:
            kinds = ", ".join(f"{problem} ({count})" for problem, count in refused.most_common())
            self._writer.tell("contract", f"texts of its are refused: {kinds}")
        return rewrites

    def texts(self, request: RewriteRequest) -> Iterator[tuple[str, str]]:
        """Texts with their reasons, within the contract or not; the author is asked when the next one is wanted."""
        yield from _joined(request)
        kinds = failures_by_kind(request.failed, request)
        requests = most_requests(request.count) if kinds else 0
        # Each request is made only when its texts are wanted: `new_rewrites` stops at the count.
        for number, (kind, examples) in enumerate(islice(cycle(kinds), requests)):
            for change in self._changes(request, kind, examples, number, number // len(kinds)):
                text = change.applied(request.text)
                if text is not None:
                    yield text, f"for {kind}: {change}"

    def _within_contract(self, request: RewriteRequest, refused: Counter[str]) -> Iterator[tuple[str, str]]:
        for text, reason in self.texts(request):
            if problems := request.prompt.contract.violations(text):
                refused[kind_of(problems[0])] += 1
            else:
                yield text, reason

    def _changes(
        self, request: RewriteRequest, kind: Symptom, examples: Sequence[Example], number: int, turn: int
    ) -> list[LineChange]:
        """What the author would change so that this kind of failure ends; none if the reply is of no use."""
        instructions = free_instructions(request.text, request.prompt.contract.markers)
        shown = going_round(examples, request.seed + turn * CASES_SHOWN, CASES_SHOWN)
        text = request_for(request, kind, shown, instructions, len(examples))
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
        lines = (object_in(reply.text) or {}).get("lines")
        written = [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
        changes = list(filter(None, (_change_of(line, instructions) for line in written)))
        if reply.text and not changes:
            self._writer.tell("form", "its reply holds no change of a line")
        return changes


def reflection(means: Means) -> ReflectionProposer:
    """Changes of single lines by the author."""
    return ReflectionProposer(means.author)


def most_requests(count: int) -> int:
    """Requests that are made for so many texts, at most."""
    return REQUESTS * math.ceil(count / CHANGES)


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
    request: RewriteRequest, kind: Symptom, examples: Sequence[Example], instructions: Sequence[str], failures: int
) -> str:
    """What the author is asked: the instructions by number, some failures of one kind, what was tried, and the rules.

    Args:
        failures: of this kind, shown or not.
    """
    return _REQUEST.format(
        purpose=request.prompt.purpose,
        instructions="\n".join(f"{number}. {text}" for number, text in enumerate(instructions, start=1)) or "(none)",
        blame=f"{failures} of the {len(request.failed)} wrong answers that it is blamed for are of one kind. "
        + _KINDS[kind],
        kind=_KINDS[kind],
        cases="\n".join(f"Case {number}:\n{case_text(example)}" for number, example in enumerate(examples, start=1)),
        earlier=_earlier_note(request),
        count=CHANGES,
    )


def case_text(example: Example) -> str:
    """An execution behind a wrong answer, as the author reads it."""
    question = example.case.question
    lines = [f"{name}: {cut(text)}" for name, text in example.inputs.items()]
    lines.append(f"It wrote: {cut(example.output)}")
    if example.right is not None:
        lines.append(f"Right would have been: {cut(example.right)}")
    else:
        lines.append(f"Somebody asked {question.question!r}; right is {question.answers[0]!r}.")
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


def _change_of(text: str, instructions: Sequence[str]) -> LineChange | None:
    """The change that a line of a reply asks for; None if it changes nothing, or makes no sense."""
    line, before = " ".join(text.split()), ""
    if numbered := _NUMBERED.fullmatch(line):
        place, line = int(numbered[2]), numbered[3]
        if not 1 <= place <= len(instructions) or bool(numbered[1]) == bool(line):
            return None
        before = instructions[place - 1]
    elif alike := get_close_matches(line, instructions, 1, _ALIKE):
        before = alike[0]
    same = line.rstrip(".").casefold() == before.rstrip(".").casefold()
    return None if same or set("{}") & set(line) else LineChange(before, line)
