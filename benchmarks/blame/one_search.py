"""One search for what a planted flaw costs: the product's own search and optimizers, with a scripted model."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from attribution.attributor import SURVIVAL, AttributorFactory, open_attributor
from benchmarks.blame.contenders import CONTENDERS, Contender, Misleading
from benchmarks.blame.pipelines import Pipeline
from benchmarks.blame.proposing import ScriptedProposer
from benchmarks.blame.rules import rules, spoiled
from benchmarks.blame.scripted import Author, RepliesInMemory, ScriptedModel, scripted_access
from benchmarks.blame.stories import Stories
from benchmarks.blame.worth import Worth
from benchmarks.phases import Phases
from optimizer.evaluation.evaluator import Evaluator, Outcome, Progress
from optimizer.evaluation.scores import Settings
from optimizer.proposers.text_limits import TextLimits
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopSettings
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import Tuning
from tracing.errors import BudgetExceededError
from tracing.llm.accounting.meter import Usage
from tracing.systems.baseline import with_baseline
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate, PromptSpec, baseline_candidate
from tracing.systems.protocol import MemorySystem

METRIC = "short_contains"

ENOUGH = 0.9
"""The share of the cost at which a search has done what is measured, and ends."""

ROUNDS = 50
"""More than a search makes before its calls end it, as in `python -m benchmarks optimize`."""


@dataclass(frozen=True, slots=True)
class Task:
    """A search to make.

    Attributes:
        system: name of a pipeline.
        prompt, flaw: what is spoiled.
        contender: name of what searches.
        seed: of conversations, model, author and search.
        calls: that it may make, baselines and test aside.
    """

    system: str
    prompt: str
    flaw: str
    contender: str
    seed: int
    calls: int


@dataclass(frozen=True, slots=True)
class Search:
    """What a search did.

    Attributes:
        task: what was to be searched.
        cost: what the flaw costs: the share of all questions that are wrong because of it.
        blamed: the share of the blame that the spoiled prompt has at the start; None where nothing attributes.
        spent: calls made.
        crowned: calls before each champion, and the share of the cost that it wins back.
        stopped: why it ended.
    """

    task: Task
    cost: float
    blamed: float | None
    spent: int
    crowned: tuple[tuple[int, float], ...]
    stopped: str

    def won_back(self, calls: int) -> float:
        """The share of the cost that is won back after so many calls; below 0 where a champion is worse."""
        return next((share for spent, share in reversed(self.crowned) if spent <= calls), 0.0)

    @property
    def calls_until_enough(self) -> int | None:
        """Calls until nine tenths are won back; None if they are not."""
        return next((spent for spent, won in self.crowned if won >= ENOUGH), None)


@dataclass(frozen=True, slots=True)
class _Beginning:
    """What every search of one planted flaw begins with: the spoiled baseline's outcomes, and what they took."""

    system: MemorySystem
    worth: Worth
    stories: Stories
    flawed: Candidate
    lowest: float
    highest: float
    outcomes: Mapping[str, Outcome]
    replies: RepliesInMemory
    usage: Mapping[str, Usage]
    folder: tempfile.TemporaryDirectory[str]

    @property
    def memories(self) -> Path:
        """Folder of the memories that the baseline built."""
        return Path(self.folder.name, "memories")


@lru_cache(maxsize=1)
def _beginning(system_name: str, prompt: str, flaw: str, seed: int) -> _Beginning:
    """It is the same for all contenders, whose searches follow one another."""
    pipeline, stories = Pipeline(system_name), Stories(seed)
    faultless = baseline_candidate(pipeline.prompts)
    flawed = {**faultless, prompt: spoiled(faultless[prompt], rules().flaw(flaw))}
    worth, replies, system = Worth(pipeline, seed), RepliesInMemory(), with_baseline(pipeline, flawed)
    folder = tempfile.TemporaryDirectory(prefix="memtune-blame-")
    place = Path(folder.name)
    with scripted_access(ScriptedModel(pipeline, stories, seed), Author(seed), place / "cache", replies) as access:
        evaluator = Evaluator(system, access, METRIC, place / "memories")
        every = [conversation for split in stories.splits.named().values() for conversation in split]
        outcomes = {outcome.conversation.id: outcome for outcome in evaluator.evaluate(flawed, every)}
        usage = {name: access.meter.usage_of(name) for name in access.meter.snapshot()}
    lowest, highest = worth.of(flawed), worth.of(faultless)
    return _Beginning(system, worth, stories, flawed, lowest, highest, outcomes, replies, usage, folder)


