"""Makes docs/pictures/walkthrough.svg: two minutes of memtune in a real terminal and on its real pages.

    memtune gateway --model qwen2.5-coder-0.5b    # in another terminal; paste the line that it prints into this one
    python docs/walkthrough/walkthrough.py

Everything in it is what commands print and pages show while this runs. Waiting is cut, and the path of the temporary
folder is written `~/demo`. The first captions tell of the replies in tests/experiments/tutorial_program.py, which that
model gave once; if it replies otherwise, serve those (`SmallModel` there). It needs `pip install '.[dev]'` and
Chromium, and takes as long as `make demo`.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from film import TALL, WIDTH, Film, Frame
from PIL import Image
from playwright.sync_api import sync_playwright
from terminal import Line, Run, Screen, screens

DOCS = Path(__file__).resolve().parents[1]
PICTURES = DOCS / "pictures"
LONGEST_WAIT = 0.8
"""Seconds that a terminal may stand still, but at the end of a scene, before all are brought to the scene's pace."""
COUNTING = 0.02
"""The same for a screen on which only a line or two were written anew, as counters are."""
SHORTEST = 0.12
COLOURS = 40
BELOW_LINKS = 72
"""Pixels above an element of a page: a report keeps its links at the top."""

RUN = os.environ.get("WALKTHROUGH_RUN", "memtune run demo")
"""How the demo is run; the film shows it, so it also shows another endpoint or seed."""


