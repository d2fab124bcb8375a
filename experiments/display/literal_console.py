"""A console that prints text literally, for tables and colours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.status import Status
from rich.text import Text

from experiments.display.terminal import visible


class LiteralConsole(Console):
    """A console that never reads text as markup, an emoji code or an escape sequence.

    Coloured text is a `Text` (see `styled`). What goes into a pipe or a file is neither wrapped nor cut. A console that
    is `quiet` prints nothing.
    """

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        super().__init__(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)
        if not self.is_terminal:
            self.width = 10_000

    def render_str(self, text: str, **options: Any) -> Text:
        """A text as it is, whatever options say of markup."""
        return super().render_str(visible(text), **{**options, "emoji": False, "markup": False, "highlight": False})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The last step before the terminal: here a `Text` is made safe too."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def status(self, status: RenderableType, **options: Any) -> Status:
        """A line that says what is going on, with a spinner."""
        return super().status(self.render_str(status) if isinstance(status, str) else status, **options)


def styled(*parts: str | tuple[str, str]) -> Text:
    """Text of several parts, each as it is or with its style."""
    return Text.assemble(*(visible(part) if isinstance(part, str) else (visible(part[0]), part[1]) for part in parts))
