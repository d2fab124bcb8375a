"""In production: users over many traces, complaints of last night, and what is told of what could not be used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest
from data_files import otlp_folder, written
from production_traces import DAY, MONDAY, Clock, asks, request, stores

from experiments.attributing.attributions import Attributions, CaseLine
from experiments.command import main
from experiments.data.dataset_reader import Reading
from experiments.data.datasets import conversations_of
from experiments.data.generating.author import QuestionAuthor
from experiments.data.generating.chats import read_chats
from experiments.data.generating.complaints import rows_of_complaints
from experiments.data.generating.dialogue import Dialogue
from tracing import answered, attributes, load_trace, operation, trace, variable
from tracing.llm.models import ChatModel
from tracing.recording.redaction import Redaction

LIVES, LIVED = "Where does my sister Ines work?", "My sister Ines works at the harbour office."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Mara and Theo each told something that the memory lost, and asked for it a week later."""
    monkeypatch.chdir(tmp_path)
    traces = tmp_path / "traces"
    request(traces, "mara", MONDAY, message=LIVED)
    request(traces, "theo", MONDAY + 60, message="My brother Ben works at the mill.")
    request(traces, "mara", MONDAY + 7 * DAY, question=LIVES)
    request(traces, "theo", MONDAY + 7 * DAY + 60, question="Where does my brother Ben work?")
    return traces


def complained(log: str, *rows: dict[str, object]) -> str:
    written(Path(log), "".join(json.dumps(row) + "\n" for row in rows))
    return log


