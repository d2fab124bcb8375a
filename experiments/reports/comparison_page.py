"""Runs side by side on one page: how they differ, their prompts, and the questions that flipped, linked to traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.display.pages import address_from, template
from experiments.reports.text_difference import difference
from experiments.runs.cases_file import CaseReply, RunCase
from experiments.runs.comparison import RunComparison
from experiments.runs.folder import REPORT, RunFolder
from experiments.views.trace_page import question_anchor


def render_comparison(folders: Sequence[RunFolder], comparison: RunComparison, place: Path) -> str:
    """The page as HTML.

    Args:
        folders: of the runs.
        comparison: their comparison.
        place: the folder that the page is for; links to reports and traces are relative to it.
    """

    def link(folder: RunFolder, reply: CaseReply, case: RunCase) -> str | None:
        page = None if reply.page is None else folder.path / reply.page
        return f"{address_from(place, page)}{question_anchor(case.question_id)}" if page and page.is_file() else None

    return template("comparison.html").render(
        names=comparison.names,
        folders=folders,
        reports=[address_from(place, folder.path / REPORT) for folder in folders],
        comparison=comparison,
        difference=difference,
        link=link,
    )
