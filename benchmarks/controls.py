"""Controls that read nothing: always the same error type, or one at random, on an operation the case passed."""

from __future__ import annotations

import random

from attribution.cases import Attribution, Blame, Case, ErrorType
from attribution.recordings import Recording
from attribution.survival.flow import STAGES, ContentFlow
from tracing.graph.elements import Operation
from tracing.systems.protocol import Stage


class Constant:
    """Always names one error type, on the last operation of its stage that the case passed through.

    With the most frequent type of a suite this is its majority baseline.
    """

    def __init__(self, recording: Recording, error_type: ErrorType) -> None:
        self._error_type = error_type
        self._flow = ContentFlow(recording.graph, recording.operations)

    def attribute(self, case: Case) -> Attribution:
        """The same for every case; the confidence has no meaning."""
        return Attribution(case, (_blame(self._flow, case, self._error_type, 0.5, "always named"),))


class Random:
    """Names one of the error types of a memory system at random; equal seeds give equal answers."""

    def __init__(self, recording: Recording, seed: int = 0) -> None:
        self._flow = ContentFlow(recording.graph, recording.operations)
        self._seed = seed

    def attribute(self, case: Case) -> Attribution:
        """Drawn for every case, from the seed and the case's name alone."""
        chance = random.Random(f"{self._seed} {case.conversation} {case.question.id}")  # noqa: S311 - no secret
        types = list(STAGES)
        return Attribution(case, (_blame(self._flow, case, chance.choice(types), 1 / len(types), "drawn"),))


def _blame(flow: ContentFlow, case: Case, error_type: ErrorType, confidence: float, why: str) -> Blame:
    passed = _operations(flow, case, STAGES[error_type])
    return flow.blame(passed[-1] if passed else None, error_type, confidence, f"{error_type} is {why}")


def _operations(flow: ContentFlow, case: Case, stage: Stage) -> list[Operation]:
    """The operations of a stage that the case passed through, in the order recorded."""
    answering = flow.answering(case.question.id, case.prediction)
    if stage == "answer":
        return [answering.answer] if answering else []
    if stage == "retrieve":
        return list(answering.retrievals) if answering else []
    if stage == "extract":
        return flow.readers(*case.question.evidence)
    facts = [fact for turn in case.question.evidence for fact, _ in flow.extracted(turn)]
    return list({operation.id: operation for fact in facts for operation in flow.written(fact).operations}.values())
