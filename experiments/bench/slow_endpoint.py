"""A slow endpoint with a limit on concurrent requests, in its own process.

Nothing of the time it needs itself is taken from the client that is measured. Every fiftieth request is refused once
with 429 and `Retry-After`, and so is each that comes while too many are under way.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, SecretStr

from tracing.llm.serving.loopback import LoopbackServer, RefusalError, Request
from tracing.llm.settings import ModelSettings

MODEL = "slow"
REFUSED_EVERY = 50
RETRY_AFTER_S = 0.5


class ServedCounts(BaseModel):
    """What the endpoint saw.

    Attributes:
        most_in_flight: most concurrent requests.
        refused: answered with 429.
        retried: of those, how many came again.
        early: of those, how many came again before the time that `Retry-After` had asked for.
    """

    most_in_flight: int = 0
    refused: int = 0
    retried: int = 0
    early: int = 0


class SlowEndpoint:
    """The routes of the endpoint. A reply repeats the last word of the request, so that each can be distinguished."""

    def __init__(self, latency_s: float, allowed: int) -> None:
        self._latency, self._allowed = latency_s, allowed
        self._lock = threading.Lock()
        self._number = self._under_way = 0
        self._refused: dict[str, float] = {}
        self._counts = ServedCounts()

    def chat(self, request: Request) -> Mapping[str, Any]:
        """Answer after a while.

        Raises:
            RefusalError: 429.
        """
        text = str(request.body["messages"][-1]["content"])
        with self._lock:
            self._enter(text)
        try:
            time.sleep(self._latency)
        finally:
            with self._lock:
                self._under_way -= 1
        message = {"role": "assistant", "content": text.split()[-1]}
        return {
            "model": MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": len(text.split()), "completion_tokens": 1},
        }

    def embed(self, request: Request) -> Mapping[str, Any]:
        """A vector for each text, at once."""
        data = [{"index": at, "embedding": [1.0]} for at, _ in enumerate(request.body["input"])]
        return {"model": MODEL, "data": data}

    def counts(self) -> ServedCounts:
        """What was seen so far."""
        with self._lock:
            return self._counts.model_copy()

    def _enter(self, text: str) -> None:
        seen, now = self._counts, time.monotonic()
        before = self._refused.pop(text, None)
        if before is None:
            self._number += 1
        else:
            seen.retried += 1
            seen.early += now < before + RETRY_AFTER_S
        if self._under_way >= self._allowed or (before is None and self._number % REFUSED_EVERY == 0):
            seen.refused += 1
            self._refused[text] = now
            raise RefusalError(429, "too many requests", {"Retry-After": f"{RETRY_AFTER_S:g}"})
        self._under_way += 1
        seen.most_in_flight = max(seen.most_in_flight, self._under_way)


@contextmanager
def slow_endpoint(latency_s: float, allowed: int) -> Iterator[tuple[ModelSettings, Callable[[], ServedCounts]]]:
    """Serve such an endpoint while inside; gives the settings that reach it, and what tells what it has seen."""
    command = [sys.executable, "-m", __name__, f"{latency_s}", f"{allowed}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        asked, told = process.stdin, process.stdout
        assert asked is not None and told is not None  # noqa: S101, PT018 (both are pipes)

        def counts() -> ServedCounts:
            asked.write("\n")
            asked.flush()
            return ServedCounts.model_validate_json(told.readline())

        try:
            reached = json.loads(told.readline())
            settings = ModelSettings(model=MODEL, base_url=reached["base_url"], api_key=SecretStr(reached["key"]))
            yield settings, counts
        finally:
            asked.close()


def _main() -> None:
    """Serve until standard input ends; each line of it asks for the counts."""
    endpoint = SlowEndpoint(float(sys.argv[1]), int(sys.argv[2]))
    routes = {"POST /v1/chat/completions": endpoint.chat, "POST /v1/embeddings": endpoint.embed}
    server = LoopbackServer("slow endpoint", routes)
    server.start()
    _tell(json.dumps({"base_url": server.base_url, "key": server.key}))
    for _ in sys.stdin:
        _tell(endpoint.counts().model_dump_json())
    server.close()


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _main()
