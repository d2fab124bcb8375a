"""What MkDocs does not do by itself: pages that a search prefers, links beyond the pages, pages as Markdown."""

from __future__ import annotations

import re
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_LESS_WANTED = {"decisions/": 0.05}
"""Why something was built as it is answers few of the questions that people type into a search."""

_BEYOND = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)\s]*)\)")
_FAILURE = re.compile(r"!\[[^\]]*\]\((pictures/one-failure)\.png\)")
"""A picture of which the site has the markup, which fits any width and takes the colours that a reader chose."""
_DIALOG = 'data-md-component="search" role="dialog"'


def on_config(config: Any) -> Any:
    """The repository is named by the end of its address."""
    if config.repo_url and not config.repo_name:
        config.repo_name = "/".join(config.repo_url.rstrip("/").split("/")[-2:])
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Ranks the page in searches; what lies beside the pages is linked in the repository, or else named only."""
    path = page.file.src_uri
    for folder, boost in _LESS_WANTED.items():
        if path.startswith(folder):
            page.meta.setdefault("search", {"boost": boost})

    if _FAILURE.search(markdown):
        page.meta["hide"] = ["toc"]  # for its width

    def linked(link: re.Match[str]) -> str:
        target, _, anchor = link[2].partition("#")
        file = (ROOT / "docs" / PurePosixPath(path).parent / target).resolve()
        if file.is_relative_to(ROOT / "docs"):
            return link[0]
        if not config.repo_url:
            return link[1]
        kind = "tree" if file.is_dir() else "blob"
        address = f"{config.repo_url}/{kind}/HEAD/{file.relative_to(ROOT).as_posix()}"
        return f"[{link[1]}]({address}{'#' * bool(anchor)}{anchor})"

    return _FAILURE.sub(_failure, _BEYOND.sub(linked, markdown))


def _failure(picture: re.Match[str]) -> str:
    style = " ".join((ROOT / "experiments" / "templates" / "failure.css").read_text(encoding="utf-8").split())
    style = style.replace(".failure", ".md-typeset .failure")  # before what the theme says of every list
    return f"<style>{style}</style>\n" + (ROOT / "docs" / f"{picture[1]}.html").read_text(encoding="utf-8").rstrip()


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The theme's search has no name for readers of the screen."""
    return output.replace(_DIALOG, f'{_DIALOG} aria-label="Search"')


def on_post_build(config: Any) -> None:
    """Every page is there as Markdown too, as llms.txt links it."""
    site, docs = Path(config.site_dir), Path(config.docs_dir)
    for page in docs.rglob("*.md"):
        copy = site / page.relative_to(docs)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, copy)
