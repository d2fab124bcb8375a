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
    for seen in cases:
        if seen.trace is not None:
            by_trace[seen.trace].append(seen)
    for trace, group in by_trace.items():
        title = f"{group[0].case.conversation} · {folder.id}"
        page = render_page(group[0].graph, title, [(seen.case, seen.attribution) for seen in group])
        folder.write(page_of(trace).relative_to(folder.path).as_posix(), page)
