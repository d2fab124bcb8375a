"""A reply is whole within `timeout_s` and within the time budget, however its bytes trickle in, or it is given up."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest
from scripted_server import Reply, ScriptedServer

from tracing.errors import BudgetExceededError, CallFailedError
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits

Open = Callable[..., ModelAccess]
HELLO = [{"role": "user", "content": "hello"}]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n"


class Dripping:
    """Sends `start` at once and then a byte of `rest` every 0.05 seconds, so that no single read ever waits long."""

    def __init__(self, start: bytes, rest: bytes) -> None:
        self._start, self._rest = start, rest
        self._stopping = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self.connections = 0
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                self._threads.append(threading.Thread(target=self._drip, args=(connection,), daemon=True))
                self._threads[-1].start()

    def _drip(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(self._start)
            for byte in self._rest:
                if self._stopping.wait(0.05):
                    return
                connection.sendall(bytes([byte]))
            self._stopping.wait()

    def close(self) -> None:
        self._stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()


@pytest.fixture(params=["body", "headers", "status"])
def dripping(request: pytest.FixtureRequest) -> Iterator[Dripping]:
    start = {"body": HEAD, "headers": b"HTTP/1.1 200 OK\r\nX-Long: ", "status": b""}[request.param]
    server = Dripping(start, {"body": b" " * 5000, "headers": b"x" * 5000, "status": HEAD + b" " * 5000}[request.param])
    yield server
    server.close()


def test_an_endpoint_that_drips_is_given_up_after_timeout_s(open_access: Open, dripping: Dripping) -> None:
    access = open_access(base_url=dripping.base_url, timeout_s=0.4, retries=1)
    started = time.monotonic()
    with pytest.raises(CallFailedError, match=r"0\.4 s.*timeout_s.*after 2 attempts"):
        access.task.chat(HELLO, max_tokens=9)
    assert 0.8 <= time.monotonic() - started < 5
    assert dripping.connections == 2


def test_a_reply_under_way_ends_with_the_time_budget(open_access: Open, dripping: Dripping) -> None:
    access = open_access(Limits(seconds=0.5), base_url=dripping.base_url, timeout_s=60)
    started = time.monotonic()
    with pytest.raises(BudgetExceededError, match=r"seconds .*; raise the limit 'minutes'"):
        access.task.chat(HELLO, max_tokens=9)
    assert time.monotonic() - started < 5


def test_waiting_for_ones_turn_at_an_endpoint_ends_with_the_time_budget(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: Reply("late", delay=20)
    access = open_access(Limits(seconds=0.5), concurrency=1)
    started = time.monotonic()

    def ask(sample: int) -> None:
        with pytest.raises(BudgetExceededError, match="seconds"):
            access.task.chat(HELLO, max_tokens=9, sample=sample)

    others = [threading.Thread(target=ask, args=(n,)) for n in range(3)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert time.monotonic() - started < 5


def test_calls_under_way_or_waiting_for_their_turn_end_when_the_access_is_closed(
    open_access: Open, scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_server.script = lambda body: Reply(hang=True)
    cancel = Future.cancel

    def cancel_on_a_busy_machine(future: Future[object]) -> bool:
        done = cancel(future)
        if threading.current_thread() is threading.main_thread():
            time.sleep(0.1)  # in which the event loop goes on
        return done

    monkeypatch.setattr(Future, "cancel", cancel_on_a_busy_machine)
    access = open_access(retries=0, concurrency=1)
    failed: list[BaseException] = []

    def ask(tokens: int) -> None:
        try:
            access.task.chat(HELLO, max_tokens=tokens)
        except BaseException as error:
            failed.append(error)

    asking = [threading.Thread(target=ask, args=(tokens,), daemon=True) for tokens in (9, 10, 11)]
    for thread in asking:
        thread.start()
    while not scripted_server.requests:
        time.sleep(0.01)
    time.sleep(0.2)  # until the others wait
    access.close()
    for thread in asking:
        thread.join(5)
    assert [type(error) for error in failed] == 3 * [CallFailedError]
    assert len(scripted_server.requests) == 1
    with pytest.raises(CallFailedError, match="closed"):
        access.task.chat(HELLO, max_tokens=8)