def search(task: Task) -> Search:
    """Make a search; equal tasks have equal results.

    Raises:
        MemtuneError: as `optimizer.search.optimize.optimize`.
    """
    contender, pipeline = CONTENDERS[task.contender], Pipeline(task.system)
    begun = _beginning(task.system, task.prompt, task.flaw, task.seed)
    cost = begun.highest - begun.lowest
    crowned: list[tuple[int, float]] = []
    model = ScriptedModel(pipeline, begun.stories, task.seed)
    with (
        tempfile.TemporaryDirectory(prefix="memtune-blame-") as folder,
        scripted_access(model, Author(task.seed), Path(folder, "cache"), RepliesInMemory(begun.replies)) as access,
    ):
        for name, usage in begun.usage.items():
            access.meter.count(name, usage)
        memories = shutil.copytree(begun.memories, Path(folder, "memories"))
        optimizer = open_optimizer(contender.optimizer)
        observer = _Observer(lambda *progress: None, "")

        def watched(tuning: Tuning, /) -> Stopped:
            before = access.budget.spent.calls

            def note(candidate: Candidate) -> None:
                won = (begun.worth.of(candidate) - begun.lowest) / cost if cost > 0 else 0.0
                crowned.append((access.budget.spent.calls - before, won))
                if won >= ENOUGH:
                    # Ends every optimizer cleanly.
                    raise BudgetExceededError("what the flaw costs is won back")

            # Optimizers use of it what a tuning has.
            return optimizer(cast("Tuning", _Watched(tuning, note)))

        result = optimize(
            evaluator=_Evaluator(begun.system, access, METRIC, memories, beginning=begun),
            splits=begun.stories.splits,
            baseline=begun.flawed,
            settings=LoopSettings(
                ROUNDS,
                seed=task.seed,
                limits=_Unlimited(),
                selector=contender.selector,
                blame=contender.blame,
                calls=task.calls,
            ),
            access=access,
            failures=Failures(_attributor(contender, pipeline, task), access, pipeline.operations),
            observer=observer,
            optimizer=watched,
            proposers=[ScriptedProposer],
        )
    operation = pipeline.prompts[task.prompt].operation
    blamed = None if observer.blamed is None or not contender.blame else observer.blamed.get(operation, 0.0)
    spent = result.search.calls if result.search else 0
    return Search(task, cost, blamed, spent, tuple(crowned), str(result.stopped))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluator(Evaluator):
    """Knows what the baseline does from the beginning."""

    beginning: _Beginning

    def evaluate(
        self, candidate: Candidate, conversations: Sequence[Conversation], *, progress: Progress | None = None
    ) -> list[Outcome]:
        """As `Evaluator.evaluate`."""
        outcomes = self._begun(candidate, conversations)
        return (
            outcomes if outcomes is not None else Evaluator.evaluate(self, candidate, conversations, progress=progress)
        )

    def known_outcomes(self, candidate: Candidate, conversations: Sequence[Conversation]) -> list[Outcome]:
        """As `Evaluator.known_outcomes`."""
        outcomes = self._begun(candidate, conversations)
        return outcomes if outcomes is not None else Evaluator.known_outcomes(self, candidate, conversations)

    def _begun(self, candidate: Candidate, conversations: Sequence[Conversation]) -> list[Outcome] | None:
        if candidate != self.beginning.flawed:
            return None
        return [self.beginning.outcomes[conversation.id] for conversation in conversations]


def _attributor(contender: Contender, pipeline: Pipeline, task: Task) -> AttributorFactory:
    method = open_attributor(SURVIVAL)
    if contender.planted is None:
        return method
    steered = [operation for operation in pipeline.operations if operation.prompt is not None]
    (right,) = (operation for operation in steered if operation.prompt == task.prompt)
    wrong = random.Random(f"wrong {task.seed}").choice([spec for spec in steered if spec is not right])  # noqa: S311
    return Misleading(method, right if contender.planted == "right" else wrong, contender.share)


class _Unlimited(TextLimits):
    """Nothing is asked of texts: the author knows nothing of conversations that could stand in them."""

    def applied(
        self, specs: Mapping[str, PromptSpec], train: Sequence[Conversation], keys: Sequence[str | None] = ()
    ) -> dict[str, PromptSpec]:
        return dict(specs)


class _Observer(Phases):
    """Keeps the blame of the first attribution."""

    blamed: Mapping[str, float] | None = None

    def blame(self, n: int, signals: Any) -> None:
        if self.blamed is None:
            object.__setattr__(self, "blamed", {signal.operation: signal.share for signal in signals})


class _Watched:
    """A tuning whose crownings are noted."""

    def __init__(self, tuning: Tuning, note: Any) -> None:
        self._tuning, self._note = tuning, note

    def crown(self, candidate: Candidate, settings: Settings | None = None, *, confirm: bool = True) -> bool:
        """As `Tuning.crown`."""
        crowned = self._tuning.crown(candidate, settings, confirm=confirm)
        if crowned:
            self._note(candidate)
        return crowned

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tuning, name)
