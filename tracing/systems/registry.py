"""The registry of memory systems: the built-in ones, those of installed distributions, and a user's own."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from tracing.errors import ConfigError, MemtuneError
from tracing.plugins import PluginRegistry
from tracing.suggestions import near_names
from tracing.systems.description import faults_of
from tracing.systems.protocol import HasCaveats, MemorySystem

SYSTEMS = PluginRegistry(
    kind="systems",
    key="system",
    built_in={
        "fact-memory": "experiments.systems.fact_memory:FactMemory",
        "rag": "experiments.systems.rag:Rag",
        "mem0": "experiments.systems.mem0.system:Mem0",
        "trace-memory": "experiments.systems.trace_memory.system:TraceMemorySystem",
        "mem0@0.1": "experiments.systems.mem0.system:Mem0First",
        "mem0@1.0": "experiments.systems.mem0.system:Mem0One",
        "mem0@2": "experiments.systems.mem0.system:Mem0Two",
        "long-context": "experiments.systems.long_context:LongContext",
        "evermemos": "experiments.systems.evermemos.system:EverMemOS",
        "everos": "experiments.systems.everos.system:EverOs",
        "langmem": "experiments.systems.langmem.system:LangMem",
        "memori": "experiments.systems.memori.system:Memori",
    },
)


def open_system(name: str, settings: Mapping[str, Any] | None = None) -> MemorySystem:
    """A memory system by its name, or as `module:Object`: a class or function that makes one, or an instance.

    Args:
        settings: keyword arguments of the class or function, such as `top_k`.

    Raises:
        ConfigError: the name is unknown, it cannot be imported or made, a setting is unknown to it or of the wrong
            type, or the object is not a memory system.
    """
    target = SYSTEMS.open(name)
    lacking = [method for method in ("build", "answer") if not hasattr(target, method)]
    if inspect.isclass(target) and lacking:
        # Checked before its settings: the settings of something that is not a system do not matter.
        raise ConfigError(
            f"system: {name!r}: a {target.__name__} without {', '.join(lacking)} is not a memory system; "
            "see docs/extending.md"
        )
    system: Any = _instance(name, target, settings or {}) if _makes(target) else target
    if system is target and settings:
        raise ConfigError(f"system_settings: {name} is an object that is made already and takes none; leave them out")
    try:
        faults = faults_of(system)
    except Exception as error:
        faults = [f"its description cannot be read: {type(error).__name__}: {error}"]
    if faults:
        raise ConfigError(f"system: {name!r}: {'; '.join(faults)}; see docs/extending.md")
    memory_system: MemorySystem = system
    return memory_system


def caveats_of(name: str, settings: Mapping[str, Any], *, embedded: bool) -> list[str]:
    """Caveats about results with a system, one sentence each; most systems have none.

    Args:
        name: of the system. If it can no longer be opened (a run outlives it), that is its caveat.
        settings: of the system.
        embedded: whether the task model is an embedded one.
    """
    try:
        system = open_system(name, settings)
    except ConfigError as error:
        return [f"The memory system could not be asked for caveats about its results: {error}."]
    return list(system.caveats(embedded=embedded)) if isinstance(system, HasCaveats) else []


def _makes(target: object) -> bool:
    return inspect.isclass(target) or (callable(target) and not isinstance(target, MemorySystem))


def _instance(name: str, maker: Any, settings: Mapping[str, Any]) -> object:
    parameters = inspect.signature(maker).parameters
    _check_settings(name, parameters, settings)
    try:
        return maker(**settings)
    except MemtuneError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"system: {name!r}: cannot be made: {type(error).__name__}: {reason}") from error


def _check_settings(name: str, parameters: Mapping[str, inspect.Parameter], settings: Mapping[str, Any]) -> None:
    named = [
        parameter
        for parameter in parameters.values()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    names = [parameter.name for parameter in named]
    unknown = [key for key in settings if key not in names]
    if unknown and not takes_any:
        keys = ", ".join(f"system_settings.{key}" for key in unknown)
        raise ConfigError(
            f"{keys}: unknown to {name}{near_names(unknown, names)}; it knows {', '.join(names) or 'none'}"
        )
    for key in filter(names.__contains__, settings):
        _check_type(key, settings[key], parameters[key].default)
    missing = [
        parameter.name for parameter in named if parameter.default is parameter.empty and parameter.name not in settings
    ]
    if missing:
        raise ConfigError(f"system_settings.{missing[0]}: missing; {name} needs it")


def _check_type(key: str, value: Any, default: Any) -> None:
    """Refuse a value whose type differs from the default's, if there is a default with a type."""
    if default is inspect.Parameter.empty or default is None:
        return
    expected = (int, float) if isinstance(default, float) else type(default)
    fits = isinstance(value, expected) and isinstance(value, bool) == isinstance(default, bool)
    if not fits and not (isinstance(default, Sequence) and not isinstance(default, str) and isinstance(value, list)):
        raise ConfigError(f"system_settings.{key}: a value of type {type(default).__name__} is expected, not {value!r}")
