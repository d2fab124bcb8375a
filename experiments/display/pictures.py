"""The report's charts: matplotlib figures as SVG fragments that can stand in a page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from experiments.display.terminal import one_line
from experiments.runs.summary import Summary, SummaryIteration
from optimizer.search.results import SplitName

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPLITS: tuple[tuple[SplitName, str], ...] = (("train", "Train"), ("val", "Validation"), ("test", "Test"))
INK, MUTED, GRID = "#1e293b", "#64748b", "#e2e8f0"
SEED, TUNED = "#94a3b8", "#2563eb"
HUES = ("#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#0891b2", "#be185d", "#4d7c0f")
"""One colour an operation, told apart also in grey by their lightness and by the markers."""
MARKERS = "osD^vPX*"
LONGEST_NAME = 40
"""Characters of a name that a chart has room for."""

THEMED = {INK: "--ink", MUTED: "--muted", GRID: "--line"}
"""Colours that a page may set otherwise, as a dark one does."""

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


def scores(summary: Summary) -> str | None:
    """Seed and champion on each split with their intervals; None where nothing was scored."""
    shown = [(split, title) for split, title in SPLITS if split in summary.baseline or split in summary.champion]
    if not shown:
        return None

    def draw(axes: Axes) -> None:
        for side, offset, colour, label in (
            ("baseline", -0.19, SEED, "seed prompts"),
            ("champion", 0.19, TUNED, "champion"),
        ):
            found = getattr(summary, side)
            points = [(place, found[split]) for place, (split, _) in enumerate(shown) if split in found]
            if not points:
                continue
            spots = [place + offset for place, _ in points]
            heights = [score.score for _, score in points]
            axes.bar(spots, heights, 0.34, color=colour, label=label)
            low = [max(0.0, score.score - score.ci[0]) for _, score in points]
            high = [max(0.0, score.ci[1] - score.score) for _, score in points]
            axes.errorbar(spots, heights, yerr=[low, high], fmt="none", ecolor=INK, elinewidth=1.1, capsize=3)
            for spot, (_, score) in zip(spots, points, strict=True):
                ink = "white" if colour == TUNED else INK
                axes.annotate(
                    f"{score.score:.2f}", (spot, 0), xytext=(0, 5), textcoords="offset points", ha="center", color=ink
                )
        axes.set_xticks(range(len(shown)), [title for _, title in shown])
        axes.set_ylim(0, 1)
        axes.set_ylabel(named(summary.metric))
        axes.grid(axis="x", visible=False)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)

    return svg(draw, "scores", height=3.3)


def blame(iteration: SummaryIteration) -> str | None:
    """Share of the failures by operation with their intervals, largest on top; None where there was no failure."""
    rows = sorted(iteration.blame.items(), key=lambda item: item[1].share)
    if not rows:
        return None

    def draw(axes: Axes) -> None:
        bars(axes, [name for name, _ in rows], [one.share for _, one in rows], cis=[one.ci for _, one in rows])
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.set_xlabel("share of the failures, with 95 % interval")

    return svg(draw, "blame", height=bars_height(len(rows)))


def bars(
    axes: Axes,
    names: Sequence[str],
    values: Sequence[float],
    *,
    colours: str | Sequence[str] = TUNED,
    cis: Sequence[tuple[float, float]] | None = None,
) -> None:
    """Draw horizontal bars, the last one on top, with intervals where there are any."""
    places = range(len(names))
    axes.barh(places, values, 0.55, color=colours)
    axes.set_yticks(places, [named(name) for name in names])
    if cis is not None:
        low = [max(0.0, value - ci[0]) for value, ci in zip(values, cis, strict=True)]
        high = [max(0.0, ci[1] - value) for value, ci in zip(values, cis, strict=True)]
        axes.errorbar(values, places, xerr=[low, high], fmt="none", ecolor=INK, elinewidth=1.1, capsize=3)
    axes.tick_params(axis="y", labelcolor=INK)
    axes.grid(axis="y", visible=False)


def bars_height(count: int) -> float:
    """Height in inches of a chart of so many bars."""
    return 0.9 + 0.42 * count


def blame_by_iteration(iterations: Sequence[SummaryIteration]) -> str | None:
    """How the blame moves while prompts change; None with fewer than two iterations."""
    if len(iterations) < 2:
        return None
    names = sorted({name for record in iterations for name in record.blame})

    def draw(axes: Axes) -> None:
        for place, name in enumerate(names):
            points = [(record.n, record.blame[name].share) for record in iterations if name in record.blame]
            hue = HUES[place % len(HUES)]
            style: dict[str, Any] = {
                "color": hue,
                "marker": MARKERS[place % len(MARKERS)],
                "linewidth": 1.8,
                "markersize": 5,
            }
            # A label that begins with an underscore would have no entry in the legend.
            axes.plot([n for n, _ in points], [share for _, share in points], label=str(place), **style)
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.set_xticks([record.n for record in iterations])
        axes.set_xlabel("iteration")
        legend = axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, handlelength=1.4, columnspacing=1.2
        )
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_text(named(name))

    return svg(draw, "blame-by-iteration", height=3.3)


def validation_curve(summary: Summary) -> str | None:
    """The champion's validation score by iteration, filled where a proposal was accepted; None without iterations."""
    if not summary.iterations:
        return None

    def draw(axes: Axes) -> None:
        start = summary.baseline.get("val")
        points = [(0, start.score)] if start else []
        points += [(record.n, record.val_score) for record in summary.iterations]
        axes.step([n for n, _ in points], [score for _, score in points], where="post", color=TUNED, linewidth=1.8)
        for kept, label in ((True, "accepted"), (False, "kept the champion")):
            spots = [(record.n, record.val_score) for record in summary.iterations if record.accepted is kept]
            face = TUNED if kept else "white"
            if spots:
                axes.plot(*zip(*spots, strict=True), "o", color=TUNED, markerfacecolor=face, markersize=7, label=label)
        if start:
            axes.axhline(start.score, color=SEED, linewidth=1.2, linestyle="--", label="seed prompts")
        axes.set_xticks([n for n, _ in points])
        axes.set_ylim(0, 1)
        axes.set_xlabel("iteration")
        axes.set_ylabel(f"{named(summary.metric)} on validation")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, handlelength=1.6)

    return svg(draw, "validation", height=3.3)


