"""Dialogue and stages are read off a foreign graph: messages in any usual form, operations by what they show."""

from __future__ import annotations

import pytest

from attribution.cases import Case
from attribution.judging.words import judge
from attribution.methods import survival
from attribution.recordings import conversation_of, operations_of, recording_of
from attribution.survival.flow import ContentFlow
from tracing import operation, trace, variable
from tracing.graph.elements import Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Question


@pytest.mark.parametrize(
    ("text", "speaker", "said", "time"),
    [
        ("Ann: It's at 10:30.\nTimestamp: 8 May, 2023", "Ann", "It's at 10:30.", "8 May, 2023"),
        (
            "Speaker Ann (role: user) says: Hi: all.\nTimestamp: 2023-05-08 13:56:00",
            "Ann",
            "Hi: all.",
            "2023-05-08 13:56:00",
        ),
        ("user: My dog says: woof", "user", "My dog says: woof", ""),
        ("Speaker: hello", "Speaker", "hello", ""),
        ("We left at 10:30", "", "We left at 10:30", ""),
    ],
)
def test_a_message_is_told_apart_into_speaker_text_and_time(text: str, speaker: str, said: str, time: str) -> None:
    graph = ExecutionGraph([Variable("v1", "D1:1", "message", text)])
    (session,) = conversation_of(graph, "talk").sessions
    (turn,) = session.turns
    assert (turn.speaker, turn.text, session.time) == (speaker, said, time)


@pytest.mark.parametrize(("save", "find"), [("save", "find"), ("update_profile", "recall"), ("merge_notes", "rank")])
@pytest.mark.parametrize("kind", ["tool", "function"])
def test_names_of_functions_do_not_show_what_a_memory_held(save: str, find: str, kind: str) -> None:
    said = "Mara: I moved to Oslo, and my sister Ines works at the harbour office."
    with trace() as recorder:
        with operation("agent", kind="llm", inputs={"message": variable(said, name="D1:1", kind="message")}):
            call = variable({"text": said}, name="call")
            with operation(save, kind=kind, inputs={"call": call}) as op:
                op.output("result", "saved")
        with operation(find, kind=kind, inputs={"call": "Ines"}) as op:
            found = op.output("result", "Mara moved to Oslo")
        query = variable("Where does Ines work?", name="q", kind="query")
        with operation("agent_reply", kind="llm", inputs={"query": query, "found": found}) as op:
            reply = op.output("prediction", "I don't know", kind="prediction")
    question = Question(id="q", question="Where does Ines work?", answers=("the harbour office",))
    case = Case("c", question, "I don't know", judge("I don't know", question.answers), reply.id)
    attribution = survival(recording_of(recorder.graph, "c")).attribute(case)
    assert attribution.decisive == ()
    assert "no operation that writes a memory" in str(attribution.abstained)


def test_a_tool_beside_a_memory_that_is_shown_has_no_stage_by_its_name() -> None:
    with trace() as recorder:
        with operation("remember", inputs={"message": variable("Mara: Hi.", name="D1:1", kind="message")}) as op:
            op.output("entry", "Mara says hi.", kind="memory_entry")
        with operation("summarize_page", kind="tool", inputs={"call": "https://example.org"}) as op:
            op.output("result", "A page.")
        with operation("store", inputs={"text": "x"}) as op:
            op.output("result", "done")
    stages = {one.name: one.stage for one in operations_of(recorder.graph)}
    assert stages == {"remember": "extract", "store": "update"}


def test_who_decided_is_to_blame_for_what_another_operation_carries_out() -> None:
    with trace() as recorder:
        message = variable("Mara: I moved to Oslo.", name="D1:1", kind="message")
        with operation("extract", kind="llm", inputs={"message": message}) as op:
            fact = op.output("fact", "Mara lives in Oslo.", kind="fact")
        with operation("store", inputs={"fact": fact}) as op:
            entry = op.output("entry", "Mara lives in Oslo.", name="m1", kind="memory_entry")
        with operation("decide_update", kind="llm", inputs={"memories": entry}) as op:
            decision = op.output("decision", {"event": "UPDATE", "target": "m1", "text": "Mara likes tea."})
        with operation("store", inputs={"decision": decision, "entry": entry}) as op:
            kept = op.output("entry", "Mara likes tea.", name="m1", kind="memory_entry", previous=entry)
        query = variable("Where does Mara live?", name="q", kind="query")
        with operation("answer", kind="llm", inputs={"query": query, "context": kept}) as op:
            reply = op.output("prediction", "unknown", kind="prediction")
    assert {spec.name: spec.prompt for spec in operations_of(recorder.graph) if spec.stage == "update"} == {
        "decide_update": "decide_update",
        "store": None,
    }
    question = Question(id="q", question="Where does Mara live?", answers=("Oslo",), evidence=("D1:1",))
    case = Case("c", question, "unknown", judge("unknown", question.answers), reply.id)
    (blame,) = survival(recording_of(recorder.graph, "c")).attribute(case).decisive
    assert (blame.error_type, blame.operation) == ("UpdateError", "decide_update")


def test_a_raw_reply_beside_the_facts_that_were_read_from_it_is_no_statement_of_its_own() -> None:
    with trace() as recorder:
        message = variable("Ann: My boat is called Otter.", name="D1:1", kind="message")
        other = variable("Bea: Mine is Heron, and I met Ann.", name="D1:2", kind="message")
        with operation("extract", kind="llm", inputs={"messages": [message, other]}) as op:
            facts = [op.output("facts", text, kind="fact") for text in ("Ann met Bea.", "Bea's boat is called Heron.")]
            op.output("reply", '{"facts": ["Ann met Bea.", "Bea\'s boat is called Heron."]}', kind="reply")
        for number, fact in enumerate(facts):
            with operation("store", inputs={"fact": fact}) as op:
                entry = op.output("entry", fact.value, name=f"m{number}", kind="memory_entry")
        query = variable("What is Ann's boat called?", name="q", kind="query")
        with operation("answer", kind="llm", inputs={"query": query, "context": entry}) as op:
            reply = op.output("prediction", "Heron", kind="prediction")
    recording = recording_of(recorder.graph, "c")
    flow = ContentFlow(recording.graph, recording.operations)
    assert [(text.value, few) for text, few in flow.extracted("D1:1")] == [(fact.value, True) for fact in facts]
    question = Question(id="q", question="What is Ann's boat called?", answers=("Otter",))
    case = Case("c", question, "Heron", judge("Heron", question.answers), reply.id)
    (blame,) = survival(recording).attribute(case).decisive
    assert (blame.error_type, blame.operation) == ("ExtractionError", "extract")
    assert "{" not in blame.reason
