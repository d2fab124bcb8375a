"""Processes that a program starts: what they ask is passed on to the process with the run, and asked there.

Of `multiprocessing`, of pools of `concurrent.futures` and of joblib, however a process is started. A program of Python
that is started as a command is refused: what it asks would not be seen.
"""

from __future__ import annotations

import concurrent.futures
import functools
import json
import multiprocessing.pool
import multiprocessing.process
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.systems.wrapped.requests import REPLACED, RUNNING, Running, redirect_clients
from tracing.errors import MemorySystemError
from tracing.llm.serving.loopback import LoopbackServer, RefusalError, Request
from tracing.recording.scope import bind

_PYTHON = re.compile(r"(?:pythonw?|pypy)[\d.]*(?:\.exe)?|.*\.pyw?", re.IGNORECASE)
_PASSES_ON = re.compile(r"env|(?:ba|da|k|z)?sh|uvx?|poetry|pipenv|pdm|hatch|conda|nice|nohup|timeout|time")
_LOKY = ("joblib.externals.loky.process_executor", "loky.process_executor")
_OPEN: dict[str, Context] = {}
_SERVERS: list[LoopbackServer] = []
_STARTING = threading.Lock()


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a process asks by for the build or answer that it works for.

    Attributes:
        url, key: of the server in the process with the run; token: of the build or answer.
    """

    url: str
    key: str
    token: str

    def ask(self, request: Any, module: Any) -> Any:
        """The response to a request of httpx, whose module it is."""
        told = {"token": self.token, "url": str(request.url), "body": json.loads(request.content)}
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        passed = urllib.request.Request(self.url, json.dumps(told).encode(), headers)  # noqa: S310 (on loopback)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(passed) as answer:
            reply = json.load(answer)
        headers = {"content-type": reply["type"], "x-should-retry": "false"}
        return module.Response(reply["status"], headers=headers, text=reply["text"], request=request)


def ticket_of(running: Running | Ticket) -> Ticket:
    """A ticket for what runs here, valid until `withdraw`."""
    if isinstance(running, Ticket):
        return running
    with _STARTING:
        if not _SERVERS:
            _SERVERS.append(LoopbackServer("requests of processes", {"POST /v1/ask": _ask}))
            Context().run(_SERVERS[0].start)
        token = next((token for token, context in _OPEN.items() if context is running.context), None)
        if token is None:
            token = secrets.token_urlsafe(12)
            _OPEN[token] = running.context
    return Ticket(f"{_SERVERS[0].base_url}/ask", _SERVERS[0].key, token)


def withdraw(running: Running) -> None:
    """It has ended: what processes ask for it from now on is refused."""
    with _STARTING:
        for token in [token for token, context in _OPEN.items() if context is running.context]:
            del _OPEN[token]


def _ask(request: Request) -> dict[str, Any]:
    import httpx

    context = _OPEN.get(request.body["token"])
    if context is None:
        raise RefusalError(
            400, "the build or answer that this process works for has ended; let it wait for the process"
        )
    sent = httpx.Request("POST", request.body["url"], json=request.body["body"])
    with httpx.Client() as client:
        reply = context.copy().run(client.send, sent)
    return {"status": reply.status_code, "type": reply.headers.get("content-type", ""), "text": reply.text}


def _in_process(ticket: Ticket, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Work of a process, and what it asks passed on."""
    redirect_clients()
    follow_processes()
    token = RUNNING.set(ticket)  # type: ignore[arg-type]
    try:
        return work(*args, **kwargs)
    finally:
        RUNNING.reset(token)


def follow_processes() -> None:
    """Let processes that programs start pass on what they ask."""
    kinds: list[tuple[Any, tuple[str, ...], Any]] = [
        (multiprocessing.process.BaseProcess, ("start",), _starting),
        (multiprocessing.pool.Pool, ("__init__",), _made),
        (concurrent.futures.ProcessPoolExecutor, ("__init__",), _made),
        (multiprocessing.pool.Pool, ("apply_async", "_map_async", "imap", "imap_unordered"), _giving),
        (concurrent.futures.ProcessPoolExecutor, ("submit",), _giving),
        (subprocess.Popen, ("__init__",), _commanding),
    ]
    kinds += [(sys.modules[name].ProcessPoolExecutor, ("submit",), _giving) for name in _LOKY if name in sys.modules]
    for kind, names, wrap in kinds:
        for name in names:
            REPLACED.replace(kind, name, functools.partial(_named, wrap))


def _named(wrap: Callable[[Any], Any], original: Any) -> Any:
    return functools.wraps(original)(wrap(original))


def _starting(original: Any) -> Any:
    def start(process: Any) -> None:
        running = RUNNING.get()
        if running is not None and "loky" not in type(process).__module__:  # its work has a ticket
            process.run = functools.partial(_in_process, ticket_of(running), type(process).run, process)
        original(process)

    return start


def _made(original: Any) -> Any:
    def make(pool: Any, workers: Any = None, *args: Any, **kwargs: Any) -> None:
        is_of_threads = isinstance(pool, multiprocessing.pool.ThreadPool)
        if RUNNING.get() is not None and not is_of_threads:
            workers = 1  # several would ask in another order each time
            kwargs = {name: value for name, value in kwargs.items() if name not in ("max_workers", "processes")}
        original(pool, workers, *args, **kwargs)

    return make


def _giving(original: Any) -> Any:
    def give(pool: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        running = RUNNING.get()
        if running is not None:
            is_of_threads = isinstance(pool, multiprocessing.pool.ThreadPool)
            func = bind(func) if is_of_threads else functools.partial(_in_process, ticket_of(running), func)
        return original(pool, func, *args, **kwargs)

    return give


def _starts_python(words: Sequence[str], *, passed_on: bool) -> bool:
    """Whether a command is a Python, or a script of this one's environment, or a shell or the like passes it on."""
    names = [Path(word.strip("'\"")).name for word in words]
    passed_on = passed_on or any(map(_PASSES_ON.fullmatch, names[:1]))
    script = Path(shutil.which(words[0]) or "") if words else Path()
    if script.is_file() and script.parent.samefile(Path(sys.executable).parent):
        with script.open("rb") as file:
            head = file.readline() + file.readline()  # where it is long, the Python comes second
        if head.startswith(b"#!") and b"python" in head:
            return True
    return any(map(_PYTHON.fullmatch, names if passed_on else names[:1]))


def _commanding(original: Any) -> Any:
    def begin(process: Any, args: Any, *others: Any, **kwargs: Any) -> None:
        running = RUNNING.get()
        parts = [args] if isinstance(args, str | bytes | Path) else [*args]
        command = " ".join(map(os.fsdecode, parts))
        if running is not None and _starts_python(command.split(), passed_on=bool(kwargs.get("shell"))):
            error = MemorySystemError(
                f"the program starts another Python ({command[:80]}), and what that asks is not seen; let the file "
                "with build call its functions here, in threads or in processes of multiprocessing"
            )
            getattr(running, "failures", []).append(error)
            raise error
        original(process, args, *others, **kwargs)

    return begin
