"""Mem0, the real library: it passes the conformance suite, and what it does and swallows is seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from mem0_model import Mem0Model, decide, facts_shown, is_extraction, is_update, memories_shown
from scripted_server import Reply, ScriptedServer, prompt_of, vector_of

from experiments.systems.building_blocks import facts
from experiments.systems.mem0 import library
from experiments.systems.mem0.decisions import Decision, decisions_of, facts_of
from experiments.systems.mem0.prompts import PROMPTS
from experiments.systems.mem0.reply_schemas import EVENTS, FACTS_SCHEMA, schema_for, update_schema, with_reply_schemas
from experiments.systems.mem0.system import Mem0
from experiments.systems.mem0.writer import native_prompts
from optimizer.evaluation.evaluator import Evaluator
from tracing.errors import BudgetExceededError, CallFailedError, ConfigError, MalformedReplyError, ReplyCutShortError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.llm.serving.embedded import compact_grammar
from tracing.llm.settings import Limits
from tracing.recording.trace_context import trace
from tracing.systems.conformance import SMALL_TALK, MemorySystemConformance
from tracing.systems.layouts import recorded_outputs, recorded_parts
from tracing.systems.protocol import Memory, MemorySystem

Open = Callable[..., ModelAccess]
BASELINE = {name: spec.text for name, spec in PROMPTS.items()}
GREEN, YELLOW = "Aurel's cottage is painted green.", "Aurel's cottage is painted yellow."
BASSOON = "Birte plays bassoon."


class TestMem0(MemorySystemConformance):
    @pytest.fixture(autouse=True)
    def _models(self, scripted_server: ScriptedServer, open_access: Open) -> None:
        scripted_server.script = Mem0Model()
        self.opened = open_access(cache=False)

    def access(self) -> ModelAccess:
        return self.opened

    def system(self) -> MemorySystem:
        return Mem0()


def build(access: ModelAccess, system: Mem0 | None = None) -> tuple[Memory, ExecutionGraph]:
    with trace(prefix="b") as recorder:
        memory = (system or Mem0()).build(SMALL_TALK, BASELINE, access)
    return memory, recorder.graph


def test_loading_it_turns_on_no_warnings_of_other_libraries() -> None:
    program = """import warnings; from experiments.systems.mem0.library import load
before = list(warnings.filters); load(); print(list(warnings.filters) == before)"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout == "True\n"


def stored(memory: Memory) -> list[tuple[str, str]]:
    return [(entry["id"], entry["text"]) for entry in memory.state["entries"]]


def shape(graph: ExecutionGraph) -> list[Any]:
    steps = [(op.name, op.inputs, op.outputs, op.parent, op.calls, op.status) for op in graph.operations.values()]
    return [*steps, *graph.variables.values()]


