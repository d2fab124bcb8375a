"""Output files of commands, and what they fetch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import TaskID

    from experiments.runs.summary import Summary


def show_result(summary: Summary, power: float | None = None) -> None:
    """Print what a run came to: scores, what changed, the verdict and the cost."""
    from experiments.display.literal_console import LiteralConsole, styled
    from experiments.display.tables import change_lines, result_table, verdict_lines

    console = LiteralConsole()
    console.print(
        styled((f"{summary.system} on {summary.dataset}, {summary.model}", "bold"), f"; score: {summary.metric}")
    )
    console.print(result_table(summary))
    for line in (*change_lines(summary), *verdict_lines(summary, power)):
        console.print(line)


def write_output_whole(path: Path, text: str, option: str) -> None:
    """As `write_output`, so that a reader finds the old text or the new one, also after a kill."""
    from tracing.files.whole_files import write_whole

    with _written(path, option):
        write_whole(path, text)


def write_output(path: Path, text: str, option: str) -> None:
    """Write the file that an option names; a lone surrogate, which is not valid UTF-8, is replaced.

    Raises:
        ConfigError: it cannot be written.
    """
    with _written(path, option):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")


@contextmanager
def _written(path: Path, option: str) -> Iterator[None]:
    from tracing.errors import ConfigError

    try:
        yield
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}); give {option} another file") from None


@contextmanager
def download_bars() -> Iterator[Callable[[str, int, int], None]]:
    """Bars on stderr, one a title, moved by a title with its bytes so far and in all, 0 if that is not known."""
    from rich.progress import BarColumn, DownloadColumn, TransferSpeedColumn

    from experiments.display.literal_console import LiteralConsole
    from experiments.display.progress import progress_on

    with progress_on(LiteralConsole(stderr=True), BarColumn(), DownloadColumn(), TransferSpeedColumn()) as progress:

        @functools.cache
        def task_of(title: str) -> TaskID:
            return progress.add_task(title, total=None)

        yield lambda title, received, size: progress.update(task_of(title), completed=received, total=size or None)
