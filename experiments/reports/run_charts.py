"""The charts of a run's report: scores, blame, validation over time, and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.display.charts import (
    BASELINE,
    HUES,
    INK,
    MARKERS,
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
    from matplotlib.legend import Legend

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
                ink = "white" if colour == TUNED else INK
                axes.annotate(
                    f"{score.score:.2f}", (spot, 0), xytext=(0, 5), textcoords="offset points", ha="center", color=ink
                )
        axes.set_xticks(range(len(splits)), [SPLIT_TITLES[split] for split in splits])
        axes.set_ylim(0, 1)
        axes.set_ylabel(named(summary.metric))
        axes.grid(axis="x", visible=False)
        _legend_above(axes, columns=2)

    return svg(draw, "scores", height=3.3)


def blame(record: RoundRecord) -> str | None:
    """Share of the failures by operation with their intervals, largest on top; None where there was no failure."""
    if not record.blame:
        return None

    def draw(axes: Axes) -> None:
        share_bars(axes, ((name, share.share, share.ci) for name, share in record.blame.items()))
        axes.set_xlabel("share of the failures, with 95 % interval")

    return svg(draw, "blame", height=bars_height(len(record.blame)))


def blame_by_round(rounds: Sequence[RoundRecord]) -> str | None:
    """How the blame moves while prompts change; None with fewer than two rounds."""
    if len(rounds) < 2:
        return None
    names = sorted({name for record in rounds for name in record.blame})

    def draw(axes: Axes) -> None:
        for place, name in enumerate(names):
            points = [(record.n, record.blame[name].share) for record in rounds if name in record.blame]
            hue, marker = HUES[place % len(HUES)], MARKERS[place % len(MARKERS)]
            # A label that begins with an underscore would have no entry in the legend.
            label = str(place)
            axes.plot(*zip(*points, strict=True), color=hue, marker=marker, linewidth=1.8, markersize=5, label=label)
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.set_xticks([record.n for record in rounds])
        axes.set_xlabel("round")
        legend = _legend_above(axes, columns=3, handlelength=1.4, columnspacing=1.2)
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_text(named(name))

    return svg(draw, "blame-by-round", height=3.3)


def validation_curve(summary: Summary) -> str | None:
    """The champion's validation score by round, filled where a proposal was accepted; None without rounds."""
    if not summary.rounds:
        return None

    def draw(axes: Axes) -> None:
        start = summary.baseline.get("validation")
        points = [(0, start.score)] if start else []
        points += [(record.n, record.validation_score) for record in summary.rounds]
        axes.step([n for n, _ in points], [score for _, score in points], where="post", color=TUNED, linewidth=1.8)
        for is_accepted, label in ((True, "accepted"), (False, "kept the champion")):
            spots = [(record.n, record.validation_score) for record in summary.rounds if record.accepted is is_accepted]
            face = TUNED if is_accepted else "white"
            if spots:
                axes.plot(*zip(*spots, strict=True), "o", color=TUNED, markerfacecolor=face, markersize=7, label=label)
        if start:
            axes.axhline(start.score, color=BASELINE, linewidth=1.2, linestyle="--", label="baseline prompts")
        axes.set_xticks([n for n, _ in points])
        axes.set_ylim(0, 1)
        axes.set_xlabel("round")
        axes.set_ylabel(f"{named(summary.metric)} on validation")
        _legend_above(axes, columns=3, handlelength=1.6)

    return svg(draw, "validation", height=3.3)


def cost(summary: Summary) -> str | None:
    """Calls made and saved by the cache in each round; None without rounds."""
    if not summary.rounds:
        return None

    def draw(axes: Axes) -> None:
        places = [record.n for record in summary.rounds]
        calls_made = [record.calls_made for record in summary.rounds]
        axes.bar(places, calls_made, 0.55, color=TUNED, label="made")
        cached = [record.calls_cached for record in summary.rounds]
        axes.bar(places, cached, 0.55, bottom=calls_made, color=BASELINE, label="served from the cache")
        axes.set_xticks(places)
        axes.set_xlabel("round")
        axes.set_ylabel("model calls")
        axes.grid(axis="x", visible=False)
        _legend_above(axes, columns=2)

    return svg(draw, "cost", height=3.3)


def _legend_above(axes: Axes, *, columns: int, **spacing: float) -> Legend:
    return axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.2, **spacing)
