"""Further ways to write an agent's messages and calls, found when the rules for `agent_forms` stood."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from agent_forms import START, Spans, gateway, langgraph_mem0, text_of
from agent_story import Call, Tale, Turn, answered, requests

SAIL = Tale(
    ("liv", "otis"),
    (
        ("By the way, my violin teacher is called Mrs Anand.", "Violin teacher is Mrs Anand."),
        ("My brother Rolf is a baker in Lund.", "Brother Rolf is a baker in Lund."),
        ("My piano teacher is Mr Quist.", "Piano teacher is Mr Quist."),
        ("Rolf has a bakery in Kalmar now.", "Brother Rolf is a baker in Kalmar."),
    ),
    ("violin", "Rolf", "piano"),
    "Who teaches me the violin?",
    "violin teacher",
    "Mrs Anand",
    "Nobody, as far as I know.",
    "Violin teacher",
    ("upsertFact", "correctFact", "lookupFacts"),
)


def calls_without_ids(turns: list[Turn]) -> str:
    """The gateway's recording of an endpoint that gives calls no ids."""
    return gateway([replace(turn, calls=tuple(replace(call, id="") for call in turn.calls)) for turn in turns])


def anthropic_messages(turns: list[Turn]) -> str:
    """Langfuse with Anthropic's messages, where results of tools are a user's."""
    spans = Spans()
    for number, turn, read, gives in requests(turns):
        messages = [_anthropic(role, value) for role, value in read]
        reply = _anthropic("call", gives) if isinstance(gives, Call) else _anthropic("assistant", gives)
        spans.add(
            number,
            "messages.create",
            {
                "langfuse.observation.type": "generation",
                "langfuse.observation.input": text_of({"messages": messages, "model": "m"}),
                "langfuse.observation.output": text_of(reply),
                "user.id": turn.user,
                "session.id": turn.session,
            },
        )
    return spans.document()


def _anthropic(role: str, value: object) -> dict[str, object]:
    if not isinstance(value, Call):
        return {"role": role, "content": [{"type": "text", "text": value}]}
    if role == "call":
        part = {"type": "tool_use", "id": value.id, "name": value.name, "input": value.arguments}
        return {"role": "assistant", "content": [part]}
    shown = [{"type": "text", "text": text_of(answered(value))}]
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": value.id, "content": shown}]}


def response_items(turns: list[Turn]) -> str:
    """The items of OpenAI's Responses API as messages."""
    spans = Spans()
    for number, turn, read, gives in requests(turns):
        items = [_item(role, value) for role, value in read]
        reply = _item("call", gives) if isinstance(gives, Call) else _item("assistant", gives)
        spans.add(
            number,
            "responses",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": text_of(items),
                "gen_ai.output.messages": text_of([reply]),
                "user.id": turn.user,
                "session.id": turn.session,
            },
        )
    return spans.document()


def _item(role: str, value: object) -> dict[str, object]:
    if not isinstance(value, Call):
        return {"type": "message", "role": role, "content": value}
    if role == "call":
        arguments = text_of(value.arguments)
        return {"type": "function_call", "call_id": value.id, "name": value.name, "arguments": arguments}
    return {"type": "function_call_output", "call_id": value.id, "output": text_of(answered(value))}


def attributes_of_ones_own(turns: list[Turn]) -> str:
    """Mem0's functions as spans that tell inputs and outputs under names of nobody's convention."""
    document = json.loads(langgraph_mem0(turns))
    for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        if not span["name"].startswith("mem0."):
            continue
        shown = {fact["key"]: fact["value"]["stringValue"] for fact in span["attributes"]}
        own = json.loads(shown.pop("input.value")) | json.loads(shown.pop("output.value"))
        shown |= {f"mem0.{key}": value if isinstance(value, str) else text_of(value) for key, value in own.items()}
        span["attributes"] = [{"key": key, "value": {"stringValue": value}} for key, value in shown.items()]
    return text_of(document)


def langchain_autolog(turns: list[Turn]) -> str:
    """MLflow's autolog of LangChain: lists of messages in lists, generations, dumped messages of tools."""
    traces: dict[int, list[dict[str, object]]] = {}
    now = START

    def add(number: int, name: str, kind: str, read: object, gives: object) -> None:
        nonlocal now
        now += 1_000_000_000
        rows = traces.setdefault(number, [])
        rows.append(
            {
                "trace_id": f"{number + 1:032x}",
                "span_id": f"{(number + 1) * 1000 + len(rows):016x}",
                "parent_span_id": rows[0]["span_id"] if rows else None,
                "name": name,
                "start_time_unix_nano": now,
                "end_time_unix_nano": now + (1000 if rows else 60_000_000_000),
                "events": [],
                "status": {"code": "STATUS_CODE_OK"},
                "attributes": {
                    "mlflow.spanType": text_of(kind),
                    "mlflow.spanInputs": text_of(read),
                    "mlflow.spanOutputs": text_of(gives),
                },
            }
        )

    for number, turn, read, gives in requests(turns):
        if number not in traces:
            asked, replied = _dumped("user", turn.text), _dumped("assistant", turn.reply)
            add(number, "LangGraph", "CHAIN", {"messages": [asked]}, {"messages": [replied]})
        reply = _dumped("call", gives) if isinstance(gives, Call) else _dumped("assistant", gives)
        messages = [_dumped(role, value) for role, value in read]
        add(
            number,
            "ChatOpenAI",
            "CHAT_MODEL",
            [messages],
            {"generations": [[{"text": reply["content"], "message": reply}]]},
        )
        if isinstance(gives, Call):
            add(number, gives.name, "TOOL", gives.arguments, _dumped("result", gives))
    facts = [{"mlflow.trace.user": turn.user, "mlflow.trace.session": turn.session} for turn in turns]
    return "\n".join(
        text_of({"info": {"trace_id": f"tr-{number}", "trace_metadata": facts[number]}, "data": {"spans": rows}})
        for number, rows in traces.items()
    )


def _dumped(role: str, value: object) -> dict[str, object]:
    if not isinstance(value, Call):
        return {"type": "human" if role == "user" else "ai", "content": value}
    if role == "call":
        called = {"type": "tool_call", "id": value.id, "name": value.name, "args": value.arguments}
        return {"type": "ai", "content": "", "tool_calls": [called]}
    return {"type": "tool", "name": value.name, "tool_call_id": value.id, "content": text_of(answered(value))}


DIALECTS: dict[str, Callable[[list[Turn]], str]] = {
    dialect.__name__: dialect
    for dialect in (
        calls_without_ids,
        anthropic_messages,
        response_items,
        attributes_of_ones_own,
        langchain_autolog,
    )
}
