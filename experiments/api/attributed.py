"""Attributed failures as an object: tables for a program, a page for people."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.display.pages import picture_html, template
from tracing.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from attribution.recordings import Recording
    from attribution.survival.failure_picture import FailurePicture
    from experiments.attributing.attributions import Attributions, CaseLine
    from experiments.diagnosis.findings import Diagnosis


@dataclass(frozen=True, slots=True)
class Page:
    """One self-contained HTML page.

    Attributes:
        text: the page.
        path: the file it is in; None if it was not written to one.
        height: of its frame in a notebook, in pixels.
    """

    text: str
    path: Path | None = None
    height: int = 640

    def save(self, path: str | Path) -> Path:
        """Write the page to a file.

        Raises:
            OSError: it cannot be written.
        """
        file = Path(path)
        file.write_text(self.text, encoding="utf-8", errors="replace")
        return file

    def __repr__(self) -> str:
        return f"Page({str(self.path)!r})" if self.path is not None else f"Page of {len(self.text):,} characters"

    def _repr_html_(self) -> str:
        # A frame keeps the styles of page and notebook apart.
        style = f"width: 100%; height: {self.height}px; border: 1px solid #e2e8f0; border-radius: 8px"
        return f'<iframe sandbox style="{style}" srcdoc="{html.escape(self.text)}"></iframe>'


BLAMED = ("operation", "error_type", "confidence", "reason", "abstained")
"""Columns that say what went wrong with a case."""

_CASE = ("conversation", "question_id", "kind", "question", "answers", "reply", "score", "evidence")
_LOSS = ("operation", "prompt", "share", "share_low", "share_high", "failures")


@dataclass(frozen=True)
class Attributed:
    """What `memtune.attribute` found.

    Attributes:
        attributions: the result for each trace and case.
        title, subtitle: what was attributed, for people.
        folder: the paths of the traces are relative to it.
        recording: of a graph that was given as an object.

    Example:
        >>> import memtune
        >>> from attribution.conformance import recorded
        >>> recording, cases = recorded()
        >>> memtune.attribute(recording.graph, cases).blame["failures"].to_dict()
        {'answer': 2}
    """

    attributions: Attributions
    title: str
    subtitle: str
    folder: Path
    recording: Recording | None = None

    @cached_property
    def cases(self) -> pd.DataFrame:
        """The wrong answers, one a row: the question, the reply, and what is to blame."""
        import pandas as pd

        lines = self.attributions.cases.values()
        rows = [{**{name: getattr(line, name) for name in _CASE}, **blamed(line)} for line in lines]
        return pd.DataFrame(rows, columns=[*_CASE, *BLAMED])

    @cached_property
    def blame(self) -> pd.DataFrame:
        """The operations, the greatest share of the loss first (0 to 1), with its 95 % interval."""
        import pandas as pd

        rows = [
            (loss.operation, loss.prompt, loss.share, *loss.share_ci, loss.failures)
            for loss in self._facts.operations
            if loss.failures
        ]
        return pd.DataFrame(rows, columns=list(_LOSS)).set_index("operation")

    @property
    def lost(self) -> dict[str, int]:
        """By operation, how many wrong answers lost their information there, the most first."""
        return {loss.operation: loss.failures for loss in self._facts.operations if loss.failures}

    def plot_loss(self, ax: Axes | None = None) -> Axes:
        """Draw where information was lost, operation by operation.

        Args:
            ax: matplotlib axes to draw on; new ones by default.

        Raises:
            ConfigError: matplotlib is missing.

        Example:
            >>> axes = memtune.attribute("traces/").plot_loss()  # doctest: +SKIP
            >>> axes.figure.savefig("loss.svg")  # doctest: +SKIP
        """
        from experiments.api.plots import loss_plot

        return loss_plot([(self.title, self.lost)], ax)

    @cached_property
    def report(self) -> Page:
        """The diagnostic report, as `memtune diagnose` writes it."""
        from experiments.diagnosis.diagnosis_page import render_html

        return Page(render_html(self._facts, self._pictures))

    def picture(self, row: int = 0) -> Page:
        """Where a wrong answer lost what it needed: that of a row of `cases`, from left to right.

        Raises:
            DataError: there is no such row, or its trace is no longer at hand.
        """
        if not 0 <= row < len(self._facts.cases):
            raise DataError(f"picture({row}): there are {len(self._facts.cases)} wrong answers, counted from 0")
        case = self._facts.cases[row]
        if case.id not in self._pictures:
            raise DataError(f"picture({row}): {self.folder / case.line.trace} is not at hand; attribute again")
        page = template("picture.html").render(title=case.line.id, picture=picture_html(self._pictures[case.id]))
        return Page(page, height=420)

    @cached_property
    def _pictures(self) -> Mapping[str, FailurePicture]:
        from attribution.survival.survival_method import pictures_of
        from experiments.diagnosis.diagnosis_source import case_pictures

        if self.recording is None:
            return case_pictures(self._facts, self.folder)
        attributions = [case.line.attribution() for case in self._facts.cases]
        pictures = pictures_of(self.recording, attributions)
        return {case.id: picture for case, picture in zip(self._facts.cases, pictures, strict=True)}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results must know, first the problems of traces that could not be used as a whole."""
        return (*self._facts.damaged, *self._facts.notes)

    @cached_property
    def _facts(self) -> Diagnosis:
        from experiments.diagnosis.findings import diagnose

        return diagnose(self.attributions, title=self.title, subtitle=self.subtitle)

    def __repr__(self) -> str:
        counts = self._facts.counts
        damaged = f", {counts.damaged} of {counts.traces} traces with a problem" if counts.damaged else ""
        return (
            f"Attributed({self.title!r}: {counts.failures} wrong answers, {counts.attributed} attributed, "
            f"{counts.abstained} abstained from{damaged})"
        )

    def _repr_html_(self) -> str:
        return template("attributed.html").render(facts=self._facts, notes=self.notes)


def blamed(line: CaseLine | None) -> Mapping[str, Any]:
    """The values of the columns `BLAMED`; all None for a case that was right."""
    if line is None:
        return dict.fromkeys(BLAMED)
    main = line.main
    verdict = (None,) * 4 if main is None else (main.operation, main.error_type, main.confidence, main.reason)
    return dict(zip(BLAMED, (*verdict, line.failed or line.abstained), strict=True))
