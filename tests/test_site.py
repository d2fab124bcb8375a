"""The documents as a site in a browser: searches, colours, links, copies, and what axe says of every page."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("material")
axe = pytest.importorskip("axe_playwright_python")
sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")]

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "https://example.org/somebody/memtune"
SCREENSHOTS = os.environ.get("MEMTUNE_SCREENSHOTS")
WANTED = {
    "resume": "guide/#resume-an-interrupted-run",
    "interrupt": "guide/#resume-an-interrupted-run",
    "cost": "guide/#cost-and-budget",
    "budget": "guide/#cost-and-budget",
    "api key": "guide/#api-keys",
    "mem0": "systems/#your-own-mem0",
    "export": "exporting/",
    "install": "guide/#installing-completion-a-container",
    "agent": "coding-agents/",
}
"""What people type, and where the answer is."""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The built site's folder and address."""
    folder = tmp_path_factory.mktemp("site")
    environment = os.environ | {"MEMTUNE_REPOSITORY": REPOSITORY, "NO_MKDOCS_2_WARNING": "1"}
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(build, cwd=ROOT, env=environment, check=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.mark.parametrize("words", WANTED)
def test_a_search_tells_the_place_among_its_first_three_pages(words: str, site: tuple[Path, str], browser: Any) -> None:
    _, address = site
    page = browser.new_page()
    page.goto(f"{address}?q={words.replace(' ', '+')}")
    page.wait_for_selector(".md-search-result__item", state="attached")
    first = page.eval_on_selector_all(
        ".md-search-result__item:nth-child(-n + 3) > a, .md-search-result__item:nth-child(-n + 3) details > a",
        "links => links.map(link => link.pathname.slice(1) + link.hash)",
    )
    page.close()
    assert WANTED[words] in first


def test_a_reader_chooses_colours_and_finds_the_repository(site: tuple[Path, str], browser: Any) -> None:
    _, address = site
    page = browser.new_page()
    page.goto(address)
    chosen = []
    for _ in range(3):
        page.locator(".md-header label[for^=__palette]:not([hidden])").click()
        chosen.append(page.evaluate("document.body.dataset.mdColorScheme"))
    assert {"default", "slate"} == set(chosen)
    assert page.locator(".md-header a.md-source").get_attribute("href") == REPOSITORY
    beside = page.locator(".md-content a", has_text="README").get_attribute("href")
    page.close()
    assert beside == f"{REPOSITORY}/blob/HEAD/README.md"


def test_home_shows_one_failure_a_film_and_three_ways_in_on_a_phone_too(site: tuple[Path, str], browser: Any) -> None:
    _, address = site
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(address)
    assert page.locator(".failure li.lost").inner_text().startswith("✗ Extracted")
    assert page.locator("img[src$='walkthrough.svg']").evaluate("film => film.decode().then(() => film.naturalWidth)")
    assert page.locator(".language-console").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.close()


def test_a_copy_is_the_commands_alone(site: tuple[Path, str], browser: Any) -> None:
    _, address = site
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{address}coding-agents/")
    page.locator(".language-console", has_text="--dry-run").locator(".md-code__button").click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text !== '')")
    copied = page.evaluate("navigator.clipboard.readText()")
    context.close()
    lines = [line for line in copied.splitlines() if line]
    assert lines == ["memtune doctor experiment.yaml --build", "memtune run experiment.yaml --dry-run"]


def test_agents_find_each_page_as_text(site: tuple[Path, str]) -> None:
    folder, _ = site
    for file in ("llms.txt", "coding-agents.md", "decisions/index.md"):
        assert (folder / file).read_bytes() == (ROOT / "docs" / file).read_bytes()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(scheme: str, site: tuple[Path, str], browser: Any) -> None:
    folder, address = site
    script = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    page = browser.new_page(color_scheme=scheme, reduced_motion="reduce")
    found = []
    pages = sorted(folder.rglob("index.html"))
    assert len(pages) > 100
    for file in pages:
        path = file.parent.relative_to(folder).as_posix()
        page.goto(f"{address}{path}/".replace("/./", "/"))
        page.evaluate(script)
        result = page.evaluate("axe.run({resultTypes: ['violations']})")
        found += [
            f"{path}: {violation['id']}: {violation['nodes'][0]['html']}"
            for violation in result["violations"]
            if violation["impact"] in ("serious", "critical")
        ]
    page.goto(address)
    if SCREENSHOTS:
        page.screenshot(path=Path(SCREENSHOTS) / f"docs-home-{scheme}.png", full_page=True)
    page.close()
    assert found == []
