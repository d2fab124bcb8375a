"""Requests keep to what an endpoint allows in a minute, whoever sends them, and a 429 that stays is waited out."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

import pytest
from impatience import wait_little
from scripted_server import Reply, ScriptedServer

from tracing.llm.access import ModelAccess
from tracing.llm.http import pace
from tracing.llm.http.usage import ReportedUsage
from tracing.llm.settings import Limits, ModelSettings

_MINUTE_S = 2.0
"""A minute of these tests."""


class Limiter:
    """Refuses what exceeds so many requests or tokens in any window of a minute, without a Retry-After."""

    def __init__(self, requests: int | None = None, tokens: int | None = None) -> None:
        self.requests, self.tokens, self.refused = requests, tokens, 0
        self._seen: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, object]) -> Reply:
        tokens = ReportedUsage().counted(body, "").prompt + int(str(body.get("max_tokens", 0)))
        with self._lock:
            now = time.monotonic()
            while self._seen and self._seen[0][0] <= now - _MINUTE_S:
                self._seen.popleft()
            in_window = tokens + sum(count for _, count in self._seen)
            too_many = self.requests is not None and len(self._seen) >= self.requests
            if too_many or (self.tokens is not None and in_window > self.tokens):
                self.refused += 1
                return Reply("slow down", status=429)
            self._seen.append((now, tokens))
        return Reply("ok")


@pytest.fixture
def minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_MINUTE_S", _MINUTE_S * pace._MINUTE_S / 60)
    wait_little(monkeypatch, 0.1)


def opened(server: ScriptedServer, **rates: int) -> ModelAccess:
    task = ModelSettings(model="m", base_url=server.base_url, **rates)
    roles = {"task": task, "judge": task.model_copy(update={"temperature": 0.5}), "embedding": task}
    return ModelAccess.open(roles, cache_dir=None, limits=Limits())


def ask(access: ModelAccess, count: int) -> None:
    """Chats by two roles, and embeddings, all at once."""

    def one(number: int) -> None:
        text = f"{number} Where does Ada live?"
        if number % 3 == 2:
            access.embedding.embed([text])
        else:
            model = access.judge if number % 3 else access.task
            model.chat([{"role": "user", "content": text}], max_tokens=10)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(("limits", "rates"), [
    ({"requests": 8}, {"requests_per_minute": 8}),
    ({"tokens": 200}, {"tokens_per_minute": 200}),
])  # fmt: skip
@pytest.mark.usefixtures("minute")
def test_no_request_is_refused_where_the_rate_is_set(
    scripted_server: ScriptedServer, limits: dict[str, int], rates: dict[str, int]
) -> None:
    """Of all roles of one model together, and also after a quiet time."""
    limiter = Limiter(**limits)
    scripted_server.script = scripted_server.embed_reply = limiter
    with opened(scripted_server, **rates) as access:
        ask(access, 12)
        time.sleep(_MINUTE_S)
        ask(access, 12)
    assert limiter.refused == 0
    with opened(scripted_server) as access:
        ask(access, 24)
    assert limiter.refused > 0


@pytest.mark.usefixtures("minute")
def test_requests_that_wait_for_a_slow_reply_are_not_sent_together_after_it(scripted_server: ScriptedServer) -> None:
    limiter = Limiter(requests=8)
    slow = iter([1.5])

    def script(body: dict[str, object]) -> Reply:
        limited = limiter(body)
        return Reply("ok", delay=next(slow, 0.0)) if limited.status == 200 else limited

    scripted_server.script = script
    task = ModelSettings(model="m", base_url=scripted_server.base_url, requests_per_minute=8)
    with ModelAccess.open({"task": task}, cache_dir=None, limits=Limits(), concurrency=1) as access:
        threads = [
            threading.Thread(
                target=lambda n: access.task.chat([{"role": "user", "content": n}], max_tokens=1), args=(str(n),)
            )
            for n in range(14)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert limiter.refused == 0


def test_a_429_without_a_time_is_waited_out_as_an_outage_is(
    open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer
) -> None:
    """Before, six attempts failed in 9.5 s."""
    access = open_access()
    access.task.chat([{"role": "user", "content": "before"}], max_tokens=9)
    over = time.monotonic() + 3
    scripted_server.script = lambda body: Reply("busy", status=429) if time.monotonic() < over else Reply("fine")
    assert access.task.chat([{"role": "user", "content": "after"}], max_tokens=9).text == "fine"
    assert scripted_server.asked > 12
