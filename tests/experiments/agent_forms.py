"""One story of an agent, exported in the forms of several conventions: OTLP JSON documents, and MLflow's traces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from agent_story import Call, Tale, Turn, answered, requests

from tracing import operation, trace

START = 1_772_400_000_000_000_000
SYSTEM = "You are an assistant with a memory."

Event = tuple[str, dict[str, object]]


def text_of(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@dataclass
class Spans:
    """The spans of one export, a trace for each turn."""

    rows: list[dict[str, object]] = field(default_factory=list)
    now: int = START

    def add(
        self, turn: int, name: str, attributes: dict[str, object], events: Iterable[Event] = (), root: bool = False
    ) -> None:
        self.now += 1_000_000_000
        trace = f"{turn + 1:032x}"
        self.rows.append(
            {
                "traceId": trace,
                "spanId": f"{(turn + 1) * 1000 if root else (turn + 1) * 1000 + len(self.rows) + 1:016x}",
                **({} if root else {"parentSpanId": f"{(turn + 1) * 1000:016x}"}),
                "name": name,
                "startTimeUnixNano": str(self.now),
                "endTimeUnixNano": str(self.now + (60 if root else 0) * 1_000_000_000 + 500_000_000),
                "attributes": _attributes(attributes),
                "events": [
                    {"name": event, "timeUnixNano": str(self.now + 1000), "attributes": _attributes(fields)}
                    for event, fields in events
                ],
            }
        )

    def document(self) -> str:
        return text_of(
            {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": self.rows}]}]}
        )


def _value(value: object) -> dict[str, object]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(part) for part in value]}}
        case dict():
            return {"kvlistValue": {"values": [{"key": key, "value": _value(part)} for key, part in value.items()]}}
        case _:
            return {"stringValue": str(value)}


def _attributes(attributes: dict[str, object]) -> list[dict[str, object]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _parts(read: list[tuple[str, object]]) -> list[dict[str, object]]:
    """Messages as GenAI semantic conventions 1.37 write them."""
    messages: list[dict[str, object]] = []
    for role, value in read:
        if isinstance(value, Call):
            part = (
                {"type": "tool_call", "id": value.id, "name": value.name, "arguments": value.arguments}
                if role == "call"
                else {"type": "tool_call_response", "id": value.id, "response": answered(value)}
            )
            messages.append({"role": "assistant" if role == "call" else "tool", "parts": [part]})
        else:
            messages.append({"role": role, "parts": [{"type": "text", "content": value}]})
    return messages


def openai_messages(read: list[tuple[str, object]]) -> list[dict[str, object]]:
    """Messages as OpenAI's API has them."""
    messages: list[dict[str, object]] = []
    for role, value in read:
        if not isinstance(value, Call):
            messages.append({"role": role, "content": value})
        elif role == "call":
            called = {"name": value.name, "arguments": text_of(value.arguments)}
            messages.append(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": value.id, "type": "function", "function": called}],
                }
            )
        else:
            messages.append({"role": "tool", "tool_call_id": value.id, "content": text_of(answered(value))})
    return messages


def _said(value: Call | str) -> tuple[str, object]:
    return ("call", value) if isinstance(value, Call) else ("assistant", value)


def _genai(turn: Turn) -> dict[str, object]:
    return {"gen_ai.conversation.id": turn.session, "user.id": turn.user}


def _tool(spans: Spans, number: int, turn: Turn, call: Call) -> None:
    spans.add(
        number,
        f"execute_tool {call.name}",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.call.arguments": text_of(call.arguments),
            "gen_ai.tool.call.result": text_of(answered(call)),
            **_genai(turn),
        },
    )


