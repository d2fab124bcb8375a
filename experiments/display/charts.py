"""Charts: matplotlib figures as SVG fragments for a page, all in one style."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from experiments.display.terminal import one_line, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optimizer.evaluation.scores import Interval

INK, MUTED, GRID = "#1e293b", "#64748b", "#e2e8f0"
BASELINE, TUNED = "#94a3b8", "#2563eb"
HUES = ("#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#0891b2", "#be185d", "#4d7c0f")
"""Colours of series, told apart in greyscale by their lightness."""
LONGEST_NAME = 40
"""Characters of a name that a chart has room for."""

THEMED = {INK: "--ink", MUTED: "--muted", GRID: "--line"}
"""Colours that a page may override, as a dark one does."""

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


def bars(
    axes: Axes,
    names: Sequence[str],
    values: Sequence[float],
    *,
    colours: str | Sequence[str] = TUNED,
    cis: Sequence[Interval | None] | None = None,
) -> None:
    """Draw horizontal bars, the last one on top, with intervals where there are any."""
    places = range(len(names))
    axes.barh(places, values, 0.55, color=colours)
    axes.set_yticks(places, [named(name) for name in names])
    if cis is not None:
        axes.errorbar(values, places, xerr=whiskers(values, cis), fmt="none", ecolor=INK, elinewidth=1.1, capsize=3)
    axes.tick_params(axis="y", labelcolor=INK)
    axes.grid(axis="y", visible=False)


def share_bars(axes: Axes, rows: Iterable[tuple[str, float, Interval]]) -> None:
    """Draw names' shares with their intervals, the largest on top, on an axis from 0 to 100 %."""
    names, shares, cis = zip(*sorted(rows, key=lambda row: row[1]), strict=True)
    bars(axes, names, shares, cis=cis)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")


def whiskers(values: Sequence[float], cis: Sequence[Interval | None]) -> tuple[list[float], list[float]]:
    """How far the intervals of values reach below and above them; nan, which is not drawn, where there is none."""
    pairs = list(zip(values, cis, strict=True))
    low = [max(0.0, value - ci[0]) if ci else math.nan for value, ci in pairs]
    high = [max(0.0, ci[1] - value) if ci else math.nan for value, ci in pairs]
    return low, high


def bars_height(count: int) -> float:
    """Height in inches of a chart of so many bars."""
    return 0.9 + 0.42 * count


def named(name: str) -> str:
    """A name as a chart shows it: on one line that has room, without what would act on the page around it."""
    return shortened(one_line(name), LONGEST_NAME)


def svg(
    draw: Any,
    name: str,
    *,
    width: float = 5.6,
    height: float,
    grid: tuple[int, int] = (1, 1),
    paper: str | None = None,
) -> str:
    """Draw on fresh axes; return the SVG element alone, with ids that no other chart of the page has.

    Text from data is drawn literally, as long as it goes through `named`.

    Args:
        draw: called with the axes, an array of them where there are several.
        name: of the chart on its page.
        width, height: in inches.
        grid: rows and columns of axes.
        paper: background of a picture that is shown alone; without one it takes the colours of its page.
    """
    page = io.StringIO()
    with _figure(draw, name, width=width, height=height, grid=grid, paper=paper) as figure:
        figure.savefig(page, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = page.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)

    def ours(tag: re.Match[str]) -> str:
        renamed = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", tag[0])
        for colour, variable in THEMED.items() if paper is None else ():
            renamed = renamed.replace(colour, f"var({variable}, {colour})")
        return renamed

    text = re.sub(r"<[^>]*>", ours, text)  # in tags alone: a name may be that of a colour
    return text.replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1)


def png(draw: Any, *, width: float = 5.6, height: float) -> bytes:
    """Draw on fresh axes; return a picture on white, for what shows no SVG. As `svg` otherwise."""
    picture = io.BytesIO()
    with _figure(draw, "", width=width, height=height, grid=(1, 1), paper="white") as figure:
        figure.savefig(picture, format="png", dpi=144)
    return picture.getvalue()


@contextmanager
def _figure(
    draw: Any, name: str, *, width: float, height: float, grid: tuple[int, int], paper: str | None
) -> Iterator[Figure]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a glyph it lacks, which the page's fonts have, or of crowding
        figure = Figure(figsize=(width, height), layout="constrained")
        if paper is not None:
            figure.set_facecolor(paper)
        draw(figure.subplots(*grid))
        yield figure
