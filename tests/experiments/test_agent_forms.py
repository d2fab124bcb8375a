"""Agents' traces in forms that nobody tuned on: one story with a planted fault, told as each convention tells it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_dialects import DIALECTS, SAIL
from agent_forms import FORMS, operations_of
from agent_story import CHINESE, FERRY, GERMAN, KITE, OTHER_TOOLS, Fault, Tale, turns_of, with_other_tools

from attribution.attributor import survival_in
from attribution.cases import Attribution
from experiments.attributing.source import Complaint, Source, TraceContent
from experiments.command import main
from experiments.data.own.histories import Histories
from tracing.errors import TraceError
from tracing.files.trace_file import save_trace
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import read_graph, read_memory
from tracing.interchange.agent_memory import interpreted
from tracing.interchange.agent_memory.mapping import draft, read_mapping, unused

TYPES: Mapping[Fault, frozenset[str]] = {
    "nothing_saved": frozenset(("ExtractionError", "UpdateError")),
    "cut": frozenset(("ExtractionError", "UpdateError")),
    "wrong_update": frozenset(("UpdateError", "DeletionError")),
    "missed": frozenset(("RetrievalError",)),
    "ignored": frozenset(("ResponseError",)),
}


def attributed(path: Path, tale: Tale) -> tuple[Attribution, TraceContent]:
    """What is said of the answer to the tale's question, and what was read from the trace."""
    content = Source(path, complaint=Complaint(tale.question, "", (tale.answer,))).read()
    (case,) = content.cases
    return survival_in(content.of(case)).attribute(case), content


def written(form: str, tale: Tale, fault: Fault, folder: Path) -> Path:
    """The trace of a tale in a form, as a file."""
    text = {**FORMS, **DIALECTS}[form](turns_of(tale, fault))
    path = folder / ("trace.jsonl" if "\n" in text else "trace.json")
    path.write_text(text, "utf-8")
    return path


def is_named(attribution: Attribution, form: str, tale: Tale, fault: Fault) -> bool:
    """Whether the verdict names the kind of error and the operation that has the fault."""
    main = attribution.main
    if main is None or main.error_type not in TYPES[fault]:
        return False
    tools = operations_of(form, tale)
    named = {does for does, parts in tools.items() if any(part in main.operation for part in parts)}
    if fault == "nothing_saved" or (
        fault == "cut" and form == "memory_spans"
    ):  # its records do not tell what was asked
        return "save" in named or not named
    wanted = {"cut": "save", "wrong_update": "change", "missed": "find"}.get(fault)
    return wanted in named if wanted is not None else not named


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fault", TYPES)
@pytest.mark.parametrize("tale", [KITE, FERRY], ids=["kite", "ferry"])
def test_the_operation_with_the_fault_is_named(form: str, fault: Fault, tale: Tale, tmp_path: Path) -> None:
    attribution, _ = attributed(written(form, tale, fault, tmp_path), tale)
    assert is_named(attribution, form, tale, fault), attribution.main


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", TYPES)
def test_messages_and_calls_may_be_written_otherwise(dialect: str, fault: Fault, tmp_path: Path) -> None:
    attribution, _ = attributed(written(dialect, SAIL, fault, tmp_path), SAIL)
    form = "langgraph_mem0" if dialect == "attributes_of_ones_own" else dialect
    assert is_named(attribution, form, SAIL, fault), attribution.main


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tale", [GERMAN, CHINESE], ids=["german", "chinese"])
def test_texts_may_be_in_other_languages_than_the_names_of_tools(form: str, tale: Tale, tmp_path: Path) -> None:
    for fault in TYPES:
        attribution, _ = attributed(written(form, tale, fault, tmp_path), tale)
        assert is_named(attribution, form, tale, fault), (fault, attribution.main)


@pytest.mark.parametrize("form", FORMS)
def test_what_one_user_stored_and_another_was_shown_is_a_leak(form: str, tmp_path: Path) -> None:
    attribution, sound = attributed(written(form, KITE, "none", tmp_path), KITE)
    assert attribution.case.judgement.contains > 0
    assert sound.leaks == ()
    attribution, leaking = attributed(written(form, KITE, "leak", tmp_path), KITE)
    assert attribution.case.judgement.contains > 0
    if form == "gateway":  # its recording names no user
        assert leaking.leaks == ()
    else:
        (line,) = leaking.leaks
        assert re.fullmatch(r"leak: \w\S* gave 'greta' the entry \w+ of 'pavel'", line)


