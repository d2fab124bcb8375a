"""The server on loopback: everybody who may is served, however many at once; nobody else costs it memory or threads."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tracing.errors import ConfigError
from tracing.llm.serving import loopback
from tracing.llm.serving.loopback import LoopbackServer, RefusalError, Request

Serve = Callable[..., LoopbackServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers with one route, `POST /v1/echo`."""
    started: list[LoopbackServer] = []

    def start(answer: Callable[[Request], Any] = lambda request: {"got": request.body}) -> LoopbackServer:
        started.append(LoopbackServer("test server", {"POST /v1/echo": answer}))
        started[-1].start()
        return started[-1]

    yield start
    for server in started:
        server.close()


def port_of(server: LoopbackServer) -> int:
    return int(httpx.URL(server.base_url).port or 0)


def post(server: LoopbackServer, body: Any = None, **options: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {server.key}", **options.pop("headers", {})}
    return httpx.post(f"{server.base_url}/echo", json=body, headers=headers, timeout=20, **options)


def exchange(server: LoopbackServer, sent: bytes) -> bytes:
    """What the server answers to these bytes until it closes the connection."""
    received = b""
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=5) as connection:
        connection.sendall(sent)
        with contextlib.suppress(ConnectionError):
            while chunk := connection.recv(65536):
                received += chunk
    return received


def head(server: LoopbackServer, *more: str, token: bool = True) -> bytes:
    said = [f"Authorization: Bearer {server.key}"] if token else []
    return "\r\n".join(["POST /v1/echo HTTP/1.1", "Host: localhost", *said, *more, "", ""]).encode()


@pytest.mark.parametrize("clients", [32, 128])
def test_many_clients_at_once_are_all_served(serve: Serve, clients: int) -> None:
    server = serve()
    together, seen = threading.Barrier(clients), Counter[Any]()
    client = httpx.Client(headers={"Authorization": f"Bearer {server.key}"}, limits=httpx.Limits(), timeout=20)

    def ask(number: int) -> None:
        together.wait()
        try:
            seen[client.post(f"{server.base_url}/echo", json=number).json()["got"] == number] += 1
        except httpx.HTTPError as error:
            seen[type(error).__name__] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    with client:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == {True: clients}


@pytest.mark.parametrize(
    "sent", [b"", b"POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nX-Slow: "], ids=["nothing", "half"]
)
def test_a_connection_without_a_whole_request_is_closed_after_a_while(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(loopback, "IDLE_S", 0.3)
    server = serve()
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=5) as connection:
        connection.sendall(sent)
        with contextlib.suppress(ConnectionError):
            while sent and time.monotonic() - started < 3:
                connection.sendall(b"x")  # a byte now and then keeps no connection open
                time.sleep(0.05)
            assert connection.recv(1) == b""
    assert 0.2 < time.monotonic() - started < 2


def test_a_connection_is_kept_for_further_requests_and_closed_when_none_come(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loopback, "IDLE_S", 0.4)
    server = serve()
    request = head(server, "Content-Length: 1") + b"7"
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=5) as connection:
        for _ in range(3):
            connection.sendall(request)
            received = b""
            while not received.endswith(b'{"got": 7}') and (chunk := connection.recv(65536)):
                received += chunk
            assert received.startswith(b"HTTP/1.1 200 ")
            time.sleep(0.2)
        started = time.monotonic()
        assert connection.recv(1) == b""
        assert time.monotonic() - started < 2


def test_a_request_that_takes_longer_than_an_idle_connection_lasts_is_answered(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loopback, "IDLE_S", 0.2)

    def slow(request: Request) -> dict[str, Any]:
        time.sleep(0.8)
        return {"got": request.body}

    assert post(serve(slow), "late").json() == {"got": "late"}


def test_idle_connections_hold_no_threads_and_hinder_nobody(serve: Serve) -> None:
    server = serve()
    post(server, 1)
    before = threading.active_count()
    with contextlib.ExitStack() as open_ones:
        for _ in range(200):
            open_ones.enter_context(socket.create_connection(("127.0.0.1", port_of(server)), timeout=5))
        assert post(server, 2).json() == {"got": 2}
        assert threading.active_count() - before < 10


@pytest.mark.parametrize("lengths", [["-1"], ["abc"], ["1e3"], ["5", "6"], ["5, 6"], [""], ["+5"], ["9" * 30]])
@pytest.mark.parametrize("token", [True, False])
def test_a_length_that_is_none_is_refused_at_once(serve: Serve, lengths: list[str], token: bool) -> None:
    server = serve()
    started = time.monotonic()
    answer = exchange(server, head(server, *(f"Content-Length: {length}" for length in lengths), token=token))
    assert time.monotonic() - started < 1
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_body_beyond_the_limit_is_refused_before_it_is_sent(serve: Serve) -> None:
    server = serve()
    answer = exchange(server, head(server, f"Content-Length: {loopback.MOST_BYTES + 1}"))
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_in_chunks_is_refused_where_it_passes_the_limit(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "MOST_BYTES", 1_000_000)
    server = serve()
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        yield b'"'
        while sent < 400_000_000:
            sent += 65_536
            yield b"x" * 65_536

    headers = {"Authorization": f"Bearer {server.key}"}
    with contextlib.suppress(httpx.TransportError):  # it may be closed in the middle of a chunk
        answer = httpx.post(f"{server.base_url}/echo", content=chunks(), headers=headers, timeout=20)
        assert answer.status_code == 413
    assert sent < 40_000_000


def test_chunks_within_the_limit_are_read(serve: Serve) -> None:
    server = serve()
    headers = {"Authorization": f"Bearer {server.key}"}
    answer = httpx.post(f"{server.base_url}/echo", content=iter([b'"o', b'k"']), headers=headers)
    assert answer.json() == {"got": "ok"}


