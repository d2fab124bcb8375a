"""The local objective of settings: how much of what questions need is among what is retrieved, without a chat call."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attribution.survival.flow import ContentFlow
from attribution.text.content import text_of
from optimizer.evaluation.system_steps import SystemSteps
from tracing.errors import MemorySystemError, ModelError
from tracing.recording.trace_context import trace, whole_session
from tracing.systems.calls import answer_question
from tracing.systems.prompts import tokens_of

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Evaluator
    from optimizer.evaluation.memories import Snapshot
    from optimizer.objectives.objectives import Golds
    from tracing.llm.access import ModelAccess
    from tracing.systems.conversations import Conversation
    from tracing.systems.prompts import Candidate
    from tracing.systems.protocol import MemorySystem


PRICE_OF_LENGTH = 0.05
"""Recall that a text of twice the length must have more to be worth as much. A choice, made on development data."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a system retrieves for the questions of some conversations.

    Attributes:
        recall: share of needs that something retrieved carries, 0 to 1.
        tokens: of what is retrieved, mean over the questions, estimated.
        needs: number of needs.
        questions: number of questions that need something.
    """

    recall: float
    tokens: float
    needs: int
    questions: int

    @property
    def worth(self) -> float:
        """The recall, less what the reader of a longer text loses; to be compared with others only."""
        return self.recall - PRICE_OF_LENGTH * math.log2(max(1.0, self.tokens))

    def covers(self, other: Retrieval) -> bool:
        """Whether as much is retrieved as in the other, in no more tokens."""
        return self.recall >= other.recall and self.tokens <= other.tokens

    def __str__(self) -> str:
        return f"{self.recall:.3f} of what questions need is retrieved in {self.tokens:.0f} tokens"


def retrieval_of(
    evaluator: Evaluator,
    recorded: Evaluator,
    candidate: Candidate,
    conversations: Sequence[Conversation],
    golds: Golds,
) -> Retrieval | None:
    """What a system retrieves under the settings of `evaluator`; only embedding models are asked.

    Memories whose building takes a chat model are those of `recorded`; others are built under the settings.

    Returns:
        None if nothing can be measured: the system replies although no chat model answers here (it has a client of
        its own, which is not to be called for this), does not record what it answers from, or nothing is needed.

    Raises:
        MemorySystemError: as `retrieved_by`.
        BudgetExceededError: a hard budget does not allow the next call.
    """
    needed = carried = needy = questions = tokens = 0
    for conversation in conversations:
        contexts = retrieved_by(evaluator, recorded, candidate, conversation)
        for gold in golds.of(conversation):
            context = contexts.get(gold.question.id)
            if context is None:
                return None
            questions += 1
            tokens += sum(map(tokens_of, context))
            needed += len(gold.needs)
            needy += bool(gold.needs)
            carried += sum(any(gold.carries(text, need) for text in context) for need in gold.needs)
    return Retrieval(carried / needed, tokens / questions, needed, needy) if needed else None


def retrieved_by(
    evaluator: Evaluator, recorded: Evaluator, candidate: Candidate, conversation: Conversation
) -> dict[str, list[str]]:
    """By the id of each question the texts that its answer is given; as `retrieval_of`, which has the other arguments.

    Questions are missing from the first on whose texts cannot be seen.

    Raises:
        MemorySystemError: the system fails before it has a text for a question.
    """
    silent = evaluator.access.without_chat()
    snapshot = _memory(evaluator, recorded, silent, candidate, conversation)
    return dict(_contexts(evaluator.system, silent, candidate, conversation, snapshot))


def _memory(
    evaluator: Evaluator, recorded: Evaluator, silent: ModelAccess, candidate: Candidate, conversation: Conversation
) -> Snapshot:
    if not any(spec.builds for spec in evaluator.system.prompts.values()):
        # A system may ask a model for it all the same.
        with contextlib.suppress(ModelError):
            return SystemSteps(evaluator.system).build(silent, conversation, candidate)
    return recorded.memory(candidate, conversation)


def _contexts(
    system: MemorySystem, silent: ModelAccess, candidate: Candidate, conversation: Conversation, snapshot: Snapshot
) -> Iterator[tuple[str, list[str]]]:
    """The id of each question with the texts that its answer is given; ends at the first that cannot be seen."""
    failures: dict[str, MemorySystemError] = {}
    with trace(prefix="r") as recorder:
        for stretch, stage in zip(conversation.stretches(), snapshot.stages, strict=True):
            recorder.adopt(stage.records)
            for question in stretch.questions:
                with whole_session(question.id):
                    try:
                        answer_question(system, stage.memory, question, candidate, silent)
                    except MemorySystemError as error:
                        failures[question.id] = error
                    except ModelError:
                        continue  # at the chat call, which the silent model refuses
                    else:
                        answered = ContentFlow(recorder.graph, system.operations).answering(question.id, None)
                        if answered is None or answered.context:
                            return  # by a client of its own
    flow = ContentFlow(recorder.graph, system.operations)
    for question in conversation.questions:
        source = flow.answering(question.id, None)
        if source is not None:
            yield question.id, [text_of(variable.value) for variable in source.context]
        elif question.id in failures:
            raise failures[question.id]
