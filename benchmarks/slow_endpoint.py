"""A slow endpoint with a limit on concurrent requests, in its own process.

It answers from one event loop and reads no more of HTTP than it needs, so that it takes little of the time of the cores
it shares with the client that is measured. Of the first three quarters of the requests, every thirtieth is refused once
with 429 and `Retry-After`, and so is each that comes while too many are under way. The last quarter is not refused: a
run would end with waiting for `Retry-After`, which says nothing about the rate.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from tracing.llm.settings import ModelSettings

MODEL = "slow"
REFUSED_EVERY = 30
REFUSED_PART = 0.75
RETRY_AFTER_S = 0.5

_Answer = tuple[HTTPStatus, dict[str, Any]]


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
    """The routes of the endpoint. A reply repeats the last word of the request, so that each can be distinguished.

    Attributes:
        key: the bearer token.
        counts: what was seen so far.
    """

    def __init__(self, calls: int, latency_s: float, allowed: int) -> None:
        self.key, self.counts = secrets.token_urlsafe(24), ServedCounts()
        self._refusing, self._latency, self._allowed = calls * REFUSED_PART, latency_s, allowed
        self._number = self._under_way = 0
        self._refused: dict[str, float] = {}

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
                headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                known = headers.get("authorization") == f"bearer {self.key}".lower()
                status, answer = (
                    await self._answer(head[0].split()[1], json.loads(body)) if known else (HTTPStatus.UNAUTHORIZED, {})
                )
                content = json.dumps(answer).encode()
                wait = f"Retry-After: {RETRY_AFTER_S:g}\r\n" if status == HTTPStatus.TOO_MANY_REQUESTS else ""
                start = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n{wait}"
                writer.write(f"{start}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        writer.close()

    async def _answer(self, path: str, body: dict[str, Any]) -> _Answer:
        if path == "/v1/embeddings":
            vectors = [{"index": place, "embedding": [1.0]} for place, _ in enumerate(body["input"])]
            return HTTPStatus.OK, {"model": MODEL, "data": vectors}
        return await self._chat(str(body["messages"][-1]["content"]))

    async def _chat(self, text: str) -> _Answer:
        """Answer after a while."""
        if self._refuses(text):
            return HTTPStatus.TOO_MANY_REQUESTS, {"error": {"message": "too many requests"}}
        self._under_way += 1
        self.counts.most_in_flight = max(self.counts.most_in_flight, self._under_way)
        try:
            await asyncio.sleep(self._latency)
        finally:
            self._under_way -= 1
        message = {"role": "assistant", "content": text.split()[-1]}
        return HTTPStatus.OK, {
            "id": "reply",
            "object": "chat.completion",
            "created": 0,
            "model": MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": len(text.split()),
                "completion_tokens": 1,
                "total_tokens": len(text.split()) + 1,
            },
        }

    def _refuses(self, text: str) -> bool:
        seen, now = self.counts, time.monotonic()
        before = self._refused.pop(text, None)
        if before is None:
            self._number += 1
        else:
            seen.retried += 1
            seen.early += now < before + RETRY_AFTER_S
        its_turn = before is None and self._number <= self._refusing and self._number % REFUSED_EVERY == 0
        refused = its_turn or self._under_way >= self._allowed
        if refused:
            seen.refused += 1
            self._refused[text] = now
        return refused


@contextmanager
def slow_endpoint(
    calls: int, latency_s: float, allowed: int
) -> Iterator[tuple[ModelSettings, Callable[[], ServedCounts]]]:
    """Serve such an endpoint while inside; gives the settings that reach it, and a function for what it has seen.

    Args:
        calls: how many are going to be made.
        latency_s: seconds that it takes for each.
        allowed: concurrent requests.
    """
    command = [sys.executable, "-m", __name__, f"{calls}", f"{latency_s}", f"{allowed}"]
    clone, pipe = Path(__file__).parents[1], subprocess.PIPE
    with subprocess.Popen(command, cwd=clone, stdin=pipe, stdout=pipe, text=True) as process:  # noqa: S603
        requests, replies = process.stdin, process.stdout
        assert requests is not None and replies is not None  # noqa: S101, PT018 (both are pipes)

        def counts() -> ServedCounts:
            requests.write("\n")
            requests.flush()
            return ServedCounts.model_validate_json(replies.readline())

        try:
            reached = json.loads(replies.readline())
            settings = ModelSettings(model=MODEL, base_url=reached["base_url"], api_key=SecretStr(reached["key"]))
            yield settings, counts
        finally:
            requests.close()


async def _main(calls: int, latency_s: float, allowed: int) -> None:
    """Serve until standard input ends; each line of it asks for the counts."""
    endpoint = SlowEndpoint(calls, latency_s, allowed)
    server = await asyncio.start_server(endpoint.connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    _print(json.dumps({"base_url": f"http://127.0.0.1:{port}/v1", "key": endpoint.key}))
    while await asyncio.to_thread(sys.stdin.readline):
        _print(endpoint.counts.model_dump_json())
    server.close()


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
