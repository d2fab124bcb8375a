"""What an accepted edit did: the difference in text, and the questions that it fixed and broke."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attribution.cases import Case
    from optimizer.evaluation.evaluator import Outcome
    from tracing.systems.prompts import Candidate


@dataclass(frozen=True, slots=True)
class ChangedCase:
    """A question that an edit changed the judgement of: ids of its conversation and its own, and both replies."""

    conversation: str
    question: str
    asked: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class AcceptedEdit:
    """An edit that made a new champion.

    Attributes:
        diffs: prompt name → unified difference of the texts, for each prompt that changed.
        compared: questions that both champions answered on train and validation.
        fixed, broken: those that only the new one, and only the old one, answers right.
    """

    diffs: dict[str, str]
    compared: int
    fixed: tuple[ChangedCase, ...]
    broken: tuple[ChangedCase, ...]


def accepted_edit(old: Candidate, new: Candidate, before: Sequence[Outcome], after: Sequence[Outcome]) -> AcceptedEdit:
    """The edit from one candidate to another, over the questions that were asked under both."""
    earlier, later = _cases(before), _cases(after)
    both = [(earlier[key], later[key]) for key in earlier if key in later]
    return AcceptedEdit(
        diffs={name: _diff(old[name], text) for name, text in new.items() if text != old[name]},
        compared=len(both),
        fixed=tuple(_changed(old, new) for old, new in both if new.passed and not old.passed),
        broken=tuple(_changed(old, new) for old, new in both if old.passed and not new.passed),
    )


def _diff(old: str, new: str) -> str:
    return "\n".join(unified_diff(old.splitlines(), new.splitlines(), "before", "after", lineterm=""))


def _changed(before: Case, after: Case) -> ChangedCase:
    question = before.question
    return ChangedCase(before.conversation, question.id, question.question, before.reply, after.reply)


def _cases(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], Case]:
    return {(case.conversation, case.question.id): case for outcome in outcomes for case in outcome.cases}
