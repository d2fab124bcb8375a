"""The trace memory as a memory system: it conforms, recalls by a question's words, and its faults are attributed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from scripted_server import ScriptedServer, prompt_of

from attribution.cases import Blame, Case
from attribution.judging.words import judge
from attribution.survival.survival_method import attribute
from benchmarks.trace_memory.projects import TracedProject, read_projects
from experiments.systems.trace_memory.question_filters import FEWEST, TraceVocabulary, filters_of
from experiments.systems.trace_memory.system import TraceMemorySystem
from experiments.systems.trace_memory.turn_events import events_of_turn, turn_text
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import session, trace
from tracing.systems.conformance import MemorySystemConformance
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import baseline_candidate
from tracing.systems.protocol import MemorySystem
from tracing.systems.registry import open_system
from tracing.trace_memory import Event
from tracing.trace_memory.events import when


def scripted(body: dict[str, Any]) -> str:
    """Every line of a trace is a statement; new ones are added; the answer is the first line of the context."""
    request, schema = prompt_of(body), json.dumps(body.get("response_format") or {})
    if '"facts"' in schema:
        return json.dumps({"facts": [line[:140] for line in request.partition("Trace:\n")[2].splitlines()[:4]]})
    if '"event"' in schema:
        return json.dumps({"event": "ADD", "id": "1"})
    return next((line[2:] for line in request.splitlines() if line.startswith("- ")), "unknown")


class TestTraceMemorySystem(MemorySystemConformance):
    """The shipped suite, on a conversation of people."""

    @pytest.fixture(autouse=True)
    def _models(self, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]) -> None:
        scripted_server.script = scripted
        self.opened = open_access(cache=False)

    def access(self) -> ModelAccess:
        return self.opened

    def system(self) -> MemorySystem:
        return TraceMemorySystem(near=0.3)


CALL = {"id": "c1", "type": "function", "function": {"name": "get_stock", "arguments": '{"part": "HX-20"}'}}
CALLED = "\n".join(
    (
        json.dumps({"role": "assistant", "content": None, "tool_calls": [CALL]}),
        json.dumps({"role": "tool", "tool_call_id": "c1", "content": '{"free": 17}'}),
    )
)
TRACE = Conversation.model_validate(
    {
        "id": "pumps",
        "speakers": ["planner", "buyer", "Ingrid"],
        "sessions": [
            {
                "id": "S1",
                "time": "2026-03-02 09:00",
                "turns": [
                    {"id": "S1:1", "speaker": "Ingrid", "text": "The bearings howl."},
                    {"id": "S1:2", "speaker": "planner", "text": CALLED},
                    {
                        "id": "S1:3",
                        "speaker": "planner",
                        "text": json.dumps({"decision": "supplier", "outcome": "Halden", "confidence": 0.6}),
                    },
                    {"id": "S1:4", "speaker": "buyer", "text": json.dumps({"step": "order", "detail": "B-77"})},
                ],
            },
            {
                "id": "S2",
                "time": "2026-03-09 09:00",
                "turns": [
                    {
                        "id": "S2:1",
                        "speaker": "planner",
                        "text": json.dumps({"decision": "supplier", "outcome": "Brekke", "confidence": 0.9}),
                    }
                ],
            },
        ],
        "questions": [
            {
                "id": "free",
                "question": "How many of part HX-20 are free by get_stock?",
                "answers": ["17"],
                "evidence": ["S1:2"],
            },
            {"id": "order", "question": "Which order did the buyer make?", "answers": ["B-77"], "evidence": ["S1:4"]},
        ],
    }
)


class TestTraceMemorySystemOnATrace(TestTraceMemorySystem):
    """The same suite on an agent's trace."""

    conversation = TRACE


