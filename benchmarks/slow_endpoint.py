"""A slow endpoint with a limit on concurrent requests, in its own process.

It answers from one event loop, so that it takes little of the time of the cores it shares with the client that is
measured. Of the first three quarters of the requests, every thirtieth is refused once with 429 and `Retry-After`, and
so is each that comes while too many are under way. The last quarter is not refused: a run would end with waiting for
`Retry-After`, which says nothing about the rate.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, SecretStr

from tracing.errors import ConfigError
from tracing.llm.settings import ModelSettings

try:
    from aiohttp import web
except ImportError:
    raise ConfigError("the slow endpoint needs the aiohttp package: pip install 'memtune[llm]'") from None

MODEL = "slow"
REFUSED_EVERY = 30
REFUSED_PART = 0.75
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

    def application(self) -> web.Application:
        """The server of its routes."""
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embed)
        return app

    async def _chat(self, request: web.Request) -> web.Response:
        """Answer after a while."""
        self._check(request)
        text = str((await request.json())["messages"][-1]["content"])
        if self._refuses(text):
            return web.json_response(
                {"error": {"message": "too many requests"}},
                status=429,
                headers={"Retry-After": f"{RETRY_AFTER_S:g}"},
            )
        self._under_way += 1
        self.counts.most_in_flight = max(self.counts.most_in_flight, self._under_way)
        try:
            await asyncio.sleep(self._latency)
        finally:
            self._under_way -= 1
        message = {"role": "assistant", "content": text.split()[-1]}
        return web.json_response(
            {
                "model": MODEL,
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": len(text.split()), "completion_tokens": 1},
            }
        )

    async def _embed(self, request: web.Request) -> web.Response:
        """A vector for each text, at once."""
        self._check(request)
        data = [{"index": at, "embedding": [1.0]} for at, _ in enumerate((await request.json())["input"])]
        return web.json_response({"model": MODEL, "data": data})

    def _check(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            raise web.HTTPUnauthorized

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


async def _main(calls: int, latency_s: float, allowed: int) -> None:
    """Serve until standard input ends; each line of it asks for the counts."""
    endpoint = SlowEndpoint(calls, latency_s, allowed)
    runner = web.AppRunner(endpoint.application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    _tell(json.dumps({"base_url": f"http://127.0.0.1:{runner.addresses[0][1]}/v1", "key": endpoint.key}))
    while await asyncio.to_thread(sys.stdin.readline):
        _tell(endpoint.counts.model_dump_json())
    await runner.cleanup()


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
