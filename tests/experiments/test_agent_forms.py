"""Agents' traces in forms that nobody tuned on: one story with a planted fault, told as each convention tells it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from agent_forms import FORMS, operations_of
from agent_story import CHINESE, FERRY, GERMAN, KITE, OTHER_TOOLS, Fault, Tale, turns_of, with_other_tools

from attribution.attributor import survival_in
from attribution.cases import Attribution
from experiments.attributing.source import Complaint, Source, TraceContent
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import read_memory

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
    lines = form in ("mlflow_autolog", "gateway")
    path = folder / ("trace.jsonl" if lines else "trace.json")
    path.write_text(FORMS[form](turns_of(tale, fault)), "utf-8")
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
