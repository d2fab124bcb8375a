"""A model on loopback for the conformance suite: a function makes its replies, and its requests are recorded."""

from __future__ import annotations

import contextlib
import hashlib
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from tracing.llm.access import ModelAccess
from tracing.llm.serving.loopback import LoopbackServer, RefusalError
from tracing.llm.serving.loopback import Request as HttpRequest
from tracing.llm.settings import Limits, ModelSettings

MODEL, EMBEDDING = "scripted", "scripted-embedding"

_DIMENSIONS = 64


@dataclass(frozen=True, slots=True)
class Request:
    """A system's request to a model: the texts sent, and everything else that shapes the reply."""

    kind: str
    texts: tuple[str, ...]
    options: Mapping[str, Any]


Reply = Callable[[Mapping[str, Any]], str]
"""Maps the JSON body of a chat request to the text of the reply."""


class ScriptedEndpoint(LoopbackServer):
    """Serves chat by `reply` and embeddings by the words of a text, to an access or to any client.

    Attributes:
        access: to these models, without a cache; its task settings have the endpoint and its key.
    """

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self._heard: list[Request] | None = None
        self._failing: int | None = None
        self._lock = threading.Lock()
        routes = {"POST /v1/chat/completions": self._chat, "POST /v1/embeddings": self._embed}
        super().__init__("memtune scripted endpoint", routes)
        self.start()
        task = ModelSettings(model=MODEL, base_url=self.base_url, api_key=SecretStr(self.key), retries=0)
        roles = {"task": task, "embedding": task.model_copy(update={"model": EMBEDDING})}
        self.access = ModelAccess.open(roles, cache_dir=None, limits=Limits())  # type: ignore[arg-type]

    def close(self) -> None:
        """Stop serving."""
        self.access.close()
        super().close()

    @contextlib.contextmanager
    def heard(self, failing: int | None = None) -> Iterator[list[Request]]:
        """The requests made inside, as they arrive; the one numbered `failing`, from 1, is refused."""
        self._heard, self._failing = [], failing
        try:
            yield self._heard
        finally:
            self._heard = self._failing = None

    def _hear(self, request: Request) -> None:
        with self._lock:
            if self._heard is None:
                return
            self._heard.append(request)
            if len(self._heard) == self._failing:
                raise RefusalError(403, "the conformance suite made this call fail")

    def _chat(self, request: HttpRequest) -> dict[str, Any]:
        body = request.body
        options = {key: value for key, value in body.items() if key != "messages"}
        self._hear(Request("chat", tuple(str(message["content"]) for message in body["messages"]), options))
        text = self.reply(body)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        tool = called_tool(body) if text.startswith("{") else None
        if tool is not None:
            call = {"name": tool["name"], "arguments": text}
            message |= {"content": None, "tool_calls": [{"id": "call-1", "type": "function", "function": call}]}
        reason = "stop" if tool is None else "tool_calls"
        choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
        read, written = sum(len(str(entry["content"]).split()) for entry in body["messages"]), len(text.split())
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        base = {"id": "chatcmpl-scripted", "object": "chat.completion", "created": 0, "model": body.get("model")}
        return {**base, "choices": [choice], "usage": usage}

    def _embed(self, request: HttpRequest) -> dict[str, Any]:
        body = request.body
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self._hear(Request("embedding", tuple(texts), {key: body[key] for key in body if key != "input"}))
        data = [{"object": "embedding", "index": place, "embedding": _vector(text)} for place, text in enumerate(texts)]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        return {"object": "list", "model": body.get("model"), "data": data, "usage": usage}


def called_tool(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The tool that a reply must call, or the first that it may, where the last message tells of no call.

    The text of the reply is what the call is given.
    """
    choice, tools = body.get("tool_choice"), [tool["function"] for tool in body.get("tools") or ()]
    named = choice["function"]["name"] if isinstance(choice, Mapping) else None
    is_any = choice == "required" or (choice in (None, "auto") and body["messages"][-1]["role"] != "tool")
    return next((tool for tool in tools if is_any or tool["name"] == named), None)


def last_text(body: Mapping[str, Any]) -> str:
    """The last message sent, as a reply: not empty, and the same for equal requests."""
    return str(body["messages"][-1]["content"])


def _vector(text: str) -> list[float]:
    """A vector of length 1; texts that share words are near each other."""
    counts = [0.0] * _DIMENSIONS
    for word in text.lower().split():
        counts[hashlib.sha256(word.strip(".,?!'\"").encode()).digest()[0] % _DIMENSIONS] += 1.0
    length = math.sqrt(sum(count * count for count in counts)) or 1.0
    return [count / length for count in counts]
