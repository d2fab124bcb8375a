"""The process with the run: workers, started when needed, given steps, kept for the next one, and ended."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import queue
import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from experiments.systems.worker.environment import Environment, fingerprint
from tracing.errors import ConfigError, MemorySystemError, WorkerDiedError
from tracing.llm.forwarding.forwarded_calls import unmade
from tracing.llm.threads import GivenUp, end_if_given_up
from tracing.recording.redaction import redact
from tracing.systems.protocol import Memory

Answer = Callable[[str, str], str]
"""Answers a worker's request: what it is about, and the request."""

_POLL_S = 0.5
_START_S = 300.0
"""How long it may take to start; importing a large library on a busy machine takes a minute."""
_END_S = 5.0
_CALLS_AT_ONCE = 64
_LAST_LINES = 20
_LONGEST = 600
_PASSED_ON = {"PATH", "HOME", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME"}
"""Variables of this process's environment that a worker gets, with those of the locale: no key is among them."""
_LOCALE = re.compile(r"LC_[A-Z]+")


class Worker:
    """A worker process. It does one step at a time.

    Attributes:
        python: version of its Python.
        holds: the memory of its last step, which it need not be sent again.
    """

    def __init__(self, environment: Environment, interpreter: Path | None = None) -> None:
        """Start it.

        Raises:
            ConfigError: it does not start, or its memtune is another one.
            WorkerDiedError: it is killed.
            MemorySystemError: it does not get ready.
        """
        name, install, python = environment.name, environment.command, interpreter or environment.interpreter
        self._name, self._numbers = name, itertools.count(1)
        self.holds: Memory | None = None
        variables = {key: value for key, value in os.environ.items() if key in _PASSED_ON or _LOCALE.fullmatch(key)}
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the Python of an environment that memtune made
                [python, "-I", "-X", "utf8", "-m", "experiments.systems.worker.process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=variables,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise ConfigError(f"{name}: its worker cannot be started ({error.strerror}): {install}") from None
        self._arrived: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._writing = threading.Lock()
        self._readers = [self._reading(self._listen), self._reading(self._keep_errors)]
        try:
            greeting = self._next(_START_S)
            if greeting is None:
                last = self._last_words()
                if self._process.returncode < 0:  # what kills it, such as a machine without memory, may be over
                    raise WorkerDiedError(f"{name}: its worker died while it started ({last})")
                raise ConfigError(f"{name}: its worker does not start ({last}): {install}")
            if greeting.get("fingerprint") != fingerprint():
                raise ConfigError(f"{name}: its environment belongs to another memtune; bring it up to date: {install}")
        except BaseException:
            self.kill()
            raise
        self.python = str(greeting["python"])

    @property
    def alive(self) -> bool:
        """Whether it can take a step."""
        return self._process.poll() is None

    def step(self, call: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
        """Let it do a step, and answer its requests; `answer` is called in threads and raises nothing.

        Raises:
            WorkerDiedError: it died.
            GivenUp: the result is no longer wanted; the worker is ended.
        """
        number = next(self._numbers)

        def answered(query: Mapping[str, Any]) -> None:
            self._say({"number": query["ask"], "answer": answer(query["about"], query["request"])})

        try:
            with ThreadPoolExecutor(_CALLS_AT_ONCE, thread_name_prefix="memtune-calls") as calls:
                self._say({**call, "step": number})
                while (message := self._next()) is not None:
                    if message.get("done") == number:
                        return message
                    if message.get("step") == number:
                        calls.submit(answered, message)
                    elif "ask" in message:
                        self._say({"number": message["ask"], "answer": unmade(GivenUp())})
        except BaseException:
            self.kill()
            raise
        raise WorkerDiedError(f"{self._name}: its worker died in {call['method']} ({self._last_words()})")

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self.kill()

    def kill(self) -> None:
        """End it and all that it started, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def _stdin(self) -> IO[str]:
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        return self._process.stdin

    def _say(self, message: Mapping[str, Any]) -> None:
        line = json.dumps(message)
        # A dead worker is noticed where its output ends.
        with contextlib.suppress(OSError, ValueError), self._writing:
            self._stdin.write(f"{line}\n")
            self._stdin.flush()

    def _next(self, seconds: float | None = None) -> dict[str, Any] | None:
        """Its next message; None if it has ended."""
        waited = 0.0
        while seconds is None or waited < seconds:
            try:
                return self._arrived.get(timeout=_POLL_S)
            except queue.Empty:
                waited += _POLL_S
                end_if_given_up()
        raise MemorySystemError(f"{self._name}: its worker said nothing for {seconds:.0f} s; see whether it is blocked")

    def _reading(self, read: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=read, name="memtune-worker-reader", daemon=True)
        thread.start()
        return thread

    def _listen(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(ValueError):
            for line in self._process.stdout:
                self._arrived.put(json.loads(line))
        self._arrived.put(None)

    def _keep_errors(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - it is a pipe
        for line in self._process.stderr:
            self._last.append(line)

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self.kill()  # what it started may hold its output open
        for reader in self._readers:
            reader.join(_END_S)
        code = self._process.returncode
        how = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        words = redact(" ".join(" ".join(self._last).split()))
        return f"{how}; it said last: {words[-_LONGEST:]}" if words else how


class WorkerPool:
    """Workers of one environment."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._changed = threading.Condition()
        self._idle: list[Worker] = []
        self._count = 0

    @contextlib.contextmanager
    def worker(self, most: int, memory: Memory | None = None) -> Iterator[Worker]:
        """A worker for one step: one that holds `memory` if there is one, or a new one while there are fewer than
        `most`; otherwise the first that becomes free.

        Raises:
            ConfigError: the environment is not installed, or belongs to another memtune.
            WorkerDiedError: a new one was killed while it started.
            GivenUp: nobody wants the result any more.
        """
        lent = self._free_worker(most, memory)
        try:
            if lent is None:
                self._environment.require()
                lent = Worker(self._environment)
            yield lent
        finally:
            with self._changed:
                if lent is not None and lent.alive:
                    self._idle.append(lent)
                else:
                    self._count -= 1
                self._changed.notify()

    def close(self) -> None:
        """End the workers that are free."""
        with self._changed:
            ended, self._idle = self._idle, []
            self._count -= len(ended)
        for worker in ended:
            worker.close()

    def _free_worker(self, most: int, memory: Memory | None) -> Worker | None:
        """A free worker; None where a new one may be started."""
        with self._changed:
            while True:
                for worker in [idle for idle in self._idle if not idle.alive]:
                    self._idle.remove(worker)
                    self._count -= 1
                if self._idle:
                    choice = next((idle for idle in self._idle if idle.holds is memory), self._idle[-1])
                    self._idle.remove(choice)
                    return choice
                if self._count < max(most, 1):
                    self._count += 1
                    return None
                self._changed.wait(_POLL_S)
                end_if_given_up()


_pools: dict[tuple[str, str], WorkerPool] = {}
_guard = threading.Lock()


def pool_of(environment: Environment) -> WorkerPool:
    """The pool of an environment in this process."""
    key = (str(environment.folder), environment.name)
    with _guard:
        if key not in _pools:
            _pools[key] = WorkerPool(environment)
        return _pools[key]


@atexit.register
def close_pools() -> None:
    """End all workers of this process that are free."""
    with _guard:
        for pool in _pools.values():
            pool.close()
