"""Wrong answers in production are attributed by what users said of them, corrected or not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from data_files import traces, written
from traced_runs import conversation, record

from experiments.attributing.attributions import Attributions
from experiments.attributing.case_sources import sources_of
from experiments.command import main
from tracing.errors import DataError
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace, variable
from tracing.systems.conversations import write_conversations


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def test_a_folder_with_feedback_gives_the_answers_that_users_called_wrong(tmp_path: Path) -> None:
    found = [source.read() for source in sources_of([str(traces(tmp_path))], tmp_path / "home")]
    wrong = {case.question.question: case for one in found for case in one.cases if case.conversation == "one"}
    assert sorted(wrong) == ["What food does Mara's tortoise come out for?", "Where did Mara move to?"]
    assert wrong["Where did Mara move to?"].question.answers == ("Oslo",)
    assert not wrong["What food does Mara's tortoise come out for?"].knows_answer
    assert not any(case.passed for case in wrong.values())
    assert [len(one.cases) for one in found] == [2, 1, 1]


def test_attribute_and_report_say_what_went_wrong_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = traces(tmp_path / "production")
    attributed = "attribute", str(folder), "--out", "said.jsonl", "--home", str(tmp_path / "home")
    assert run(*attributed, "--helper-model", "m") == 0
    assert "note: survival by words asks no model" in capsys.readouterr().err
    cases = Attributions.read(tmp_path / "said.jsonl").cases.values()
    assert len(cases) == 4
    moved = [case for case in cases if case.question == "Where did Mara move to?"]
    assert [blame.operation for case in moved for blame in case.decisive] == ["answer"] * 3
    assert run("diagnose", "said.jsonl", "--out", "page.html") == 0
    assert "Where did Mara move to?" in (tmp_path / "page.html").read_text()


def test_a_row_that_fits_no_answer_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    folder = traces(tmp_path)
    rows = [
        {"trace": "one", "question": "Who?", "right": False},
        {"trace": "one", "question": "Where did Mara move to?", "right": False},
    ]
    path = written(folder / "feedback.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    (source,) = sources_of([str(folder)], tmp_path / "home")
    found = source.read()
    assert [case.question.question for case in found.cases] == ["Where did Mara move to?"]
    assert str(found.problem).startswith(f"{path}:1: question: the trace has no such answer; questions in it are: ")


def test_feedback_on_a_trace_that_is_not_there_is_refused(tmp_path: Path) -> None:
    folder = traces(tmp_path)
    written(folder / "feedback.jsonl", json.dumps({"trace": "nine", "right": False}) + "\n")
    with pytest.raises(DataError, match=r"feedback\.jsonl:1: trace: 'nine' is not a trace in .*; correct it"):
        sources_of([str(folder)], tmp_path / "home")


def test_a_log_of_complaints_is_attributed_and_clustered_by_what_went_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = traces(tmp_path / "traces")
    (folder / "feedback.jsonl").unlink()
    log = "question,reply,answers,trace\n"
    log += "".join(
        f"where did  mara move to?,,{right},{name}\n" for name, right in (("one", "Oslo"), ("two.jsonl", ""))
    )
    written(tmp_path / "log.csv", log + '"What food does Mara\'s tortoise come out for?",,,traces/one.jsonl\n')
    assert run("attribute", "traces", "--complaints", "log.csv", "--home", str(tmp_path / "home")) == 0
    said = capsys.readouterr().out
    cases = Attributions.read(tmp_path / "complaints.jsonl").cases.values()
    assert sorted((case.trace, case.question, case.answers) for case in cases) == [
        ("traces/one.jsonl", "What food does Mara's tortoise come out for?", ("",)),
        ("traces/one.jsonl", "Where did Mara move to?", ("Oslo",)),
        ("traces/two.jsonl", "Where did Mara move to?", ("",)),
    ]
    clusters = [line for line in said.splitlines() if " × " in line]
    assert sum(int(line.split(" × ")[0]) for line in clusters) == 3
    assert any("ResponseError at answer" in line for line in clusters)
    assert "for example 'Where did Mara move to?'" in said


@pytest.mark.parametrize(
    "log",
    [
        '"Question";"Reply"\n"Where does Mara live?";"Bergen"\n"How many cats?";"42"\n"Who is Rex?";"nan"\n',
        "question\treply\nwhere does Mara live\t'Bergen.'\nHow many cats??\t42\nWho is Rex\tNone\n",
        '{"question": "Where does Mara live", "reply": null}\n{"question": "How many cats?", "reply": 42}\n'
        '{"question": "Who is Rex?", "reply": "null"}\n',
    ],
    ids=["semicolons", "tabs", "JSON"],
)
def test_a_log_of_any_spreadsheet_or_program_is_matched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ("Where does Mara live?", "\u201cBergen\u201d"), ("How many cats?", "42"), ("Who is Rex?", "None")
    with trace(tmp_path / "chat.jsonl"):
        for at, (question, reply) in enumerate(asked):
            variable(f"Mara: Hello {at}.", name=f"D1:{at}", kind="message")
            query = variable(question, name=f"q{at}", kind="query")
            with operation("answer", inputs={"question": query, "context": "Rain."}) as op:
                op.output("prediction", reply, kind="prediction")
    name = "log.jsonl" if log.startswith("{") else "log.csv"
    written(tmp_path / name, log)
    assert run("attribute", "chat.jsonl", "--complaints", name, "--home", str(tmp_path / "home")) == 0
    cases = Attributions.read(tmp_path / "complaints.jsonl").cases.values()
    assert sorted((case.question, case.reply) for case in cases) == sorted(asked)


@pytest.mark.parametrize("known", [False, True])
def test_a_cluster_of_complaints_alone_says_that_one_cause_of_all_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], known: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    with trace(tmp_path / "chat.jsonl"):
        for at, town in enumerate(("Oslo", "Turin", "Bonn")):
            variable(f"Mara: My friend in {town} is called Agata {at}.", name=f"D1:{at}", kind="message")
            asked = variable(f"Who lives in {town}?", name=f"q{at}", kind="query")
            with operation("answer", inputs={"question": asked, "context": f"Somebody called Bo {at}."}) as op:
                op.output("prediction", "Rumpelstiltskin", kind="prediction")
    rows = [{"question": f"Who lives in {town}?"} for town in ("Oslo", "Turin", "Bonn")]
    rows = [{**row, "answers": [f"Agata {at}"]} for at, row in enumerate(rows)] if known else rows
    written(tmp_path / "log.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert run("attribute", "chat.jsonl", "--complaints", "log.jsonl", "--home", str(tmp_path / "home")) == 0
    assert ("proves nothing" in capsys.readouterr().out) is not known
    assert run("diagnose", "complaints.jsonl", "--out", "report.html") == 0
    assert ("proves nothing" in (tmp_path / "report.html").read_text(encoding="utf-8")) is not known


def test_what_is_written_beside_the_traces_is_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "traces").mkdir()
    record(folder / "one.jsonl", conversation("one"))
    write_conversations(tmp_path / "data.jsonl", [conversation("one")])
    written(folder / "log.jsonl", json.dumps({"question": "Where did Mara move to?"}) + "\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MEMTUNE_HOME", str(tmp_path / "home"))
    assert run("attribute", ".", "--complaints", "log.jsonl") == 0
    (folder / "log.jsonl").unlink()
    assert run("attribute", ".", "--data", "../data.jsonl") == 0
    assert run("attribute", ".", "--data", "../data.jsonl") == 0
    assert list(Attributions.read(folder / "attributions.jsonl").traces) == ["one.jsonl"]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"question": "Who?"}, "question: 3 traces have no such answer; give it as it was recorded"),
        ({"question": "Who?", "trace": "four"}, "trace: 'four' is none of the traces given; correct it"),
        ({"trace": "one"}, "question: is missing; give the question or the reply"),
        ({"question": "Who?", "trace": "one", "right": "Bonn"}, "right: "),
    ],
)
def test_a_complaint_that_fits_no_trace_is_refused_with_its_line(
    tmp_path: Path, row: dict[str, str], told: str
) -> None:
    folder = traces(tmp_path / "traces")
    log = written(tmp_path / "log.jsonl", json.dumps(row) + "\n")
    with pytest.raises(DataError) as caught:
        sources_of([str(folder)], tmp_path / "home", complaints=log)
    assert str(caught.value).startswith(f"{log}:1: ")
    assert told in str(caught.value)


def test_replies_match_in_quotes_or_without_and_where_they_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    replies = ['"Bergen"', "Bonn", None, "“Turin”"]
    with trace(tmp_path / "chat.jsonl"):
        variable("Mara: I moved to Oslo.", name="D1:1", kind="message")
        for at, reply in enumerate(replies):
            asked = variable("Where did Mara move to?", name=f"q{at}", kind="query")
            with operation("answer", inputs={"question": asked}) as op:
                op.output("prediction", reply, kind="prediction")
    given = ["Bergen", '"Bonn"', "None", "'Turin'"]
    rows = [{"question": "“Where did Mara move to?”", "reply": reply} for reply in given]
    written(tmp_path / "log.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert run("attribute", "chat.jsonl", "--complaints", "log.jsonl", "--home", str(tmp_path / "home")) == 0
    assert len(Attributions.read(tmp_path / "complaints.jsonl").cases) == 4
    assert "4 wrong answers in 1 trace" in capsys.readouterr().out
    assert run("attribute", "chat.jsonl", "--question", "Where did Mara move to?", "--reply", "none") == 0


def test_all_complaints_that_match_no_answer_are_told_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = traces(tmp_path / "traces")
    (folder / "feedback.jsonl").unlink()
    said = ["Where did Mara move to?", "Who is Ilya?", "How old is Mara?"]
    rows = [{"question": question, "trace": "one"} for question in said]
    rows.append({"question": said[0], "reply": "Atlantis", "trace": "two"})
    log = written(tmp_path / "log.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert run("attribute", "traces", "--complaints", "log.jsonl", "--home", str(tmp_path / "home")) == 1
    told = capsys.readouterr()
    assert "3 complaints match no answer" in told.out
    for line, what in (
        (2, "question"),
        (3, "question"),
        (4, "reply: the trace has no such answer; it was answered with"),
    ):
        assert f"{log.name}:{line}: {what}" in told.err
    assert len(Attributions.read(tmp_path / "complaints.jsonl").cases) == 1


@pytest.mark.parametrize("recorded", ["nothing", "question", "reply"])
@pytest.mark.parametrize("way", ["--question", "--complaints", ""])
def test_a_trace_without_a_recorded_answer_tells_the_two_lines_that_record_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], recorded: str, way: str
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = "Where does Mara live?"
    with trace(tmp_path / "chat.jsonl"):
        variable("Mara: I live in Oslo.", name="D1:1", kind="message")
        read = {"question": variable(asked, name="q1", kind="query")} if recorded == "question" else {}
        with operation("answer", inputs=read) as op:
            op.output("reply", "Bergen", kind="prediction" if recorded == "reply" else "value")
    written(tmp_path / "log.jsonl", json.dumps({"question": asked}) + "\n")
    options = {"--question": ["--question", asked], "--complaints": ["--complaints", "log.jsonl"], "": []}[way]
    assert run("attribute", "chat.jsonl", *options, "--home", str(tmp_path / "home")) != 0
    told = "".join(capsys.readouterr())
    assert {"nothing": "no answer", "question": "no reply to it", "reply": "read a question"}[recorded] in told
    lines = [part for part in told.split("`") if "variable(" in part or "op.output(" in part]
    assert len(lines) == 2
    with trace(tmp_path / "told.jsonl"):
        exec("\n".join(lines), {"variable": variable, "operation": operation, "reply": "Bergen"})  # noqa: S102
    assert run("attribute", "told.jsonl", "--question", asked, "--out", "told.out") == 0
    assert "docs/tracing.md#questions-and-answers" in told