def details_event(turns: list[Turn]) -> str:
    """Semantic conventions with the messages in the event of a model call's details."""
    spans = Spans()
    for number, turn in enumerate(turns):
        spans.add(number, "invoke_agent helper", {"gen_ai.operation.name": "invoke_agent", **_genai(turn)}, root=True)
        for at, _, read, gives in requests(turns):
            if at != number:
                continue
            details = {
                "gen_ai.operation.name": "chat",
                "gen_ai.system_instructions": [{"type": "text", "content": SYSTEM}],
                "gen_ai.input.messages": _parts(read),
                "gen_ai.output.messages": [{**_parts([_said(gives)])[0], "finish_reason": "stop"}],
            }
            spans.add(
                number,
                "chat gpt",
                {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt", **_genai(turn)},
                [("gen_ai.client.inference.operation.details", details)],
            )
            if isinstance(gives, Call):
                _tool(spans, number, turn, gives)
    return spans.document()


def legacy_events(turns: list[Turn]) -> str:
    """Semantic conventions before 1.37: one event a message."""
    spans = Spans()
    for number, turn, read, gives in requests(turns):
        events: list[Event] = [("gen_ai.system.message", {"content": SYSTEM})]
        for message in openai_messages(read):
            role = str(message["role"])
            fields: dict[str, object] = {"role": role}
            if message.get("content") is not None:
                fields["content"] = str(message["content"])
            if "tool_calls" in message:
                fields["tool_calls"] = text_of(message["tool_calls"])
            if "tool_call_id" in message:
                fields["id"] = str(message["tool_call_id"])
            events.append((f"gen_ai.{role}.message", fields))
        (given,) = openai_messages([_said(gives)])
        events.append(("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": text_of(given)}))
        spans.add(
            number,
            "chat gpt",
            {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", **_genai(turn)},
            events,
        )
        if isinstance(gives, Call):
            spans.add(
                number,
                f"execute_tool {gives.name}",
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": gives.name,
                    "gen_ai.tool.call.id": gives.id,
                    **_genai(turn),
                },
            )
    return spans.document()


def openllmetry(turns: list[Turn]) -> str:
    """OpenLLMetry: indexed prompts and completions, tools as traceloop entities."""
    spans = Spans()
    for number, turn, read, gives in requests(turns):
        attributes: dict[str, object] = {"llm.request.type": "chat", "gen_ai.prompt.0.role": "system"}
        attributes["gen_ai.prompt.0.content"] = SYSTEM
        common: dict[str, object] = {
            "traceloop.association.properties.user_id": turn.user,
            "traceloop.association.properties.session_id": turn.session,
        }
        for place, message in enumerate(openai_messages(read), 1):
            attributes |= _indexed(f"gen_ai.prompt.{place}", message)
        attributes |= _indexed("gen_ai.completion.0", openai_messages([_said(gives)])[0])
        spans.add(number, "openai.chat", attributes | common)
        if isinstance(gives, Call):
            spans.add(
                number,
                f"{gives.name}.tool",
                {
                    "traceloop.span.kind": "tool",
                    "traceloop.entity.name": gives.name,
                    "traceloop.entity.input": text_of({"args": [], "kwargs": gives.arguments}),
                    "traceloop.entity.output": text_of(answered(gives)),
                }
                | common,
            )
    return spans.document()


def _indexed(prefix: str, message: dict[str, object]) -> dict[str, object]:
    attributes: dict[str, object] = {f"{prefix}.role": message["role"]}
    if message.get("content") is not None:
        attributes[f"{prefix}.content"] = message["content"]
    if "tool_call_id" in message:
        attributes[f"{prefix}.tool_call_id"] = message["tool_call_id"]
    calls = message.get("tool_calls")
    for place, call in enumerate(calls if isinstance(calls, list) else ()):
        attributes[f"{prefix}.tool_calls.{place}.id"] = call["id"]
        attributes[f"{prefix}.tool_calls.{place}.name"] = call["function"]["name"]
        attributes[f"{prefix}.tool_calls.{place}.arguments"] = call["function"]["arguments"]
    return attributes


def openinference_retriever(turns: list[Turn]) -> str:
    """OpenInference: tools that store, and a retriever whose documents are put into the prompt of the answer."""
    spans = Spans()
    for number, turn in enumerate(turns):
        common: dict[str, object] = {"session.id": turn.session, "user.id": turn.user}
        spans.add(
            number,
            "agent",
            {"openinference.span.kind": "AGENT", "input.value": turn.text, "output.value": turn.reply} | common,
            root=True,
        )
        prompt = turn.text
        for call in turn.calls:
            if call.does == "find":
                attributes: dict[str, object] = {
                    "openinference.span.kind": "RETRIEVER",
                    "input.value": str(call.arguments["query"]),
                }
                for place, (key, text) in enumerate(call.entries):
                    attributes[f"retrieval.documents.{place}.document.id"] = key
                    attributes[f"retrieval.documents.{place}.document.content"] = text
                spans.add(number, call.name, attributes | common)
                found = "\n".join(text for _, text in call.entries)
                prompt = f"Memories:\n{found}\n\nQuestion: {turn.text}"
                continue
            spans.add(
                number,
                call.name,
                {
                    "openinference.span.kind": "TOOL",
                    "tool.name": call.name,
                    "input.value": text_of(call.arguments),
                    "input.mime_type": "application/json",
                    "output.value": text_of(answered(call)),
                    "output.mime_type": "application/json",
                }
                | common,
            )
        spans.add(
            number,
            "ChatCompletion",
            {
                "openinference.span.kind": "LLM",
                "llm.input_messages.0.message.role": "system",
                "llm.input_messages.0.message.content": SYSTEM,
                "llm.input_messages.1.message.role": "user",
                "llm.input_messages.1.message.content": prompt,
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": turn.reply,
            }
            | common,
        )
    return spans.document()


