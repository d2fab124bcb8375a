"""What the loop saves by paying only for what changed: the same run twice, with its reuse and without any.

The plain run has neither response cache nor stored memories nor recorded inputs (`plain_run`), and makes its calls.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from attribution.attributor import open_attributor
from benchmarks.attribution_suites import SCRIPTED_SETTINGS
from benchmarks.phases import Phases
from benchmarks.plain_run import Met, NotingEvaluator, PlainTuning
from benchmarks.scripted_model import serve
from benchmarks.weak_model import Traffic, WeakModel
from experiments.bench.attribution import Progress
from experiments.data.loaders import limit_conversations, load_dataset
from experiments.runs.config import RunConfig
from optimizer.evaluation.scores import Splits
from optimizer.proposers.rewrites import open_proposers
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import Optimizer, open_optimizer
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopResult, LoopSettings, Observer
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import Tuning
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits, ModelSettings, Role
from tracing.systems.prompts import baseline_candidate
from tracing.systems.registry import open_system


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
        replies: what each candidate that was evaluated replied on each conversation, with the scores.
        result: of the loop.
    """

    traffic: Traffic
    searching: Traffic
    replies: Mapping[Met, set[tuple[object, ...]]]
    result: LoopResult


def measure_loop(config: RunConfig, conversations: int, *, progress: Progress) -> LoopFigures:
    """Run the optimizer of `config` on its data with a scripted model, both ways, and a round of answer prompts.

    Args:
        conversations: how many the run takes, over all splits; the round of answer prompts takes twice as many.

    Raises:
        DataError: the data set is unusable.
        ConfigError: a part of the configuration does not exist or cannot be used.
    """
    every = load_dataset(config).splits
    few, more = limit_conversations(every, conversations), limit_conversations(every, 2 * conversations)
    model = WeakModel([*more.train, *more.validation, *more.test])
    with serve(model) as roles:

        def both(name: str, splits: Splits, search: Optimizer, rounds: int) -> tuple[Ran, Ran]:
            made = []
            for reuse, how in ((True, "with reuse"), (False, "plain")):
                shown = Phases(progress, f"{name}, {how}")
                made.append(_run(config, splits, (model, roles), search, rounds, reuse=reuse, observer=shown))
            return made[0], made[1]

        search = open_optimizer(config.optimizer)
        ours, plain = both("run", few, search, config.planned_rounds)
        answers, plain_answers = both("answer round", more, _of_answers(search), 1)
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


def _of_answers(search: Optimizer) -> Optimizer:
    """The same search, of the prompts on which no stored memory depends."""
    return lambda tuning: search(cast("Tuning", _AnswersOnly(tuning)))


class _AnswersOnly:
    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self.prompts = {name: spec for name, spec in tuning.prompts.items() if not spec.builds}
        self.local = tuning.local
        self.local.objectives = {name: each for name, each in self.local.objectives.items() if name in self.prompts}

    def beside(self, name: str) -> _AnswersOnly:
        """As `Tuning.beside`."""
        return _AnswersOnly(self._tuning.beside(name))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tuning, name)


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

    def counted(tuning: Tuning, /) -> Stopped:
        nonlocal searching
        before = model.traffic
        try:
            # Optimizers use of it what a tuning has.
            return search(tuning if reuse else cast("Tuning", PlainTuning(tuning, evaluator)))
        finally:
            searching = model.traffic - before

    with (
        tempfile.TemporaryDirectory(prefix="memtune-bench-") as name,
        ModelAccess.open(
            roles, cache_dir=Path(name, "cache") if reuse else None, limits=Limits(), concurrency=config.concurrency
        ) as access,
    ):
        before = model.traffic
        evaluator = NotingEvaluator(system, access, config.metric, Path(name, "memories"), reuse=reuse)
        result = optimize(
            evaluator=evaluator,
            splits=splits,
            baseline=baseline_candidate(system.prompts),
            settings=LoopSettings(rounds, config.proposals, config.seed),
            access=access,
            failures=Failures(open_attributor(config.attribution, matcher=config.matcher), access, system.operations),
            observer=observer,
            optimizer=counted,
            proposers=open_proposers(config.proposers),
        )
        return Ran(model.traffic - before, searching, evaluator.replies, result)


def _is_same(ours: Ran, plain: Ran) -> bool:
    """Whether two runs evaluated the same, with the same replies, and ended with the same result, costs aside."""
    return (ours.replies, _found(ours.result)) == (plain.replies, _found(plain.result))


def _found(result: LoopResult) -> dict[str, object]:
    found = asdict(result)
    del found["calls"], found["search"]
    for record in found["rounds"]:
        for cost in ("calls_made", "calls_cached", "tokens", "search_calls"):
            del record[cost]
    return found