@dataclass(frozen=True, slots=True)
class Commands:
    """A scene in a terminal; the last screen stays for `hold` of its seconds."""

    caption: str
    seconds: float
    hold: float
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A scene on a page that a command wrote: the newest file of a pattern, scrolled to an element."""

    caption: str
    seconds: float
    file: str
    element: str
    keep: str | None = None
    """The name under which the element is kept by itself."""


@dataclass(frozen=True, slots=True)
class Card:
    """A scene of words alone."""

    caption: str
    seconds: float
    words: tuple[str, ...]


STORY: tuple[Commands | Page | Card, ...] = (
    Card(
        "memtune",
        4,
        (
            "Find the step of your agent's memory that loses the answer,",
            "and tune the prompt of that step.",
            "",
            "What follows is what commands printed and pages showed. Only waiting is cut.",
        ),
    ),
    Commands("1. An agent with a memory answers three questions, two of them wrongly", 8, 6, ("python chat.py",)),
    Commands(
        "2. Whose fault was it? Its trace tells, without a model",
        13,
        8,
        (
            'memtune attribute chat.jsonl --question "Where does Ines work?" --right "the harbour office"',
            "memtune diagnose complaints.jsonl",
        ),
    ),
    Page("3. One failure as one picture: the notes left her out", 14, "diagnosis.html", ".failure", "one-failure"),
    Commands("4. The whole loop: attribute, rewrite, test on conversations never seen", 36, 10, (RUN,)),
    Page("5. The report: the verdict first", 10, ".memtune/runs/*/report.html", "h1"),
    Page("6. What was changed", 10, ".memtune/runs/*/report.html", "#prompts"),
    Page("7. Which answers changed, and whose fault the wrong ones are", 9, ".memtune/runs/*/report.html", "#cases"),
    Commands(
        "8. The tuned prompt, for your own program",
        9,
        6,
        ("memtune export latest --to text --out tuned", "cat tuned/answer.txt"),
    ),
    Card(
        "Three ways in",
        7,
        (
            "See it work            make demo",
            "Diagnose your traces   memtune attribute traces/ --complaints log.csv",
            "Wrap your program      memtune init --wrap my_module:MyMemory",
        ),
    ),
)
STILL = "5. The report: the verdict first"


def frames(scene: Commands | Page | Card, folder: Path, browser: Any) -> Iterator[Frame]:
    """Plays a scene in a folder."""
    if isinstance(scene, Card):
        words = [(Run(4, text, "default", not number),) if text else () for number, text in enumerate(scene.words)]
        lines: list[Line] = [()] * 8 + words
        yield Frame(scene.seconds, scene.caption, tuple(lines))
    elif isinstance(scene, Commands):
        typed = " && ".join(
            f"printf '\\033[1;92m$\\033[0m %s\\n' '{command}' && {command} && echo" for command in scene.commands
        )
        for seconds, screen in _in_time(screens(f"cd {folder} && {typed}", dict(os.environ)), scene):
            yield Frame(seconds, scene.caption, tuple(_without_path(line, folder) for line in screen.lines))
    else:
        yield Frame(scene.seconds, scene.caption, _shot(scene, folder, browser))


def _without_path(line: Line, folder: Path) -> Line:
    return tuple(run._replace(text=run.text.replace(str(folder), "~/demo")) for run in line)


def _wait(before: Screen, after: Screen) -> float:
    changed = sum(old != new for old, new in zip(before.lines, after.lines, strict=True))
    return min(after.second - before.second, LONGEST_WAIT if changed > 2 else COUNTING)


def _in_time(shown: list[Screen], scene: Commands) -> Iterator[tuple[float, Screen]]:
    """Each screen that is seen, with its seconds; together those of the scene."""
    waits = [_wait(before, after) for before, after in pairwise(shown)]
    pace = (scene.seconds - scene.hold) / max(sum(waits), 0.001)
    passed = seen = 0.0
    for screen, wait in zip(shown, waits, strict=False):
        passed += wait * pace
        if passed - seen >= SHORTEST:
            yield passed - seen, screen
            seen = passed
    yield scene.seconds - seen, shown[-1]


def _shot(scene: Page, folder: Path, browser: Any) -> bytes:
    file = max(folder.glob(scene.file), key=lambda path: path.stat().st_mtime)
    page = browser.new_page(viewport={"width": WIDTH, "height": TALL}, color_scheme="light")
    page.goto(file.as_uri())
    page.evaluate("document.querySelectorAll('details:has(.failure)').forEach(details => details.open = true)")
    element = page.locator(scene.element).first
    page.evaluate("down => window.scrollTo(0, down)", element.bounding_box()["y"] - BELOW_LINKS)
    shot = _smaller(page.screenshot())
    page.close()
    if scene.keep is not None:
        _keep(file, scene.element, PICTURES / scene.keep, browser)
    return shot


def _keep(file: Path, element: str, place: Path, browser: Any) -> None:
    """An element of a page alone: its markup for the site, and a picture for where markup is not shown."""
    page = browser.new_page(viewport={"width": 1140, "height": 700}, color_scheme="light", device_scale_factor=2)
    page.goto(file.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    kept = page.locator(element).first
    place.with_suffix(".html").write_text(
        " ".join(kept.evaluate("kept => kept.outerHTML").split()) + "\n", encoding="utf-8"
    )
    place.with_suffix(".png").write_bytes(_smaller(kept.screenshot()))
    page.close()


def _smaller(png: bytes) -> bytes:
    out = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
        out, "PNG", optimize=True
    )
    return out.getvalue()


def main() -> None:
    """Writes the film."""
    tutorial = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    film, still = Film(), 0
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        for file, text in re.findall(r"```python\n# (\S+)\n(.*?)```", tutorial, re.DOTALL):
            (folder / file).write_text(text, encoding="utf-8")
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scene in STORY:
            print(scene.caption, file=sys.stderr)
            if scene.caption == STILL:
                still = film.length
            film.add(frames(scene, folder, browser))
        browser.close()
    told = "; ".join(scene.caption for scene in STORY)
    svg = film.svg("Two minutes of memtune", told, still)
    (PICTURES / "walkthrough.svg").write_text(svg, encoding="utf-8")
    print(f"{film.seconds:.0f} s, {film.length} frames, {len(svg) / 1e6:.2f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
