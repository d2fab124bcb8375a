"""An HTML page as an object: shown by a notebook, written to a file, or read as text."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Page:
    """One self-contained HTML page.

    Attributes:
        text: the page.
        path: the file it is in; None if it was not written to one.
    """

    text: str
    path: Path | None = None

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
        style = "width: 100%; height: 640px; border: 1px solid #e2e8f0; border-radius: 8px"
        return f'<iframe sandbox style="{style}" srcdoc="{html.escape(self.text)}"></iframe>'
