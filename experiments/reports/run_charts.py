"""The charts of a run's report that have intervals: scores and blame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.display.charts import (
    BASELINE,
    INK,
    TUNED,
    bars_height,
    named,
    share_bars,
    svg,
    whiskers,
)
from experiments.runs.summary import Summary
from optimizer.evaluation.scores import SPLITS, SplitName
from optimizer.tuning.round import RoundRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPLIT_TITLES: dict[SplitName, str] = {split: split.capitalize() for split in SPLITS}


def scores(summary: Summary) -> str | None:
    """Baseline and champion on each split with their intervals; None where nothing was scored."""
    splits = [split for split in SPLIT_TITLES if split in summary.baseline or split in summary.champion]
    if not splits:
        return None

    def draw(axes: Axes) -> None:
        for side, offset, colour, label in (
            ("baseline", -0.19, BASELINE, "baseline prompts"),
            ("champion", 0.19, TUNED, "champion"),
        ):
            side_scores = getattr(summary, side)
            points = [(place, side_scores[split]) for place, split in enumerate(splits) if split in side_scores]
            if not points:
                continue
            spots = [place + offset for place, _ in points]
            heights = [score.score for _, score in points]
            axes.bar(spots, heights, 0.34, color=colour, label=label)
            reach = whiskers(heights, [score.ci for _, score in points])
            axes.errorbar(spots, heights, yerr=reach, fmt="none", ecolor=INK, elinewidth=1.1, capsize=3)
            for spot, (_, score) in zip(spots, points, strict=True):
                ink = "white" if colour == TUNED else "black"  # the bars keep their colours on a dark page
                axes.annotate(
                    f"{score.score:.2f}", (spot, 0), xytext=(0, 5), textcoords="offset points", ha="center", color=ink
                )
        axes.set_xticks(range(len(splits)), [SPLIT_TITLES[split] for split in splits])
        axes.set_ylim(0, 1)
        axes.set_ylabel(named(summary.metric))
        axes.grid(axis="x", visible=False)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)

    return svg(draw, "scores", height=3.3)


def blame(record: RoundRecord) -> str | None:
    """Share of the failures by operation with their intervals, largest on top; None where there was no failure."""
    if not record.blame:
        return None

    def draw(axes: Axes) -> None:
        share_bars(axes, ((name, share.share, share.ci) for name, share in record.blame.items()))
        axes.set_xlabel("share of the failures, with 95 % interval")

    return svg(draw, "blame", height=bars_height(len(record.blame)))
