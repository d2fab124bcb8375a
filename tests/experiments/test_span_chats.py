"""Other tools' spans become the dialogues of their users: only texts, apart by user, without the system's own calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from data_files import written

from experiments.data.dataset_reader import Reading
from experiments.data.datasets import conversations_of
from experiments.data.own.traces import chats_of
from tracing.errors import DataError
from tracing.interchange import read_graph
from tracing.systems.conversations import Conversation

BLOB = "aGVsbG8gd29ybGQ="


def text(role: str, *contents: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": one} for one in contents]}


def span(
    number: int, facts: dict[str, Any], *, name: str = "chat m", parent: int = 0, trace: int = 1
) -> dict[str, Any]:
    def value(fact: Any) -> dict[str, Any]:
        return {"stringValue": fact if isinstance(fact, str) else json.dumps(fact)}

    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": name,
        "startTimeUnixNano": str(1_700_000_000_000_000_000 + number),
        "endTimeUnixNano": str(1_700_000_000_500_000_000 + number),
        "attributes": [{"key": key, "value": value(fact)} for key, fact in facts.items()],
    }


def call(number: int, asked: Any, reply: Any, *, system: str = "", **more: Any) -> dict[str, Any]:
    """A call to a chat model; `more` are further attributes under `facts`, or arguments of the span."""
    said = [text("system", system)] if system else []
    facts = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.input.messages": [*said, asked if isinstance(asked, dict) else text("user", asked)],
        "gen_ai.output.messages": [reply if isinstance(reply, dict) else text("assistant", reply)],
        **more.pop("facts", {}),
    }
    return span(number, facts, **more)


def dialogues(path: Path, spans: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    written(path, {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]})
    chats, _ = chats_of(read_graph(path)[0], path.stem)
    return {one.conversation.id: spoken(one.conversation) for one in chats}


def spoken(conversation: Conversation) -> list[str]:
    return [turn.spoken for turn in conversation.turns()]


def test_of_a_message_of_several_parts_the_texts_are_said(tmp_path: Path) -> None:
    asked = text("user", "What is it?", "I moved to Oslo.")
    asked["parts"][1:1] = [
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": BLOB},
        {"type": "uri", "modality": "image", "uri": "gs://bucket/a.png"},
        {"type": "file", "modality": "document", "file_id": "f1"},
    ]
    reply = text("assistant", "A cat.")
    reply["parts"][:0] = [{"type": "reasoning", "content": "It has whiskers."}]
    reply["parts"] += [{"type": "tool_call", "id": "c", "name": "look", "arguments": {}}]
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": {"is": "a cat"}}]}
    facts = {"gen_ai.input.messages": [asked, result]}
    assert dialogues(tmp_path / "t.json", [call(1, asked, reply, facts=facts)]) == {
        "t": ["user: What is it?\nI moved to Oslo.", "assistant: A cat."]
    }


def test_the_texts_of_openinference_are_said(tmp_path: Path) -> None:
    start = "llm.input_messages.0.message"
    facts = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        f"{start}.role": "user",
        f"{start}.contents.0.message_content.type": "text",
        f"{start}.contents.0.message_content.text": "What is it?",
        f"{start}.contents.1.message_content.type": "image",
        f"{start}.contents.1.message_content.image.image.url": f"data:image/png;base64,{BLOB}",
        f"{start}.contents.10.message_content.type": "text",
        f"{start}.contents.10.message_content.text": "And that?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.contents.0.message_content.type": "reasoning",
        "llm.output_messages.0.message.contents.0.message_content.text": "Whiskers.",
        "llm.output_messages.0.message.contents.1.message_content.type": "text",
        "llm.output_messages.0.message.contents.1.message_content.text": "A cat.",
        "input.value": {"messages": [{"role": "user", "content": "What is it?"}]},
    }
    assert dialogues(tmp_path / "t.json", [span(1, facts)]) == {
        "t": ["user: What is it?\nAnd that?", "assistant: A cat."]
    }


def test_no_picture_and_no_reasoning_is_in_a_question_or_its_answers(tmp_path: Path) -> None:
    asked = text("user", "What is it?")
    asked["parts"].append({"type": "blob", "modality": "image", "content": BLOB})
    reply = text("assistant", "A cat.")
    reply["parts"][:0] = [{"type": "reasoning", "content": "It has whiskers."}]
    spans = [call(1, "I moved to Oslo.", "Noted."), call(2, asked, reply)]
    written(tmp_path / "t.json", {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    written(tmp_path / "feedback.csv", "trace,question,right\nt,What is it?,yes\n")
    (found,) = conversations_of("traces", tmp_path)
    assert [(one.question, one.answers) for one in found.questions] == [("What is it?", ("A cat.",))]


@pytest.mark.parametrize(
    "attribute", ["gen_ai.conversation.id", "session.id", "enduser.id", "user.id", "langfuse.session.id"]
)
def test_each_user_or_thread_is_a_conversation(tmp_path: Path, attribute: str) -> None:
    spans = [
        call(1, "I moved to Oslo.", "Noted.", facts={attribute: "ana"}),
        call(2, "I moved to Rome.", "Noted.", facts={attribute: "bo"}),
        call(3, "Where do I live?", "In Oslo.", facts={attribute: "ana"}),
    ]
    assert dialogues(tmp_path / "t.json", spans) == {
        "t/ana": ["user: I moved to Oslo.", "assistant: Noted.", "user: Where do I live?", "assistant: In Oslo."],
        "t/bo": ["user: I moved to Rome.", "assistant: Noted."],
    }


def test_ids_are_inherited_and_a_users_threads_are_sessions_of_one_conversation(tmp_path: Path) -> None:
    spans = []
    for place, (user, thread, asked) in enumerate(
        [("ana", "1", "I moved to Oslo."), ("bo", "1", "I moved to Rome."), ("ana", "2", "Where do I live?")]
    ):
        root = 10 * place + 1
        spans.append(span(root, {"enduser.id": user, "session.id": thread}, name="POST /chat", trace=place + 1))
        spans.append(call(root + 1, asked, "Hm.", parent=root, trace=place + 1))
    written(tmp_path / "t.json", {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    chats, aside = chats_of(read_graph(tmp_path / "t.json")[0], "t")
    assert [(one.conversation.id, [each.id for each in one.conversation.sessions]) for one in chats] == [
        ("t/ana", ["1", "2"]),
        ("t/bo", ["1"]),
    ]
    assert aside == 0


EXTRACTION = {
    "in a span of the memory": {"name": "chat m", "parent": 9},
    "named so": {"name": "memory.add extract_facts"},
    "told so": {"system": "You are a memory manager. Extract facts from the conversation."},
    "of another agent's thread": {"facts": {"gen_ai.conversation.id": ""}},
}


@pytest.mark.parametrize("how", EXTRACTION)
@pytest.mark.parametrize("before", [True, False])
def test_the_systems_own_calls_are_no_turns(tmp_path: Path, how: str, before: bool) -> None:
    thread = {"gen_ai.conversation.id": "c"}
    more = {"facts": thread, **EXTRACTION[how]}
    own = call(1 if before else 5, "I moved to Oslo.", "- The user moved to Oslo.", **more)
    spans = [
        span(9, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "save"}, name="execute_tool save"),
        call(3, "I moved to Oslo.", "Noted.", facts=thread),
        own,
    ]
    assert dialogues(tmp_path / "t.json", spans) == {"t": ["user: I moved to Oslo.", "assistant: Noted."]}


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("Find facts in:\nuser: I moved to Oslo.\nassistant: Noted.", "- moved to Oslo"),
        ("What does this say? 'I moved to Oslo.'", "- moved to Oslo"),
        ("Put into a form: moving", '```json\n{"facts": ["moved to Oslo"]}\n```'),
        ("Put into a form: moving", '["moved to Oslo"]'),
    ],
)
def test_calls_that_quote_the_dialogue_or_reply_with_data_are_no_turns(tmp_path: Path, asked: str, reply: str) -> None:
    spans = [call(1, "I moved to Oslo.", "Noted."), call(2, asked, reply)]
    path = tmp_path / "t.json"
    assert dialogues(path, spans) == {"t": ["user: I moved to Oslo.", "assistant: Noted."]}
    written(tmp_path / "feedback.csv", "trace,question,right\nt,I moved to Oslo.,yes\n")
    reading = Reading()
    conversations_of("traces", tmp_path, reading)
    assert reading.omissions["t"]["calls of the system itself, such as extraction"] == 1


def test_an_agents_span_is_the_exchange_and_not_what_runs_in_it(tmp_path: Path) -> None:
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.input.messages": [text("user", "Where do I live?")],
        "gen_ai.output.messages": [text("assistant", "In Oslo.")],
    }
    spans = [
        span(1, agent, name="invoke_agent helper"),
        call(2, "Rewrite for search: Where do I live?", "home of user", parent=1),
        call(3, "Context: Oslo. Question: Where do I live?", "In Oslo.", parent=1),
    ]
    assert dialogues(tmp_path / "t.json", spans) == {"t": ["user: Where do I live?", "assistant: In Oslo."]}


def test_steps_with_tools_are_one_exchange_and_a_summarising_agent_keeps_its_turns(tmp_path: Path) -> None:
    system = "You summarize the user's mail."
    first = text("assistant", "Let me look.")
    first["parts"].append({"type": "tool_call", "name": "mail"})
    spans = [call(1, "Any mail?", first, system=system), call(2, "Any mail?", "None.", system=system)]
    assert dialogues(tmp_path / "t.json", spans) == {"t": ["user: Any mail?", "assistant: None."]}


def test_the_same_answer_of_two_users_is_told_apart_by_the_calls_id(tmp_path: Path) -> None:
    spans = [call(number, "Where?", "In Oslo.", facts={"enduser.id": user}) for number, user in ((1, "ana"), (2, "bo"))]
    written(tmp_path / "t.json", {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    written(tmp_path / "feedback.csv", "trace,question,right\nt,Where?,yes\n")
    with pytest.raises(DataError, match=r"feedback\.csv:2: question: several conversations have this answer; give the"):
        conversations_of("traces", tmp_path)
    written(tmp_path / "feedback.csv", f"trace,question,right\nt,{1:016x},yes\nt,{2:016x},no\n")
    (found,) = conversations_of("traces", tmp_path)
    assert (found.id, len(found.questions)) == ("ana", 1)


def test_a_trace_of_mlflow_is_a_dialogue_of_its_user(tmp_path: Path) -> None:
    def trace(number: int, user: str, asked: str) -> dict[str, Any]:
        facts = {
            "mlflow.spanType": "CHAT_MODEL",
            "mlflow.spanInputs": {"model": "m", "messages": [{"role": "user", "content": asked}]},
            "mlflow.spanOutputs": {"choices": [{"message": {"role": "assistant", "content": "Noted."}}]},
        }
        row = {"span_id": f"{number:016x}", "name": "Completions", "start_time_unix_nano": 10**18 + number}
        row |= {"end_time_unix_nano": 10**18 + number + 5, "attributes": {k: json.dumps(v) for k, v in facts.items()}}
        info = {"trace_id": f"tr-{number}", "trace_metadata": {"mlflow.trace.user": user}}
        return {"info": info, "data": {"spans": [row]}}

    rows = [trace(1, "ana", "I moved to Oslo."), trace(2, "bo", "I moved to Rome.")]
    path = written(tmp_path / "t.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    chats, _ = chats_of(read_graph(path)[0], "t")
    assert {one.conversation.id: spoken(one.conversation) for one in chats} == {
        "t/ana": ["user: I moved to Oslo.", "assistant: Noted."],
        "t/bo": ["user: I moved to Rome.", "assistant: Noted."],
    }


@pytest.mark.parametrize(
    "attribute",
    [
        *("user_id", "app.userId", "customer.id", "conversation_id", "app.chatId", "thread_id", "tenant.id"),
        *("tenantId", "ai.telemetry.metadata.sessionId", "langsmith.metadata.thread_id", "metadata"),
    ],
)
def test_ids_under_other_names_tell_tenants_apart(tmp_path: Path, attribute: str) -> None:
    def facts(who: str) -> dict[str, Any]:
        return {attribute: {"thread_id": who} if attribute == "metadata" else who}

    spans = [
        call(1, "I moved to Oslo.", "Noted.", facts=facts("ana"), trace=1),
        call(2, "I moved to Rome.", "Noted.", facts=facts("bo"), trace=2),
        call(3, "Where do I live?", "In Oslo.", facts=facts("ana"), trace=3),
    ]
    assert dialogues(tmp_path / "t.json", spans) == {
        "t/ana": ["user: I moved to Oslo.", "assistant: Noted.", "user: Where do I live?", "assistant: In Oslo."],
        "t/bo": ["user: I moved to Rome.", "assistant: Noted."],
    }


def test_an_id_by_its_usual_name_counts_alone_and_a_machines_thread_is_none(tmp_path: Path) -> None:
    spans = [
        call(number, f"I moved to {city}.", "Noted.", facts={"session.id": who, "os_user_id": "1000", "thread.id": 7})
        for number, (who, city) in enumerate([("a", "Oslo"), ("b", "Rome")], start=1)
    ]
    assert list(dialogues(tmp_path / "t.json", spans)) == ["t/a", "t/b"]
    spans = [call(number, f"I moved to {number}.", "Noted.", facts={"thread.id": number}) for number in (1, 2)]
    assert list(dialogues(tmp_path / "t.json", spans)) == ["t"]


def test_parts_within_a_text_are_parts(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": f"data:{BLOB}"}}]
    facts = {
        "llm.request.type": "chat",
        "gen_ai.request.model": "m",
        "traceloop.span.kind": "llm",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": json.dumps(parts),
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "A cat.",
    }
    assert dialogues(tmp_path / "t.json", [span(1, facts)]) == {"t": ["user: What is it?", "assistant: A cat."]}
    facts["gen_ai.prompt.0.content"] = '[{"name": "my list"}]'
    (said, _) = dialogues(tmp_path / "t.json", [span(1, facts)])["t"]
    assert said == 'user: [{"name": "my list"}]'
