"""The annotation page in a real browser, served by the real command: two people, a killed server, hostile text.

Screenshots go to the folder in $MEMTUNE_SCREENSHOTS, if it is set.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from annotated_traces import LOST, RIGHT, SCRIPT, UNUSED, Asked, write_trace
from free_port import free_port

from benchmarks.labelled_suites import load_suite
from experiments.annotating.labels import Label, LabelStore
from tracing.files.loading import load_trace

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

ROOT = Path(__file__).resolve().parents[2]
FIRST_PAINT_MS = 3000

Page = Any
"""Playwright's; mypy does not look into tests."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[[str], Page]]:
    """Opens an address in a browser of its own; nothing on the page may fail."""
    troubles: list[str] = []
    contexts = []

    def open_page(address: str) -> Page:
        context = browser.new_context(viewport={"width": 1500, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


@contextmanager
def serving(folder: Path, *arguments: str, port: int | None = None) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "experiments.command", "annotate", *arguments, "--no-open"]
    command += ["--labels", str(folder / "labels.sqlite"), "--home", str(folder / "home")]
    command += ["--port", str(port)] if port is not None else []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("http://127.0.0.1:"), process.stderr and process.stderr.read()
            yield line.split()[0], process
        finally:
            with suppress(ProcessLookupError):
                process.terminate()


def shot(page: Page, name: str) -> None:
    folder = os.environ.get("MEMTUNE_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"annotate-{name}.png")


def called(page: Page, name: str) -> Page:
    """The page under the name of an annotator, with the verdict on its first case there."""
    page.fill("#annotator", name)
    page.press("#annotator", "Enter")
    page.press("#annotator", "Escape")
    page.wait_for_selector("#accept:enabled")
    return page


def saved(page: Page, text: str = "saved") -> None:
    page.wait_for_function("text => document.getElementById('saved').textContent.startsWith(text)", arg=text)


def labels(folder: Path) -> list[Label]:
    return LabelStore(folder / "labels.sqlite").in_force()


def question(page: Page, text: str) -> None:
    page.click(f".question:has-text({text!r})")
    page.wait_for_selector(f"#case h2:has-text({text!r})")
    page.wait_for_selector("#accept:enabled")


@pytest.mark.slow
def test_two_people_label_correct_undo_and_export(opened: Callable[[str], Page], tmp_path: Path) -> None:
    write_trace(tmp_path / "first.jsonl", (LOST, RIGHT))
    write_trace(tmp_path / "second.jsonl", (UNUSED, RIGHT))
    with serving(tmp_path, str(tmp_path)) as (address, _):
        ann = called(opened(address), "ann")
        assert ann.locator("#graph option").count() == 3
        ann.select_option("#filter", "all")
        assert ann.locator(".question").count() == 4
        ann.select_option("#filter", "right")
        ann.wait_for_function("() => document.querySelectorAll('.question.right').length === 2")
        ann.select_option("#filter", "wrong")
        ann.select_option("#graph", label="first.jsonl · 1 wrong")
        ann.wait_for_function("() => document.querySelectorAll('.question').length === 1")
        question(ann, "Where does Mara live?")
        # Gold evidence is marked in the conversation, and a chip leads to it.
        ann.click("#gold .chip")
        assert ann.locator(".turn.here.gold").inner_text().endswith("I moved to Oslo in May.")
        assert ann.locator(".failure li.lost").inner_text().startswith("✗ Extracted")
        ann.click(".failure li.lost .fault a")
        ann.wait_for_selector("#element h2:has-text('extract_facts')")
        shot(ann, "verdict")

        ann.keyboard.press("a")
        saved(ann)
        (label,) = labels(tmp_path)
        assert (label.annotator, label.assessment.action, label.assessment.method) == ("ann", "accepted", "survival")
        assert label.assessment.error_type == "ExtractionError"
        accepted = label.assessment.operations

        # Another answer, corrected: an id that does not exist is told; the operation is then named by a click.
        ann.select_option("#graph", "")
        question(ann, "What is Ben's dog called?")
        ann.keyboard.press("c")
        ann.fill("#operations-field", "o999")
        ann.press("#operations-field", "Control+Enter")
        ann.wait_for_selector("#refused:has-text(\"'o999' names no operation\")")
        assert len(labels(tmp_path)) == 1
        ann.fill("#operations-field", "")
        ann.click("#tab-operations")
        shot(ann, "operations")
        for name in ("retrieve", "answer"):
            ann.click("#tab-operations")
            ann.click(f"#flow .node.operation:has-text('{name}')")
            ann.wait_for_selector(f"#element h2:has-text('{name}')")
            ann.keyboard.press("d")
        ann.keyboard.press("4")
        ann.fill("#note", "it was there, twice")
        ann.press("#note", "Control+Enter")
        saved(ann)
        label = labels(tmp_path)[-1]
        assert (label.assessment.action, label.assessment.error_type) == ("corrected", "RetrievalError")
        assert len(label.assessment.operations) == 2

        # Somebody else, at the same time, sees nothing of it before a label of their own.
        ben = called(opened(address), "ben")
        question(ben, "Where does Mara live?")
        assert "1 other annotator" in ben.locator("#said").inner_text()
        ben.keyboard.press("r")
        saved(ben)
        assert "ExtractionError" in ben.locator("#said").inner_text()
        ben.keyboard.press("2")
        ben.keyboard.press("Control+Enter")
        saved(ben)
        assert len(labels(tmp_path)) == 3

        ben.click("#undo")
        saved(ben, "undone: the label before is back")
        ben.keyboard.press("u")
        saved(ben, "undone: no label")
        assert [one.annotator for one in labels(tmp_path)] == ["ann", "ann"]
        question(ben, "What is Ben's dog called?")
        ben.keyboard.press("a")
        saved(ben)
        ben.click("#show-agreement")
        ben.wait_for_selector("#pairs")
        assert "ann, ben" in ben.locator("#pairs").inner_text()
        shot(ben, "agreement")
        ben.keyboard.press("Escape")
        ann.wait_for_function("() => document.getElementById('count').textContent.includes('ben 1')")
        assert ann.locator("#count").inner_text().startswith("2 of 2")

        # A second tab of one browser has a name of its own, and keeps it when it is loaded again.
        tab = ann.context.new_page()
        tab.goto(address)
        called(tab, "cleo").keyboard.press("a")
        saved(tab)
        assert [one.annotator for one in labels(tmp_path)] == ["ann", "ann", "ben", "cleo"]
        tab.click("#undo")
        saved(tab, "undone")
        for page, name, count in ((tab, "cleo", 0), (ann, "ann", 2)):
            page.reload()
            page.wait_for_function(
                "n => document.getElementById('count').textContent.startsWith(n)", arg=f"{count} of 2"
            )
            assert page.input_value("#annotator") == name
        ann.wait_for_selector("#questions:has-text('You have labelled all wrong answers here.')")

        ann.click("#show-export")
        ann.wait_for_selector("#exported")
        assert ann.locator("#exported").inner_text() == (
            "1 labelled case in 1 file, 1 left out, since annotators are divided"
        )
        (labelled,) = load_suite(tmp_path / "labels.annotated").cases
        assert (labelled.error_type, labelled.operation_ids) == ("ExtractionError", accepted)


@pytest.mark.slow
def test_a_killed_server_loses_no_label_and_open_pages_go_on(opened: Callable[[str], Page], tmp_path: Path) -> None:
    write_trace(tmp_path / "one.jsonl")
    port = free_port()
    with serving(tmp_path, str(tmp_path / "one.jsonl"), port=port) as (address, process):
        page = called(opened(address), "ann")
        page.keyboard.press("a")
        saved(page)
        process.kill()
        process.wait()
    assert len(labels(tmp_path)) == 1
    page.fill("#note", "written while it was away")
    page.press("#note", "Control+Enter")
    saved(page, "not saved yet: the server does not answer")
    with serving(tmp_path, str(tmp_path / "one.jsonl"), port=port):
        saved(page)
    (label,) = labels(tmp_path)
    assert (label.assessment.note, label.revision) == ("written while it was away", 2)


@pytest.mark.slow
def test_a_memory_that_holds_a_script_stays_text(opened: Callable[[str], Page], tmp_path: Path) -> None:
    hostile = Asked(f"Mara: {SCRIPT} Oslo", f"{SCRIPT} Mara moved.", f"{SCRIPT} where?", "Oslo", f"{SCRIPT} Bergen")
    write_trace(tmp_path / "one.jsonl", (hostile, RIGHT))
    with serving(tmp_path, str(tmp_path / "one.jsonl")) as (address, _):
        page = called(opened(address), "ann")
        assert SCRIPT in page.locator("#case h2").inner_text()
        assert SCRIPT in page.locator(".turn").first.inner_text()
        page.locator("#label [name=type]").first.check()
        page.fill("#note", SCRIPT)
        page.keyboard.press("Control+Enter")
        saved(page)
        for at in range(page.locator("#flow .node").count()):
            page.click("#tab-operations")
            page.locator("#flow .node").nth(at).click()
            page.wait_for_selector("#element h2")
        assert SCRIPT in page.locator("#said").inner_text()
        assert page.title() == "memtune annotate"
        assert page.locator("main img, main script").count() == 0


@pytest.mark.slow
def test_a_name_given_before_the_first_case_is_there(opened: Callable[[str], Page], tmp_path: Path) -> None:
    write_trace(tmp_path / "one.jsonl", (LOST,))
    with serving(tmp_path, str(tmp_path / "one.jsonl")) as (address, _):
        before = called(opened(address), "ann")
        before.keyboard.press("a")
        saved(before)
        page = opened("about:blank")
        held: list[Any] = []

        def hold_the_first(route: Any) -> None:
            if held:
                route.continue_()
            else:
                held.append(route)

        page.route("**/case", hold_the_first)
        with page.expect_request("**/case"):
            page.goto(address)
        page.fill("#annotator", "ann")
        page.press("#annotator", "Enter")
        page.wait_for_selector("#undo:enabled")
        with page.expect_response("**/case"):
            held[0].continue_()
        assert page.locator("#undo").is_enabled(), "the reply for nobody came later and is not shown"


def test_it_works_by_keyboard_alone(opened: Callable[[str], Page], tmp_path: Path) -> None:
    write_trace(tmp_path / "one.jsonl")
    with serving(tmp_path, str(tmp_path / "one.jsonl")) as (address, _):
        page = opened(address)
        page.wait_for_selector("#accept:enabled")
        page.keyboard.type("ann")  # the name has the focus
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        page.wait_for_selector("#accept:enabled")
        first = page.locator("#case h2").inner_text()
        page.locator("#search").focus()
        page.keyboard.press("Tab")
        for key, comparison in (("ArrowDown", "!=="), ("ArrowUp", "===")):
            page.keyboard.press(key)
            page.wait_for_function(
                f"first => document.querySelector('#case h2').textContent {comparison} first", arg=first
            )
        page.wait_for_selector("#accept:enabled")
        page.keyboard.press("a")
        saved(page)
        page.keyboard.press("n")
        page.wait_for_function("first => document.querySelector('#case h2').textContent !== first", arg=first)
        page.wait_for_selector("#accept:enabled")
        page.keyboard.press("o")
        assert page.locator("#operations").is_visible()
        page.keyboard.press("t")
        assert page.locator("#timeline").is_visible()
        page.keyboard.press("/")
        page.keyboard.type("Ben's dog")
        page.wait_for_function("() => document.querySelectorAll('.question').length <= 1")
        page.keyboard.press("Escape")
        page.keyboard.press("8")
        assert page.locator("#label label:has(:checked)").inner_text().split() == ["Judge", "8"]
        page.keyboard.press("5")
        page.keyboard.press("Control+Enter")
        saved(page)
        assert len(labels(tmp_path)) == 2
        page.keyboard.press("?")
        assert page.locator("#dialog").inner_text().startswith("Keys")


@pytest.mark.slow
def test_a_slow_conversation_is_waited_for(opened: Callable[[str], Page], tmp_path: Path) -> None:
    write_trace(tmp_path / "trace.jsonl")
    with serving(tmp_path, str(tmp_path / "trace.jsonl")) as (address, _):
        page = opened("about:blank")
        held: list[Any] = []
        page.route("**/timeline", lambda route: held.append(route))
        page.goto(f"{address}&annotator=ann")
        page.wait_for_selector("#accept:enabled")
        page.click("#gold .chip")
        assert page.get_attribute("#tab-timeline", "aria-selected") == "true"
        assert page.locator(".turn").count() == 0
        (route,) = held
        route.continue_()
        page.wait_for_selector(".turn.here.gold")
        assert page.locator("#timeline").is_visible()

        # One that could not be read is asked for again with the next case.
        page.unroute("**/timeline")
        page.route("**/timeline", lambda route: route.abort())
        page.reload()
        page.wait_for_selector("#saved.bad:not(:empty)")
        page.unroute("**/timeline")
        page.keyboard.press("j")
        page.wait_for_selector(".turn.here.gold")


@pytest.mark.slow
def test_five_thousand_variables_are_painted_at_once(opened: Callable[[str], Page], tmp_path: Path) -> None:
    write_trace(tmp_path / "long.jsonl", filler=2500)
    assert len(load_trace(tmp_path / "long.jsonl").graph.variables) > 5000
    with serving(tmp_path, str(tmp_path / "long.jsonl")) as (address, _):
        page = opened(f"{address}&annotator=ann")
        page.wait_for_selector(".turn")
        told = page.evaluate(
            "() => [performance.getEntriesByName('first-contentful-paint')[0].startTime, performance.now()]"
        )
        assert told[0] < FIRST_PAINT_MS
        print(f"first paint {told[0]:.0f} ms, questions and conversation {told[1]:.0f} ms")
        page.wait_for_function("() => document.querySelectorAll('.turn').length === 2503")
        page.wait_for_selector("#accept:enabled")
        page.click("#gold .chip")
        page.wait_for_selector(".turn.here.gold")
        page.keyboard.press("o")
        page.wait_for_selector("#flow .node")
        shot(page, "large")