def attribute(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(("attribute", "traces", *arguments))
    return int(ended.value.code or 0)


def cases(file: str = "complaints.jsonl") -> list[CaseLine]:
    return list(Attributions.read(Path(file)).cases.values())


def blamed(of: Iterable[CaseLine]) -> list[str]:
    return sorted(f"{case.question}: {case.main.operation if case.main else None}" for case in of)


def test_a_question_of_today_is_followed_to_what_its_user_said_last_week(folder: Path) -> None:
    log = complained(
        "log.jsonl",
        {"question": LIVES, "answers": ["the harbour office"]},
        {"question": "Where does my brother Ben work?", "answers": ["the harbour office"]},
    )
    assert attribute("--complaints", log) == 0
    his, mine = sorted(cases(), key=lambda case: case.question)
    assert mine.main is not None
    assert (mine.main.operation, mine.main.error_type) == ("extract_facts", "ExtractionError")
    # What Mara said is no evidence for Theo.
    assert his.main is None or his.main.operation != "extract_facts"


def test_a_trace_of_a_day_is_attributed_for_each_of_its_users_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    clock = Clock(MONDAY)
    with trace("traces/", clock=clock):
        for user, town in (("mara", "Oslo"), ("theo", "Rome")):
            with attributes(user=user):
                stores(f"I live in {town}.", None)
    with trace("traces/", clock=clock):
        for user in ("mara", "theo", "mara"):
            with attributes(user=user):
                asks("Where do I live?", "unknown")
    log = complained(
        "log.jsonl",
        {"question": "Where do I live?", "user": "mara", "answers": ["Oslo"]},
        {"question": "Where do I live?", "user": "theo", "answers": ["Oslo"]},
    )
    assert attribute("--complaints", log) == 0
    of_town = {case.prediction: case.main.operation if case.main else None for case in cases()}
    assert len(of_town) == 2
    # Only Mara said Oslo: it was lost where hers was extracted, and nobody can have lost Theo's.
    assert list(of_town.values()).count("extract_facts") == 1


def test_traces_that_two_processes_write_of_one_user_at_a_time_are_one_history_in_the_order_of_their_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = """
import sys
from production_traces import MONDAY, Clock, asks, stores
from tracing import attributes, trace

clock = Clock(MONDAY + float(sys.argv[1]))
with attributes(user="mara"), trace("traces/", clock=clock):
    if sys.argv[1] == "0":
        stores("I live in Oslo.", "The user lives in Oslo.")
        clock.moment = MONDAY + 500
        stores("I live in Rome now.", None)
    else:
        asks("Where do I live?", "Rome", ["The user lives in Oslo."])
        clock.moment = MONDAY + 900
        asks("Where do I live now?", "Oslo", ["The user lives in Oslo."])
"""
    path = os.pathsep.join((str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")))
    processes = [
        subprocess.Popen([sys.executable, "-c", program, offset], env={**os.environ, "PYTHONPATH": path})
        for offset in ("0", "100")
    ]
    assert [process.wait(60) for process in processes] == [0, 0]
    log = complained(
        "log.jsonl",
        {"question": "Where do I live?", "answers": ["Oslo"]},
        {"question": "Where do I live now?", "answers": ["Rome"]},
    )
    assert attribute("--complaints", log) == 0
    # "Rome" was not yet said when the first was answered.
    assert blamed(cases()) == ["Where do I live now?: extract_facts", "Where do I live?: answer"]


def test_a_nightly_run_reads_what_came_since_and_reports_nothing_twice(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    week = MONDAY + 7 * DAY
    rows = [
        {"question": LIVES, "time": week + 300, "answers": ["the harbour office"]},
        {"question": "Where does my brother Ben work?", "time": week - DAY},
        {"question": "Where does my brother Ben work?", "time": week + 2 * DAY},
    ]
    log = complained("log.jsonl", *rows[:1])
    assert attribute("--complaints", log, "--since", str(week + 200)) == 0
    first = capsys.readouterr().out
    assert "1 to report" in first
    assert "1 × ExtractionError at extract_facts" in first
    assert attribute("--complaints", log, "--since", str(week + 200)) == 0
    again = capsys.readouterr().out
    assert "0 to report" in again
    assert " × " not in again
    assert "1 known from before" in again
    assert attribute("--complaints", log, "--since", str(week + 200), "--again") == 0
    assert "1 × ExtractionError at extract_facts" in capsys.readouterr().out
    # Another night: only what came since, and the first case is still in the file.
    log = complained("log.jsonl", rows[0], rows[2])
    assert attribute("--complaints", log, "--since", str(week + DAY)) == 0
    told = capsys.readouterr().out
    assert "1 to report" in told
    assert "1 trace from before left out" in told
    assert {case.question for case in cases()} == {LIVES, "Where does my brother Ben work?"}


def test_with_a_folder_a_day_the_page_shows_what_another_day_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    request(tmp_path / "traces/monday", "mara", MONDAY, message=LIVED)
    today = request(tmp_path / "traces/friday", "mara", MONDAY + 4 * DAY, question=LIVES)
    gone = request(tmp_path / "traces/friday", "theo", MONDAY + 4 * DAY, question="Where do I live?")
    rows = [{"question": LIVES, "answers": ["the harbour office"]}, {"question": "Where do I live?"}]
    assert attribute("--complaints", complained("log.jsonl", *rows)) == 0
    assert {case.trace for case in cases()} == {f"traces/friday/{path.name}" for path in (today, gone)}
    gone.unlink()
    with pytest.raises(SystemExit, match="0"):
        main(("diagnose", "complaints.jsonl", "--out", "page.html"))
    assert LIVED in Path("page.html").read_text()


def test_a_complaint_from_before_any_answer_is_told_and_the_others_are_attributed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = complained(
        "log.jsonl",
        {"question": LIVES, "time": MONDAY},
        {"question": "Who am I?"},
        {"reply": "unknown"},
        {"question": LIVES, "user": "mara"},
    )
    assert attribute("--complaints", log) == 1
    told = capsys.readouterr()
    assert "log.jsonl:1: question: 4 traces have no such answer before its time, and 1 after it" in told.err
    assert "log.jsonl:2: question: 4 traces have no such answer; give it as it was recorded" in told.err
    assert "log.jsonl:3: trace: 2 answers in several traces fit; add trace, time or user" in told.err
    assert "3 complaints match no answer" in told.out
    assert [case.question for case in cases()] == [LIVES]


def test_what_another_user_told_in_another_trace_is_told_as_a_leak_with_where_it_comes_from(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, text = "0b0e8a3c-2f41-4d7a-9a55-6f1c2d3e4f50", "Ines works at the harbour office."
    with attributes(user="mara"), trace("traces/", clock=Clock(MONDAY + DAY)), operation("store") as op:
        op.output("entry", text, name=key, kind="memory_entry")
    with attributes(user="theo"), trace("traces/", clock=Clock(MONDAY + 8 * DAY)):
        entry = variable(text, name=key, kind="memory_entry")
        query = variable("Who works where?", name="q", kind="query")
        with operation("retrieve", kind="retrieval", inputs={"query": query, "entries": [entry]}) as op:
            op.output("context", text, name=key, kind="context", entry=entry.id)
        answered("Who works where?", text)
    assert attribute("--complaints", complained("log.jsonl", {"question": "Who works where?"})) in (0, 1)
    told = capsys.readouterr()
    assert f"leak: retrieve gave 'theo' the entry {key} of 'mara'" in told.err + told.out


def test_feedback_in_the_folder_has_times_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = sorted(path.name for path in folder.iterdir())
    rows = "".join(f"{name},false,2023-11-2{day}T00:00:00+09:00\n" for name, day in zip(names[2:], (1, 2), strict=True))
    written(folder / "feedback.csv", f"trace,right,time\n{rows}")
    # The same moment, an hour after the first row and before the second, in two zones.
    for when in ("2023-11-20T16:00:00Z", "2023-11-21T01:00:00+09:00"):
        assert attribute("--since", when, "--out", "feedback.jsonl", "--again") == 0
        told = capsys.readouterr().out
        assert "1 to report" in told
        assert "1 trace from before left out" in told


def test_a_corrupt_trace_among_many_is_told_and_counted_and_the_others_are_used(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.jsonl").write_text('{"type": "header", "form\n')
    log = complained("log.jsonl", {"question": LIVES, "answers": ["the harbour office"]})
    assert attribute("--complaints", log) == 1
    told = capsys.readouterr()
    assert "broken.jsonl" in told.err
    assert "1 trace damaged" in told.out
    assert blamed(cases()) == [f"{LIVES}: extract_facts"]
    # It was told on the night when it was new.
    os.utime(folder / "broken.jsonl", (MONDAY, MONDAY))
    assert attribute("--complaints", log, "--since", str(MONDAY + 3 * DAY), "--out", "later.jsonl") == 0
    assert "broken" not in capsys.readouterr().err
    assert blamed(cases("later.jsonl")) == [f"{LIVES}: extract_facts"]


@pytest.mark.parametrize("hidden", ["pseudonym", "dropped"])
def test_user_ids_and_secrets_are_in_no_trace_and_users_stay_apart_under_pseudonyms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "traces"
    rules = Redaction(
        patterns=(r"\+\d{8,}",),
        keys=("user",) if hidden == "dropped" else (),
        pseudonyms={"user": "our own key"} if hidden == "pseudonym" else {},
    )
    said = "My sister Ines works at the harbour office. Call +4712345678, key sk-abcdefgh12345678."
    request(folder, "mara@example.org", MONDAY, message=said, redaction=rules)
    request(folder, "theo@example.org", MONDAY + 60, message="Nothing new.", fact="Nothing is new.", redaction=rules)
    request(folder, "mara@example.org", MONDAY + DAY, question=LIVES, redaction=rules)
    kept = "".join(path.read_text() for path in folder.iterdir())
    assert not any(secret in kept for secret in ("example.org", "+4712345678", "sk-abcdefgh12345678"))
    assert "harbour office" in kept
    log = complained("log.jsonl", {"question": LIVES, "answers": ["the harbour office"]})
    assert attribute("--complaints", log) == 0
    # Without an id, nothing tells that the two traces are of one user.
    expected = "extract_facts" if hidden == "pseudonym" else None
    assert blamed(cases()) == [f"{LIVES}: {expected}"]


def test_the_attributes_of_a_request_are_in_the_trace_that_begins_inside(tmp_path: Path) -> None:
    path = request(
        tmp_path, "mara", MONDAY, message="Hello.", more={"session_id": "s1", "api_key": "sk-abcdefgh12345678"}
    )
    (message,) = load_trace(path).graph.find_variables(kind="message")
    assert message.attributes == {"user": "mara", "session_id": "s1", "api_key": "[redacted]"}
    with trace() as outer, attributes(user="mara"), trace() as inner:
        stores("Hello.", None)
    assert not outer.graph.variables
    assert {variable.attributes["user"] for variable in inner.graph.variables.values()} == {"mara"}


def test_traces_of_a_user_are_one_conversation_whose_questions_are_asked_where_they_were(folder: Path) -> None:
    request(folder, "mara", MONDAY + 8 * DAY, message="Ines works at the bakery now.")
    request(folder, "mara", MONDAY + 9 * DAY, question="Where does Ines work now?", reply="the bakery")
    (folder / "broken.jsonl").write_text('{"type": "header", "form\n')
    rows = [
        {"trace": answers_with(folder, LIVES), "right": False, "answers": ["the harbour office"]},
        {"trace": answers_with(folder, "Where does Ines work now?"), "right": True},
    ]
    written(folder / "feedback.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    reading = Reading()
    (mara,) = conversations_of("traces", folder, reading)
    assert mara.id == "mara"
    assert [(session.time, [turn.text for turn in session.turns]) for session in mara.sessions] == [
        ("2023-11-14", [LIVED]),
        ("2023-11-22", ["Ines works at the bakery now."]),
    ]
    first, last = sorted(mara.questions, key=lambda question: question.question != LIVES)
    assert (first.answers, mara.sessions_before(first)) == (("the harbour office",), 1)
    assert (last.answers, mara.sessions_before(last)) == (("the bakery",), 2)
    assert reading.omissions["theo"] == {"traces without feedback": 2}
    assert any("damaged traces" in reason for reason in reading.omissions["broken"])


def test_questions_are_generated_from_the_history_of_a_user_with_the_complaints_about_it(folder: Path) -> None:
    log = complained("log.jsonl", {"question": LIVES, "user": "mara", "answers": ["the harbour office"]})
    request(folder, "mara", MONDAY + 9 * DAY, message="Ines works at the bakery now.")
    chats = read_chats(folder, Reading(), log=Path(log))
    assert [conversation.id for conversation in chats.conversations] == ["mara", "theo"]
    (complaint,) = chats.complaints["mara"]
    assert (complaint.question, complaint.reply, complaint.answers) == (LIVES, "unknown", ("the harbour office",))
    first, _ = chats.conversations[0].sessions
    assert complaint.after == first.id
    rows, _ = rows_of_complaints(Dialogue(chats.conversations[0]), [complaint], QuestionAuthor(cast(ChatModel, None)))
    assert [(row.after_session, row.evidence) for row in rows] == [(first.id, (first.turns[0].id,))]


def answers_with(folder: Path, question: str) -> str:
    """The name of the trace that answers a question."""
    return next(path.name for path in folder.iterdir() if question in path.read_text())


def test_feedback_on_another_tools_spans_becomes_rows_too(tmp_path: Path) -> None:
    chats = read_chats(otlp_folder(tmp_path), Reading())
    name = chats.conversations[0].id
    rows, _ = rows_of_complaints(
        Dialogue(chats.conversations[0]), chats.complaints[name], QuestionAuthor(cast(ChatModel, None))
    )
    assert [(row.question, row.answers, row.objected) for row in rows] == [("Where do I live?", ("Oslo",), "In Rome.")]