def test_without_the_token_nothing_large_is_read(serve: Serve) -> None:
    server = serve()
    waiting = head(server, f"Content-Length: {loopback.MOST_BYTES}", token=False)
    assert exchange(server, waiting).startswith(b"HTTP/1.1 401 ")
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        while sent < 400_000_000:
            sent += 65_536
            yield b"x" * 65_536

    with contextlib.suppress(httpx.TransportError):
        assert httpx.post(f"{server.base_url}/echo", content=chunks(), timeout=20).status_code == 401
    assert sent < 40_000_000


@pytest.mark.parametrize("token", [None, "", "Bearer guess", "Bearer ä€", "Basic eDp5"])
def test_a_small_request_without_the_token_is_told_so(serve: Serve, token: str | None) -> None:
    headers = {} if token is None else {"Authorization": token.encode()}
    answer = httpx.post(f"{serve().base_url}/echo", json={"a": "b" * 5000}, headers=headers)  # type: ignore[arg-type]
    assert answer.status_code == 401
    assert answer.json()["error"] == {"message": "wrong or missing bearer token", "type": "test_server_error"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "rebound.example"},
        {"Host": "rebound.example:8080"},
        {"Host": "127.0.0.1.rebound.example"},
        {"Host": "[malformed"},
        {"Origin": "https://a.example"},
        {"Origin": "null"},
    ],
)
def test_a_web_page_that_was_led_here_is_refused_even_with_the_token(serve: Serve, headers: dict[str, str]) -> None:
    answer = post(serve(), "hello", headers=headers)
    assert answer.status_code == 403
    assert "only requests from and to this machine" in answer.json()["error"]["message"]


@pytest.mark.parametrize("headers", [{"Host": "localhost:1"}, {"Host": "[::1]:1"}, {"Origin": "http://127.0.0.1:9"}])
def test_this_machine_is_answered_by_any_of_its_names(serve: Serve, headers: dict[str, str]) -> None:
    assert post(serve(), "hello", headers=headers).json() == {"got": "hello"}


def test_a_body_that_trickles_in_is_given_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "BODY_S", 0.4)
    server = serve()
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=5) as connection:
        connection.sendall(head(server, "Content-Length: 1000"))
        received = b""
        with contextlib.suppress(ConnectionError):
            for _ in range(60):
                connection.sendall(b" ")
                connection.settimeout(0.05)
                with contextlib.suppress(TimeoutError):
                    received += connection.recv(65536)
                if received:
                    break
    assert received.startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    "body", [b"{", b"[" * 100_000, b"\xff", b'{"a": NaN}', b"[" * 500 + b"]" * 500], ids=lambda body: str(body[:4])
)
def test_a_body_that_is_no_json_is_a_malformed_request(serve: Serve, body: bytes) -> None:
    server = serve()
    headers = {"Authorization": f"Bearer {server.key}"}
    answer = httpx.post(f"{server.base_url}/echo", content=body, headers=headers)
    assert answer.status_code == 400
    assert "malformed request" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KeyError("model"), 400),
        (OverflowError("too large"), 400),
        (RecursionError(), 400),
        (ConfigError("no such model"), 404),
        (RefusalError(418, "no", {"X-Why": "tea"}), 418),
        (RuntimeError("broken"), 500),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_route_raises_becomes_an_error_object(serve: Serve, error: Exception, status: int) -> None:
    def fail(request: Request) -> dict[str, Any]:
        raise error

    answer = post(serve(fail), 1)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    assert answer.headers.get("X-Why") == ("tea" if status == 418 else None)


def test_an_unknown_route_is_told_to_who_has_the_token(serve: Serve) -> None:
    server = serve()
    assert httpx.get(f"{server.base_url}/nothing").status_code == 401
    headers = {"Authorization": f"Bearer {server.key}"}
    for method, path in (("GET", "/echo"), ("POST", "/nothing"), ("DELETE", "/echo"), ("GET", "/docs")):
        assert httpx.request(method, server.base_url + path, headers=headers).status_code == 404


def test_a_port_that_is_taken_is_told(serve: Serve) -> None:
    with pytest.raises(ConfigError, match="name another port"):
        LoopbackServer("second", {}, port=port_of(serve()))


def test_closing_waits_for_no_route_and_leaves_no_thread(serve: Serve) -> None:
    goes_on = threading.Event()
    server = serve(lambda request: {"got": goes_on.wait(20)})

    def ask() -> None:
        with contextlib.suppress(httpx.HTTPError):
            post(server, 1)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.3)
    started = time.monotonic()
    server.close()
    assert time.monotonic() - started < 4
    goes_on.set()
    asking.join(5)
    assert not asking.is_alive()
    with pytest.raises(httpx.TransportError):
        post(server, 1)


def test_nothing_of_a_request_is_logged(
    serve: Serve, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(0)
    server = serve()
    post(server, {"secret": "kolibri"}, headers={"X-Note": "kolibri"}, params={"q": "kolibri"})
    exchange(server, b"POST /kolibri HTTP/1.1\r\nHost: localhost\r\nContent-Length: kolibri\r\n\r\n")
    server.close()
    said = [record.getMessage() for record in caplog.records if not record.name.startswith("httpx")]
    assert "kolibri" not in json.dumps(said) + "".join(capfd.readouterr())


def test_a_request_on_an_open_connection_is_answered_at_once(serve: Serve) -> None:
    server = serve()
    with httpx.Client(headers={"Authorization": f"Bearer {server.key}"}) as client:
        took = []
        for number in range(20):
            started = time.monotonic()
            client.post(f"{server.base_url}/echo", json=number)
            took.append(time.monotonic() - started)
    assert sorted(took)[10] < 0.02
