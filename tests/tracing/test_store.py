"""A trace file loads up to its last complete record, whatever happened to its writer, and holds no secret."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tracing import (
    ExecutionGraph,
    TraceError,
    graph_of,
    load_trace,
    operation,
    records_of,
    save_trace,
    session,
    trace,
    traced,
    variable,
)


def write_small(path: Path) -> list[str]:
    with trace(path, prefix="", clock=lambda: 1.5) as recorder, session("D1"):
        message = variable("A: ¡Hola! 👋", name="D1:1", kind="message")
        with operation("outer", inputs={"messages": [message]}) as outer:
            with operation("inner") as inner:
                fact = inner.output("fact", {"text": "tea"}, kind="fact")
            outer.output("fact", "coffee", kind="fact", previous=fact)
    return [record["id"] for record in recorder.records()]


def test_a_file_gives_back_the_recorded_graph(tmp_path: Path):
    path = tmp_path / "deep" / "t.jsonl"
    with trace(path) as recorder, session("D1", day=1):
        step = operation("step", kind="llm", inputs={"a": ["raw", (1, 2.5, None)]}, why={"x": [1]})
        with step as op:
            op.output("b", "half a pair: \ud83d")
            op.output("b", "line\u2028break\nand\x00null")
            op.record_call(model="m", prompt_tokens=3, completion_tokens=1, cost=0.25)
        variable({}, name="last")
    loaded = load_trace(path)
    assert loaded.problem is None
    for attribute in ("variables", "operations", "sessions"):
        assert getattr(loaded.graph, attribute) == getattr(recorder.graph, attribute)
    assert graph_of(json.loads(json.dumps(recorder.records()))).operations == recorder.graph.operations
    assert records_of(loaded.graph) == recorder.records()


def test_cut_at_every_byte_all_complete_records_load(tmp_path: Path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    everything = write_small(whole)
    content = whole.read_bytes()
    assert content.count(b"\n") == 1 + len(everything)
    for length in range(len(content) + 1):
        cut.write_bytes(content[:length])
        loaded = load_trace(cut)
        graph = loaded.graph
        lines = content[:length].split(b"\n")
        whole_line = content.split(b"\n")[len(lines) - 1]
        complete = len(lines) - 1 + (lines[-1] == whole_line and whole_line != b"")
        assert len(graph.sessions) + len(graph.variables) + len(graph.operations) == max(0, complete - 1)
        assert (loaded.problem is None) == (complete >= 1 and lines[-1] in (b"", whole_line))
        for one in graph.operations.values():
            graph.backward_slice(*one.input_ids(), *one.output_ids())


def test_a_damaged_record_ends_the_reading_and_is_named(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    write_small(path)
    lines = path.read_bytes().splitlines(keepends=True)
    for damage, words in (
        (b"\x00" * 40 + b"\n", "not JSON"),
        (b"[1]\n", "not a JSON object"),
        (b'{"type":"variable","id":"x"}\n', "name"),
        (b'{"type":"riddle"}\n', "riddle"),
        (b'{"type":"operation","id":"o9","name":"n","inputs":[["a","ghost"]]}\n', "ghost"),
        (b'{"type":"variable","id":"v9","name":"n","kind":"k","value":1,"previous":"ghost"}\n', "ghost"),
        (lines[2].replace(b"D1:1", b"D1:9"), "v1"),
        (b"[" * 100_000 + b"\n", "more than 250 levels"),
    ):
        path.write_bytes(b"".join([*lines[:3], damage, *lines[3:]]))
        loaded = load_trace(path)
        assert list(loaded.graph.variables) == ["v1"]
        assert f"{path}:4: " in loaded.problem
        assert words in loaded.problem


def test_a_file_that_is_no_trace_is_refused_with_the_reason(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    for content, words in (
        (b"hello\n", "is not a trace"),
        (b'{"type":"head"}', "is not a trace"),
        (b"{}\n", "header"),
    ):
        path.write_bytes(content)
        with pytest.raises(TraceError, match=words):
            load_trace(path)
    path.write_bytes(b'{"type":"header","format":"memtune-trace","version":9}\n')
    with pytest.raises(TraceError, match="format 9"):
        load_trace(path)
    with pytest.raises(TraceError, match="cannot be read"):
        load_trace(tmp_path / "none.jsonl")


def test_a_trace_never_overwrites_nor_mixes_with_what_a_file_holds(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    write_small(path)
    before = path.read_bytes()
    with pytest.raises(TraceError, match="holds data already"), trace(path):
        pass
    assert path.read_bytes() == before


SECRETS = (
    "sk-abcDEF123456ghi",
    "sk-proj-Zx_9-aaaabbbbcccc",
    "hf_abcdefghijklmnopqrstuv",
    "Bearer abc.DEF-123~x/y+z=",
    "bearer abcdefghijklmnopqrstuvwxyz",
    'Authorization: "Basic dXNlcjpwYXNz',
    "https://user:hunter2@host/v1",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_keys_and_tokens_reach_neither_file_nor_graph(secret: str, tmp_path: Path):
    class Client:
        def __repr__(self) -> str:
            return f"Client({secret})"

    path = tmp_path / "t.jsonl"
    with trace(path) as recorder, session(f"with {secret}", header=secret):
        variable({secret: [f"use {secret}, please", Client()]}, name=secret, note=secret)
        with contextlib.suppress(ValueError), operation(secret, header=secret) as op:
            op.annotate(header=secret)
            raise ValueError(f"refused {secret}")
    hidden = secret.split("//")[-1].split("@")[0].split(" ")[-1]
    assert "use " in path.read_text()
    assert hidden not in path.read_text()
    assert hidden not in json.dumps(recorder.records())


def test_values_under_the_key_of_a_secret_are_hidden_whatever_they_look_like():
    with trace():
        made = variable(
            {"api_key": "plain", "X-Api-Key": "plain", "headers": {"authorization": "x"}, "key": "k"}, name="c"
        )
    assert made.value == {
        "api_key": "[redacted]",
        "X-Api-Key": "[redacted]",
        "headers": {"authorization": "[redacted]"},
        "key": "k",
    }


def test_a_secret_is_hidden_by_its_name_as_an_argument_an_attribute_and_spelt_out_in_texts(tmp_path: Path):
    @dataclass
    class Settings:
        api_key: str

    @traced()
    def ask(api_key, settings, text):
        raise ValueError(f"GET /v1?access_token={api_key}&n=1 refused")

    hidden = "plain-and-hidden"
    with trace(tmp_path / "t.jsonl") as recorder, operation("run", OPENAI_API_KEY=hidden):
        variable({"refresh_token": hidden, 7: 1, "db-password": hidden}, name="settings")
        variable({"accessToken": hidden, "max_tokens": 5, "prior_authorization": "granted"}, name="more")
        with contextlib.suppress(ValueError):
            ask(hidden, Settings(hidden), f'{{"api_key": "{hidden}", "text": "key: 7"}}')
    assert hidden not in (tmp_path / "t.jsonl").read_text()
    values = [one.value for one in recorder.graph.variables.values()]
    assert {"accessToken": "[redacted]", "max_tokens": 5, "prior_authorization": "granted"} in values
    assert '{"api_key": "[redacted]", "text": "key: 7"}' in values
    assert [one.error for one in recorder.graph.find_operations(name="ask")] == [
        "ValueError: GET /v1?access_token=[redacted]&n=1 refused"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "She is the bearer of good news and bears responsibilities",
        "a task-oriented, risk-averse desk-top; sk-learn",
        "Her email is ann@example.org, see https://example.org/a:b and 10:30",
        "standard bearer certificates",
        "She said: 'the monkey = a token', key=\"A minor\", password: swordfish",
        'The secret key: "swordfish", and my password: "mellon"',
    ],
)
def test_ordinary_text_is_recorded_unchanged(text: str):
    with trace():
        assert variable(text, name="message").value == text
        assert variable({"the wifi password": text}, name="Ann's wifi password").value == {"the wifi password": text}


def test_facts_about_the_whole_graph_are_kept_in_the_file_by_adoption_and_in_slices(tmp_path: Path):
    facts = {"origin": {"format": "x", "order": [2, 1]}, "note": "é"}
    with trace(tmp_path / "adopted.jsonl") as recorder:
        recorder.adopt(records_of(ExecutionGraph(attributes=facts)))
        made = variable("text", name="t")
    assert recorder.graph.backward_slice(made.id).attributes == facts
    save_trace(recorder.graph, tmp_path / "saved.jsonl")
    for name in ("adopted.jsonl", "saved.jsonl"):
        assert load_trace(tmp_path / name).graph.attributes == facts
    merged = recorder.graph.merge(ExecutionGraph(attributes={"note": "other", "more": 1}))
    assert merged.attributes == {**facts, "more": 1}
    with pytest.raises(TraceError, match="attributes"):
        graph_of([{"type": "graph", "attributes": [1]}])


def test_a_slice_that_lacks_an_earlier_version_is_saved_as_a_trace_that_loads(tmp_path: Path):
    with trace() as recorder:
        first = variable("Lima", name="home", kind="memory_entry")
        second = variable("Oslo", name="home", kind="memory_entry", previous=first)
    save_trace(recorder.graph.forward_slice(second.id), tmp_path / "cut.jsonl")
    loaded = load_trace(tmp_path / "cut.jsonl")
    assert loaded.problem is None
    assert [(one.value, one.version, one.previous) for one in loaded.graph.variables.values()] == [("Oslo", 2, None)]


def test_in_a_folder_each_trace_has_a_file_of_its_own(tmp_path: Path):
    folder = tmp_path / "traces"
    for _ in range(2):
        with trace(f"{folder}/", clock=lambda: 0.0) as recorder:
            fact = variable("Mara lives in Oslo.", name="fact")
        assert recorder.path is not None
        assert recorder.path.name.startswith("19700101T000000Z-")
        assert list(load_trace(recorder.path).graph.variables) == [fact.id]
    with trace(folder, prefix="own-") as recorder:
        pass
    assert len(list(folder.iterdir())) == 3
    with pytest.raises(TraceError, match="another folder"), trace(f"{recorder.path}/"):
        pass