def mcp_memory(turns: list[Turn]) -> str:
    """The reference memory server of MCP: entities with observations; a change is a deletion and an addition."""
    spans = Spans()
    names = {"m1": "first_subject", "m2": "second_subject", "m3": "third_subject"}
    held: dict[str, list[str]] = {}
    for number, turn in enumerate(turns):
        read: list[dict[str, object]] = [{"role": "user", "parts": [{"type": "text", "content": turn.text}]}]
        steps: list[tuple[str, object, object]] = []
        for call in turn.calls:
            if call.does == "save":
                ((key, text),) = call.entries
                given = {"name": names[key], "entityType": "topic", "observations": [call.arguments["text"]]}
                held[key] = [text]
                steps.append(("create_entities", {"entities": [given]}, [{**given, "observations": [text]}]))
            elif call.does == "change":
                ((key, text),) = call.entries
                name, before = names[key], held.get(key, [])
                steps.append(
                    (
                        "delete_observations",
                        {"deletions": [{"entityName": name, "observations": before}]},
                        "Observations deleted successfully",
                    )
                )
                held[key] = [text]
                steps.append(
                    (
                        "add_observations",
                        {"observations": [{"entityName": name, "contents": [text]}]},
                        [{"entityName": name, "addedObservations": [text]}],
                    )
                )
            elif call.does == "find":
                entities = [
                    {"type": "entity", "name": names[key], "entityType": "topic", "observations": [text]}
                    for key, text in call.entries
                ]
                steps.append(("search_nodes", call.arguments, {"entities": entities, "relations": []}))
            else:
                steps.append((call.name, call.arguments, call.result))
        for place, (name, arguments, result) in enumerate(steps):
            key = f"{number}-{place}"
            called = {"type": "tool_call", "id": key, "name": name, "arguments": arguments}
            asked = {"role": "assistant", "parts": [called]}
            content = {"content": [{"type": "text", "text": result if isinstance(result, str) else text_of(result)}]}
            _chat(spans, number, turn, read, asked)
            spans.add(
                number,
                f"tools/call {name}",
                {
                    "mcp.method.name": "tools/call",
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": name,
                    "gen_ai.tool.call.arguments": text_of(arguments),
                    "gen_ai.tool.call.result": text_of(content),
                    **_genai(turn),
                },
            )
            read = [
                *read,
                asked,
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": key, "response": content}]},
            ]
        _chat(spans, number, turn, read, {"role": "assistant", "parts": [{"type": "text", "content": turn.reply}]})
    return spans.document()


def _chat(spans: Spans, number: int, turn: Turn, read: list[dict[str, object]], gives: dict[str, object]) -> None:
    spans.add(
        number,
        "chat gpt",
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": text_of(read),
            "gen_ai.output.messages": text_of([gives]),
            **_genai(turn),
        },
    )


