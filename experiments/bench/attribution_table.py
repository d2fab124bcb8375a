"""The figures of an attribution method, as a table and lines."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from experiments.display.tables import plain_table


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
        f"macro F1 {figure('macro_f1')}, calibration error {figure('ece')} "
        f"({figure('ece_cross_fitted')} cross-fitted)",
        f"operation among the acceptable ones {figure('oia_acceptable')}, type and operation {figure('joint')}, "
        f"type among the first two {figure('top2')}, abstained {figure('abstention')}, "
        f"distance {figure('distance', '.2f')}",
        f"cost of a case: {figure('ms_per_case', '.1f')} ms, {figure('calls_per_case', '.2f')} model calls, "
        f"{figure('tokens_per_case', '.0f')} tokens",
    ]


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
