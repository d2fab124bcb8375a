"""The fact memory does what the decisions say, and a reply it cannot use loses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from scripted_server import ScriptedServer, prompt_of

from experiments.systems.fact_memory import PROMPTS, FactMemory
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import trace
from tracing.systems.conversations import Conversation, Question
from tracing.systems.protocol import Memory

BASELINE = {name: spec.text for name, spec in PROMPTS.items()}
GREEN, YELLOW = "Aurel's cottage is painted green.", "Aurel's cottage is painted yellow."
BASSOON = "Birte plays bassoon."
FIVE_TURNS = Conversation.model_validate(
    {
        "id": "five",
        "speakers": ["Aurel", "Birte"],
        "sessions": [
            {
                "id": "D1",
                "turns": [{"id": f"D1:{n}", "speaker": "Aurel", "text": f"Remark number {n}."} for n in range(1, 6)],
            }
        ],
    }
)


@pytest.fixture
def memory_of(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> Callable[..., tuple[Memory, ExecutionGraph]]:
    """Stores facts session by session, with `reply` as the text of every decision."""

    def store(reply: str, *sessions: Sequence[str], near: float = 0.6, compared: int = 2) -> Any:
        scripted_server.script = lambda body: reply
        with trace() as recorder:
            memory = FactMemory(near=near, compared=compared).build_from_facts(sessions, BASELINE, open_access())
        return memory, recorder.graph

    return store


def entries_of(memory: Memory) -> list[tuple[str, str]]:
    return [(entry["id"], entry["text"]) for entry in memory.state["entries"]]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("ADD", [("m1", GREEN), ("m2", YELLOW)]),
        ("UPDATE", [("m1", YELLOW)]),
        ("DELETE", []),
        ("NONE", [("m1", GREEN)]),
    ],
)
def test_a_decision_changes_the_store_as_it_says(
    memory_of: Callable[..., tuple[Memory, ExecutionGraph]], event: str, expected: list[tuple[str, str]]
) -> None:
    memory, _ = memory_of(json.dumps({"event": event, "id": "1"}), [GREEN], [YELLOW])
    assert entries_of(memory) == expected


def test_an_update_is_a_new_version_found_by_its_new_words(
    memory_of: Callable[..., tuple[Memory, ExecutionGraph]], scripted_server: ScriptedServer
) -> None:
    memory, graph = memory_of('{"event": "UPDATE", "id": "1"}', [GREEN], [YELLOW])
    (entry,) = memory.state["entries"]
    stored = graph.variables[entry["variable"]]
    assert [version.value for version in graph.versions(stored.id)] == [GREEN, YELLOW]
    assert entry["vector"] == pytest.approx(scripted_server.embed(YELLOW), abs=1e-6)


def test_a_deletion_leaves_a_marker_and_its_name_is_not_used_again(
    memory_of: Callable[..., tuple[Memory, ExecutionGraph]],
) -> None:
    memory, graph = memory_of('{"event": "DELETE", "id": "1"}', [GREEN], [YELLOW], [BASSOON])
    assert entries_of(memory) == [("m2", BASSOON)]
    (marker,) = graph.find_variables(kind="delete_marker")
    assert marker.previous is not None
    assert graph.variables[marker.previous].value == GREEN


def test_the_decision_is_about_the_memory_that_was_shown_under_its_number(
    memory_of: Callable[..., tuple[Memory, ExecutionGraph]],
) -> None:
    memory, _ = memory_of('{"event": "UPDATE", "id": "2"}', [BASSOON, GREEN], [f"{YELLOW} Birte"], near=0.05)
    # The second fact met one memory only, so its decision named none and it was added; the third saw both.
    assert entries_of(memory) == [("m1", f"{YELLOW} Birte"), ("m2", GREEN)]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I would update it.",
        '["UPDATE", "1"]',
        "{}",
        '{"event": "FORGET", "id": "1"}',
        '{"event": null, "id": null}',
        '{"event": "UPDATE", "id": "7"}',
        '{"event": "UPDATE", "id": "0"}',
        '{"event": "UPDATE", "id": "m1"}',
        '{"event": "UPDATE", "id": "²"}',
        '{"event": "DELETE", "id": ""}',
        '{"event": "DELETE"}',
    ],
)
def test_an_unusable_decision_loses_nothing(
    memory_of: Callable[..., tuple[Memory, ExecutionGraph]], reply: str
) -> None:
    memory, _ = memory_of(reply, [GREEN], [YELLOW])
    assert entries_of(memory) == [("m1", GREEN), ("m2", YELLOW)]


def test_a_decision_is_asked_for_only_where_a_memory_is_near(
    memory_of: Callable[..., tuple[Memory, ExecutionGraph]], scripted_server: ScriptedServer
) -> None:
    memory, graph = memory_of('{"event": "DELETE", "id": "1"}', [GREEN, BASSOON])
    assert entries_of(memory) == [("m1", GREEN), ("m2", BASSOON)]
    assert scripted_server.count == 0
    assert graph.find_operations(name="decide_update") == []


def test_a_fact_meets_those_before_it_in_its_own_session(
    memory_of: Callable[..., tuple[Memory, ExecutionGraph]],
) -> None:
    memory, _ = memory_of('{"event": "UPDATE", "id": "1"}', [GREEN, YELLOW])
    assert entries_of(memory) == [("m1", YELLOW)]


def test_the_nearest_memories_are_shown_and_no_more_than_compared(
    memory_of: Callable[..., tuple[Memory, ExecutionGraph]], scripted_server: ScriptedServer
) -> None:
    fact = "Aurel's cottage is painted yellow now."
    memory_of('{"event": "ADD", "id": "1"}', [GREEN, BASSOON, YELLOW], [fact], near=0.0, compared=2)
    shown = prompt_of(scripted_server.requests[-1])
    assert f"1: {YELLOW}\n2: {GREEN}\n" in shown
    assert BASSOON not in shown


def test_extraction_reads_every_turn_once_in_windows(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = lambda body: '{"facts": []}'
    FactMemory(window=2).build(FIVE_TURNS, BASELINE, open_access())
    read = [
        [line for line in prompt_of(body).splitlines() if line.startswith("Aurel:")]
        for body in scripted_server.requests
    ]
    assert read == [[f"Aurel: Remark number {n}." for n in group] for group in ((1, 2), (3, 4), (5,))]


@pytest.mark.parametrize("reply", ["no JSON", '["a fact"]', '{"facts": [3, null, "  "]}', '{"news": ["x"]}'])
def test_an_unusable_extraction_gives_no_facts_and_the_build_goes_on(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], reply: str
) -> None:
    good = json.dumps({"facts": [BASSOON, BASSOON, f" {GREEN} "]})
    scripted_server.script = lambda body: reply if "number 1." in prompt_of(body) else good
    memory = FactMemory(window=3).build(FIVE_TURNS, BASELINE, open_access())
    assert entries_of(memory) == [("m1", BASSOON), ("m2", GREEN)]


def test_the_answer_sees_the_nearest_memories_first(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    access, system = open_access(), FactMemory(top_k=2)
    memory = system.with_entries([BASSOON, GREEN, "The bus is late."], access)
    question = Question(id="q", question="Which colour is Aurel's cottage painted for Birte?", answers=("green",))
    system.answer(memory, question, BASELINE, access)
    assert f"- {GREEN}\n- {BASSOON}\n\n" in prompt_of(scripted_server.requests[-1])