def langgraph_mem0(turns: list[Turn]) -> str:
    """A LangGraph agent made by hand: Mem0's functions as spans of no kind, and what was found in the prompt."""
    spans = Spans()
    held: dict[str, str] = {}
    for number, turn in enumerate(turns):
        common: dict[str, object] = {"user.id": turn.user, "session.id": turn.session}
        search = next((call for call in turn.calls if call.does == "find"), None)
        found = [{"id": key, "memory": text, "score": 0.7} for key, text in search.entries] if search else []
        spans.add(number, "graph", {"input.value": turn.text, "output.value": turn.reply} | common, root=True)
        spans.add(
            number,
            "mem0.search",
            {
                "input.value": text_of({"query": turn.text, "user_id": turn.user, "limit": 5}),
                "output.value": text_of({"results": found}),
            }
            | common,
        )
        shown = "\n".join(f"- {row['memory']}" for row in found)
        messages = [
            {"role": "system", "content": f"{SYSTEM}\nMemories:\n{shown}"},
            {"role": "user", "content": turn.text},
        ]
        spans.add(
            number,
            "chat gpt",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": text_of(messages),
                "gen_ai.output.messages": text_of([{"role": "assistant", "content": turn.reply}]),
            }
            | common,
        )
        results = []
        for call in turn.calls:
            if call.does in ("save", "change"):
                ((key, text),) = call.entries
                row = {"id": key, "memory": text, "event": "UPDATE" if key in held else "ADD"}
                results.append(row | ({"previous_memory": held[key]} if key in held else {}))
                held[key] = text
        said = [{"role": "user", "content": turn.text}, {"role": "assistant", "content": turn.reply}]
        spans.add(
            number,
            "mem0.add",
            {
                "input.value": text_of({"messages": said, "user_id": turn.user}),
                "output.value": text_of({"results": results}),
            }
            | common,
        )
    return spans.document()


def memory_spans(turns: list[Turn]) -> str:
    """Semantic conventions' spans of a memory: records and queries, no tools."""
    spans = Spans()
    does = {"save": "create_memory", "change": "update_memory", "find": "search_memory"}
    for number, turn in enumerate(turns):
        shown = ""
        for call in turn.calls:
            if call.does not in does:
                _tool(spans, number, turn, call)
                continue
            records = [{"id": key, "content": text, "metadata": {}} for key, text in call.entries]
            attributes: dict[str, object] = {
                "gen_ai.operation.name": does[call.does],
                "gen_ai.memory.store.id": "helper",
                "gen_ai.memory.record.count": len(records),
                "gen_ai.memory.records": text_of(records),
                **_genai(turn),
            }
            if call.does == "find":
                attributes["gen_ai.memory.query.text"] = call.arguments["query"]
                shown = "\nKnown:\n" + "\n".join(text for _, text in call.entries)
            spans.add(number, f"{does[call.does]} helper", attributes)
        read = [
            {"role": "system", "parts": [{"type": "text", "content": SYSTEM + shown}]},
            {"role": "user", "parts": [{"type": "text", "content": turn.text}]},
        ]
        _chat(spans, number, turn, read, {"role": "assistant", "parts": [{"type": "text", "content": turn.reply}]})
    return spans.document()


def langfuse(turns: list[Turn]) -> str:
    """Langfuse: observations with their type, input and output as JSON."""
    spans = Spans()
    for number, turn, read, gives in requests(turns):
        common: dict[str, object] = {"user.id": turn.user, "session.id": turn.session}
        spans.add(
            number,
            "generation",
            {
                "langfuse.observation.type": "generation",
                "langfuse.observation.input": text_of(openai_messages(read)),
                "langfuse.observation.output": text_of(openai_messages([_said(gives)])[0]),
            }
            | common,
        )
        if isinstance(gives, Call):
            spans.add(
                number,
                gives.name,
                {
                    "langfuse.observation.type": "tool",
                    "langfuse.observation.input": text_of(gives.arguments),
                    "langfuse.observation.output": text_of(answered(gives)),
                }
                | common,
            )
    return spans.document()


def langsmith(turns: list[Turn]) -> str:
    """LangSmith's exporter: prompt and completion as JSON, its kind of span, session and user in its metadata."""
    spans = Spans()
    for number, turn, read, gives in requests(turns):
        common: dict[str, object] = {
            "langsmith.metadata.user_id": turn.user,
            "langsmith.metadata.thread_id": turn.session,
        }
        (given,) = openai_messages([_said(gives)])
        spans.add(
            number,
            "ChatOpenAI",
            {
                "langsmith.span.kind": "llm",
                "gen_ai.operation.name": "chat",
                "gen_ai.prompt": text_of({"messages": openai_messages(read)}),
                "gen_ai.completion": text_of({"choices": [{"index": 0, "message": given}]}),
            }
            | common,
        )
        if isinstance(gives, Call):
            spans.add(
                number,
                gives.name,
                {
                    "langsmith.span.kind": "tool",
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": gives.name,
                    "gen_ai.prompt": text_of({"input": text_of(gives.arguments)}),
                    "gen_ai.completion": text_of({"output": text_of(answered(gives))}),
                }
                | common,
            )
    return spans.document()