@pytest.mark.parametrize("form", FORMS)
def test_tools_that_are_no_memory_are_none(form: str, tmp_path: Path) -> None:
    path = written(form, KITE, "missed", tmp_path)
    plain = read_memory(path)[0]
    path.write_text(FORMS[form](with_other_tools(turns_of(KITE, "missed"))), "utf-8")
    mixed = read_memory(path)[0]
    assert values_of(mixed, "memory_entry") == values_of(plain, "memory_entry")
    others = {call.name for call in OTHER_TOOLS}
    assert not [step.name for step in mixed.operations.values() if step.name in others and step.attributes["stage"]]
    attribution, _ = attributed(path, KITE)
    assert is_named(attribution, form, KITE, "missed"), attribution.main


def values_of(graph: ExecutionGraph, kind: str) -> list[object]:
    return [variable.value for variable in graph.find_variables(kind=kind)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fault", ["wrong_update", "missed"])
def test_a_draft_of_a_mapping_says_what_is_understood_without_it(form: str, fault: Fault, tmp_path: Path) -> None:
    path = written(form, KITE, fault, tmp_path)
    graph, _ = read_graph(path)
    file = tmp_path / "agent.yaml"
    file.write_text(draft(graph), "utf-8")
    mapping = read_mapping(file)
    assert unused(mapping, graph) == []
    by_itself, mapped = interpreted(graph), interpreted(graph, mapping)
    assert values_of(mapped, "memory_entry") == values_of(by_itself, "memory_entry")
    attribution, _ = attributed(saved(mapped, tmp_path), KITE)
    assert is_named(attribution, form, KITE, fault), attribution.main


def saved(graph: ExecutionGraph, folder: Path) -> Path:
    """A graph as the trace that `trace import` writes."""
    path = folder / "imported.jsonl"
    save_trace(graph, path)
    return path


@pytest.mark.parametrize("fault", TYPES)
def test_names_that_tell_nothing_are_told_by_a_mapping(fault: Fault, tmp_path: Path) -> None:
    odd = replace(FERRY, tools=("blip", "blop", "blap"))
    graph, _ = read_graph(written("details_event", odd, fault, tmp_path))
    file = tmp_path / "agent.yaml"
    file.write_text("operations:\n  blip: {role: store}\n  blop: {role: update}\n  blap: {role: retrieve}\n")
    attribution, _ = attributed(saved(interpreted(graph, read_mapping(file)), tmp_path), odd)
    assert is_named(attribution, "details_event", odd, fault), attribution.main


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("operations: {jot: {role: keep}}", r"operations\.jot: .*keep"),
        ("operations: {jot: {role: store, texts: line}}", r"operations\.jot: .*texts"),
        ("operations: {jot: {text: line}}", r"operations\.jot: .*role"),
        ("tools: {}", r"operations: .*tools"),
        ("operations: [", "is no YAML"),
    ],
)
def test_a_mapping_that_says_something_else_is_refused(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(text)
    with pytest.raises(TraceError, match=words) as refused:
        read_mapping(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert "\n" not in str(refused.value)
    assert "#agents" in str(refused.value) or "trace map" in str(refused.value)


def test_a_name_that_no_operation_has_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written("openllmetry", KITE, "none", tmp_path)
    Path("agent.yaml").write_text("operations: {store_note: {role: store}, stare_note: {role: store}}")
    assert memtune("trace", "import", "trace.json", "--from", "otlp", "--map", "agent.yaml", "--out", "out.jsonl") == 0
    warned = capsys.readouterr().err
    assert "warning: agent.yaml: operations.stare_note: no operation of trace.json is called so" in warned
    assert "operations.store_note" not in warned


def test_a_leak_is_told_where_answers_are_attributed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written("openllmetry", KITE, "leak", tmp_path)
    line = "leak: search_notes gave 'greta' the entry m3 of 'pavel'"
    assert memtune("attribute", "trace.json", "--question", KITE.question, "--out", "told.jsonl") == 0
    printed = capsys.readouterr()
    assert f"warning: trace.json: {line}" in printed.err
    assert "1 leak between users" in printed.out + printed.err
    rows = [json.loads(row) for row in Path("told.jsonl").read_text().splitlines()]
    assert [row["leaks"] for row in rows if row["type"] == "trace"] == [[line]]
    for page, link in (("d.html", '<a href="#leaks">Leaks between users</a>'), ("d.md", "## Leaks between users")):
        assert memtune("diagnose", "told.jsonl", "--out", page) == 0
        assert link in Path(page).read_text()
        assert f"trace.json: {line}" in html.unescape(Path(page).read_text())
    assert memtune("diagnose", "told.jsonl", "--out", "d.json") == 0
    assert json.loads(Path("d.json").read_text())["leaks"] == [f"trace.json: {line}"]


def test_names_of_tools_that_tell_nothing_are_told_beside_the_verdict_until_they_are_mapped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written("openllmetry", KITE, "missed", tmp_path)
    text = Path("trace.json").read_text()
    hint = "trace.json: the names of {} do not tell what they do with the memory, so verdicts can mislead"

    def told_of(file: str, *names: tuple[str, str]) -> str:
        changed = text
        for name, other in names:
            changed = changed.replace(name, other)
        Path("trace.json").write_text(changed)
        Path("told.jsonl").unlink(missing_ok=True)
        assert memtune("attribute", file, "--question", KITE.question, "--right", "chapel", "--out", "told.jsonl") == 0
        assert memtune("diagnose", "told.jsonl", "--out", "d.json") == 0
        warned = capsys.readouterr().err
        notes = " ".join(json.loads(Path("d.json").read_text())["notes"])
        assert ("can mislead" in warned) == ("can mislead" in notes)
        return warned

    assert "can mislead" not in told_of("trace.json")
    assert hint.format("a1, tool_7") in told_of("trace.json", ("store_note", "a1"), ("search_notes", "tool_7"))
    assert "`memtune trace map trace.json`" in told_of("trace.json", ("store_note", "a1"))
    Path("map.yaml").write_text("operations: {a1: {role: store}}")
    assert memtune("trace", "import", "trace.json", "--from", "otlp", "--map", "map.yaml", "--out", "t.jsonl") == 0
    assert "can mislead" not in told_of("t.jsonl", ("store_note", "a1"))


def test_leaks_of_a_trace_are_among_what_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = "leak: search_notes gave 'greta' the entry m3 of 'pavel'"
    for fault, leaks in (("leak", [line]), ("none", [])):
        written("openllmetry", KITE, fault, tmp_path)
        assert memtune("trace", "import", "trace.json", "--from", "otlp", "--out", "t.jsonl", "--force") == 0
        capsys.readouterr()
        assert memtune("trace", "stats", "t.jsonl") == 0
        assert (f"✗ {line}" in capsys.readouterr().out) == bool(leaks)
        assert memtune("trace", "stats", "t.jsonl", "--json") == 0
        assert json.loads(capsys.readouterr().out)["leaks"] == leaks


def memtune(*arguments: str) -> int:
    """Run the command and return its exit code."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.mark.parametrize("form", ["details_event", "openllmetry", "langgraph_mem0"])
@pytest.mark.parametrize("fault", TYPES)
def test_a_history_may_be_in_several_files(form: str, fault: Fault, tmp_path: Path) -> None:
    document = json.loads(FORMS[form](turns_of(FERRY, fault)))
    (scope,) = document["resourceSpans"][0]["scopeSpans"]
    traces = sorted({span["traceId"] for span in scope["spans"]})
    paths = [tmp_path / f"{trace}.json" for trace in traces]
    for path, trace in zip(paths, traces, strict=True):
        own = {**scope, "spans": [span for span in scope["spans"] if span["traceId"] == trace]}
        path.write_text(json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [own]}]}))
    complaint = Complaint(FERRY.question, "", (FERRY.answer,))
    content = Source(paths[-1], complaint=complaint, histories=Histories(paths, read=read_memory)).read()
    (case,) = content.cases
    attribution = survival_in(content.of(case)).attribute(case)
    assert is_named(attribution, form, FERRY, fault), attribution.main


def test_what_words_alone_link_is_less_sure(tmp_path: Path) -> None:
    """A search that gives texts without ids is linked to the entries by its words."""
    with_ids = written("details_event", KITE, "ignored", tmp_path)
    sure, _ = attributed(with_ids, KITE)
    without = with_ids.with_name("without.json")
    document = json.loads(with_ids.read_text())
    without.write_text(json.dumps(_without_ids(document)))
    unsure, _ = attributed(without, KITE)
    assert sure.main is not None
    assert unsure.main is not None
    assert unsure.main.error_type == sure.main.error_type == "ResponseError"
    assert unsure.main.confidence < sure.main.confidence
    assert "words alone" in unsure.main.reason


def _without_ids(value: Any) -> Any:
    """A document whose tools' results have no ids."""
    if isinstance(value, dict):
        return {key: _without_ids(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_ids(part) for part in value]
    return re.sub(r'"id": "m\d", ', "", value) if isinstance(value, str) else value
