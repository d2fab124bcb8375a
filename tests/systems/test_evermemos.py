"""EverMemOS keeps what it was told through its stages, survives unusable replies, and searches twice if need be."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from evermemos_model import EverMemOSModel
from scripted_server import ScriptedServer, prompt_of

from experiments.systems.evermemos.system import EverMemOS
from experiments.systems.evermemos.writer import Clusters
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import session, trace
from tracing.systems.conformance import SMALL_TALK, MemorySystemConformance
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import baseline_candidate
from tracing.systems.protocol import Memory, MemorySystem

BASELINE = baseline_candidate(EverMemOS.prompts)
LINES = [turn.spoken for turn in SMALL_TALK.turns()]
Open = Callable[..., ModelAccess]


class TestEverMemOS(MemorySystemConformance):
    def system(self) -> MemorySystem:
        return EverMemOS(cluster_similarity=0.05, cluster_days=400, candidates=3, top_k=2)

    def reply(self, request: Any) -> str:
        return EverMemOSModel()(dict(request))


class TestEverMemOSReranked(TestEverMemOS):
    def system(self) -> MemorySystem:
        return EverMemOS(cluster_similarity=0.05, cluster_days=400, candidates=3, top_k=2, rerank=4)


@pytest.fixture
def built(scripted_server: ScriptedServer, open_access: Open) -> Callable[..., tuple[Memory, ExecutionGraph]]:
    def build(model: Any = None, talk: Conversation = SMALL_TALK, **settings: Any) -> tuple[Memory, ExecutionGraph]:
        scripted_server.script = model or EverMemOSModel()
        with trace() as recorder:
            memory = EverMemOS(**settings).build(talk, BASELINE, open_access(cache=False))
        return memory, recorder.graph

    return build


def cells(graph: ExecutionGraph) -> list[list[str]]:
    """The messages of each episode."""
    found = graph.find_operations(name="write_episode")
    return [[str(graph.variables[vid].value) for vid in each.input_ids("messages")] for each in found]


def test_there_are_eight_prompts() -> None:
    assert len(EverMemOS().prompts) == 8
    assert len(EverMemOS(rerank=5).prompts) == 9


@pytest.mark.parametrize(
    ("ends", "waits", "expected"),
    [
        ([], False, [LINES[:2], LINES[2:]]),
        ([1], False, [LINES[:1], LINES[1:2], LINES[2:3], LINES[3:]]),
        ([1, 2], False, [LINES[:1], LINES[1:2], LINES[2:3], LINES[3:]]),
        ([1], True, [LINES[:1], LINES[1:2], LINES[2:]]),
        ([], True, [LINES]),
        ([7, 0, -1], False, [LINES[:2], LINES[2:]]),
    ],
)
def test_every_message_is_in_one_episode_and_what_waits_goes_into_the_next(
    built: Callable[..., tuple[Memory, ExecutionGraph]], ends: list[int], waits: bool, expected: list[list[str]]
) -> None:
    _, graph = built(EverMemOSModel(ends=lambda lines: ends, waits=waits))
    assert cells(graph) == expected


@pytest.mark.parametrize("limit", [{"cell_messages": 1}, {"cell_tokens": 1}])
def test_an_episode_ends_at_the_limit_whatever_the_model_says(
    built: Callable[..., tuple[Memory, ExecutionGraph]], limit: dict[str, int]
) -> None:
    _, graph = built(EverMemOSModel(ends=lambda lines: [], waits=True), **limit)
    assert cells(graph) == [[line] for line in LINES]


def test_facts_are_taken_from_the_episode_and_stored_with_their_time(
    built: Callable[..., tuple[Memory, ExecutionGraph]],
) -> None:
    memory, graph = built(EverMemOSModel(ends=lambda lines: [], tells=lambda lines: ["Aurel likes green."]))
    texts = {entry["id"]: entry["text"] for entry in memory.state["entries"]}
    assert texts["e1"] == "A talk: Aurel likes green. (2024-03-04 10:00)"
    assert texts["f1"] == "Aurel likes green. (2024-03-04 10:00)"
    assert texts["f2"] == "Aurel likes green. (2024-05-06 18:30)"
    (first, _) = graph.find_operations(name="extract_facts")
    assert [graph.variables[vid].kind for vid in first.input_ids("episode")] == ["fact"]
    (entry,) = [each for each in graph.find_variables(kind="memory_entry") if each.name == "f1"]
    assert [each.name for each in graph.producers(entry.id)] == ["cluster"]


def test_a_cluster_has_one_profile_that_is_rewritten_and_another_matter_has_its_own(
    built: Callable[..., tuple[Memory, ExecutionGraph]],
) -> None:
    whole = EverMemOSModel(ends=lambda lines: [])
    memory, graph = built(whole, cluster_similarity=0.05, cluster_days=400)
    (profile,) = [entry for entry in memory.state["entries"] if entry["id"].startswith("p")]
    assert "green" in profile["text"]
    assert "yellow" in profile["text"]
    assert len(graph.versions(profile["variable"])) == 2
    for apart in ({"cluster_similarity": 1.1}, {"cluster_days": 7}):
        memory, graph = built(whole, **{"cluster_similarity": 0.05, "cluster_days": 400, **apart})
        assert [entry["id"] for entry in memory.state["entries"] if entry["id"].startswith("p")] == ["p1", "p2"]
        assert graph.find_operations(name="update_profile") == []


def asked(access: ModelAccess, texts: Sequence[str], question: int = 1, **settings: Any) -> tuple[str, ExecutionGraph]:
    system = EverMemOS(**settings)
    with trace() as recorder, session("q"):
        memory = system.with_entries(texts, access)
        candidate = baseline_candidate(system.prompts)
        return system.answer(memory, SMALL_TALK.questions[question], candidate, access).text, recorder.graph


OTHERS = [f"Aurel walked to the lighthouse on day {number}." for number in range(12)]
BASSOON = "Ragna mentioned a wooden wind that Birte now blows: the bassoon."


def test_enough_documents_are_answered_from_at_once(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = EverMemOSModel(enough=lambda documents: "bassoon" in documents)
    reply, graph = asked(open_access(), [*OTHERS, BASSOON], top_k=2)
    assert (reply, graph.find_operations(name="ask_more")) == (BASSOON, [])
    check, answer = map(prompt_of, scripted_server.requests)
    asked_at = answer.index("Question:")
    assert check[:asked_at] == answer[:asked_at], "a server that keeps what prompts begin with reads it once"


def test_what_is_missing_is_searched_with_other_queries(scripted_server: ScriptedServer, open_access: Open) -> None:
    texts = [f"Which instrument has Birte taken up on day {number}?" for number in range(5)]
    scripted_server.script = EverMemOSModel(
        more=["the bassoon, a wooden wind", "a wooden wind that Ragna mentioned"],
        answers=lambda lines: "bassoon" if BASSOON in lines else "unknown",
    )
    reply, graph = asked(open_access(), [*texts, BASSOON], top_k=2)
    assert reply == "bassoon"
    (first,) = graph.find_operations(name="check_sufficiency")
    assert BASSOON not in [graph.variables[vid].value for vid in first.input_ids("retrieved_docs")]


def test_an_empty_memory_is_answered_without_a_call(scripted_server: ScriptedServer, open_access: Open) -> None:
    assert asked(open_access(), [])[0] == "unknown"
    assert scripted_server.count == 0


MALFORMED = ["", "no JSON", "[]", "{}", '{"x": 1}', '{"boundaries": "x"}', '{"profile": 3, "content": 4}', "[" * 990]


@pytest.mark.parametrize("reply", MALFORMED)
@pytest.mark.parametrize(
    ("key", "operation"),
    [
        ('"boundaries"', "detect_boundaries"),
        ('"content"', "write_episode"),
        ('"atomic_fact"', "extract_facts"),
        ('"profile"', "init_profile"),
    ],
)
def test_an_unusable_reply_is_told_and_costs_only_what_it_was_to_give(
    built: Callable[..., tuple[Memory, ExecutionGraph]], reply: str, key: str, operation: str
) -> None:
    model = EverMemOSModel(ends=lambda lines: [])

    def broken(body: dict[str, Any]) -> str:
        return reply if key in json.dumps(body.get("response_format") or {}) else model(body)

    memory, graph = built(broken)
    assert all(each.attributes["malformed"] for each in graph.find_operations(name=operation))
    kinds = {entry["id"][0] for entry in memory.state["entries"]}
    assert (
        kinds
        == {
            "detect_boundaries": {"e", "f", "p"},
            "write_episode": set(),
            "extract_facts": {"e", "p"},
            "init_profile": {"e", "f"},
        }[operation]
    )


@pytest.mark.parametrize("reply", MALFORMED)
@pytest.mark.parametrize(("key", "operation"), [('"is_sufficient"', "check_sufficiency"), ('"queries"', "ask_more")])
def test_an_unusable_reply_in_the_search_is_told_and_the_answer_is_given_what_was_found(
    scripted_server: ScriptedServer, open_access: Open, reply: str, key: str, operation: str
) -> None:
    model = EverMemOSModel(answers=lambda lines: " ".join(lines))
    scripted_server.script = lambda body: reply if key in json.dumps(body.get("response_format") or {}) else model(body)
    said, graph = asked(open_access(), [BASSOON])
    assert said == BASSOON
    assert all(each.attributes["malformed"] for each in graph.find_operations(name=operation))


def test_an_unusable_update_leaves_the_profile_as_it_is(built: Callable[..., tuple[Memory, ExecutionGraph]]) -> None:
    model = EverMemOSModel(ends=lambda lines: [])
    memory, graph = built(
        lambda body: "{}" if "New facts:" in prompt_of(body) else model(body), cluster_similarity=0.05, cluster_days=400
    )
    (profile,) = [entry for entry in memory.state["entries"] if entry["id"] == "p1"]
    assert "green" in profile["text"]
    assert len(graph.versions(profile["variable"])) == 1


def test_the_same_again_makes_no_new_call(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = EverMemOSModel()
    system, access = EverMemOS(), open_access()

    def run() -> list[str]:
        memory = system.build(SMALL_TALK, BASELINE, access)
        return [system.answer(memory, question, BASELINE, access).text for question in SMALL_TALK.questions]

    first, calls = run(), (scripted_server.count, len(scripted_server.embedding_requests))
    assert run() == first
    assert (scripted_server.count, len(scripted_server.embedding_requests)) == calls


def test_an_episode_joins_the_likest_cluster_of_the_last_days() -> None:
    clusters = Clusters(similarity=0.6, days=7)
    named = [
        clusters.joined(vector, time).name
        for vector, time in (
            ((1.0, 0.0), "2024-01-01 10:00"),
            ((0.0, 1.0), "2024-01-02 10:00"),
            ((0.8, 0.6), "2024-01-03T10:00:00Z"),
            ((1.0, 0.0), "10 am on 20 January, 2024"),
            ((0.0, 1.0), "no date"),
        )
    ]
    assert named == ["g1", "g2", "g1", "g3", "g2"]
