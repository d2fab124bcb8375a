"""Every relative link of the documents leads somewhere, to a heading too, and every program they run is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("docs", "examples", "benchmarks")
PAGES = [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)")
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub names them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    dead = []
    for file, anchor in _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8"))):
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            dead.append(f"{file}#{anchor}" if anchor else file)
    assert not dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_program_of_ours_that_a_page_runs_is_there(page: Path) -> None:
    named = re.findall(r"\bpython ((?:docs|examples|tests)/\S+\.py)", page.read_text(encoding="utf-8"))
    assert [file for file in named if not (ROOT / file).exists()] == []


def test_every_file_that_the_architecture_names_is_there() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    files = re.findall(r"`((?:tracing|attribution|optimizer|experiments)/[\w/]+(?:\.py|/))`", page)
    assert files
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_site_has_every_page() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert {page.name for page in (ROOT / "docs").glob("*.md")} == set(re.findall(r"\b([\w-]+\.md)\b", site))


def test_agents_are_told_of_every_page() -> None:
    listed = re.findall(r"\]\(([\w/-]+\.md)\)", (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8"))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert sorted(listed) == sorted({*pages, "decisions/index.md"})


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, queue = set[Path](), [ROOT / "README.md"]
    for page in queue:
        seen.add(page)
        for file, _ in _LINK.findall(page.read_text(encoding="utf-8")):
            target = (page.parent / file).resolve()
            if file and target.suffix == ".md" and target.exists() and target not in {*seen, *queue}:
                queue.append(target)
    assert set((ROOT / "docs").rglob("*.md")) - {ROOT / "docs" / "index.md"} <= seen


def test_the_licence_of_every_dependency_is_listed() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").partition("## Licences")[2]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [lines for extra, lines in project["optional-dependencies"].items() if extra != "dev"]
    needed = {re.split(r"[\[<>=~! ]", line)[0] for lines in (project["dependencies"], *extras) for line in lines}
    assert {name for name in needed if name != "memtune" and not re.search(rf"\b{re.escape(name)}\b", page)} == set()
