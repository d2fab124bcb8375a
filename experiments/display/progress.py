"""Progress: a live line per task on a terminal, periodic lines of text elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeElapsedColumn
from rich.text import Text

from experiments.display.literal_console import LiteralConsole
from experiments.display.terminal import visible
from experiments.runs.intervals import money_text

EVERY_SECONDS = 25.0
"""Seconds between progress lines if the output is not a terminal, so that one comes at least every 30 s."""


@contextmanager
def progress_on(console: LiteralConsole, *columns: ProgressColumn) -> Iterator[Progress]:
    """Show tasks, each with its description and then `columns`.

    A terminal has a live line for each task. Elsewhere, such as in a file or a pipe, the unfinished tasks are printed
    every `EVERY_SECONDS`, without the columns that draw; where there is none, those that ended last.
    """
    progress = Progress(DescriptionColumn(), *columns, console=console, transient=True, disable=not console.is_terminal)
    if console.is_terminal:
        with progress:
            yield progress
        return
    ended = threading.Event()
    clock = progress.get_time
    since = clock()

    def print_lines() -> None:
        while not ended.wait(EVERY_SECONDS):
            working = f"working, {clock() - since:.0f} s"
            unfinished = [_line(progress, task) for task in progress.tasks if not task.finished]
            all_tasks = [_line(progress, task) for task in progress.tasks]
            for line in unfinished or ["; ".join([working, *all_tasks])]:
                console.print(line, soft_wrap=True)

    lines = threading.Thread(target=print_lines, name="memtune-progress", daemon=True)
    lines.start()
    try:
        yield progress
    finally:
        ended.set()
        lines.join()


@contextmanager
def sending_progress(*, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Progress on stderr of what is sent to MLflow, with the time that the rest takes at the speed so far."""
    if quiet:
        yield lambda completed, total: None
        return
    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), LeftColumn()
    with progress_on(LiteralConsole(stderr=True), *columns) as progress:
        task = progress.add_task("sending to MLflow; Ctrl-C leaves the rest for later", total=None)
        yield lambda completed, total: progress.update(task, completed=completed, total=total)


class LeftColumn(ProgressColumn):
    """How long the rest of a task takes at its speed so far; nothing before there is any."""

    def render(self, task: Task) -> Text:
        if task.total is None or not task.completed or not task.elapsed or task.finished:
            return Text("")
        return Text(f"about {task.elapsed / task.completed * (task.total - task.completed):.0f} s left")


def _line(progress: Progress, task: Task) -> str:
    texts = (column.render(task) for column in progress.columns if isinstance(column, ProgressColumn))
    return " ".join(text.plain for text in texts if isinstance(text, Text) and text.plain)


class FailedColumn(ProgressColumn):
    """How many of a task's items failed, by its field `failed`; nothing where none did."""

    def render(self, task: Task) -> Text:
        failed = task.fields.get("failed", 0)
        return Text(f"{failed} failed" if failed else "", style="red")


class CallsColumn(ProgressColumn):
    """Calls made and money spent so far, by the budget in a task's field `budget`; nothing where there is none.

    An item of a phase can take minutes, and this shows that it goes on.
    """

    def render(self, task: Task) -> Text:
        budget = task.fields.get("budget")
        if budget is None:
            return Text("")
        spent = budget.spent
        money = f", money {money_text(spent.money)}" if spent.money else ""
        return Text(f"{spent.calls:,} calls{money}", style="dim")


class DescriptionColumn(ProgressColumn):
    """What a task is, as text."""

    def render(self, task: Task) -> Text:
        return Text(visible(task.description))
