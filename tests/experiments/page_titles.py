"""What a page with a script says in a browser: the script tells it as the page's title."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
NO_BROWSER = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


def told_by(page: str, script: str, folder: Path, *, at: str = "") -> list[str]:
    """What a script at the end of a page pushes to `told`, as texts without the sign `¦`."""
    telling = f"<script>const told = []; {script} document.title = told.join('¦');</script></body>"
    return html.unescape(title_of(page.replace("</body>", telling), folder, at=at)).split("¦")


def title_of(page: str, folder: Path, *, at: str = "") -> str:
    """The title that a page has given itself in a browser, opened with `at` after its address."""
    (folder / "t.html").write_text(page, encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM or "", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}",
         "--dump-dom", (folder / "t.html").as_uri() + at],
        capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title is not None
    return title[1]
