"""The comparison as a picture: the champion's score over calls, and held-out scores with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.optimize.contenders import OURS
from benchmarks.optimize.figures import ContenderRun, OptimizeFigures, Point, SystemFigures
from experiments.display.charts import BASELINE as BASELINE_COLOUR
from experiments.display.charts import HUES, MUTED, bars, named, svg
from experiments.runs.folder import BASELINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def picture(figures: OptimizeFigures) -> str | None:
    """An SVG file with a row for each memory system; None while no run has finished."""
    systems = figures.systems
    if not systems:
        return None
    hues = _hues(figures)

    def draw(grid: Any) -> None:
        for system, (curves, scores) in zip(systems, grid.reshape(len(systems), 2), strict=True):
            runs = [run for run in figures.runs if run.system == system.system]
            _curves(curves, system, runs, figures.calls, hues)
            _scores(scores, system, hues)

    size = (len(systems), 2)
    text = svg(draw, "optimizers", width=11, height=0.6 + 3.6 * len(systems), grid=size, paper="white")
    return f"{text.rstrip()}\n"


def _hues(figures: OptimizeFigures) -> dict[str, str]:
    """A colour for each contender: blue for the default search, grey for the baseline prompts."""
    others = [name for name in dict.fromkeys(run.contender for run in figures.runs) if name not in (BASELINE, OURS)]
    drawn = {name: HUES[1 + place % (len(HUES) - 1)] for place, name in enumerate(others)}
    return {BASELINE: BASELINE_COLOUR, OURS: HUES[0], **drawn}


def _curves(axes: Axes, system: SystemFigures, runs: Sequence[ContenderRun], calls: int, hues: dict[str, str]) -> None:
    for contender in system.contenders:
        curve = mean_curve([run.curve for run in runs if run.contender == contender.contender], calls)
        axes.step(
            [point.calls for point in curve],
            [point.score for point in curve],
            where="post",
            color=hues[contender.contender],
            linewidth=2.4 if contender.contender == OURS else 1.4,
            linestyle="--" if contender.contender == BASELINE else "-",
        )
    axes.set_xlim(0, calls)
    axes.set_xlabel("model calls of the search")
    axes.set_ylabel("validation score, mean over seeds")
    axes.set_title(named(system.system), loc="left", color=MUTED)


def _scores(axes: Axes, system: SystemFigures, hues: dict[str, str]) -> None:
    contenders = list(reversed(system.contenders))
    bars(
        axes,
        [contender.contender for contender in contenders],
        [contender.score for contender in contenders],
        colours=[hues[contender.contender] for contender in contenders],
        cis=[contender.ci for contender in contenders],
    )
    axes.set_xlim(0, 1)
    axes.set_xlabel(f"held-out score on {system.conversations} conversations, with 95 % interval")


def mean_curve(curves: Sequence[Sequence[Point]], calls: int) -> list[Point]:
    """The mean of curves of steps, from 0 to `calls`."""
    places = sorted({0, calls, *(point.calls for curve in curves for point in curve if point.calls < calls)})
    return [Point(calls=place, score=fmean(_at(curve, place) for curve in curves)) for place in places]


def _at(curve: Sequence[Point], calls: int) -> float:
    return [point.score for point in curve if point.calls <= calls][-1]
