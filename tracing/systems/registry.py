"""The memory systems memtune ships, by the name they have in configurations and run folders."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from tracing.errors import ConfigError
from tracing.systems.protocol import MemorySystem

SYSTEMS: Mapping[str, str] = {
    "fact-memory": "tracing.systems.fact_memory:FactMemory",
    "rag": "tracing.systems.rag:Rag",
    "mem0": "tracing.systems.mem0_memory:Mem0",
}
"""Name → `module:class`; the module is imported when the system is asked for."""


def open_system(name: str, settings: Mapping[str, Any] | None = None) -> MemorySystem:
    """A memory system with its `settings` (keyword arguments of its class, such as `top_k`).

    Raises:
        ConfigError: no system has that name, or a setting is unknown to it or of the wrong type.
    """
    if name not in SYSTEMS:
        raise ConfigError(f"system: unknown: {name!r}; choose one of {', '.join(SYSTEMS)}")
    module, _, attribute = SYSTEMS[name].partition(":")
    made: Callable[..., MemorySystem] = getattr(import_module(module), attribute)
    known = inspect.signature(made).parameters
    for key, value in (settings or {}).items():
        if key not in known:
            raise ConfigError(f"system_settings.{key}: unknown to {name}; it knows {', '.join(known)}")
        default = known[key].default
        if isinstance(value, bool) or not isinstance(
            value, (int, float) if isinstance(default, float) else type(default)
        ):
            wanted = type(default).__name__
            raise ConfigError(
                f"system_settings.{key}: a value of type {wanted} is expected, not {value!r}; mend the value"
            )
    return made(**(settings or {}))


def caveats_of(name: str, settings: Mapping[str, Any], *, embedded: bool) -> list[str]:
    """What must be known of results with a system, one sentence each; most systems have none.

    Args:
        name: of the system; one that memtune does not ship has no caveats it knows of.
        settings: of the system.
        embedded: whether the task model is an embedded one.
    """
    if name not in SYSTEMS:
        return []
    told = getattr(open_system(name, settings), "caveats", None)
    return list(told(embedded=embedded)) if told is not None else []