def test_a_re_run_makes_no_new_call_and_gives_the_same_graph(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = Mem0Model(update=decide("UPDATE"))
    memory, graph = build(open_access())
    made = (scripted_server.count, len(scripted_server.embedding_requests))
    again, same = build(open_access())
    assert (scripted_server.count, len(scripted_server.embedding_requests)) == made
    assert again.state == memory.state
    assert shape(same) == shape(graph)


def test_both_speakers_are_users_with_their_names_in_the_text(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = Mem0Model()
    build(open_access())
    said = "".join(body["messages"][-1]["content"] for body in scripted_server.requests if is_extraction(body))
    for turn in SMALL_TALK.turns():
        assert f"user: {turn.speaker}: {turn.text}\n" in said


def test_calls_and_their_costs_stand_with_the_operation_that_made_them(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = Mem0Model()
    _, graph = build(open_access())
    calls = {op.name: op.calls for op in graph.operations.values()}
    assert calls == {"extract_facts": 1, "embed": 1, "update_memory": 1, "decide_update": 0, "store": 0}
    assert all(op.prompt_tokens > 0 for op in graph.find_operations(name="extract_facts"))


@pytest.mark.parametrize(
    ("failing", "reply", "error"),
    [
        (is_update, Reply("down", status=500), CallFailedError),
        (is_extraction, Reply("down", status=500), CallFailedError),
        (is_update, Reply('{"memory": [{"text": "Aur', finish_reason="length"), ReplyCutShortError),
    ],
)
def test_a_failure_that_mem0_swallows_taints_the_build(
    scripted_server: ScriptedServer,
    open_access: Open,
    tmp_path: Path,
    failing: Callable[[dict[str, Any]], bool],
    reply: Reply,
    error: type[Exception],
) -> None:
    model = Mem0Model()
    scripted_server.script = lambda body: reply if failing(body) else model(body)
    access = open_access(retries=0, cache=False)
    with pytest.raises(error):
        build(access)
    (outcome,) = Evaluator(Mem0(), access, "contains", snapshots=tmp_path).evaluate(BASELINE, [SMALL_TALK])
    assert outcome.tainted is not None
    assert outcome.cases == ()


def test_a_spent_budget_leaves_the_build_as_such(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = Mem0Model()
    with pytest.raises(BudgetExceededError):
        build(open_access(Limits(calls=3), cache=False))


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("ADD", [("m1", GREEN), ("m2", YELLOW)]),
        ("UPDATE", [("m1", YELLOW)]),
        ("DELETE", []),
        ("NONE", [("m1", GREEN)]),
    ],
)
def test_mem0_carries_out_the_decision_and_the_trace_says_so(
    scripted_server: ScriptedServer, open_access: Open, event: str, expected: list[tuple[str, str]]
) -> None:
    scripted_server.script = Mem0Model(update=decide(event))
    with trace() as recorder:
        memory = Mem0().build_from_facts([[GREEN], [YELLOW]], BASELINE, open_access())
    assert stored(memory) == expected
    graph = recorder.graph
    decisions = [graph.variables[op.output_ids()[0]].value for op in graph.find_operations(name="decide_update")]
    assert decisions == [
        {"event": "ADD", "target": None},
        {"event": event, "target": None if event == "ADD" else "m1"},
    ]
    current = {entry["variable"]: entry["text"] for entry in memory.state["entries"]}
    assert {vid: graph.variables[vid].value for vid in current} == current
    if event == "UPDATE":
        assert [version.value for version in graph.versions(next(iter(current)))] == [GREEN, YELLOW]
    assert len(graph.find_variables(kind="delete_marker")) == (event == "DELETE")


@pytest.mark.parametrize("reply", ["", "I would add it.", "[]", '{"memory": [{"text": "x", "event": "KEEP"}]}'])
def test_a_reply_of_no_use_stores_nothing_and_is_told_as_malformed(
    scripted_server: ScriptedServer, open_access: Open, reply: str
) -> None:
    scripted_server.script = Mem0Model(update=lambda body: reply)
    access = open_access()
    with trace() as recorder, access.watch() as watch:
        memory = Mem0().build_from_facts([[GREEN]], BASELINE, access)
    assert stored(memory) == []
    assert watch.failures == []
    assert all("malformed" in op.attributes for op in recorder.graph.find_operations(name="decide_update"))


FACTS = [GREEN, BASSOON]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (
            [{"id": "0", "text": GREEN, "event": "UPDATE"}, {"id": "7", "text": BASSOON, "event": "ADD"}],
            [Decision("UPDATE", 0, GREEN, (0,)), Decision("ADD", None, BASSOON, (1,))],
        ),
        (
            [{"id": "1", "text": "Aurel's cottage was red and is painted green.", "event": "UPDATE"}],
            [
                Decision("UPDATE", 1, "Aurel's cottage was red and is painted green.", (0,)),
                Decision("NONE", None, BASSOON, (1,)),
            ],
        ),
        (
            [{"id": "0", "text": "An old memory.", "event": "NONE"}, {"id": "x", "text": "Qq", "event": "ADD"}],
            [Decision("ADD", None, "Qq", (0, 1))],
        ),
        (
            [{"id": 0, "text": GREEN, "event": "UPDATE"}, {"id": "9", "text": BASSOON, "event": "DELETE"}],
            [
                Decision("UPDATE", None, GREEN, (0,), "the id 0 is none of the memories shown"),
                Decision("DELETE", None, BASSOON, (1,), "the id '9' is none of the memories shown"),
            ],
        ),
        (
            ["what?", {"text": ""}, {"event": "ADD"}],
            [Decision("NONE", None, GREEN, (0,)), Decision("NONE", None, BASSOON, (1,))],
        ),
    ],
)
def test_each_fact_gets_the_decision_that_mem0_makes_of_the_reply(items: list[Any], expected: list[Decision]) -> None:
    library.load()
    assert decisions_of(json.dumps({"memory": items}), FACTS, 2) == expected
    assert decisions_of(f"Sure:\n```json\n{json.dumps({'memory': items})}\n```", FACTS, 2) == expected


def test_facts_are_read_as_mem0_reads_them() -> None:
    library.load()
    assert facts_of('```json\n{"facts": ["a", {"fact": "b"}, "a", {"other": 1}, ""]}\n```') == ["a", "b"]
    for reply in ("", "none", "{}", '["a"]', '{"facts": 7}'):
        with pytest.raises(MalformedReplyError):
            facts_of(reply)


