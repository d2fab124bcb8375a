"""Every page of a run as people see it: wide, dark, on a telephone and printed, with what axe-core finds.

Screenshots go to the folder in $MEMTUNE_SCREENSHOTS, if it is set; CI keeps what is there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gold_runs import GoldModel
from memtune_command import MemtuneCommand
from page_titles import CHROMIUM, NO_BROWSER
from scripted_server import ScriptedServer, prompt_of

from experiments.runs.cases_file import read_cases
from experiments.runs.folder import RunFolder
from experiments.views.trace_page import question_anchor
from memtune import load

sync_api = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
pytestmark = [pytest.mark.slow, NO_BROWSER]

ROOT = Path(__file__).resolve().parents[2]
FORMS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "dark"},
    "narrow": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"},
    "print": {"viewport": {"width": 720, "height": 1000}, "color_scheme": "dark"},
}
GRAVE = ("serious", "critical")
OPENED = {
    "report": "#case-table details summary",
    "diagnosis": "details.case summary",
    "waterfall": "#open-waterfall",
    "map": "#open-map",
    "operations": "#tab-operations",
}
"""What is clicked on a page before it is looked at."""
UNPICTURED = ("comparison", "waterfall", "map")


class Forgetful(GoldModel):
    """Forgets some facts and updates, answers what it was told, and of that some in too many words or not at all."""

    def _text(self, body: dict[str, Any]) -> str:
        prompt, text = prompt_of(body), super()._text(body)
        asked = re.search(r"Question: (.+)", prompt)
        if asked is None:
            facts = json.loads(text).get("facts") if text.startswith('{"facts"') else None
            if facts is not None:
                return json.dumps({"facts": [fact for fact in facts if _share(fact) < 0.7]})
            return text if _share(prompt) < 0.8 else text.replace("ADD", "NONE")
        answer = text.rpartition(" it is ")[2]
        if answer.lower() not in prompt.partition("Question: ")[0].lower() or _share(asked[1]) > 0.8:
            return "I do not know"
        return text if _share(asked[1]) < 0.4 else answer


def _share(text: str) -> float:
    """A text as a number from 0 to 1, the same every time."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:4], 16) / 0xFFFF


@pytest.fixture
def pages(memtune: MemtuneCommand, tmp_path: Path, scripted_server: ScriptedServer) -> Iterator[dict[str, str]]:
    """The address of every page of a run."""
    scripted_server.script = Forgetful()
    memtune.configure("run.yaml", "limits: {conversations: 8, sessions: 2, questions: 4}\nrounds: 1\nproposals: 2\n")
    assert memtune("run", "run.yaml", "--out", "run", "--home", "home")[0] == 0
    folder = RunFolder(tmp_path / "run")
    assert memtune("diagnose", "run", "--traces-of", "baseline", "--out", "diagnosis.html", "--home", "home")[0] == 0
    assert memtune("compare", "run", "run", "--html", "comparison.html", "--home", "home")[0] == 0
    load(folder.path).attribute(traces_of="baseline").picture(0).save(tmp_path / "picture.html")
    case = next(case for case in read_cases(folder) if case.replies["baseline"].blame)
    page = folder.path / (case.replies["baseline"].page or "")
    command = [sys.executable, "-m", "experiments.command", "annotate", str(page.with_suffix(".jsonl")), "--no-open"]
    command += ["--labels", str(tmp_path / "labels.sqlite"), "--home", str(tmp_path / "home")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        served = f"{process.stdout.readline().split()[0]}&annotator=ann"
        yield {
            "report": (folder.path / "report.html").as_uri(),
            "trace": page.as_uri() + question_anchor(case.question_id),
            "waterfall": page.as_uri(),
            "map": page.as_uri(),
            "diagnosis": (tmp_path / "diagnosis.html").as_uri(),
            "comparison": (tmp_path / "comparison.html").as_uri(),
            "picture": (tmp_path / "picture.html").as_uri(),
            "annotate": served,
            "operations": served,
        }
        process.terminate()


def test_every_page_can_be_read_in_every_form(pages: dict[str, str]) -> None:
    folder = os.environ.get("MEMTUNE_SCREENSHOTS")
    problems = []
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for form, settings in FORMS.items():
            context = browser.new_context(bypass_csp=True, **settings)
            for name, address in pages.items():
                page = context.new_page()
                page.on("pageerror", lambda error, where=f"{name}, {form}": problems.append(f"{where}: {error}"))
                page.goto(address)
                if name in ("annotate", "operations"):
                    page.wait_for_selector("#accept:enabled")
                if name in OPENED:
                    page.locator(OPENED[name]).first.click()
                if name not in UNPICTURED:
                    page.wait_for_selector(".failure li.lost")
                if form == "print":
                    page.emulate_media(media="print")
                wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                if wide > 0:
                    problems.append(f"{name}, {form}: {wide} pixels wider than the window")
                scrolling = (
                    "[...document.querySelectorAll('.scroll')].filter((part) => part.scrollWidth > part.clientWidth)"
                )
                if form == "light" and (parts := page.evaluate(f"{scrolling}.map((part) => part.textContent.trim())")):
                    problems.append(f"{name}, {form}: scrolls sideways: {parts[0][:60]}")
                for violation in axe.Axe().run(page).response["violations"]:
                    if violation["impact"] in GRAVE:
                        where = violation["nodes"][0]["html"][:120]
                        problems.append(f"{name}, {form}: {violation['id']} ×{len(violation['nodes'])}, {where}")
                if folder:
                    Path(folder).mkdir(parents=True, exist_ok=True)
                    page.screenshot(path=Path(folder) / f"{name}-{form}.png", full_page=True)
                page.close()
            context.close()
        browser.close()
    assert problems == []
