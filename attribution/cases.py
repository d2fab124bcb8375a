"""Cases and their attribution: a judged question, and whose fault its wrong answer is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attribution.judging.words import Judgement
from tracing.systems.conversations import Question

PASS_SCORE = 0.5
"""The least primary score with which a case counts as passed."""

ErrorType = Literal[
    "ExtractionError",
    "UpdateError",
    "DeletionError",
    "RetrievalError",
    "ResponseError",
    "UnusableReplyError",
    "AnnotationError",
    "JudgeError",
]

UNUSABLE_REPLY: ErrorType = "UnusableReplyError"
"""The error type of an operation whose reply was malformed, cut short, empty, refused or filtered: nothing was lost."""

OUTSIDE_THE_SYSTEM: frozenset[ErrorType] = frozenset(("AnnotationError", "JudgeError"))
"""Error types for which no operation of the memory system is to blame."""

ReplayVerdict = Literal["confirmed", "refuted", "not repairable"]
"""What replay finds about a blame: its repair makes the answer right; it does not; or there is nothing to repair.

If several operations' repairs make the answer right only together, each is confirmed."""


@dataclass(frozen=True, slots=True)
class Case:
    """One judged question.

    Attributes:
        conversation: id of the conversation it is about.
        question: the question with its accepted answers.
        reply: what the system answered.
        judgement: how well that matches.
        prediction: id of the reply's variable in the conversation's graph, if recorded.

    Example:
        >>> question = Question(id="q1", question="Where does Mara live?", answers=("Oslo",))
        >>> Case("mara", question, "Rome", Judgement(score=0.0, em=0.0, f1=0.0, contains=0.0)).passed
        False
    """

    conversation: str
    question: Question
    reply: str
    judgement: Judgement
    prediction: str | None = None

    @property
    def knows_answer(self) -> bool:
        """Whether a right answer is known; a complaint may have none."""
        return any(answer.strip() for answer in self.question.answers)

    @property
    def passed(self) -> bool:
        """Whether the answer counts as right."""
        return self.judgement.score >= PASS_SCORE


@dataclass(frozen=True, slots=True)
class Blame:
    """One operation's share in a wrong answer.

    Attributes:
        operation: name of the operation; "annotation" or "judge" for errors outside the system.
        operation_id: its execution in the graph; None where the step that was due never ran.
        error_type: what went wrong.
        confidence: in (0, 1), how likely it is that this operation and error type are decisive; `survival` documents
            how it is computed.
        reason: one plain sentence that names turns, entries and values.
        evidence: ids of the variables the sentence rests on.
        verdict: replay's finding; None if it was not replayed.

    Example:
        >>> blame = Blame("extract_facts", "o3", "ExtractionError", 0.9, "no fact says 'Oslo' of D1:1")
        >>> blame.operation, blame.error_type
        ('extract_facts', 'ExtractionError')
    """

    operation: str
    operation_id: str | None
    error_type: ErrorType
    confidence: float
    reason: str
    evidence: tuple[str, ...] = ()
    verdict: ReplayVerdict | None = None


@dataclass(frozen=True, slots=True)
class Attribution:
    """Whose fault a case is: one or more blames, the earliest operation first, or why nothing can be said.

    Exactly one of `decisive` and `abstained` is filled. `alternatives` are less likely explanations, best first.

    Example:
        >>> question = Question(id="q1", question="Where does Mara live?", answers=("Oslo",))
        >>> case = Case("mara", question, "Rome", Judgement(score=0.0, em=0.0, f1=0.0, contains=0.0))
        >>> blame = Blame("extract_facts", "o3", "ExtractionError", 0.9, "no fact says 'Oslo' of D1:1")
        >>> Attribution(case, (blame,)).main.operation
        'extract_facts'
    """

    case: Case
    decisive: tuple[Blame, ...] = ()
    abstained: str | None = None
    alternatives: tuple[Blame, ...] = ()

    @property
    def main(self) -> Blame | None:
        """The earliest operation's decisive blame; None if the attribution abstains."""
        return self.decisive[0] if self.decisive else None
