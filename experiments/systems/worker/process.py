"""The worker: runs in the environment of a memory system, and does one step after another for the process with the run.

The two speak in lines of JSON over standard input and output. Everything that a library prints goes to standard error.
When the input ends, the process with the run has ended, and so does everything here.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any

from experiments.systems.worker.environment import fingerprint
from experiments.systems.worker.messages import CHECK, METHODS, ForwardedIntervention, read, result_written, take_in
from tracing.errors import MemorySystemError, MemtuneError, in_one_line
from tracing.llm.forwarding.forwarded_access import ForwardedAccess
from tracing.llm.forwarding.forwarded_calls import error_written
from tracing.llm.threads import GivenUp
from tracing.plugins import look_in
from tracing.recording.processes import take_over
from tracing.systems.calls import call_method
from tracing.systems.interventions import intervene
from tracing.systems.protocol import ChecksItself, Memory, MemorySystem


class Wire:
    """This end of the connection; `steps` are those that have arrived, in order."""

    def __init__(self, incoming: IO[str], outgoing: IO[str]) -> None:
        self.steps: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._incoming, self._outgoing = incoming, outgoing
        self._writing = threading.Lock()
        self._numbers = itertools.count(1)
        self._awaited: dict[int, Future[str]] = {}

    def say(self, line: str) -> None:
        """Send a message, one line of JSON."""
        with self._writing:
            self._outgoing.write(f"{line}\n")
            self._outgoing.flush()

    def ask(self, step: int, about: str, request: str) -> str:
        """What the process with the run answers to a request of a step."""
        number, answer = next(self._numbers), Future[str]()
        self._awaited[number] = answer
        self.say(json.dumps({"ask": number, "step": step, "about": about, "request": request}))
        return answer.result()

    def listen(self) -> None:
        """Take messages until the other end is gone; then end this process and all that it started."""
        for line in self._incoming:
            message = json.loads(line)
            if "answer" in message:
                self._awaited.pop(message["number"]).set_result(message["answer"])
            else:
                self.steps.put(message)
        os.killpg(0, signal.SIGKILL)


class _Worker:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._memory: Memory | None = None

    def work(self) -> None:
        while True:
            call = self._wire.steps.get()
            ended = {"done": call["step"]}
            try:
                line = json.dumps({**ended, **self._result(call)})
            except BaseException as error:
                failure = error if isinstance(error, MemtuneError | GivenUp) else MemorySystemError(in_one_line(error))
                line = json.dumps({**ended, "error": error_written(failure), "records": []})
            self._wire.say(line)

    def _result(self, call: Mapping[str, Any]) -> dict[str, Any]:
        if call["modules"] is not None:
            look_in(Path(call["modules"]))
        if call["method"] == CHECK:
            return checked(call["system"])
        return self._called(system_of(call["system"], json.dumps(call["settings"])), call)

    def _called(self, system: MemorySystem, call: Mapping[str, Any]) -> dict[str, Any]:
        ask = functools.partial(self._wire.ask, call["step"])
        method, known_ids = call["method"], {record["id"] for record in call["known"]}
        with (
            ForwardedAccess(functools.partial(ask, "model"), call["access"]) as access,
            take_over(call["place"]) as recorder,
        ):
            if recorder is not None:
                take_in(recorder, call["known"])
            changing = call["intervened"]
            intervening = intervene(ForwardedIntervention(functools.partial(ask, "intervention")))
            outcome: dict[str, Any] = {}
            try:
                with intervening if changing else contextlib.nullcontext():
                    result = call_method(system, method, {**self._arguments(method, call), "access": access})
                outcome["result"] = result_written(method, result)
            except (MemtuneError, GivenUp) as error:
                outcome["error"] = error_written(error)
            records = recorder.records() if recorder is not None else []
        return {**outcome, "records": [record for record in records if record.get("id") not in known_ids]}

    def _arguments(self, method: str, call: Mapping[str, Any]) -> dict[str, Any]:
        arguments = {}
        for name in METHODS[method]:
            if name == "memory" and name not in call["arguments"]:
                arguments[name] = self._memory  # the one before
                continue
            arguments[name] = read(name, call["arguments"][name])
            if name == "memory":
                self._memory = arguments[name]
        return arguments


@functools.lru_cache(maxsize=8)
def system_of(name: str, settings: str) -> MemorySystem:
    """The memory system of a class, named as `module:Class`; `settings` are its keyword arguments as JSON."""
    system: MemorySystem = class_of(name)(**json.loads(settings))
    return system


def class_of(name: str) -> Any:
    """The class as it was before `in_worker`."""
    module, _, attribute = name.partition(":")
    target: Any = importlib.import_module(module)
    for part in attribute.split("."):
        target = getattr(target, part)
    return getattr(target, "__wrapped__", target)


def checked(name: str) -> dict[str, Any]:
    """Nothing, if the class can be imported and what it needs is there.

    Raises:
        ConfigError: as `require_library` of the system, if it can be made without settings.
    """
    cls = class_of(name)
    if issubclass(cls, ChecksItself):
        try:
            system = cls()
        except TypeError:
            return {}
        system.require_library()
    return {}


def main() -> None:
    """Work until the process that started this one has ended."""
    incoming = os.fdopen(os.dup(0), encoding="utf-8")
    outgoing = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    wire = Wire(incoming, outgoing)
    threading.Thread(target=wire.listen, name="memtune-wire", daemon=True).start()
    wire.say(json.dumps({"fingerprint": fingerprint(), "python": ".".join(map(str, sys.version_info[:3]))}))
    _Worker(wire).work()


if __name__ == "__main__":
    main()
