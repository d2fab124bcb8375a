"""The oracle ladder: how well questions are answered as more and more of the pipeline is done for the system.

Each rung replaces one more operation by a faultless one, so the step from one rung to the next is the most that the
operation between them could gain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

from optimizer.evaluation.evaluator import Evaluator, Progress, score_of
from optimizer.evaluation.scores import Interval
from optimizer.evaluation.statistics import score_interval
from tracing.errors import ConfigError, DataError
from tracing.recording.trace_context import trace
from tracing.systems.calls import answer_question, settled
from tracing.systems.conversations import Conversation, Question
from tracing.systems.description import describe
from tracing.systems.prompts import Candidate, baseline_candidate
from tracing.systems.protocol import (
    Answer,
    AnswersFromContext,
    BuildsFromFacts,
    HoldsEntries,
    MemorySystem,
    Stage,
)


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung.

    Attributes:
        name: what is done for the system.
        score: mean primary score, 0 to 1.
        ci: its 95 % interval over conversations; None for a single conversation.
        n: number of questions.
        stage: the stage that this rung replaces by a faultless one; None for the unchanged pipeline.
    """

    name: str
    score: float
    ci: Interval | None
    n: int
    stage: Stage | None = None


def attainable(rungs: Sequence[Rung]) -> dict[Stage, float]:
    """By stage, what a faultless one would gain if those before it were faultless too: the steps between the rungs.

    The last step, from gold context to 1, is the answer's.
    """
    gains: dict[Stage, float] = {}
    for below, above in pairwise(rungs):
        if above.stage is not None:
            gains[above.stage] = above.score - below.score
    gains["answer"] = 1.0 - rungs[-1].score
    return gains


def audit(
    evaluator: Evaluator,
    conversations: Sequence[Conversation],
    *,
    progress: Progress | None = None,
) -> list[Rung]:
    """Climb the ladder with the system's baseline prompts.

    Rungs: the baseline pipeline; gold facts instead of extraction, stored by the system's own decisions; gold facts in
    the store as of the end; the gold context of each question instead of retrieval.

    Raises:
        ConfigError: the system lacks a method that a rung needs.
        DataError: a question has no gold fact.
        ModelError, BudgetExceededError: as in evaluation.
    """
    for conversation in conversations:
        for question in conversation.questions:
            if question.fact is None:
                raise DataError(
                    f"{conversation.id}: questions.{question.id}.fact is missing; the ladder needs gold facts, "
                    "see docs/data-format.md"
                )
    system = _ladder_system(evaluator.system)
    candidate = baseline_candidate(evaluator.system.prompts)
    pipeline = score_of(evaluator.evaluate(candidate, conversations, progress=progress))
    rungs = [Rung("baseline pipeline", pipeline.score, pipeline.ci, pipeline.n)]
    climbs: tuple[tuple[str, Stage, _RungFunction], ...] = (
        ("gold facts extracted", "extract", _with_facts_extracted),
        ("gold facts in the store", "update", _with_facts_stored),
        ("gold context", "retrieve", _with_gold_context),
    )
    for name, stage, climb in climbs:
        scores = [
            [
                score
                for part in conversation.parts()
                for score in _score(climb(system, evaluator, part, candidate), part, evaluator)
            ]
            for conversation in conversations
        ]
        units = [sum(question_scores) / len(question_scores) for question_scores in scores]
        counts = [len(question_scores) for question_scores in scores]
        mean = sum(map(sum, scores)) / sum(counts)
        rungs.append(Rung(name, mean, score_interval(units, counts), sum(counts), stage))
    return rungs


@runtime_checkable
class _LadderSystem(MemorySystem, BuildsFromFacts, HoldsEntries, AnswersFromContext, Protocol):
    """A system with everything that the rungs need."""


_AnswerFunction = Callable[[Question], Answer]
_RungFunction = Callable[[_LadderSystem, Evaluator, Conversation, "Candidate"], _AnswerFunction]


def _ladder_system(system: MemorySystem) -> _LadderSystem:
    if isinstance(system, _LadderSystem):
        return system
    needed: tuple[tuple[str, type], ...] = (
        ("build_from_facts", BuildsFromFacts),
        ("with_entries", HoldsEntries),
        ("answer_from", AnswersFromContext),
    )
    lacking = ", ".join(name for name, protocol in needed if not isinstance(system, protocol))
    raise ConfigError(
        f"the ladder needs a memory system with {lacking}, which {describe(system).name} lacks; "
        "add what is missing (docs/extending.md); everything else works without it"
    )


def _score(ask: _AnswerFunction, conversation: Conversation, evaluator: Evaluator) -> list[float]:
    with trace():
        return [evaluator.judged(question, ask(question).text).score for question in conversation.questions]


def _with_facts_extracted(
    system: _LadderSystem, evaluator: Evaluator, conversation: Conversation, candidate: Candidate
) -> _AnswerFunction:
    at = {turn.id: session.id for session in conversation.sessions for turn in session.turns}
    facts = [
        [fact.text for fact in conversation.facts if at[fact.turn] == session.id and fact.action != "ignore"]
        for session in conversation.sessions
    ]
    memory = settled(system.build_from_facts(facts, candidate, evaluator.access))
    return lambda question: answer_question(system, memory, question, candidate, evaluator.access)


def _with_facts_stored(
    system: _LadderSystem, evaluator: Evaluator, conversation: Conversation, candidate: Candidate
) -> _AnswerFunction:
    memory = settled(system.with_entries([fact.text for fact in conversation.facts_at_end()], evaluator.access))
    return lambda question: answer_question(system, memory, question, candidate, evaluator.access)


def _with_gold_context(
    system: _LadderSystem, evaluator: Evaluator, conversation: Conversation, candidate: Candidate
) -> _AnswerFunction:
    current = {fact.id: fact.text for fact in conversation.facts_at_end()}

    def ask(question: Question) -> Answer:
        # What was retracted is in no memory: the gold context of such a question is empty.
        context = [current[question.fact]] if question.fact in current else []
        answer: Answer = settled(system.answer_from(context, question, candidate, evaluator.access))
        return answer

    return ask