def test_a_turn_becomes_the_events_that_it_holds() -> None:
    (call,) = events_of_turn("S1:2", "planner", CALLED, time=5.0, session="S1")
    assert (call.type, call.key, call.value) == ("tool_call", "get_stock", {"free": 17})
    assert (call.metadata["arguments"], call.process, call.time) == ({"part": "HX-20"}, "planner", 5.0)
    failed = CALLED.replace('{\\"free\\": 17}', '{\\"error\\": \\"no reply\\"}')
    (error,) = events_of_turn("t", "planner", failed)
    assert (error.metadata["status"], error.value) == ("error", "no reply")
    (decision,) = events_of_turn("t", "planner", '{"decision": "supplier", "outcome": "Halden", "confidence": 0.6}')
    assert (decision.type, decision.key, decision.value) == ("decision", "supplier", "Halden")
    (step,) = events_of_turn("t", "buyer", '{"step": "order", "status": "done"}')
    assert (step.type, step.metadata["status"]) == ("step", "done")
    assert [event.id for event in events_of_turn("t", "b", '{"step": "one"}\n{"step": "two"}')] == ["t#1", "t#2"]


def returned(content: str) -> str:
    """A call of a tool that returns this."""
    row = {"role": "tool", "tool_call_id": "c1", "content": content}
    return "\n".join((json.dumps({"role": "assistant", "tool_calls": [CALL]}), json.dumps(row)))


@pytest.mark.parametrize(
    "text",
    [
        *("", "Hello.", "{", "{}", "[1]", '{"a": 1}', '{"step": 3}', "{\n{", "{}" * 3, "\0\ud800"),
        '{"decision": "supplier", "outcome": "Halden", "confidence": NaN}',
        '{"decision": "supplier", "outcome": 1e999}',
        '{"decision": "supplier", "outcome": ' + "[" * 900 + "]" * 900 + "}",
        '{"role": "assistant", "tool_calls": {"id": "c1"}}',
        '{"role": "assistant", "tool_calls": [1]}',
        *(returned('{"free": NaN}'), returned('{"free": 1e999}'), returned("[" * 900 + "]" * 900)),
    ],
)
def test_anything_else_is_a_message_as_it_is(text: str) -> None:
    (event,) = events_of_turn("t\0", "\ud800", text)
    assert (event.type, event.value) == ("message", text)
    assert turn_text(f"Ann: {text}") == f"Ann: {text}"


EVENTS = [
    Event("1", "tool_call", "get_stock", 1, time=1772442000.0, process="planner"),
    Event("2", "decision", "supplier", "x", time=1772442000.0, process="planner"),
    Event("3", "step", "order", "y", time=1773046800.0, process="buyer"),
    Event("4", "message", "Ingrid", "z", time=1773046800.0, process="Ingrid"),
]


@pytest.mark.parametrize(
    ("question", "strictest"),
    [
        ("What did the planner decide?", {"process": "planner", "type": "decision"}),
        ("Which supplier was chosen?", {"type": "decision", "key": ["supplier"]}),
        ("How much stock was there?", {"key": ["get_stock"]}),
        ("What happened on 9 March?", {"since": 1773014400.0, "until": 1773100800.0}),
        ("What happened on 2026-03-09?", {"since": 1773014400.0, "until": 1773100800.0}),
        ("What happened on March 9?", {"since": 1773014400.0, "until": 1773100800.0}),
        ("What happened on 31 February?", {}),
        ("What happened on 9999-12-31?", {"since": 253402214400.0, "until": 253402300800.0}),
        ("Did the planner ask the buyer?", {}),
        ("Is it raining?", {}),
        ("What did Ingrid say?", {}),
    ],
)
def test_a_questions_words_are_its_filters(question: str, strictest: dict[str, Any]) -> None:
    tried = filters_of(question, TraceVocabulary.of(EVENTS))
    assert tried[0] == strictest
    assert tried[-1] == {}


def test_only_a_name_with_a_word_is_named_by_a_question() -> None:
    events = [Event("1", "step", "order", "x", process="🤖"), Event("2", "step", "pay", "y", process="buyer")]
    assert filters_of("What did the buyer do?", TraceVocabulary.of(events))[0] == {"process": "buyer"}
    assert filters_of("Who knows?", TraceVocabulary.of(events)) == [{}]


def recalled(access: ModelAccess, question: str, **settings: Any) -> list[str]:
    """The names of the events that a question recalls, without statements."""
    system: MemorySystem = open_system("trace-memory", {"statements": 1, **settings})
    candidate = baseline_candidate(system.prompts)
    memory = system.build(TRACE, candidate, access)
    with trace() as recorder:
        asked = TRACE.questions[0].model_copy(update={"question": question})
        system.answer(memory, asked, candidate, access)
    found = recorder.graph.find_variables(kind="context")
    return [variable.name for variable in found if variable.name.startswith("e-")]


