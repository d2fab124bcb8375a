"""Runs side by side on one page: their results, and the questions that flipped, each linked to its traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.display.pages import address_from, template
from experiments.reports import run_charts
from experiments.reports.run_charts import SPLIT_TITLES
from experiments.runs.cases_file import CaseReply, RunCase, read_cases
from experiments.runs.comparison import RunComparison, flips_of
from experiments.runs.folder import REPORT, RunFolder
from experiments.views.trace_page import question_anchor
from tracing.errors import RunError


def render_comparison(folders: Sequence[RunFolder], comparison: RunComparison, place: Path) -> str:
    """The page as HTML.

    Args:
        folders: of the runs.
        comparison: their comparison.
        place: the folder that the page is for; links to reports and traces are relative to it.
    """
    from markupsafe import Markup

    cases: list[list[RunCase]] = []
    missing: list[str] = []
    for folder in folders:
        try:
            cases.append(read_cases(folder))
        except RunError as error:
            missing.append(str(error))

    def link(folder: RunFolder, reply: CaseReply, case: RunCase) -> str | None:
        page = None if reply.page is None else folder.path / reply.page
        return f"{address_from(place, page)}{question_anchor(case.question_id)}" if page and page.is_file() else None

    drawn = run_charts.front([(folder.id, front) for folder, front in zip(folders, comparison.tried, strict=True)])
    return template("comparison.html").render(
        # Drawn by us from numbers and ids of runs, which matplotlib escapes.
        front=Markup(drawn) if drawn else None,  # noqa: S704
        names=[folder.id for folder in folders],
        folders=folders,
        reports=[address_from(place, folder.path / REPORT) for folder in folders],
        comparison=comparison,
        missing=missing,
        splits=[] if missing else flips_of(cases),
        titles=SPLIT_TITLES,
        link=link,
    )