def schemas(requests: Sequence[dict[str, Any]]) -> list[Any]:
    return [body.get("response_format", {}).get("json_schema", {}).get("schema") for body in requests]


def test_a_reply_schema_fixes_each_text_and_is_recorded_and_told(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = Mem0Model()
    system = Mem0(reply_schema="always")
    _, graph = build(open_access(), system)
    updates = [body for body in scripted_server.requests if is_update(body)]
    (schema,) = schemas(updates[-1:])
    facts = [variable.value for variable in graph.find_variables(kind="fact")][-2:]
    items = schema["properties"]["memory"]["prefixItems"]
    assert [item["properties"]["text"]["const"] for item in items] == facts
    assert items[0]["properties"]["event"]["enum"] == ["ADD", "UPDATE", "DELETE", "NONE"]
    assert items[0]["properties"]["id"]["enum"] == ["0", "1"]
    assert graph.find_operations(name="update_memory")[-1].attributes["reply_schema"] == schema
    assert all("reply_schema" in op.attributes for op in graph.find_operations(name="extract_facts"))
    assert "JSON schema" in system.caveats(embedded=False)[0]


def test_without_an_embedded_model_mem0s_own_request_is_left_alone(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = Mem0Model()
    build(open_access())
    asked = [body for body in scripted_server.requests if is_extraction(body) or is_update(body)]
    assert {body["response_format"]["type"] for body in asked} == {"json_object"}
    assert Mem0().caveats(embedded=False) == []
    assert Mem0().caveats(embedded=True)


def test_the_embedded_runtime_can_hold_a_reply_to_the_update_schema() -> None:
    grammar = compact_grammar(update_schema(['He said "café"\\ {x}', BASSOON], memory_count=2))
    assert "bassoon" in grammar
    assert grammar.count("UPDATE") == 2


def test_the_exported_module_asks_as_a_run_does(scripted_server: ScriptedServer, open_access: Open) -> None:
    def forms() -> list[Any]:
        return [body["response_format"]["json_schema"]["schema"] for body in scripted_server.requests]

    scripted_server.script = Mem0Model(update=decide("UPDATE"))
    build(open_access(cache=False), Mem0(reply_schema="always", window=1))
    of_the_run = forms()
    scripted_server.requests.clear()
    prompts = native_prompts(BASELINE, library.V1)
    memory = with_reply_schemas(
        library.open_memory(prompts, base_url=scripted_server.base_url, key="k", chat_model="m", embedding_model="e")
    )
    library.fit(memory, len(vector_of("any")))
    for turn in SMALL_TALK.turns():
        memory.add([{"role": "user", "content": turn.spoken}], user_id="u")
    assert forms() == of_the_run
    assert {json.dumps(each) for each in of_the_run} >= {json.dumps(FACTS_SCHEMA)}
    assert len({json.dumps(each) for each in of_the_run}) > 2
    library.close(memory)


def test_the_exported_module_leaves_other_requests_alone() -> None:
    assert (FACTS_SCHEMA, EVENTS) == (facts.FACTS_SCHEMA, facts.EVENTS)
    told = "The new retrieved facts are mentioned in the triple backticks.\n    ```\n    {}\n    ```\n    You must"
    assert schema_for([{"role": "user", "content": "Summarise the chat."}]) is None
    assert schema_for([{"role": "user", "content": told.format("no list")}]) is None
    assert schema_for([{"role": "user", "content": told.format("12")}]) is None
    assert schema_for([{"role": "user", "content": told.format([BASSOON])}]) == update_schema([BASSOON], 0)


def test_an_unknown_choice_of_reply_schema_is_told() -> None:
    with pytest.raises(ConfigError, match="embedded, always, never"):
        Mem0(reply_schema="sometimes")


def test_from_the_librarys_prompts_the_search_can_go_back_to_the_short_ones() -> None:
    specs = Mem0(config={}).prompts
    assert {name: spec.alternatives for name, spec in specs.items() if name != "answer"} == {
        name: (PROMPTS[name].text,) for name in ("extract", "update")
    }
    assert not any(spec.contract.violations(text) for spec in specs.values() for text in spec.alternatives)


def test_tuning_can_start_from_the_prompts_that_the_library_uses_itself(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    library.load()
    from mem0.configs.prompts import DEFAULT_UPDATE_MEMORY_PROMPT, USER_MEMORY_EXTRACTION_PROMPT

    scripted_server.script = lambda body: '{"facts": ["Birte plays bassoon."], "memory": []}'
    system = Mem0(config={})
    seed = {name: spec.text for name, spec in system.prompts.items()}
    system.build(SMALL_TALK, seed, open_access())
    first, second = (body["messages"] for body in scripted_server.requests[:2])
    dated, today = USER_MEMORY_EXTRACTION_PROMPT.splitlines(), "- Today's date is "
    assert first[0]["content"].splitlines() == [line for line in dated if not line.startswith(today)]
    assert second[0]["content"].startswith(DEFAULT_UPDATE_MEMORY_PROMPT)
    assert all(not spec.contract.violations(spec.text) for spec in system.prompts.values())
    assert seed["extract"] != PROMPTS["extract"].text == Mem0().prompts["extract"].text


def test_the_library_sends_no_telemetry_keeps_out_of_the_home_and_leaves_the_environment_alone() -> None:
    library.load()
    from mem0.memory.setup import mem0_dir
    from mem0.memory.telemetry import MEM0_TELEMETRY

    assert MEM0_TELEMETRY is False
    assert not Path(mem0_dir).is_relative_to(Path.home())
    assert "MEM0_DIR" not in os.environ


def test_nothing_goes_past_the_gateway(
    scripted_server: ScriptedServer, open_access: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-elsewhere")
    scripted_server.script = Mem0Model()
    memory, _ = build(open_access())
    assert stored(memory)
    assert "sk-elsewhere" not in scripted_server.keys


def test_another_generation_is_refused_with_the_command_that_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.systems.libraries.installed_version", lambda package: "2.2.1")
    with pytest.raises(ConfigError, match=r"2\.2\.1 is installed here: pip install 'memtune\[mem0\]'"):
        library.load()


@pytest.mark.parametrize(
    ("key", "generation", "said"),
    [
        ("custom_instructions", library.V1, r"a key of mem0ai 2\.x, which 1\.0\.x ignores .* custom_fact_extraction"),
        ("custom_update_memory_prompt", library.V2, r"a key of mem0ai 0\.1\.x, which 2\.x ignores .* custom_instr"),
        ("custom_promt", library.V0, r"no key of a prompt, which 0\.1\.x ignores"),
    ],
)
def test_a_prompt_key_that_the_generation_would_ignore_is_refused(
    key: str, generation: library.Generation, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        library.open_memory(
            {key: "x"},
            base_url="http://127.0.0.1:1/v1",
            key="k",
            chat_model="m",
            embedding_model="m",
            instance=library.Instance(generation),
        )


def test_the_answer_is_given_what_mem0s_search_finds(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = Mem0Model()
    access = open_access()
    memory = Mem0().with_entries([GREEN, BASSOON, "Birte's sister breeds huskies."], access)
    answer = Mem0(top_k=1).answer(memory, SMALL_TALK.questions[0], BASELINE, access)
    assert answer.text == GREEN
    assert BASSOON not in prompt_of(scripted_server.requests[-1])


@pytest.mark.parametrize("prompt", ["extract", "update"])
def test_a_rerun_asks_what_was_asked_and_stores_nothing(
    prompt: str, scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = Mem0Model(extract=lambda lines: list(lines[:1]), update=decide("UPDATE"))
    access, spec = open_access(), PROMPTS[prompt]
    _, graph = build(access)
    executions = graph.find_operations(name=spec.operation)
    made = scripted_server.count
    for execution in executions:
        with trace(prefix="l") as recorder:
            Mem0().rerun(
                prompt, recorded_parts(spec.layout, spec.contract.placeholders, execution, graph), BASELINE, access
            )
        (again,) = recorder.graph.find_operations(name=spec.operation)
        values = [item.value for item in recorded_outputs(execution, graph)]
        assert [item.value for item in recorded_outputs(again, recorder.graph)] == values
        assert not recorder.graph.find_operations(name="store")
    assert executions
    assert scripted_server.count == made


def test_a_fact_decided_on_with_others_is_decided_on_alone_again(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = Mem0Model(update=decide("UPDATE"))
    access, spec = open_access(), PROMPTS["update"]
    _, graph = build(access, Mem0(window=2))
    execution = graph.find_operations(name=spec.operation)[-1]
    parts = recorded_parts(spec.layout, spec.contract.placeholders, execution, graph)
    Mem0().rerun("update", parts, BASELINE, access)
    asked = scripted_server.requests[-1]
    assert facts_shown(asked) == [item.text for item in parts["fact"]]
    assert {each["text"] for each in memories_shown(asked)} == {item.text for item in parts["memories"]}
