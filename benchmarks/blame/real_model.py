"""The same question with a real model: the fact memory's own prompts, spoiled, and runs as `memtune run` makes them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from benchmarks.blame.one_search import ENOUGH, ROUNDS
from benchmarks.optimize.contenders import OURS, contenders_of
from benchmarks.optimize.figures import ContenderRun, OptimizeFigures
from benchmarks.optimize.measuring import Plan, measure_optimizers
from experiments.bench.attribution import Progress
from experiments.data.loaders import Dataset
from experiments.runs.config import RunConfig
from experiments.runs.folder import BASELINE
from tracing.errors import ConfigError
from tracing.suggestions import unknown_names
from tracing.systems.prompts import Candidate, baseline_candidate
from tracing.systems.registry import open_system

SYSTEM = "fact-memory"

CONTENDERS: Mapping[str, str] = {
    "blame": OURS,
    "bandit": "no-blame",
    "random": "random",
    "miprov2": "miprov2",
    "gepa": "gepa",
}
"""Contenders by their names in `python -m benchmarks optimize`; the others need what only a script can tell."""


class RealFlaw(BaseModel):
    """A flaw of a shipped prompt; see `real_flaws.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    prompt: str
    replaces: str
    by: str

    def spoiled(self, texts: Candidate) -> Candidate:
        """The texts of all prompts with this flaw in one of them.

        Raises:
            ConfigError: they are not those that it spoils.
        """
        text = texts.get(self.prompt, "")
        if self.replaces not in text:
            raise ConfigError(f"--flaw: {self.name} spoils {self.replaces!r}, which no prompt {self.prompt!r} has here")
        return {**texts, self.prompt: text.replace(self.replaces, self.by)}


class RealRun(BaseModel):
    """What one contender did about one flaw.

    Attributes:
        flaw, prompt, contender, seed: of the run.
        spoiled, shipped, score: held-out scores of the spoiled prompts, of the shipped ones, and of the champion.
        won_back: the share of what the flaw costs that the champion wins back, held out; None where it costs nothing.
        calls_until_enough: calls until the champion has won back nine tenths of it on validation; None if it has not.
    """

    flaw: str
    prompt: str
    contender: str
    seed: int
    spoiled: float
    shipped: float
    score: float
    won_back: float | None
    calls_until_enough: int | None


class RealFigures(BaseModel):
    """All runs that have finished."""

    model: str
    calls: int
    runs: tuple[RealRun, ...]


def real_flaws(names: Collection[str] | None = None) -> list[RealFlaw]:
    """The flaws of these names, or all, in order.

    Raises:
        ConfigError: there is no flaw of a name.
    """
    data = tomllib.loads(Path(__file__).with_name("real_flaws.toml").read_text(encoding="utf-8"))
    flaws = {flaw["name"]: RealFlaw.model_validate(flaw) for flaw in data["flaws"]}
    if unknown := set(names or ()) - flaws.keys():
        raise ConfigError(f"--flaw: there is no {unknown_names(sorted(unknown), flaws)}; known: {', '.join(flaws)}")
    return [flaw for name, flaw in flaws.items() if names is None or name in names]


def measure_real(
    config: RunConfig,
    dataset: Dataset,
    folder: Path,
    names: Sequence[str],
    *,
    seeds: Sequence[int],
    calls: int,
    progress: Progress,
    finished: Callable[[RealFigures], None],
) -> RealFigures:
    """Make every run that is not finished yet; called again with the same folder, it goes on.

    Args:
        names: of contenders.
        finished: called with the figures so far after each flaw.

    Raises:
        ConfigError: a contender cannot be run with a real model.
        MemtuneError: as `benchmarks.optimize.measuring.measure_optimizers`.
    """
    if other := [name for name in names if name not in CONTENDERS]:
        raise ConfigError(
            f"--contender: {other[0]!r} runs with the scripted model only; with --model choose from "
            f"{', '.join(CONTENDERS)}"
        )

    def measured(place: str, start: Path | None, contenders: Sequence[str]) -> OptimizeFigures:
        prompts = config.prompts.model_copy(update={"start": start})
        plan = Plan(
            config.model_copy(update={"system": SYSTEM, "prompts": prompts}),
            dataset,
            systems=(SYSTEM,),
            contenders=contenders_of([CONTENDERS[name] for name in contenders]),
            seeds=tuple(seeds),
            calls=calls,
            rounds=ROUNDS,
        )
        return measure_optimizers(
            plan,
            folder / place,
            progress=lambda what, done, total: progress(f"{place}: {what}", done, total),
            finished=lambda figures: None,
        )

    (shipped,) = measured("shipped", None, ()).runs
    runs: list[RealRun] = []
    for flaw in real_flaws():
        start = folder / f"{flaw.name}-prompts"
        start.mkdir(parents=True, exist_ok=True)
        for name, text in flaw.spoiled(baseline_candidate(open_system(SYSTEM).prompts)).items():
            (start / f"{name}.txt").write_text(text, encoding="utf-8")
        own = measured(flaw.name, start, names).runs
        (spoiled,) = (run for run in own if run.contender == BASELINE)
        runs += [_compared(flaw, run, spoiled, shipped) for run in own if run is not spoiled]
        finished(RealFigures(model=config.models.task.model, calls=calls, runs=tuple(runs)))
    return RealFigures(model=config.models.task.model, calls=calls, runs=tuple(runs))


def _compared(flaw: RealFlaw, run: ContenderRun, spoiled: ContenderRun, shipped: ContenderRun) -> RealRun:
    lowest, highest, score = (_mean(measured.scores) for measured in (spoiled, shipped, run))
    before, after = spoiled.curve[0].score, shipped.curve[0].score
    goal = before + ENOUGH * (after - before)
    reached = next((point.calls for point in run.curve if point.score >= goal), None) if after > before else None
    by_name = {of_bench: name for name, of_bench in CONTENDERS.items()}
    return RealRun(
        flaw=flaw.name,
        prompt=flaw.prompt,
        contender=by_name[run.contender],
        seed=run.seed,
        spoiled=lowest,
        shipped=highest,
        score=score,
        won_back=(score - lowest) / (highest - lowest) if highest > lowest else None,
        calls_until_enough=reached,
    )


def _mean(scores: Mapping[str, float]) -> float:
    return sum(scores.values()) / len(scores)
