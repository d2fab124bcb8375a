"""The pages of a run's traces, to which its report links every case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from experiments.runs.cases_file import page_of
from experiments.runs.folder import RunFolder
from experiments.runs.seen_cases import SeenCase
from experiments.views.trace_page import render_page


def write_pages(folder: RunFolder, cases: Iterable[SeenCase]) -> None:
    """Write the page of every trace that cases were seen in, beside it.

    Raises:
        RunError: one cannot be written.
    """
    by_trace: dict[Path, list[SeenCase]] = defaultdict(list)
    for seen_case in cases:
        if seen_case.trace is not None:
            by_trace[seen_case.trace].append(seen_case)
    for trace, group in by_trace.items():
        title = f"{group[0].case.conversation} · {folder.id}"
        page = render_page(group[0].graph, title, [(seen_case.case, seen_case.attribution) for seen_case in group])
        folder.write(page_of(trace).relative_to(folder.path).as_posix(), page)
