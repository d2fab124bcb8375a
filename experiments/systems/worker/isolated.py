"""A memory system whose methods run in a worker, and whose description is read here."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from experiments.systems.worker.environment import Environment
from experiments.systems.worker.handle import pool_of
from experiments.systems.worker.messages import METHODS, referred_to, result_read, written
from experiments.systems.worker.messages import intervened as answer_intervention
from tracing.errors import WorkerDiedError
from tracing.llm.forwarding.forwarded_calls import DEATHS, RepeatableStep, answered, described, error_read
from tracing.recording.processes import hand_over
from tracing.recording.recorder import current_recorder
from tracing.systems.interventions import intervened

S = TypeVar("S")

_log = logging.getLogger(__name__)


def in_worker(
    *, requirements: Sequence[str], python: tuple[str, str] = ("3.11", "3.13"), name: str | None = None
) -> Callable[[type[S]], type[S]]:
    """Decorate the class of a memory system, so that its methods run in an environment of its own.

    The class must be importable without the requirements, and is made with the same settings on both sides. What it
    does in `__init__` and what describes it (prompts, operations, version, settings, caveats) happens here too.

    Args:
        requirements: what pip installs for it, pinned.
        python: oldest and newest Python that it runs on.
        name: of the environment; by default that of the system.

    Raises:
        ConfigError: the name cannot name a folder.

    Example:
        >>> @in_worker(requirements=["some-library==2.1"], python=("3.11", "3.13"))
        ... class MyMemory:
        ...     name = "my-memory"
        >>> MyMemory.environment.requirements
        ('some-library==2.1',)
    """

    def decorate(cls: type[S]) -> type[S]:
        own_name = name or getattr(cls, "name", None)
        label = own_name if isinstance(own_name, str) else cls.__name__
        environment = Environment(label, f"{cls.__module__}:{cls.__qualname__}", tuple(requirements), python)

        def initialise(self: Any, *args: Any, **settings: Any) -> None:
            if args:
                raise TypeError(f"the settings of {cls.__name__} are given by name")
            # What a setting names may change, or be in a form that the environment cannot read.
            settings = getattr(cls, "kept_settings", lambda named, _: named)(settings, Path())
            cls.__init__(self, **settings)
            object.__setattr__(self, "_worker_settings", settings)

        members: dict[str, Any] = {
            "__init__": initialise,
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            "__wrapped__": cls,
            "environment": environment,
            "require_library": lambda self: environment.require(),
        }
        members |= {method: _forwarding(cls, environment, method) for method in METHODS if hasattr(cls, method)}
        return type(cls.__name__, (cls,), members)

    return decorate


def environment_of(part: object) -> Environment | None:
    """The environment of a system, or of its class; None for one that runs in this process."""
    environment = inspect.getattr_static(part if inspect.isclass(part) else type(part), "environment", None)
    return environment if isinstance(environment, Environment) else None


def own_environment(part: object) -> Environment:
    """The environment of a system that `in_worker` decorates."""
    environment = environment_of(part)
    assert environment is not None  # noqa: S101 - it is decorated so
    return environment


def _forwarding(cls: type, environment: Environment, method: str) -> Callable[..., Any]:
    names = (*METHODS[method], "access")

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        arguments = {**dict(zip(names, args, strict=False)), **kwargs}
        return called(environment, self._worker_settings, method, arguments)

    forward.__name__, forward.__doc__ = method, getattr(cls, method).__doc__
    forward.__signature__ = inspect.signature(getattr(cls, method))  # type: ignore[attr-defined]
    return forward


def called(
    environment: Environment, settings: Mapping[str, Any], method: str, call_arguments: Mapping[str, Any]
) -> Any:
    """What a method of a system returns that is called in a worker; what it records there is recorded here.

    Raises:
        ConfigError: the environment is not installed, or belongs to another memtune.
        MemorySystemError: the system raised its own error.
        WorkerDiedError: several workers died over it, one after the other.
        ModelError, BudgetExceededError: a call through the access failed.
    """
    access, recorder, memory = call_arguments["access"], current_recorder(), call_arguments.get("memory")
    sent = {
        "system": environment.system,
        "modules": environment.modules,
        "settings": dict(settings),
        "method": method,
        "access": described(access),
        "place": hand_over(),
        "known": referred_to(recorder, memory),
        "intervened": intervened(),
    }

    def answer(about: str, request: str) -> str:
        return answered(access, request) if about == "model" else answer_intervention(request)

    def attempt() -> dict[str, Any]:
        with pool_of(environment).worker(access.concurrency, memory) as worker:
            arguments = {
                name: written(call_arguments[name])
                for name in METHODS[method]
                if name != "memory" or worker.holds is not memory
            }
            reply = worker.step({**sent, "arguments": arguments}, step.answer)
            worker.holds = None if "error" in reply else memory or worker.holds
            return reply

    step = RepeatableStep(answer)
    reply = _survived(step, attempt)
    if recorder is not None:
        recorder.adopt(reply["records"])
    if "error" in reply:
        raise error_read(reply["error"])
    return result_read(reply["result"])


def _survived(step: RepeatableStep, attempt: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What the first attempt at a step gives whose worker survives it."""
    for _ in range(DEATHS - 1):
        step.begin()
        try:
            return attempt()
        except WorkerDiedError as error:
            _log.warning("%s; the step begins again in a new one", error)
    step.begin()
    return attempt()
