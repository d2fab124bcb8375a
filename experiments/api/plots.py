"""Plots of a run and of attributed failures, on matplotlib axes: `plot_loss` and `plot_scores` of the results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from experiments.display.charts import BASELINE, TUNED, bars_height, named
from tracing.errors import ConfigError, RunError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from experiments.runs.summary import Summary

NEUTRAL = "#767676"
"""Of text and lines: it has a contrast of 4.5 on white and on black."""
_WIDTH = 6.4


def loss_plot(sides: Sequence[tuple[str, dict[str, int]]], ax: Axes | None = None) -> Axes:
    """Draw how many wrong answers each operation is blamed for, a bar for each side.

    Args:
        sides: title → wrong answers by operation, in the order of the bars, the first on top.
        ax: axes to draw on; new ones by default.

    Raises:
        ConfigError: matplotlib is missing.
    """
    operations = list(dict.fromkeys(name for _, lost in sides for name in lost))[::-1]
    axes = _axes(ax, bars_height(len(operations) * len(sides)))
    from matplotlib.ticker import MaxNLocator

    thickness = 0.76 / len(sides)
    for number, ((title, lost), colour) in enumerate(zip(sides, cycle((BASELINE, TUNED)), strict=False)):
        middle = (len(sides) - 1) / 2 - number
        bars = axes.barh(
            [place + middle * thickness for place in range(len(operations))],
            [lost.get(name, 0) for name in operations],
            thickness * 0.9,
            color=colour if len(sides) > 1 else TUNED,
            label=named(title),
        )
        axes.bar_label(bars, padding=3, color=NEUTRAL)
    axes.set_yticks(range(len(operations)), [named(name) for name in operations])
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.set_xlabel("wrong answers that lost their information here")
    axes.margins(x=0.08)
    if len(sides) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
    _neutral(axes)
    return axes


def scores_plot(summary: Summary, ax: Axes | None = None) -> Axes:
    """Draw the gain of everything that met whole conversations against the tokens that it takes.

    Both are relative to the baseline on the same conversations, since not all attempts met all of them. The band is
    what the test says of the champion, with its 95 % interval.

    Raises:
        ConfigError: matplotlib is missing.
        RunError: nothing met whole conversations.
    """
    if not summary.tried:
        raise RunError(f"{summary.run_id}: nothing met whole conversations yet, so there is nothing to plot")
    axes = _axes(ax, 4.0)
    axes.axhline(0, color=BASELINE, linestyle="--", linewidth=1.2, label="baseline")
    if summary.delta is not None and summary.rewritten:
        axes.axhline(summary.delta, color=TUNED, linewidth=1.2, label=f"champion on the test: {summary.delta:+.3f}")
        if summary.delta_ci is not None:
            axes.axhspan(*summary.delta_ci, color=TUNED, alpha=0.14, linewidth=0, label="95 % interval of that")
    for label, chosen, colour in (
        ("attempt", [row for row in summary.tried if not row.champion], NEUTRAL),
        ("champion in the search", [row for row in summary.tried if row.champion], TUNED),
    ):
        if chosen:
            axes.scatter(
                [-100 * row.saved for row in chosen],
                [row.delta for row in chosen],
                s=44,
                edgecolors=colour,
                facecolors=[colour if row.front else "none" for row in chosen],
                label=label,
                zorder=3,
            )
    axes.set_xlabel("tokens a question, % more than the baseline (filled: nothing else beats it)")
    axes.set_ylabel(f"gain in {named(summary.metric)}")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
    _neutral(axes)
    return axes


def _axes(ax: Axes | None, height: float) -> Axes:
    """The axes to draw on: with pyplot, so that a notebook shows new ones."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ConfigError(f"plots need {error.name}; install it with: pip install 'memtune[run]'") from None
    figure = pyplot.figure(figsize=(_WIDTH, height), layout="constrained", facecolor="none")
    axes: Axes = figure.add_subplot(facecolor="none")
    return axes


def _neutral(axes: Axes) -> None:
    """Colours that can be read on a light page and on a dark one, whatever the style of the notebook."""
    axes.tick_params(colors=NEUTRAL, length=0)
    for label in (axes.xaxis.label, axes.yaxis.label, axes.title):
        label.set_color(NEUTRAL)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(NEUTRAL)
    for label in (*axes.get_yticklabels(), axes.yaxis.label):
        label.set_parse_math(False)  # a name may hold dollar signs
    legend = axes.get_legend()
    if legend is not None:
        legend.set_frame_on(False)
        for text in legend.get_texts():
            text.set_color(NEUTRAL)
