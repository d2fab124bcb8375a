"""What the loop saves by paying only for what changed: the same run twice, with its reuse and without any.

The plain run has no response cache and no stored memories: each evaluation that the search asks for builds its
memories and asks its questions, and whatever else the search asks is asked each time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import BaseModel

from attribution.attributor import open_attributor
from attribution.signals import Signal
from experiments.bench.attributing import SCRIPTED_SETTINGS
from experiments.bench.scripted_model import serve
from experiments.bench.weak_model import Traffic, WeakModel
from experiments.data.loaders import load_dataset
from experiments.runs.config import RunConfig
from optimizer.evaluation.evaluator import Evaluator, Outcome, Progress
from optimizer.evaluation.scores import Score, SplitName, Splits
from optimizer.gating.verdict import Verdict
from optimizer.proposers.examples import Example
from optimizer.proposers.proposals import Proposal, ProposalRequest, open_proposers
from optimizer.search.failures import Failures
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import Optimizer, open_optimizer
from optimizer.search.results import BlameShare, IterationRecord, LoopResult, LoopSettings, Observer
from optimizer.search.rounds import gated_rounds
from optimizer.search.selection import Choice, Edit
from optimizer.search.tuning import Tuning
from optimizer.search.unattributed import unattributed_examples
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits, ModelSettings, Role
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate, PromptSpec, seed_candidate
from tracing.systems.registry import open_system

Shown = Callable[[str, int, int], None]
"""Called with a phase, what is done of it and its total."""


class AnswerRound(BaseModel):
    """Requests of a round that edits only the prompts with which answers are made; the baselines are not part of it."""

    calls_ours: int
    calls_plain: int


class LoopFigures(BaseModel):
    """What was measured, as the server saw it: requests for chats and embeddings, and their tokens in and out.

    Attributes:
        calls_ours, tokens_ours: of a run.
        calls_plain, tokens_plain: of the same run without any reuse.
        answer_round: a round of the same, in which only answers change.
        identical: whether both runs made the same evaluations with the same replies, and ended with the same result.
    """

    calls_ours: int
    calls_plain: int
    tokens_ours: int
    tokens_plain: int
    answer_round: AnswerRound
    identical: bool


@dataclass(frozen=True, slots=True)
class Ran:
    """A run.

    Attributes:
        traffic: all its requests.
        searching: those of the search alone, between baselines and test.
        evaluations: what was evaluated, in order: prompts, conversation, and each question with its reply and score.
        result: of the loop.
    """

    traffic: Traffic
    searching: Traffic
    evaluations: Sequence[tuple[object, ...]]
    result: LoopResult


def measure_loop(config: RunConfig, *, progress: Shown) -> LoopFigures:
    """Run the optimizer of `config` on its data with a scripted model, both ways, and a round of answer prompts.

    Raises:
        DataError: the data set is unusable.
        ConfigError: a part of the configuration does not exist or cannot be used.
    """
    splits = load_dataset(config).splits
    model = WeakModel([*splits.train, *splits.validation, *splits.test])
    with serve(model) as roles:

        def both(name: str, search: Optimizer, rounds: int) -> tuple[Ran, Ran]:
            made = []
            for reuse, how in ((True, "with reuse"), (False, "plain")):
                shown = _Phases(progress, f"{name}, {how}")
                made.append(_run(config, splits, (model, roles), search, rounds, reuse=reuse, observer=shown))
            return made[0], made[1]

        ours, plain = both("run", open_optimizer(config.optimizer), config.rounds)
        answers, plain_answers = both("answer round", answer_round, 1)
    return LoopFigures(
        calls_ours=ours.traffic.calls,
        calls_plain=plain.traffic.calls,
        tokens_ours=ours.traffic.tokens,
        tokens_plain=plain.traffic.tokens,
        answer_round=AnswerRound(
            calls_ours=answers.searching.calls,
            calls_plain=plain_answers.searching.calls,
        ),
        identical=_is_same(ours, plain) and _is_same(answers, plain_answers),
    )


def answer_round(tuning: Tuning) -> str:
    """An `Optimizer` that rewrites only prompts on which no stored memory depends."""
    return gated_rounds(tuning, _Answers(tuning))


class _Answers:
    """A guide that always chooses the first prompt that shapes no memory."""

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning

    def look(self, n: int) -> bool:
        return True

    def blame(self) -> Mapping[str, BlameShare]:
        return {}

    def choose(self, prompts: Mapping[str, PromptSpec], history: Sequence[Edit], seed: int) -> Choice | None:
        name = next((name for name, spec in prompts.items() if not spec.builds), None)
        return None if name is None else Choice(name, None, 0.0, "no memory depends on it")

    def examples(self, spec: PromptSpec) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
        return unattributed_examples(spec, self._tuning.operations, self._tuning.outcomes("train"))

    def propose(self, n: int, request: ProposalRequest, wanted: int) -> list[Proposal]:
        return self._tuning.sources.propose(n, request, wanted)


@dataclass(frozen=True, slots=True)
class _Noting(Evaluator):
    """An evaluator that notes what it evaluates, and without `reuse` starts from nothing each time.

    What the search looks up again in what it already has, it has in both cases.
    """

    reuse: bool = True
    evaluations: list[tuple[object, ...]] = field(default_factory=list)
    met: dict[tuple[object, ...], Outcome] = field(default_factory=dict)

    def evaluate(
        self, candidate: Candidate, conversations: Sequence[Conversation], *, progress: Progress | None = None
    ) -> list[Outcome]:
        if self.reuse:
            outcomes = Evaluator.evaluate(self, candidate, conversations, progress=progress)
        else:
            with tempfile.TemporaryDirectory(prefix="memtune-bench-") as folder:
                once = Evaluator(self.system, self.access, self.metric, Path(folder))
                outcomes = once.evaluate(candidate, conversations, progress=progress)
        prompts = tuple(sorted(candidate.items()))
        for conversation, outcome in zip(conversations, outcomes, strict=True):
            replies = [(case.question.id, case.reply, case.judgement.score) for case in outcome.cases]
            self.evaluations.append((prompts, conversation.id, outcome.tainted, replies))
            self.met[prompts, conversation.id] = outcome
        return outcomes

    def known(self, candidate: Candidate, conversations: Sequence[Conversation]) -> list[Outcome]:
        keys = [(tuple(sorted(candidate.items())), conversation.id) for conversation in conversations]
        return [self.met[key] for key in keys if key in self.met]


@dataclass(frozen=True, slots=True)
class _Phases:
    """An observer that passes progress on."""

    shown: Shown
    name: str

    def baseline(self, split: SplitName, score: Score) -> None:
        """Not shown."""

    def blame(self, iteration: int, signals: Sequence[Signal]) -> None:
        """Not shown."""

    def iteration(self, record: IterationRecord) -> None:
        """Not shown."""

    def verdict(self, verdict: Verdict) -> None:
        """Not shown."""

    def progress(self, phase: str, done: int, total: int, failed: int = 0) -> None:
        self.shown(f"{self.name}: {phase}", done, total)


def _run(
    config: RunConfig,
    splits: Splits,
    served: tuple[WeakModel, Mapping[Role, ModelSettings]],
    search: Optimizer,
    rounds: int,
    *,
    reuse: bool,
    observer: Observer,
) -> Ran:
    model, roles = served
    system = open_system(config.system, {**SCRIPTED_SETTINGS.get(config.system, {}), **config.system_settings})
    searching = Traffic()

    def counted(tuning: Tuning, /) -> str:
        nonlocal searching
        before = model.traffic
        try:
            return search(tuning)
        finally:
            searching = model.traffic - before

    with (
        tempfile.TemporaryDirectory(prefix="memtune-bench-") as name,
        ModelAccess.open(
            roles, cache_dir=Path(name, "cache") if reuse else None, limits=Limits(), concurrency=config.concurrency
        ) as access,
    ):
        before = model.traffic
        evaluator = _Noting(system, access, config.metric, Path(name, "memories"), reuse=reuse)
        result = optimize(
            evaluator=evaluator,
            splits=splits,
            seed_candidate=seed_candidate(system.prompts),
            settings=LoopSettings(rounds, config.proposals, config.seed),
            access=access,
            failures=Failures(open_attributor(config.attribution), access, system.operations),
            observer=observer,
            optimizer=counted,
            proposers=open_proposers(config.proposers),
        )
        return Ran(model.traffic - before, searching, evaluator.evaluations, result)


def _is_same(ours: Ran, plain: Ran) -> bool:
    """Whether two runs evaluated the same, with the same replies, and ended with the same result, costs aside."""
    return (ours.evaluations, _found(ours.result)) == (plain.evaluations, _found(plain.result))


def _found(result: LoopResult) -> dict[str, object]:
    found = asdict(result)
    del found["calls"]
    for record in found["iterations"]:
        for cost in ("calls_made", "calls_cached", "tokens"):
            del record[cost]
    return found
