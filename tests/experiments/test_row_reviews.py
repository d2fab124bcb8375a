"""People review generated questions: several of them, several rows at once, on a page, and the data set follows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from experiments.annotating.row_reviews import Review, RowReviews
from experiments.command import main
from tracing.errors import DataError
from tracing.systems.conversations import Conversation, Question, read_conversations, write_conversations

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    ("q1", "Where does Mara live?", "Oslo", "D1:1"),
    ("q2", "What does Mara's tortoise eat?", "radicchio", "D1:2"),
    ("q3", "What does Ilya's <b>gecko</b> eat?", "papya", "D1:3"),
    ("q4", "What did Ilya say?", "hello", "D1:4"),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    turns = [
        {"id": "D1:1", "speaker": "Mara", "text": "I moved to Oslo in spring."},
        {"id": "D1:2", "speaker": "Mara", "text": "My tortoise only comes out for radicchio."},
        {"id": "D1:3", "speaker": "Ilya", "text": "My gecko eats papaya."},
        {"id": "D1:4", "speaker": "Ilya", "text": "Well, hello."},
    ]
    questions = [
        {"id": row, "question": text, "answers": [answer], "evidence": [turn], "source": "generated", "kind": "fact"}
        for row, text, answer, turn in ROWS
    ]
    questions.append({"id": "w1", "question": "Who has a gecko?", "answers": ["Ilya"]})
    conversation = {"id": "mara", "speakers": ["Mara", "Ilya"], "questions": questions}
    conversation["sessions"] = [{"id": "D1", "time": "2026-03-04 10:00", "turns": turns}]
    path = tmp_path / "questions.jsonl"
    write_conversations(path, [Conversation.model_validate(conversation)])
    return path


def questions(data: Path) -> dict[str, Question]:
    return {question.id: question for one in read_conversations(data) for question in one.questions}


def right(name: str, row: str, text: str = "", answer: str = "") -> Review:
    asked = {one[0]: one for one in ROWS}[row]
    return Review(annotator=name, row=row, verdict="right", question=text or asked[1], answers=(answer or asked[2],))


def test_the_data_set_follows_what_most_say(data: Path) -> None:
    reviews = RowReviews(data)
    reviews.add(
        [right("ana", "q1"), right("ana", "q3", answer="papaya"), Review(annotator="ana", row="q4", verdict="drop")]
    )
    left = questions(data)
    assert list(left) == ["q1", "q2", "q3", "w1"]
    assert (left["q1"].confirmed_by, left["q2"].confirmed_by) == (("ana",), ())
    assert (left["q3"].answers, left["q3"].confirmed_by) == (("papaya",), ("ana",))
    # Who comes later sees every row; an even vote confirms nothing, and an objection can be taken back.
    other = RowReviews(data)
    assert list(other.rows) == ["q1", "q2", "q3", "q4"]
    other.add([Review(annotator="bo", row="q1", verdict="drop"), right("bo", "q3", answer="papaya")])
    assert questions(data)["q1"].unconfirmed
    assert questions(data)["q3"].confirmed_by == ("ana", "bo")
    assert other.agreement().disputed == ("q1",)
    assert other.agreement().pairs[0][:3] == ("ana", "bo", 2)
    other.add([Review(annotator="bo", row="q1", verdict="undo")])
    assert questions(data)["q1"].confirmed_by == ("ana",)


def test_a_decision_that_cannot_be_kept_keeps_none(data: Path) -> None:
    reviews, before = RowReviews(data), data.read_text()
    with pytest.raises(DataError, match="row 'q9': is not in"):
        reviews.add([right("ana", "q1"), Review(annotator="ana", row="q9", verdict="drop")])
    with pytest.raises(DataError, match="row 'q1': question or answer is empty"):
        reviews.add([right("ana", "q1", answer=" ")])
    assert data.read_text() == before
    write_conversations(data, [one.model_copy(update={"questions": ()}) for one in read_conversations(data)])
    with pytest.raises(DataError, match="has no generated question; `memtune data generate`"):
        RowReviews(data)


def test_agreement_is_told_on_the_command_line(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RowReviews(data).add([right(name, row) for name in ("ana", "bo") for row in ("q1", "q2")])
    RowReviews(data).add([Review(annotator=name, row="q4", verdict="drop") for name in ("ana", "bo")])
    with pytest.raises(SystemExit):
        main(["data", "review", str(data), "--agreement"])
    said = capsys.readouterr().out
    assert "3 rows reviewed by several; Krippendorff's alpha 1.000; 0 disputed" in said
    assert "ana, bo: 3 rows, Cohen's kappa 1.000" in said


@contextmanager
def serving(data: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "experiments.command", "data", "review", str(data), "--no-open"]
    command += ["--home", str(data.parent / "home")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("http://127.0.0.1:"), process.stderr and process.stderr.read()
            yield line.split()[0]
        finally:
            with suppress(ProcessLookupError):
                process.terminate()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_two_people_review_rows_by_keyboard_in_a_browser(data: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    troubles: list[str] = []

    def opened(browser: Any, address: str, name: str) -> Any:
        page = browser.new_context(viewport={"width": 1300, "height": 800}).new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(address)
        page.wait_for_selector(".item")
        page.fill("#annotator", name)
        page.press("#annotator", "Enter")
        page.press("#annotator", "Escape")
        return page

    def saved(page: Any, text: str) -> None:
        page.wait_for_function("text => document.getElementById('saved').textContent === text", arg=text)

    with sync_api.sync_playwright() as playwright, serving(data) as address:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = opened(browser, address, "ana")
        assert page.inner_text("#case h2") == "Where does Mara live?"
        assert "I moved to Oslo in spring." in page.inner_text("#case .turn.gold")
        assert page.locator(".item b").count() == 0  # a text is no markup
        rows, case = page.locator("#rows-side").bounding_box(), page.locator("#case").bounding_box()
        assert (rows["y"], rows["height"], rows["width"]) == (case["y"], case["height"], case["x"])
        assert rows["y"] + rows["height"] == 800, "both are in the window"
        # Two rows at once, a correction, and a row dropped.
        page.keyboard.press("x")
        page.keyboard.press("j")
        page.keyboard.press("x")
        page.keyboard.press("y")
        saved(page, "saved 2 rows")
        page.wait_for_function("() => document.querySelector('#count').textContent === '2 of 4'")
        for undone in (True, False):
            page.click(".item:has-text('gecko')")
            page.keyboard.press("e")
            page.fill("#edit-answers", "papaya\nthe papaya")
            page.keyboard.press("Control+Enter")
            saved(page, "saved 1 row")
            page.wait_for_selector(".item.here:has-text('What did Ilya say?')")
            if undone:
                page.keyboard.press("u")  # the latest decision, since there is none on this row
                saved(page, "undone: 1 row")
        page.keyboard.press("n")
        page.wait_for_function("() => document.querySelector('#count').textContent === '4 of 4'")
        left = questions(data)
        assert list(left) == ["q1", "q2", "q3", "w1"]
        assert left["q3"].answers == ("papaya", "the papaya")
        assert all(left[row].confirmed_by == ("ana",) for row in ("q1", "q2", "q3"))
        # The other person sees no decision before making one.
        second = opened(browser, address, "bo")
        second.select_option("#filter", "all")
        second.wait_for_function("() => document.querySelector('#count').textContent === '0 of 4 · ana 4'")
        assert second.locator(".history").count() == 0
        second.click(".item:has-text('What did Ilya say?')")
        second.keyboard.press("y")
        second.wait_for_selector(".item.right:has-text('disputed')")
        second.click("#show-agreement")
        second.wait_for_selector("dialog:has-text('1 row reviewed by several')")
        folder = os.environ.get("MEMTUNE_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            second.screenshot(path=Path(folder) / "review-agreement.png")
            page.select_option("#filter", "all")
            page.screenshot(path=Path(folder) / "review-rows.png")
        assert questions(data)["q4"].unconfirmed
        browser.close()
    assert troubles == []
