"""The blame of an iteration as a picture: MLflow draws a chart for each metric, with an axis that fits its values."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from experiments.display.charts import bars, bars_height, png
from experiments.mlflow_tracking.store import TrackingStore
from experiments.mlflow_tracking.writes import Write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from attribution.signals import Signal

KEY = "blame/share of wrong answers"
"""Name of the picture; what stands before the slash is its section among the charts."""

_SIDE = 3.6
"""In inches: MLflow shows pictures in small squares, in which writing should be legible."""

_FOLDER = "images"
"""Where MLflow keeps pictures; their names have the step between signs of its own."""


class LogBlameChart(Write):
    """All operations' shares of the loss at one step, largest on top, on an axis from 0 to 100 %.

    The blame of the first iteration is that of the baseline and has step 0, as the baseline's score has: of several
    pictures MLflow shows that first.
    """

    kind: Literal["blame chart"] = "blame chart"
    step: int
    shares: tuple[tuple[str, float, tuple[float, float]], ...]

    def apply(self, store: TrackingStore, folder: Path) -> None:
        from PIL import Image

        run = store.run_id(self.run)
        there = re.compile(rf"\Wstep\W{self.step}\W")
        if any(there.search(file.path) for file in store.client.list_artifacts(run, _FOLDER)):
            return
        height = max(_SIDE, bars_height(len(self.shares)))
        picture = Image.open(io.BytesIO(png(self._draw, width=_SIDE, height=height)))
        store.client.log_image(run, picture, key=KEY, step=self.step, synchronous=True)

    def _draw(self, axes: Axes) -> None:
        rows = sorted(self.shares, key=lambda row: row[1])
        bars(axes, [row[0] for row in rows], [row[1] for row in rows], cis=[row[2] for row in rows])
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.set_xlabel(f"share of wrong answers, iteration {self.step + 1}", loc="right")


def blame_chart(iteration: int, signals: Sequence[Signal]) -> list[LogBlameChart]:
    """The write, if anything was blamed."""
    shares = tuple((signal.operation, signal.share, signal.share_ci) for signal in signals)
    return [LogBlameChart(step=iteration - 1, shares=shares)] if shares else []
