"""Conformance suites of `Optimizer`, `ProposerFactory` and `ObjectiveFactory`: subclass one, and pytest checks yours.

    class TestMine(OptimizerConformance):
        def optimizer(self):
            return my_search  # takes (tuning)

    class TestMyProposer(ProposerConformance):
        def factory(self):
            return MyProposer  # takes (means)

    class TestMyObjective(ObjectiveConformance):
        def factory(self):
            return MyObjective  # takes (means)

They run on a small system that asks no model. An author model is configured but unreachable: asking it is an error.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

from attribution.methods import survival
from attribution.signals import Signal
from optimizer.evaluation.evaluator import Evaluator
from optimizer.evaluation.scores import Score, SplitName, Splits
from optimizer.gating.verdict import Verdict
from optimizer.objectives.local_evaluation import recorded_inputs
from optimizer.objectives.objective import Credit, Objective, RecordedInput
from optimizer.objectives.objectives import ObjectiveFactory, objectives_of
from optimizer.proposers.rewrites import Means, ProposerFactory, Rewrite, RewriteRequest, admit, offers_of
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import Optimizer
from optimizer.tuning.failures import Failures, unattributed_examples
from optimizer.tuning.results import LoopResult, LoopSettings
from optimizer.tuning.round import RoundRecord
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import Tuning
from tracing.conformance import Conformance, require
from tracing.errors import BudgetExceededError
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits, ModelSettings
from tracing.systems.conversations import Conversation, Question
from tracing.systems.prompts import Candidate, check_candidate
from tracing.systems.protocol import Answer, Memory, MemorySystem
from tracing.systems.suite.notebook import Notebook, notebook_conversations

BASELINE = {name: spec.text for name, spec in Notebook.prompts.items()}


class OptimizerConformance(Conformance):
    """What memtune expects of an optimizer.

    Example:
        >>> class TestNothingTried(OptimizerConformance):
        ...     def optimizer(self):
        ...         return lambda tuning: Stopped("own", "nothing was tried")
        >>> TestNothingTried().problems()
        []
    """

    def optimizer(self) -> Optimizer:
        """The optimizer under test."""
        raise NotImplementedError

    def test_it_leaves_a_whole_result(self) -> None:
        """Scores of baseline and champion, a verdict on the test conversations, and why it ended."""
        result, _, _ = self._run()
        require(bool(str(result.stopped)), "it does not say why it ended")
        require(set(result.baseline) == {"train", "validation", "test"}, "the baseline was not scored on every split")
        require({"validation", "test"} <= set(result.champion), "the champion was not scored on validation and test")
        require(result.verdict is not None, "there is no verdict")
        check_candidate(Notebook.prompts, result.champion_candidate)

    def test_rounds_are_told_in_order_with_the_champion_of_each(self) -> None:
        """Curves, and a killed run's best so far, come from rounds."""
        result, observer, _ = self._run()
        require(
            [record.n for record in result.rounds] == sorted({record.n for record in result.rounds}), "out of order"
        )
        require(list(result.rounds) == observer.records, "a round was not reported, or reported differently")
        if result.champion_candidate != BASELINE:
            require(any(record.accepted for record in result.rounds), "the champion changed outside of a round")
            last = result.rounds[-1].champion
            require(last == result.champion_candidate, "the last round does not hold the champion")

    def test_the_same_seed_leads_to_the_same_champion_and_the_same_rewrites(self) -> None:
        """A resumed run repeats the search."""
        (first, _, answers), (second, _, answers_again) = self._run(seed=5), self._run(seed=5)
        require(first.champion_candidate == second.champion_candidate, "another champion")
        require(
            [record.rewrites for record in first.rounds] == [record.rewrites for record in second.rounds],
            "other rewrites",
        )
        require(sorted(answers) == sorted(answers_again), "other candidates met the conversations")

    def test_test_conversations_are_met_at_the_end_by_baseline_and_champion_alone(self) -> None:
        """Conversations that the champion was chosen on prove nothing."""
        result, _, answers = self._run()
        texts = [text for conversation, text in answers if conversation.startswith("test-")]
        require(set(texts) <= {BASELINE["answer"], result.champion_candidate["answer"]}, "another candidate met them")
        first = next(place for place, (name, _) in enumerate(answers) if name.startswith("test-"))
        require(all(name.startswith("test-") for name, _ in answers[first:]), "it went on searching after them")

    def test_a_spent_budget_ends_it_with_the_best_so_far(self) -> None:
        """The optimizer must let `BudgetExceededError` through, wherever it occurs."""
        _, _, answers = self._run()
        for most in {1, len(answers) // 3, 2 * len(answers) // 3}:
            result, _, _ = self._run(most=most)
            require(result.stopped.by_budget, f"after {most} answers it did not stop: {result.stopped}")
            check_candidate(Notebook.prompts, result.champion_candidate)

    def _run(
        self, *, seed: int = 0, most: int | None = None
    ) -> tuple[LoopResult, _RoundRecorder, list[tuple[str, str]]]:
        system, observer, search = _ListeningNotebook(most), _RoundRecorder(), self.optimizer()

        def watched(tuning: Tuning, /) -> Stopped:
            stopped = Stopped.returned(search(tuning))
            require(not system.refused, "it caught a BudgetExceededError")
            return stopped

        with _evaluator(system) as (evaluator, access):
            result = optimize(
                evaluator=evaluator,
                splits=Splits(
                    notebook_conversations("train", 3),
                    notebook_conversations("validation", 4),
                    notebook_conversations("test", 6),
                ),
                baseline=BASELINE,
                settings=LoopSettings(rounds=2, proposals=2, seed=seed),
                access=access,
                failures=Failures(survival, access, system.operations),
                observer=observer,
                optimizer=watched,
            )
        return result, observer, system.answers


class ProposerConformance(Conformance):
    """What memtune expects of a proposer.

    Example:
        >>> from optimizer.proposers.bank import bank
        >>> class TestBank(ProposerConformance):
        ...     def factory(self):
        ...         return bank
        >>> TestBank().problems()
        []
    """

    def factory(self) -> ProposerFactory:
        """The factory under test."""
        raise NotImplementedError

    def test_it_proposes_no_more_than_is_asked_for_and_what_the_contract_admits(self) -> None:
        """A text that breaks the contract, or was already tried, is discarded, and its work is wasted."""
        with _proposer_request() as (means, request):
            for count in (1, 3):
                offered = self.factory()(means).propose(replace(request, count=count))
                require(isinstance(offered, list), f"it returned a {type(offered).__name__}, not a list")
                require(len(offered) <= count, f"{len(offered)} rewrites where {count} were asked for")
                _, rejected = admit(offered, request.prompt, request.tried)
                require(not rejected, f"a rewrite is not admitted: {rejected[0][1] if rejected else ''}")

    def test_the_same_request_gives_the_same_proposals(self) -> None:
        """A resumed run asks again."""
        offers: list[list[Rewrite]] = []
        for _ in range(2):
            with _proposer_request() as (means, request):
                proposer = self.factory()(means)
                offers += [offers_of(proposer, request), offers_of(proposer, request)]
        require(all(offer == offers[0] for offer in offers), "it offered something else")

    def test_it_proposes_something_new_where_its_first_texts_were_tried(self) -> None:
        """Offering nothing is fine; offering the same text again is not."""
        with _proposer_request() as (means, request):
            proposer = self.factory()(means)
            tried = frozenset(rewrite.text for rewrite in offers_of(proposer, request)) | request.tried
            for rewrite in proposer.propose(replace(request, tried=tried)):
                require(rewrite.text not in tried, "it offered a text that was tried")

    def test_it_can_do_without_examples(self) -> None:
        """There are none if nothing is blamed, or nothing passed."""
        with _proposer_request() as (means, request):
            offers_of(self.factory()(means), replace(request, failed=(), passed=()))


class ObjectiveConformance(Conformance):
    """What memtune expects of a local objective; it is asked about answers from recorded contexts.

    Example:
        >>> from optimizer.objectives.answers import answer
        >>> class TestAnswer(ObjectiveConformance):
        ...     def factory(self):
        ...         return answer
        >>> TestAnswer().problems()
        []
    """

    def factory(self) -> ObjectiveFactory:
        """The factory under test."""
        raise NotImplementedError

    def test_it_tells_what_is_at_stake_and_gives_credit_from_0_to_1(self) -> None:
        """Also for an execution without outputs: a model can reply with nothing."""
        for objective, execution in self._recorded_inputs():
            weight = objective.weight(execution)
            require(math.isfinite(weight) and weight >= 0, f"a weight of {weight!r}")
            for outputs in (execution.outputs, ()):
                credit = objective.credit(execution, outputs)
                require(isinstance(credit, Credit), f"it returned a {type(credit).__name__}, not a Credit")
                require(0 <= credit.value <= 1, f"a credit of {credit.value!r}")

    def test_the_same_outputs_get_the_same_credit(self) -> None:
        """A resumed run measures again."""
        first, second = (
            [o.credit(execution, execution.outputs) for o, execution in self._recorded_inputs()] for _ in range(2)
        )
        require(first == second, "another credit for the same outputs")

    def test_something_is_at_stake_at_some_input(self) -> None:
        """Otherwise nothing would be measured."""
        require(
            any(objective.weight(execution) > 0 for objective, execution in self._recorded_inputs()),
            "all weights are 0",
        )

    def _recorded_inputs(self) -> list[tuple[Objective, RecordedInput]]:
        with _evaluator(Notebook()) as (evaluator, _):
            outcomes = evaluator.evaluate(BASELINE, notebook_conversations("train", 3))
            objective = objectives_of(evaluator, {"answer": self.factory()})["answer"]
            recorded = recorded_inputs(Notebook.prompts["answer"], outcomes)
            return [(objective, execution) for execution in recorded]


class _ListeningNotebook(Notebook):
    """The notebook, with the question and the prompt of each answer; it ends like a spent budget after `most`."""

    def __init__(self, most: int | None = None) -> None:
        self.answers: list[tuple[str, str]] = []
        self.refused = False
        self._most = most

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        if self._most is not None and len(self.answers) >= self._most:
            self.refused = True
            raise BudgetExceededError("the conformance suite allows no further answer")
        self.answers.append((question.id, candidate["answer"]))
        return super().answer(memory, question, candidate, access)


class _RoundRecorder:
    def __init__(self) -> None:
        self.records: list[RoundRecord] = []

    def baseline(self, split: SplitName, score: Score) -> None: ...
    def blame(self, n: int, signals: Sequence[Signal]) -> None: ...
    def verdict(self, verdict: Verdict) -> None: ...
    def progress(self, *counts: object, **named_counts: object) -> None: ...

    def round(self, record: RoundRecord) -> None:
        self.records.append(record)


@contextmanager
def _evaluator(system: Notebook) -> Iterator[tuple[Evaluator, ModelAccess]]:
    # Nothing listens at the discard port.
    nobody = ModelSettings(model="none", base_url="http://127.0.0.1:9/v1", retries=0, timeout_s=1)
    with (
        tempfile.TemporaryDirectory(prefix="memtune-contract-") as folder,
        ModelAccess.open({"task": nobody, "embedding": nobody}, cache_dir=None, limits=Limits()) as access,
    ):
        yield Evaluator(cast("MemorySystem", system), access, "short_contains", Path(folder)), access


@contextmanager
def _proposer_request() -> Iterator[tuple[Means, RewriteRequest]]:
    """What a proposer is given after the baseline met three train conversations."""
    train: tuple[Conversation, ...] = notebook_conversations("train", 3)
    spec = Notebook.prompts["answer"]
    with _evaluator(Notebook()) as (evaluator, access):
        failed, passed = unattributed_examples(spec, Notebook.operations, evaluator.evaluate(BASELINE, train))
        request = RewriteRequest(
            prompt=spec,
            stage="answer",
            text=spec.text,
            candidate=BASELINE,
            signal=None,
            failed=failed,
            passed=passed,
            count=4,
            seed=1,
            tried=frozenset({spec.text}),
        )
        yield Means(access.proposer, access.proposer is not access.task, evaluator, train), request
