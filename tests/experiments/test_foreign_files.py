"""A file given to the wrong command is told in one line what it looks like and which command takes it."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from data_files import locomo, otlp_chat, sharegpt, written

from experiments.attributing.attributions import Attributions
from experiments.command import main
from tracing.errors import DataError
from tracing.files.file_kinds import kind_of

WHO_AND_WHEN = {
    "is_correct": False,
    "question": "How many?",
    "ground_truth": "3",
    "history": [{"content": "Let me count.", "role": "assistant", "name": "Expert"}],
    "mistake_agent": "Expert",
    "mistake_step": "0",
    "mistake_reason": "It did not count.",
}
TRAIL = {"trace_id": "a", "spans": [{"span_id": "b", "child_spans": [], "span_attributes": {}}]}
CHAT = [{"messages": [{"role": "user", "content": "I moved to Oslo."}, {"role": "assistant", "content": "Noted."}]}]
GRAPH = {"graph_id": "g", "data": {"nodes": [], "edges": [], "operations": [], "sessions": []}}
ATTRIBUTIONS = '{"type":"attributions","version":1,"method":"survival"}\n'
TRACE = '{"type":"header","format":"memtune-trace","version":1}\n'
MLFLOW = {"info": {"trace_id": "tr-1"}, "data": {"spans": []}}


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("chat.json", json.dumps(CHAT))


FILES: dict[str, tuple[Any, str]] = {
    "who.json": (
        WHO_AND_WHEN,
        "Who&When: what agents said, and whose mistake it was; memtune does not read it: it is not",
    ),
    "trail.json": (TRAIL, "TRAIL: spans of agents, and what went wrong in which; memtune does not read it: it is not"),
    "labels.json": ({"errors": [{"category": "Goal Deviation", "location": "a"}]}, "TRAIL: spans of agents"),
    "row.json": ({"trace": json.dumps(TRAIL), "labels": "{}"}, "TRAIL: spans of agents"),
    "chat.json": (CHAT, "a chat log; `memtune data validate {path}` checks it"),
    "chat.jsonl": (lines(CHAT), "a chat log; `memtune data validate {path}` checks it"),
    "messages.json": (CHAT[0]["messages"], "a chat log; `memtune data validate {path}` checks it"),
    "gpt.json": (sharegpt(), "a chat log; `memtune data validate {path}` checks it"),
    "locomo.json": (locomo(), "LoCoMo; `memtune data validate {path}` checks it"),
    "out.jsonl": (ATTRIBUTIONS + '{"type":"tra', "what `memtune attribute` wrote; `memtune diagnose {path}` takes it"),
    "page.html": ("<!DOCTYPE html>\n<html></html>", "a web page; download the file itself"),
    "page.json": ("\n<html><body>404</body></html>", "a web page; download the file itself"),
    "table.csv": ("id,name,score\n1,Ann,2\n", "a table with the columns id, name, score; docs/data-format.md says"),
    "log.csv": ("question,reply,trace\nWho?,Bo,t\n", "a log of complaints; `memtune attribute TRACE --complaints"),
    "log.jsonl": (lines([{"question": "Who?", "reply": "Bo"}]), "a log of complaints; `memtune attribute TRACE"),
    "a.parquet": (b"PAR1\x15\x04\x15", "a Parquet file; save it as CSV or JSON lines first"),
    "a.zip": (zipped, "a zip archive; unpack it"),
    "a.json.gz": (lambda path: path.write_bytes(gzip.compress(b"{}")), "a file compressed by gzip; unpack it first"),
    "a.jsonl": ("version https://git-lfs.github.com/spec/v1\noid sha256:a\n", "a pointer of Git LFS in place of the"),
    "notes.txt": ("Buy milk.\n", "plain text; docs/data-format.md and docs/interchange.md say what memtune reads"),
    "talk.txt": ("[01.02.24, 10:00:00] Ann: I moved to Oslo.\n", "plain text; docs/data-format.md"),
    "har.json": ({"log": {"entries": []}}, "JSON with the keys log; docs/data-format.md and docs/interchange.md say"),
    "memories.json": ([{"id": "m", "memory": "Tea."}], "JSON with the keys id, memory; docs/data-format.md and"),
    "squad.json": ({"version": "2", "data": [{"title": "x"}]}, "JSON with the keys version, data; docs/data-format.md"),
    "zipkin.json": ([{"traceId": "a", "id": "b", "name": "x"}], "spans in a form that memtune does not read"),
    "observations.json": ([{"id": "o", "traceId": "t", "type": "SPAN"}], "spans in a form that memtune does not read"),
    "langfuse.json": ([{"id": "t", "projectId": "p", "observations": ["o"]}], "spans in a form that memtune does not"),
    "folder": (lambda path: path.mkdir(), "a folder; give a file in it"),
}


def made(folder: Path, name: str) -> Path:
    document, path = FILES[name][0], folder / name
    if callable(document):
        document(path)
    elif isinstance(document, bytes):
        path.write_bytes(document)
    else:
        written(path, document)
    return path


def said(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out + err


@pytest.mark.parametrize("name", FILES)
def test_what_takes_traces_says_what_else_a_file_is(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMTUNE_HOME", str(tmp_path / "home"))
    path = made(tmp_path, name)
    looks = f"it looks like {FILES[name][1].format(path=path)}"
    commands: list[tuple[str | Path, ...]] = [
        ("trace", "show", path),
        ("trace", "export", path, "--to", "otlp", "--out", tmp_path / "x"),
        *(
            ("trace", "import", path, "--from", one, "--out", tmp_path / "x")
            for one in ("smartcomment", "otlp", "mlflow")
        ),
    ]
    if path.is_file() and name != "out.jsonl":
        commands.append(("diagnose", path))
    for command in commands:
        code, told = said(capsys, *command)
        assert code == 2, command
        assert looks in told, (command, told)
        assert told.count("\n") == 1, told
    if path.is_file():
        code, told = said(capsys, "attribute", path, "--out", tmp_path / "said.jsonl")
        assert code == 1
        traces = Attributions.read(tmp_path / "said.jsonl").traces.values()
        assert all(looks in str(one.problem) for one in traces)


@pytest.mark.parametrize(
    ("document", "name", "looks"),
    [
        (TRACE, "t.jsonl", "a trace of memtune; `memtune trace show {path}` and `memtune attribute {path}` take it"),
        (otlp_chat("Oslo"), "t.json", "an OpenTelemetry trace; `memtune trace import {path} --from otlp --out TRACE`"),
        (MLFLOW, "m.json", "an MLflow trace; `memtune trace import {path} --from mlflow --out TRACE` takes it"),
        (ATTRIBUTIONS, "a.jsonl", "what `memtune attribute` wrote; `memtune diagnose {path}` takes it"),
        (WHO_AND_WHEN, "w.json", "Who&When: what agents said"),
        ("id,name,score\n1,a,2\n", "t.csv", "a table with the columns id, name, score"),
    ],
)
@pytest.mark.parametrize("dataset", ["", "jsonl", "sharegpt", "locomo", "longmemeval", "openai-chats", "realmem"])
def test_what_takes_data_says_what_else_a_file_is(
    tmp_path: Path, document: Any, name: str, looks: str, dataset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / name, document)
    options = ("--dataset", dataset) if dataset else ()
    code, told = said(capsys, "data", "validate", path, *options)
    assert code == (1 if dataset else 2)
    assert f"it looks like {looks.format(path=path)}" in told
    assert told.count("it looks like") == 1


def test_data_given_as_traces_data_is_told_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "chat.jsonl", lines(CHAT))
    code, told = said(capsys, "attribute", written(tmp_path / "t.jsonl", TRACE), "--data", path)
    assert code == 2
    assert f"{path}: is not the data set jsonl; it looks like a chat log; " in told


@pytest.mark.parametrize(
    ("command", "is_no"),
    [
        (("run", "FILE", "--dry-run"), "is not a configuration"),
        (("attribute", "TRACE", "--complaints", "FILE"), "is not a log of complaints"),
        (("annotate", "FILE"), "is not a trace"),
        (("run", "--dataset", "jsonl", "--data", "FILE", "--dry-run"), "is not the data set jsonl"),
    ],
)
@pytest.mark.parametrize("name", ["who.json", "chat.json", "page.html", "a.parquet"])
def test_other_commands_say_what_a_file_is_too(
    tmp_path: Path, command: tuple[str, ...], is_no: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, trace = made(tmp_path, name), written(tmp_path / "t.jsonl", TRACE)
    places = {"FILE": path, "TRACE": trace}
    code, told = said(capsys, *(places.get(each, each) for each in command), "--home", tmp_path / "home")
    assert code == 2
    assert f"{path}: {is_no}; it looks like {FILES[name][1].format(path=path)}" in told


@pytest.mark.parametrize(("name", "looks"), [("t.jsonl", "a trace of memtune"), ("c.jsonl", "a chat log")])
def test_out_that_is_something_else_is_refused_by_what_it_is(
    tmp_path: Path, name: str, looks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = written(tmp_path / name, TRACE if name == "t.jsonl" else lines(CHAT))
    code, told = said(capsys, "attribute", written(tmp_path / "g.json", GRAPH), "--out", out)
    assert code == 2
    assert f"{out}: is not what `memtune attribute` wrote; it looks like {looks}; " in told
    assert out.read_text() == (TRACE if name == "t.jsonl" else lines(CHAT))


def test_an_interrupted_out_names_the_line_to_delete(tmp_path: Path) -> None:
    path = written(
        tmp_path / "out.jsonl", ATTRIBUTIONS + '{"type":"tra\n' + '{"type":"trace","trace":"t","digest":"d"}\n'
    )
    with pytest.raises(DataError, match=r"out\.jsonl:2: is cut off or damaged; delete this line"):
        Attributions.read(path)


def test_a_kind_is_known_by_structure_and_not_by_words_in_it(tmp_path: Path) -> None:
    text = 'a line with "sessions" and "speakers" and "mapping" in it'
    path = written(tmp_path / "x.json", [{"role": "user", "content": text}])
    kind = kind_of(path)
    assert kind is not None
    assert kind.name == "sharegpt"
