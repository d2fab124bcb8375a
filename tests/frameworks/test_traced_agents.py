"""Agents of five frameworks with plain memory tools: their traces show which operation has the planted fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attribution.attributor import survival_in
from attribution.cases import Blame
from benchmarks.__main__ import benchmarks
from benchmarks.agent_traces.recording import DOORS, ONE_LINE, recorded
from benchmarks.agent_traces.scoring import RECORDED, AgentTrace, agent_traces, told, trace_at
from benchmarks.agent_traces.story import ALLERGY, FAULTS, KEYS, PETS, STORIES
from tracing.graph.elements import Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import read_graph
from tracing.interchange.agent_memory import interpreted

ROWS = [(agent, door) for agent, doors in DOORS.items() for door in doors]
BY_WORDS = "which entry was made from which message is known by their words alone"


@pytest.fixture(scope="module")
def traces() -> Iterator[list[AgentTrace]]:
    with agent_traces() as recorded_traces:
        yield recorded_traces


def wrong(traces: list[AgentTrace]) -> set[str]:
    assert traces
    return {trace.fault for trace in traces if not told(trace)[0]}


def not_told(agent: str, door: str) -> set[str]:
    """What a trace cannot tell: whose an entry is where nothing names the user, and a change by a tool of odd name."""
    if (agent, door) == ("adk", "opentelemetry"):
        return {"leak"}
    return {"leak", "wrong_update"} if (agent, door) == ("odd_names", "opentelemetry") else set()


def blame(traces: list[AgentTrace], agent: str, door: str, fault: str) -> Blame:
    (trace,) = (t for t in traces if (t.agent, t.door, t.story, t.fault) == (agent, door, PETS, fault))
    content = trace.read()
    (case,) = content.cases
    main = survival_in(content.of(case)).attribute(case).main
    assert main is not None
    return main


def test_every_agent_door_story_and_fault_is_recorded(traces: list[AgentTrace]) -> None:
    assert {trace.path.stem for trace in traces} == {
        f"{agent}-{door}-{story.name}-{fault}" for agent, door in ROWS for story in STORIES for fault in FAULTS
    }


@pytest.mark.parametrize(("agent", "door"), [*ROWS, ("odd_names", "opentelemetry, mapped")])
def test_the_operation_with_the_planted_fault_is_named(traces: list[AgentTrace], agent: str, door: str) -> None:
    looked_at = [t for t in traces if (t.agent, t.door) == (agent, door) and t.story in (PETS, KEYS)]
    assert wrong(looked_at) == not_told(agent, door)


def test_the_model_that_left_the_fact_out_is_told_from_the_tool_that_cut_it_off(traces: list[AgentTrace]) -> None:
    left_out, cut = (blame(traces, "agent_framework", "opentelemetry", fault) for fault in ("left_out", "cut"))
    assert (left_out.operation, left_out.error_type) == ("chat scripted: what to keep", "ExtractionError")
    assert (cut.operation, cut.error_type) == ("add_note", "UpdateError")


def test_a_verdict_that_rests_on_words_alone_says_so_and_is_less_sure(traces: list[AgentTrace]) -> None:
    by_id = blame(traces, "pydantic_ai", "opentelemetry", "cut")
    by_words = blame(traces, "openai_agents", "openinference", "cut")  # whose tool says only that it is done
    assert by_words.operation == "log_fact"
    assert BY_WORDS in by_words.reason
    assert BY_WORDS not in by_id.reason
    assert by_words.confidence < by_id.confidence - 0.1


@pytest.mark.parametrize(
    ("agent", "door", "line"),
    [
        ("pydantic_ai", "opentelemetry", "leak: recall gave 'mara' the entry n3 of 'theo'"),
        ("agent_framework", "opentelemetry", "leak: find_notes gave 'mara' the entry n3 of 'theo'"),
        ("langgraph", "recorded", "leak: search_memory gave 'mara' the entry n3 of 'theo'"),
    ],
)
def test_an_entry_of_another_person_is_told_as_a_leak(
    traces: list[AgentTrace], agent: str, door: str, line: str
) -> None:
    (leaking,) = (t for t in traces if (t.agent, t.door, t.story, t.fault) == (agent, door, PETS, "leak"))
    assert leaking.read().leaks == (line,)


def test_what_one_line_records_of_each_framework_is_as_the_page_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    with agent_traces(RECORDED) as traces:
        by_agent = {agent: [t for t in traces if t.agent == agent] for agent in {t.agent for t in traces}}
        assert rows == {agent: figures_of(recorded_here) for agent, recorded_here in by_agent.items()}


def figures_of(traces: list[AgentTrace]) -> str:
    """Calls to models with a prompt, operations that write and that find, entries linked, faults of both stories."""
    (sound,) = (t for t in traces if t.fault == "none" and t.story is PETS)
    graph, _ = read_graph(sound.path)
    memory = interpreted(graph)
    asked = [op for op in graph.operations.values() if op.calls]
    with_prompt = sum("You remember what people tell you." in json.dumps(variables_of(graph, op)) for op in asked)
    stages = [op.attributes.get("stage") for op in memory.operations.values()]
    entries = memory.find_variables(kind="memory_entry")
    linked = sum(
        any(v.kind == "message" for v in memory.backward_slice(entry.id).variables.values()) for entry in entries
    )
    right = [[told(trace)[0] for trace in traces if trace.story is story] for story in (PETS, ALLERGY)]
    return " | ".join(
        (
            f"{with_prompt}/{len(asked)}",
            f"{stages.count('update')}",
            f"{stages.count('retrieve')}",
            f"{linked}/{len(entries)}",
            *(f"{sum(verdicts)}/{len(verdicts)}" for verdicts in right),
        )
    )


def variables_of(graph: ExecutionGraph, op: Operation) -> list[Any]:
    return [graph.variables[vid].value for vid in op.input_ids()]


@pytest.mark.slow
def test_the_table_of_the_page_is_what_the_benchmark_prints(tmp_path: Path) -> None:
    benchmarks(["agents", "--json", str(tmp_path / "agents.json")], standalone_mode=False)
    figures = json.loads((tmp_path / "agents.json").read_text(encoding="utf-8"))["figures"]
    page = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\w+ [\w, ]+) \| (\d.*) \|$", page, re.MULTILINE))
    assert rows == {
        name: " | ".join(f"{by_fault[fault]['right']}/{by_fault[fault]['n']}" for fault in FAULTS)
        for name, by_fault in figures.items()
    }


@pytest.mark.libraries
@pytest.mark.parametrize("agent", DOORS)
def test_it_is_named_on_the_real_package(agent: str, tmp_path: Path) -> None:
    environments = Path(__file__).parents[2] / "build" / "agents"
    made = [trace_at(path) for path in recorded(agent, environments, tmp_path, [PETS])]
    for door in DOORS[agent]:
        assert wrong([trace for trace in made if trace.door == door]) == not_told(agent, door)


@pytest.mark.libraries
@pytest.mark.parametrize("agent", ONE_LINE)
def test_what_one_line_records_of_the_real_package_names_it(agent: str, tmp_path: Path) -> None:
    environments = Path(__file__).parents[2] / "build" / "agents"
    made = [trace_at(path) for path in recorded(agent, environments, tmp_path, [PETS], ["recorded"])]
    assert len(made) == len(FAULTS)
    assert wrong(made) == set()