def cost(summary: Summary) -> str | None:
    """Calls made and saved by the cache in each iteration; None without iterations."""
    if not summary.iterations:
        return None

    def draw(axes: Axes) -> None:
        places = [record.n for record in summary.iterations]
        made = [record.calls_made for record in summary.iterations]
        axes.bar(places, made, 0.55, color=TUNED, label="made")
        cached = [record.calls_cached for record in summary.iterations]
        axes.bar(places, cached, 0.55, bottom=made, color=SEED, label="served from the cache")
        axes.set_xticks(places)
        axes.set_xlabel("iteration")
        axes.set_ylabel("model calls")
        axes.grid(axis="x", visible=False)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)

    return svg(draw, "cost", height=3.3)


def named(name: str) -> str:
    """A name as a chart shows it: on one line that has room, without what would act on the page around it."""
    shown = one_line(name)
    return shown if len(shown) <= LONGEST_NAME else f"{shown[: LONGEST_NAME - 1]}…"


def svg(draw: Any, name: str, *, width: float = 5.6, height: float) -> str:
    """Draw on fresh axes; return the SVG element alone, with ids that no other chart of the page has.

    Text from data is drawn literally, as long as it goes through `named`.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a glyph it lacks, which the page's fonts have, or of crowding
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.subplots())
        page = io.StringIO()
        figure.savefig(page, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = page.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)

    def ours(tag: re.Match[str]) -> str:
        found = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", tag[0])
        for colour, variable in THEMED.items():
            found = found.replace(colour, f"var({variable}, {colour})")
        return found

    text = re.sub(r"<[^>]*>", ours, text)  # in tags alone: a name may be that of a colour
    return text.replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1)
