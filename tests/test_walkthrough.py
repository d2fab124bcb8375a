"""The walk-through shows what commands printed, in two minutes, and is small enough for the README."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import click
import pytest

from experiments.command import cli

pytest.importorskip("pyte")
ROOT = Path(__file__).resolve().parents[1]
FILM = ROOT / "docs" / "pictures" / "walkthrough.svg"
MOST_BYTES = 1_000_000
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The modules of the script, which are in no package."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "walkthrough"))
    import film
    import terminal
    import walkthrough

    yield {"film": film, "terminal": terminal, "walkthrough": walkthrough}
    for name in ("film", "terminal", "walkthrough"):
        sys.modules.pop(name)


def parsed(svg: str) -> Any:
    return ElementTree.fromstring(svg)  # noqa: S314 (our own)


def texts(element: ElementTree.Element) -> str:
    return "\n".join(text.text or "" for text in element.iter(f"{SVG}text"))


def test_the_film_is_of_this_story_and_lasts_two_minutes(parts: dict[str, ModuleType]) -> None:
    content = FILM.read_text(encoding="utf-8")
    assert len(content.encode()) < MOST_BYTES
    shown = texts(parsed(content))
    story = parts["walkthrough"].STORY
    assert [scene.caption for scene in story if scene.caption not in shown] == []
    (seconds,) = re.findall(r"film ([\d.]+)s", content)
    assert float(seconds) == sum(scene.seconds for scene in story) == pytest.approx(120, abs=5)
    assert re.findall(r"(?<![~\w.])/(?:tmp|home|root|work)\b", shown) == [], "a path of the machine it was made on"


def test_the_kept_failure_has_the_form_of_the_pages_picture() -> None:
    kept = (FILM.parent / "one-failure.html").read_text(encoding="utf-8")
    templates = ROOT / "experiments" / "templates"
    form = (templates / "failure.html").read_text(encoding="utf-8")
    form += (templates / "failure.css").read_text(encoding="utf-8")
    classes = {name for names in re.findall(r'class="([^"]+)"', kept) for name in names.split()}
    assert "lost" in classes
    assert {name for name in classes if name not in form} == set()


def test_every_command_of_the_story_is_one_of_memtunes(parts: dict[str, ModuleType]) -> None:
    scenes = parts["walkthrough"].STORY
    lines = [line for scene in scenes for line in (*getattr(scene, "commands", ()), *getattr(scene, "words", ()))]
    named = [re.search(r"\bmemtune (\w+)(.*)", line) for line in lines]
    commands = [found for found in named if found]
    assert len(commands) > 4
    for command in commands:
        known = cli.get_command(click.Context(cli), command[1])
        assert known is not None
        options = {option for parameter in known.params for option in parameter.opts}
        assert set(re.findall(r"--[\w-]+", command[2])) <= options


def test_a_terminal_tells_its_screens_with_colours(parts: dict[str, ModuleType]) -> None:
    terminal = parts["terminal"]
    command = "printf 'one\\n'; sleep 0.3; printf '\\033[1;31mtwo\\033[0m 2\\rTWO'"
    first, *_, last = terminal.screens(command, dict(os.environ))
    assert first.lines[0] == (terminal.Run(0, "one", "default", False),)
    assert first.second < last.second
    assert [run.text for run in last.lines[1]] == ["TWO 2"]
    with pytest.raises(RuntimeError, match="exit code 3"):
        terminal.screens("exit 3", dict(os.environ))


def test_a_film_shows_each_frame_for_its_time_and_a_line_is_there_once(parts: dict[str, ModuleType]) -> None:
    film, terminal = parts["film"], parts["terminal"]
    line = (terminal.Run(0, "<b>&", "red", True),)
    frames = [film.Frame(1, "first", (line,)), film.Frame(3, "second", (line, line))]
    made = film.Film()
    made.add(frames)
    drawn = parsed(made.svg("title", "told", still=1))
    assert texts(drawn).count("<b>&") == 1
    assert len(list(drawn.iter(f"{SVG}use"))) == 3
    style = drawn.find(f"{SVG}style").text
    assert "film 4s" in style
    assert f"25.000% {{ transform: translateX(-{film.WIDTH}px) }}" in style
