"""The charts of a diagnosis: matplotlib figures as SVG fragments, drawn as those of a run's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from experiments.display.charts import INK, MUTED, TUNED, bars, bars_height, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from experiments.diagnosis.findings import FlowStep, OperationLoss
    from optimizer.evaluation.ladder import Rung

LOST = "#dc2626"
_CURVE = 40
_GAP = 0.07
_THINNEST = 0.012


def loss(operations: Sequence[OperationLoss], *, prompts_known: bool) -> str | None:
    """Share of the loss by operation with its interval, the largest on top, grey without a prompt; None if none."""
    rows = [operation for operation in reversed(operations) if operation.failures]
    if not rows:
        return None

    def draw(axes: Axes) -> None:
        colours = [TUNED if row.prompt is not None or not prompts_known else MUTED for row in rows]
        shares, cis = [row.share for row in rows], [row.share_ci for row in rows]
        bars(axes, [row.operation for row in rows], shares, colours=colours, cis=cis)
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.set_xlabel("share of the loss, with 95 % interval")

    return svg(draw, "loss by operation", height=bars_height(len(rows)))


def error_types(counts: Mapping[str, int]) -> str | None:
    """How many failures of each error type, the most frequent on top; None where there are none."""
    rows = list(counts.items())[::-1]
    if not rows:
        return None
    from matplotlib.ticker import MaxNLocator

    def draw(axes: Axes) -> None:
        bars(axes, [name for name, _ in rows], [count for _, count in rows])
        most = max(count for _, count in rows)
        for place, (_, count) in enumerate(rows):
            axes.annotate(str(count), (count, place), xytext=(5, 0), textcoords="offset points", va="center")
        axes.set_xlim(0, most * 1.12)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("wrong answers")

    return svg(draw, "error types", height=bars_height(len(rows)))


def ladder(rungs: Sequence[Rung]) -> str | None:
    """Score of each rung of the oracle ladder, the unchanged pipeline on top; None if there is no ladder."""
    rows = list(reversed(rungs))
    if not rows:
        return None

    def draw(axes: Axes) -> None:
        bars(axes, [rung.name for rung in rows], [rung.score for rung in rows], cis=[rung.ci for rung in rows])
        axes.set_xlim(0, 1)
        axes.set_xlabel("score, with 95 % interval")

    return svg(draw, "oracle ladder", height=bars_height(len(rows)))


def flow(steps: Sequence[FlowStep]) -> str | None:
    """How far the information of each case got: a stream that thins where it was lost; None if there is none."""
    if not steps or not steps[0].reached:
        return None
    total = steps[0].reached
    deepest = max(step.lost for step in steps) / total
    floor = -0.22

    def draw(axes: Axes) -> None:
        top = [1.0] * _CURVE
        for place, step in enumerate(steps):
            height = max(step.reached / total, _THINNEST if step.reached else 0.0)
            axes.bar(place, height, 0.05, bottom=1 - height, color=INK, linewidth=0)
            axes.annotate(
                f"{step.reached}", (place, 1), xytext=(0, 22), textcoords="offset points", ha="center", weight="bold"
            )
            axes.annotate(step.name, (place, 1), xytext=(0, 8), textcoords="offset points", ha="center", color=MUTED)
            if place == 0:
                continue
            before, start = 1 - steps[place - 1].reached / total, place - 1 + 0.025
            xs = [start + (place - 0.025 - start) * at / (_CURVE - 1) for at in range(_CURVE)]
            axes.fill_between(xs, top, [1 - step.reached / total] * _CURVE, color=TUNED, alpha=0.55, linewidth=0)
            if step.lost:
                width = step.lost / total
                ends = [start + (place - 0.3 - start) * at / (_CURVE - 1) for at in range(_CURVE)]
                eased = [(at / (_CURVE - 1)) ** 2 * (3 - 2 * at / (_CURVE - 1)) for at in range(_CURVE)]
                upper = [1 - step.reached / total + (floor - (1 - step.reached / total)) * part for part in eased]
                lower = [before + (floor - width - before) * part for part in eased]
                axes.fill_between(ends, upper, lower, color=LOST, alpha=0.6, linewidth=0)
                axes.annotate(
                    f"{step.lost} lost",
                    (place - 0.3, floor - width / 2),
                    xytext=(5, 0),
                    textcoords="offset points",
                    va="center",
                    color=LOST,
                )
        axes.set_xlim(-0.35, len(steps) - 0.6)
        axes.set_ylim(floor - deepest - _GAP, 1.25)
        axes.axis("off")

    return svg(draw, "where information was lost", width=9.6, height=3.6)
