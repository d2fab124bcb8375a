"""What LiteLLM asks is recorded, whatever the provider: on the real package, with servers on loopback."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import litellm
import pytest
from litellm import completion

from tracing import instrument
from tracing.instrument.stages import watch
from tracing.recording.trace_context import trace

ASKED = [{"role": "system", "content": "Answer from notes."}, {"role": "user", "content": "Where does Mara live?"}]
PIECES = ["Mara lives ", "in Oslo."]


def _lines(path: str) -> Iterator[str]:
    """A streamed reply in the form of the endpoint."""
    if path.endswith("/messages"):
        message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "claude"}
        usage = {"input_tokens": 7, "output_tokens": 0}
        block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        texts = [{"type": "text_delta", "text": piece} for piece in PIECES]
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**message, "usage": usage}},
            block,
            *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in texts),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]
        yield from (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    elif path.endswith("/api/chat"):
        for text in [*PIECES, ""]:
            line = {"model": "llama3", "message": {"role": "assistant", "content": text}, "done": not text}
            yield json.dumps({**line, **({} if text else {"prompt_eval_count": 7, "eval_count": 5})}) + "\n"
    else:
        deltas = [{"role": "assistant", "content": piece} for piece in PIECES]
        for delta in [*deltas, {}]:
            choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
            yield f"data: {json.dumps({'id': 'c', 'model': 'gpt', 'created': 1, 'choices': [choice]})}\n\n"
        yield "data: [DONE]\n\n"


def _whole(path: str) -> dict[str, Any]:
    text = "".join(PIECES)
    if path.endswith("/messages"):
        usage = {"input_tokens": 7, "output_tokens": 5}
        content = [{"type": "text", "text": text}]
        message = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn"}
        return {**message, "content": content, "usage": usage}
    if path.endswith("/api/chat"):
        counts = {"prompt_eval_count": 7, "eval_count": 5}
        return {"model": "llama3", "message": {"role": "assistant", "content": text}, "done": True, **counts}
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt", "choices": [choice], "usage": usage}


class _Providers(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        content = "".join(_lines(self.path)) if body.get("stream") else json.dumps(_whole(self.path))
        kind = "text/event-stream" if body.get("stream") and "/api/" not in self.path else "application/json"
        self.send_response(403 if "denied" in body["model"] else 200)
        self.send_header("content-type", kind)
        self.end_headers()
        self.wfile.write(content.encode())


@pytest.fixture
def providers() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Providers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class Program:
    """It asks in every way that there is."""

    def __init__(self, model: str, url: str) -> None:
        base = f"{url}/v1" if model.startswith("openai/") else url
        self.options: Any = {"model": model, "messages": ASKED, "api_base": base, "api_key": "sk-nobody-sees"}

    def sync(self, question: str) -> str:
        return str(completion(**self.options).choices[0].message.content)

    async def is_async(self, question: str) -> str:
        return str((await litellm.acompletion(**self.options)).choices[0].message.content)

    def streaming(self, question: str) -> str:
        return "".join(piece.choices[0].delta.content or "" for piece in completion(stream=True, **self.options))

    async def async_streaming(self, question: str) -> str:
        pieces = await litellm.acompletion(stream=True, **self.options)
        return "".join([piece.choices[0].delta.content or "" async for piece in pieces])


WAYS = ("sync", "is_async", "streaming", "async_streaming")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5", "ollama_chat/llama3"])
def test_a_call_of_any_provider_is_recorded_once(model: str, way: str, providers: str) -> None:
    with watch(Program, answer=WAYS), trace() as recorder:
        ask: Any = getattr(Program(model, providers), way)
        reply = ask("Where does Mara live?")
        reply = asyncio.run(reply) if asyncio.iscoroutine(reply) else reply
    assert reply == "Mara lives in Oslo."
    (operation,) = recorder.graph.operations.values()
    variables = recorder.graph.variables
    assert (operation.name, operation.kind, operation.calls) == (way, "llm", 1)
    assert [variables[vid].value for vid in operation.output_ids()] == [reply, reply]
    assert [variables[vid].value for vid in operation.input_ids() if variables[vid].kind == "request"] == [ASKED]
    assert operation.model in (model, model.partition("/")[2], "gpt", "claude")
    if "streaming" not in way:
        assert (operation.prompt_tokens, operation.completion_tokens) == (7, 5)
    assert "sk-nobody-sees" not in str([variable.attributes for variable in variables.values()])


@pytest.mark.filterwarnings("ignore")
def test_a_call_that_fails_is_recorded_and_nothing_once_it_is_undone(providers: str) -> None:
    original = litellm.completion
    with instrument.litellm(), trace() as recorder, pytest.raises(litellm.exceptions.PermissionDeniedError):
        Program("anthropic/denied", providers).sync("")
    (failed,) = recorder.graph.operations.values()
    assert (failed.name, failed.status) == ("chat", "error")
    assert litellm.completion is original
    with trace() as recorder:
        Program("anthropic/claude", providers).sync("")
    assert not recorder.graph.operations