def mlflow_autolog(turns: list[Turn]) -> str:
    """MLflow: OpenAI's autolog and tools as traced functions, a trace for each turn, one a line."""
    traces: dict[int, list[dict[str, object]]] = {}
    now = START
    count = 0

    def add(number: int, name: str, kind: str, given: object, gives: object) -> None:
        nonlocal now, count
        now += 1_000_000_000
        count += 1
        rows = traces.setdefault(number, [])
        rows.append(
            {
                "trace_id": f"{number + 1:032x}",
                "span_id": f"{count:016x}",
                "parent_span_id": rows[0]["span_id"] if rows else None,
                "name": name,
                "start_time_unix_nano": now,
                "end_time_unix_nano": now + (60 if not rows else 0) * 1_000_000_000 + 500_000_000,
                "events": [],
                "status": {"code": "STATUS_CODE_OK", "message": ""},
                "attributes": {
                    "mlflow.traceRequestId": text_of(f"tr-{number + 1:032x}"),
                    "mlflow.spanType": text_of(kind),
                    "mlflow.spanInputs": text_of(given),
                    "mlflow.spanOutputs": text_of(gives),
                },
            }
        )

    for number, turn, read, gives in requests(turns):
        if number not in traces:
            add(number, "helper", "AGENT", {"text": turn.text, "user_id": turn.user}, turn.reply)
        (given,) = openai_messages([_said(gives)])
        add(
            number,
            "Completions",
            "CHAT_MODEL",
            {"model": "gpt", "messages": openai_messages(read)},
            {"id": f"r{count}", "object": "chat.completion", "choices": [{"index": 0, "message": given}]},
        )
        if isinstance(gives, Call):
            add(number, gives.name, "TOOL", gives.arguments, answered(gives))
    return "\n".join(
        text_of(
            {
                "info": {
                    "trace_id": f"tr-{number + 1:032x}",
                    "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}},
                    "request_time": "2026-03-01T20:00:00.000Z",
                    "execution_duration": "60s",
                    "state": "OK",
                    "trace_metadata": {
                        "mlflow.trace.user": turns[number].user,
                        "mlflow.trace.session": turns[number].session,
                        "mlflow.trace_schema.version": "3",
                    },
                    "tags": {"mlflow.traceName": "helper"},
                },
                "data": {"spans": rows},
            }
        )
        for number, rows in traces.items()
    )


def gateway(turns: list[Turn]) -> str:
    """What `memtune gateway --trace` records: calls to models alone, as `tracing.llm.serving.gateway` records them."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "calls.jsonl"
        with trace(file):
            for _, _, read, gives in requests(turns):
                messages = [{"role": "system", "content": SYSTEM}, *openai_messages(read)]
                given = openai_messages([_said(gives)])[0]
                with operation("chat", kind="llm", inputs={"messages": messages}) as call:
                    call.finish(
                        {"content": "", "tool_calls": given["tool_calls"]} if isinstance(gives, Call) else gives
                    )
        return file.read_text()


FORMS: dict[str, Callable[[list[Turn]], str]] = {
    form.__name__: form
    for form in (
        details_event,
        legacy_events,
        openllmetry,
        openinference_retriever,
        mcp_memory,
        langgraph_mem0,
        memory_spans,
        langfuse,
        langsmith,
        mlflow_autolog,
        gateway,
    )
}
"""Name → the export of turns in a form."""


def operations_of(form: str, tale: Tale) -> dict[str, tuple[str, ...]]:
    """What saves, changes and finds in a form: parts of the names of operations."""
    if form == "mcp_memory":
        return {
            "save": ("create_entities",),
            "change": ("delete_observations", "add_observations"),
            "find": ("search_nodes",),
        }
    if form == "langgraph_mem0":
        return {"save": ("mem0.add",), "change": ("mem0.add",), "find": ("mem0.search",)}
    if form == "memory_spans":
        return {"save": ("create_memory",), "change": ("update_memory",), "find": ("search_memory",)}
    return {does: (name,) for does, name in zip(("save", "change", "find"), tale.tools, strict=True)}
