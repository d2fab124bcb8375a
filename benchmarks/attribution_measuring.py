"""How often an attribution method is right on labelled cases, and the figures as a table and lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from attribution.attributor import ATTRIBUTORS, SURVIVAL, Attributor
from attribution.cases import Attribution, Case
from attribution.recordings import Recording
from benchmarks.attribution_scores import Prediction, score
from benchmarks.labelled_cases import Suite, as_complaints
from benchmarks.labelled_suites import load_suite, run
from experiments.bench.attribution import Progress
from experiments.data.file_download import fetch, is_here
from experiments.data.published.memtracebench import ELSEWHERE, NAME, remote_files
from experiments.display.tables import plain_table
from tracing.errors import ConfigError
from tracing.llm.access import ModelAccess

Make = Callable[[Recording], Attributor]


def read_suite(suite: str, home: Path, progress: Progress) -> Suite:
    """The suite at a path, or the public one, which is downloaded into the home once."""
    return load_suite(fetched(home, progress) if suite == NAME else Path(suite))


def fetched(home: Path, progress: Progress) -> Path:
    """The folder of the suite in a home; missing files are downloaded, and a stopped download is continued.

    Raises:
        DataError: the hub does not answer, or sends something else.
    """
    folder = home / "data" / NAME
    files = remote_files(folder)
    for count, file in enumerate(files):
        progress(f"download of {NAME}", count, len(files))
        if not is_here(file, folder):
            fetch(file, folder, otherwise=ELSEWHERE, arrived=lambda name, received, total: None)
    return folder


def needs_models(method: str) -> bool:
    """Whether a method may ask a model.

    Raises:
        ConfigError: there is no such method.
    """
    try:
        ATTRIBUTORS.check(method)
    except ConfigError as error:
        raise ConfigError(f"--method: {error}") from None
    return method != SURVIVAL


def complaints_in(suite: Suite) -> Suite:
    """The suite with cases of which only question and reply are known."""
    return replace(suite, name=f"{suite.name}, as complaints", cases=tuple(as_complaints(suite.cases)))


def remarks_on(suite: Suite) -> tuple[str, ...]:
    """What a reader of the figures must know about labels that were not read, or not wholly."""
    return (*(f"skipped: {line}" for line in suite.skipped), *(f"doubtful: {line}" for line in suite.doubts))


def measure(
    suite: Suite, make: Make, access: ModelAccess | None, *, seed: int, progress: Progress
) -> tuple[list[Prediction], dict[str, Any]]:
    """Attribute every case and score it: the predictions, and the figures of `score`, beside which

    calls_per_case: model calls made, cached ones left out.
    """
    total = len(suite.cases)
    numbers = iter(range(1, total + 1))
    before = calls_of(access)
    predictions = run(
        suite,
        lambda recording: Announced(make(recording), lambda: progress("attribution", next(numbers), total)),
        access,
    )
    figures = score(predictions, suite, seed=seed)
    return predictions, figures | {"calls_per_case": (calls_of(access) - before) / total}


class Announced:
    """A method that reports when it has finished a case."""

    def __init__(self, method: Attributor, tell: Callable[[], None]) -> None:
        self._method, self._tell = method, tell

    def attribute(self, case: Case) -> Attribution:
        try:
            return self._method.attribute(case)
        finally:
            self._tell()


def calls_of(access: ModelAccess | None) -> float:
    """Calls that an access has made so far; 0 without one."""
    return access.meter.totals()["calls_made"] if access is not None else 0


def accuracy_table(title: str) -> Table:
    """The table without rows."""
    table = plain_table(title, gap=2)
    for name in ("", "content", "n", "error type", "operation", "precision"):
        table.add_column(name, justify="left" if name in ("", "content") else "right", no_wrap=True)
    return table


def add_error_types(table: Table, figures: dict[str, Any]) -> None:
    """Add a row for each error type and one for all."""
    for error_type, row in figures["by_type"].items():
        table.add_row(error_type, "", *accuracy_cells(row), _share(row["precision"]))
    table.add_row("all", "", *accuracy_cells(figures), style="bold")


def accuracy_cells(row: dict[str, Any]) -> tuple[str, ...]:
    """n, error type accuracy and operation accuracy, with the intervals where they are known."""

    def part(key: str) -> str:
        low, high = row.get(f"{key}_ci") or (None, None)
        return _share(row[key]) if low is None or row[key] is None else f"{row[key]:.3f} ({low:.2f}–{high:.2f})"

    return str(row["n"]), part("eta"), part("oia")


def summary(figures: dict[str, Any]) -> list[str]:
    """What stands below the table."""

    def figure(key: str, form: str = ".3f") -> str:
        return "–" if figures[key] is None else format(figures[key], form)

    failed = figures["failed"]
    lost = f"warning: the method or its model failed on {failed:,} of {figures['n']:,} cases, which count as they ended"
    return [
        *([lost] if failed else []),
        f"majority baseline {figure('majority_eta')}, random {figure('random_eta')} (error type); "
        f"macro F1 {figure('macro_f1')}, calibration error {figure('ece')}",
        f"operation among the acceptable ones {figure('oia_acceptable')}, type and operation {figure('joint')}, "
        f"type among the first two {figure('top2')}, abstained {figure('abstention')}, "
        f"distance {figure('distance', '.2f')}",
        f"cost of a case: {figure('ms_per_case', '.1f')} ms, {figure('calls_per_case', '.2f')} model calls, "
        f"{figure('tokens_per_case', '.0f')} tokens",
    ]


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
