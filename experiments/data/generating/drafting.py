"""The rows of a session: citations drafted by the author, tested, and kept or dropped for a reason that is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attribution.text.content import content_of
from experiments.data.generating.filters import Trial, objection, with_near_miss
from experiments.data.generating.never_said import TOLD, about_the_other, is_told
from tracing.systems.conversations import DialogueSession, Question

if TYPE_CHECKING:
    from experiments.data.generating.author import QuestionAuthor
    from experiments.data.generating.citations import Citation, Citations, Kind
    from experiments.data.generating.dialogue import Dialogue

NOTHING, TWIN = "the author had nothing to ask", "another question asks the same"

_SESSIONS_APART = 3
"""One of so many sessions has a question on what was never said: a memory that stores nothing answers all of them."""

_ALIKE = 0.75
"""The share of the words of two questions that makes them twins."""


@dataclass(slots=True)
class SessionRows:
    """What came of a session, or of the complaints: questions, drafts dropped by reason, and all drafts by kind."""

    rows: list[Question] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    drafts: Counter[str] = field(default_factory=Counter)
    is_session: bool = True


def rows_of(
    dialogue: Dialogue, session: DialogueSession, citations: Citations, author: QuestionAuthor, kinds: Sequence[Kind]
) -> SessionRows:
    """Draft and test the questions of a session.

    Raises:
        CallFailedError, BudgetExceededError: of the author.
    """
    outcome = SessionRows()
    for citation in citations.of(session):
        if citation.kind not in kinds:
            continue
        outcome.drafts[citation.kind] += 1
        draft = author.draft(dialogue, citation)
        if draft is None:
            outcome.dropped[NOTHING] += 1
            continue
        trial = Trial(dialogue, draft, author, citation.sentences)
        reason = objection(trial)
        if reason is not None:
            outcome.dropped[reason] += 1
            continue
        outcome.rows.append(_named(dialogue, citation, with_near_miss(trial)))
        some = session in dialogue.conversation.sessions[::_SESSIONS_APART]
        if some and "never_said" in kinds and citation.kind == "fact" and not outcome.drafts["never_said"]:
            _ask_the_other(trial, citation, outcome)
    return outcome


def _ask_the_other(trial: Trial, citation: Citation, outcome: SessionRows) -> None:
    other = about_the_other(trial)
    if other is None:
        return
    outcome.drafts["never_said"] += 1
    if is_told(other):
        outcome.dropped[TOLD] += 1
    else:
        outcome.rows.append(_named(trial.dialogue, citation, other.draft))


def _named(dialogue: Dialogue, citation: Citation, question: Question) -> Question:
    name = f"{dialogue.conversation.id}/{question.kind}/{citation.turns[-1]}"
    return question.model_copy(update={"id": name})


def without_twins(questions: Iterable[Question], earlier: Sequence[Question]) -> tuple[list[Question], int]:
    """The questions that are no twins of each other or of earlier ones, and how many others there were."""
    new: list[Question] = []
    twins = 0
    for question in questions:
        if any(_are_twins(question, other) for other in (*earlier, *new)):
            twins += 1
        else:
            new.append(question)
    return new, twins


def _are_twins(question: Question, other: Question) -> bool:
    words, others = content_of(question.question), content_of(other.question)
    alike = len(words & others) >= _ALIKE * max(len(words | others), 1)
    answers = [content_of(asked.answers[0]) for asked in (question, other)]
    same_turn = question.evidence[-1:] == other.evidence[-1:] and bool(question.evidence)
    same_answer = question.kind == other.kind and not answers[0].isdisjoint(answers[1])
    alike = alike and question.unanswerable == other.unanswerable
    return question.id == other.id or alike or (same_turn and same_answer)
