"""Evaluation of a candidate on conversations: build (or reuse) each memory, ask its questions, judge the replies."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attribution.cases import Case
from attribution.judging.words import Judgement, judge_reply
from optimizer.evaluation.file_names import file_name
from optimizer.evaluation.memories import Snapshot, SnapshotStore, digest, snapshot_key
from optimizer.evaluation.scores import Score
from optimizer.evaluation.statistics import score_interval
from optimizer.evaluation.system_steps import SystemSteps
from optimizer.evaluation.unusable_replies import UnusableReplies
from tracing.errors import ModelError, ReplyCutShortError, WorkerDiedError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.single_flight import SingleFlight
from tracing.systems.baseline import check_baseline
from tracing.systems.conversations import Conversation, Question
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Answer, MemorySystem

if TYPE_CHECKING:
    from attribution.judging.llm_judge import LlmJudge
    from tracing.llm.access import ModelAccess

_log = logging.getLogger(__name__)

_REFUSED = ("refused", "filtered")
_FEWEST_UNUSABLE = 3
"""Replies of an operation that could not be used before that is told in the middle of an evaluation."""

ATTEMPTS = 3
"""Attempts at a build or an answer with a failed call; the access retries single calls before that."""

Progress = Callable[[int, int, int], None]
"""Called with the number of soundly evaluated conversations, their total, and the number tainted so far."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One candidate on one conversation.

    Attributes:
        conversation: what was read and asked.
        cases: its judged questions; empty if tainted.
        graph: the build and all answers, as one execution graph.
        tainted: why nothing in it may be judged or attributed (a call failed or was cut short); None if sound.
        calls: model calls that a run without any reuse would make for it.
        tokens: prompt and completion tokens of those calls.
        chat_tokens: the same without steps that only embed.
    """

    conversation: Conversation
    cases: tuple[Case, ...]
    graph: ExecutionGraph
    tainted: str | None = None
    calls: int = 0
    tokens: int = 0
    chat_tokens: int = 0

    @property
    def score(self) -> float:
        """Mean primary score of the cases.

        Raises:
            ModelError: the outcome is tainted; a partial memory has no score.
        """
        if self.tainted is not None:
            raise ModelError(f"{self.conversation.id}: not scored because {self.tainted}")
        return sum(case.judgement.score for case in self.cases) / len(self.cases)

    @property
    def score_or_zero(self) -> float:
        """The score; zero if tainted: prompts under which the system fails are as bad as wrong answers."""
        return 0.0 if self.tainted is not None else self.score


@dataclass(slots=True)
class EvaluationCalls:
    """Calls that evaluation would have made without any reuse (failed ones too), and those it made or found cached."""

    without_reuse: int = 0
    sent: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Evaluates candidates of one system; pays only for what changed since any earlier evaluation.

    Its settings are fixed when it is created; only its results change.
    Conversations and their questions are evaluated concurrently, in as many threads as `access.threads` has. Scores,
    cases and traces do not depend on the order in which they finish.

    Attributes:
        system: the system under test.
        access: its models.
        metric: name of the primary metric (`attribution.judging.words.METRICS`), for replies that no model judges.
        snapshots: folder of built memories.
        traces: folder that receives the trace of every evaluated conversation; None for none.
        model_judge: asks a model for the primary score; None if words alone decide.
        calls: counts of calls so far.
    """

    system: MemorySystem
    access: ModelAccess
    metric: str
    snapshots: Path
    traces: Path | None = None
    model_judge: LlmJudge | None = None
    calls: EvaluationCalls = field(default_factory=EvaluationCalls)
    _outcomes: dict[str, Outcome] = field(default_factory=dict, repr=False)
    _warned: list[str] = field(default_factory=list, repr=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _flights: SingleFlight = field(default_factory=SingleFlight, repr=False)

    def evaluate(
        self, candidate: Candidate, conversations: Sequence[Conversation], *, progress: Progress | None = None
    ) -> list[Outcome]:
        """The outcome for each conversation, in order. A tainted outcome says why; it carries no cases.

        Raises:
            BudgetExceededError: a hard budget ended it; what was computed so far stays in the caches.
            ContractError: the candidate breaks a prompt's contract.
        """
        check_baseline(self.system.prompts, candidate)
        outcomes: list[Outcome] = []
        failed = 0
        if progress is not None:
            progress(0, len(conversations), 0)
        for outcome in self.access.threads.map(partial(self._evaluate, candidate), conversations):
            outcomes.append(outcome)
            failed += outcome.tainted is not None
            if progress is not None:
                progress(len(outcomes) - failed, len(conversations), failed)
            self._warn_of_unusable(_FEWEST_UNUSABLE)
        self._warn_of_unusable(1)
        return outcomes

    def repeated(self, repetition: int) -> Evaluator:
        """An evaluator that asks the models again for each new `repetition`; the judge is asked once per reply."""
        return replace(self, access=self.access.repeated(repetition), calls=EvaluationCalls(), _outcomes={})

    def of(self, system: MemorySystem) -> Evaluator:
        """An evaluator of the system under other settings; it shares what is known, kept and counted."""
        return replace(self, system=system)

    def memory(self, candidate: Candidate, conversation: Conversation) -> Snapshot:
        """The memory that the system builds of a conversation; built only if it is not kept.

        Raises:
            ModelError: it cannot be built.
            BudgetExceededError: a hard budget does not allow it.
        """
        return self._memory(candidate, conversation, self._keys(candidate, conversation)[0])

    @property
    def _steps(self) -> SystemSteps:
        return SystemSteps(self.system)

    def judged(self, question: Question, reply: str) -> Judgement:
        """The judgement of a reply to a question.

        Raises:
            ModelError, BudgetExceededError: from the judge's model, if it has one.
        """
        if self.model_judge is not None:
            return self.model_judge.judge(question, reply)
        return judge_reply(question, reply, self.metric)

    def known_outcomes(self, candidate: Candidate, conversations: Sequence[Conversation]) -> list[Outcome]:
        """The sound outcomes that this evaluator has already computed, in order; nothing is evaluated."""
        keys = [self._keys(candidate, conversation)[1] for conversation in conversations]
        return [self._outcomes[key] for key in keys if key in self._outcomes]

    def trace_of(self, candidate: Candidate, conversation: Conversation) -> Path | None:
        """The file that the trace of a candidate on a conversation is written to; None if none is kept."""
        return self._trace(self._keys(candidate, conversation)[1], conversation)

    def cases(self) -> list[Case]:
        """Every sound case that this evaluator computed, for any candidate."""
        return [case for outcome in self._outcomes.values() for case in outcome.cases]

    def _keys(self, candidate: Candidate, conversation: Conversation) -> tuple[str, str]:
        """The keys of a memory and of an outcome."""
        memory_key = snapshot_key(self.system, conversation, candidate, self.access.identities())
        key = digest(
            {
                "memory": memory_key,
                "conversation": conversation.id,
                "prompts": dict(candidate),
                "questions": [question.model_dump(mode="json") for question in conversation.questions],
            }
        )
        return memory_key, key

    def _evaluate(self, candidate: Candidate, conversation: Conversation) -> Outcome:
        memory_key, key = self._keys(candidate, conversation)
        if key not in self._outcomes:
            outcome = self._fresh(candidate, conversation, memory_key, key)
            if outcome.tainted is not None:
                return outcome
            self._outcomes[key] = outcome
        self._count(without_reuse=self._outcomes[key].calls)
        return self._outcomes[key]

    def _fresh(self, candidate: Candidate, conversation: Conversation, memory_key: str, key: str) -> Outcome:
        reason = ""
        for _ in range(ATTEMPTS):
            sound = False
            with self.access.watch() as watch:
                try:
                    # Equal dialogues share a memory, which is built once.
                    with self._flights.alone(memory_key):
                        snapshot = self._memory(candidate, conversation, memory_key)
                    outcome = self._answers(candidate, conversation, snapshot, key)
                    sound = not watch.failures
                    if sound:
                        return outcome
                    reason = watch.failures[0]
                except (ReplyCutShortError, WorkerDiedError) as error:
                    # The same request would be cut at the same place, and further workers would die.
                    return _tainted(conversation, str(error))
                except ModelError as error:
                    reason = str(error)
                finally:
                    lost = 0 if sound else watch.calls + watch.cached
                    self._count(without_reuse=lost, sent=watch.calls, cached=watch.cached)
        return _tainted(conversation, reason)

    def _count(self, *, without_reuse: int, sent: int = 0, cached: int = 0) -> None:
        with self._guard:
            self.calls.without_reuse += without_reuse
            self.calls.sent += sent
            self.calls.cached += cached

    def _warn_of_unusable(self, least: int) -> None:
        """Tell once, as early as can be, that so many replies could not be used that they decide the scores."""
        warning = None if self._warned else UnusableReplies.of(self.access.meter).warning(least)
        if warning is not None:
            self._warned.append(warning)
            _log.warning("%s", warning)

    def _memory(self, candidate: Candidate, conversation: Conversation, key: str) -> Snapshot:
        store = SnapshotStore(self.snapshots)
        ledger = self.access.ledger
        # A resumed run rebuilds, from cached replies, what it built before, so that its calls are counted again.
        ours = ledger is not None and ledger.claim_memory(key)
        snapshot = None if ours else store.load(key)
        if snapshot is None:
            snapshot = self._steps.build(self.access, conversation, candidate)
            if ledger is not None and not ours:
                ledger.memory(key)
            # Another time the endpoint may not refuse what such a memory lacks.
            if not any(record.get("attributes", {}).get("unusable") in _REFUSED for record in snapshot.records):
                store.save(key, snapshot)
        return snapshot

    def _answers(self, candidate: Candidate, conversation: Conversation, snapshot: Snapshot, key: str) -> Outcome:
        path = self._trace(key, conversation)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
        answers = self._steps.answer(self.access, conversation, candidate, snapshot, path)
        with self.access.watch() as judging:
            answered = list(zip(conversation.questions, answers.answers, strict=True))
            cases = tuple(self.access.threads.map(partial(self._case, conversation), answered))
        operations = answers.graph.operations.values()
        return Outcome(
            conversation=conversation,
            cases=cases,
            graph=answers.graph,
            calls=snapshot.calls + answers.calls + judging.calls + judging.cached,
            tokens=sum(operation.prompt_tokens + operation.completion_tokens for operation in operations),
            # What only embeds writes nothing, and its tokens are told only where vectors were not there already.
            chat_tokens=sum(
                step.prompt_tokens + step.completion_tokens for step in operations if step.completion_tokens
            ),
        )

    def _trace(self, key: str, conversation: Conversation) -> Path | None:
        return None if self.traces is None else self.traces / key[:12] / f"{file_name(conversation.id)}.jsonl"

    def _case(self, conversation: Conversation, answered: tuple[Question, Answer]) -> Case:
        question, answer = answered
        return Case(conversation.id, question, answer.text, self.judged(question, answer.text), answer.variable)


def score_of(outcomes: Sequence[Outcome]) -> Score:
    """Means over all questions of sound outcomes, with a 95 % interval over conversations if there are several."""
    units = [outcome.score for outcome in outcomes]
    judgements = [case.judgement for outcome in outcomes for case in outcome.cases]
    count = len(judgements)
    return Score(
        score=sum(j.score for j in judgements) / count,
        em=sum(j.em for j in judgements) / count,
        f1=sum(j.f1 for j in judgements) / count,
        contains=sum(j.contains for j in judgements) / count,
        n=count,
        ci=score_interval(units, [len(outcome.cases) for outcome in outcomes]),
    )


def tokens_a_question(outcomes: Sequence[Outcome]) -> float:
    """Tokens in and out of chat models that a question of sound outcomes takes, the building of its memory included."""
    return sum(outcome.chat_tokens for outcome in outcomes) / sum(len(outcome.cases) for outcome in outcomes)


def _tainted(conversation: Conversation, reason: str) -> Outcome:
    return Outcome(conversation, (), ExecutionGraph(), tainted=reason)