def test_what_the_question_names_comes_first(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = scripted
    access = open_access()
    supplier = recalled(access, "What did the planner decide about the supplier?")
    assert set(supplier[:2]) == {"e-S1:3", "e-S2:1"}
    assert len(supplier) == FEWEST
    assert recalled(access, "What did the buyer do?")[0] == "e-S1:4"
    assert recalled(access, "What was decided on 9 March?", top_k=1) == ["e-S2:1"]
    assert len(recalled(access, "What was decided on 9 March?", filtered=False)) == 4


@pytest.mark.parametrize(
    ("said", "begun"),
    [("1:56 pm on 8 May, 2023", "2023-05-08 13:56"), ("2023/05/20 (Sat) 02:21", "2023-05-20 02:21"), ("once", "")],
)
def test_events_have_the_time_of_their_session_as_a_data_set_writes_it(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], said: str, begun: str
) -> None:
    scripted_server.script = lambda body: '{"facts": []}'
    system = TraceMemorySystem()
    dated = TRACE.model_copy(update={"sessions": (TRACE.sessions[0].model_copy(update={"time": said}),)})
    memory = system.build(dated, baseline_candidate(system.prompts), open_access())
    assert {when(row["event"]["time"]) for row in memory.state["entries"]} == {begun}


def test_an_events_text_is_in_the_memory_once(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = lambda body: '{"facts": []}'
    system = TraceMemorySystem()
    memory = system.build(TRACE, baseline_candidate(system.prompts), open_access())
    assert json.dumps(memory.state).count("The bearings howl.") == 1


def blame_of(access: ModelAccess, question: str, **settings: Any) -> Blame:
    system = TraceMemorySystem(**settings)
    asked = next(one for one in TRACE.questions if one.id == question)
    candidate = baseline_candidate(system.prompts)
    with trace(prefix="b") as building:
        memory = system.build(TRACE, candidate, access)
    with trace(prefix="a") as answering:
        answering.adopt(building.records())
        with session(asked.id):
            answer = system.answer(memory, asked, candidate, access)
    graph = building.graph.merge(answering.graph)
    case = Case(TRACE.id, asked, answer.text, judge(answer.text, asked.answers), answer.variable)
    found = attribute(case, graph, TRACE, system.operations)
    assert found.abstained is None
    return found.decisive[0]


def test_its_faults_are_attributed(scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]) -> None:
    def script(body: dict[str, Any]) -> str:
        return '{"facts": []}' if '"facts"' in json.dumps(body.get("response_format") or {}) else "twelve"

    scripted_server.script = script
    access = open_access()
    for question in ("free", "order"):
        blame = blame_of(access, question)
        assert (blame.operation, blame.error_type) == ("answer", "ResponseError"), question


def test_an_event_that_is_not_recalled_is_the_recalls_fault(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = scripted
    scripted_server.embed = lambda text: [1.0, 0.0] if "howl" in text or "?" in text else [0.0, 1.0]
    blame = blame_of(open_access(), "free", top_k=1, statements=1, filtered=False)
    assert (blame.operation, blame.error_type) == ("recall", "RetrievalError")


def test_the_projects_of_the_data_set_are_parsed_without_loss() -> None:
    """What a turn says as a conversation, the trace memory reads back as the event that it is."""
    project: TracedProject
    for project in read_projects():
        events = {event.id: event for event in project.events()}
        for _, turn in project.turns():
            event = events[turn.id]
            if turn.tool is not None:
                assert (event.type, event.key, event.metadata["arguments"]) == ("tool_call", turn.tool, turn.arguments)
                assert event.value == (turn.error or turn.result)
            elif turn.decision is not None:
                assert (event.type, event.key, event.value) == ("decision", turn.decision, turn.outcome)
            elif turn.step is not None:
                assert (event.type, event.key, event.metadata["status"]) == ("step", turn.step, turn.status)
            else:
                assert (event.type, event.key, event.value) == ("message", turn.by, turn.says)
            assert event.process == turn.by
