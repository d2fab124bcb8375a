"""A user's own Mem0, recorded."""

from __future__ import annotations

from typing import Any

from tracing.instrument.openai_calls import openai
from tracing.instrument.patches import Instrumentation


def mem0(memory: Any) -> Instrumentation:
    """Record what a Mem0 memory does: extraction, decisions, storing and search, with the model calls in them.

    The graph is that of memtune's own system `mem0`: `extract_facts`, `update_memory` with a `decide_update` for each
    decision (Mem0 2 makes none), `store` and `retrieve`, inside `add` or on their own. So attribution works the same.
    The memory's behaviour does not change. Model calls are counted if it uses the openai package.

    Messages that you recorded with `variable(…, kind="message")` are those that are added: by their texts, or by the
    key `id` of a message, which is the id or the name of its variable. `tracing.answered` records what you answered.

    Args:
        memory: a `mem0.Memory` or `mem0.AsyncMemory` of mem0ai 1.0.x or 2.x.

    Returns:
        A context manager that undoes it, also with the method `undo`.

    Raises:
        ConfigError: another release is installed, or it is no such memory.
    """
    from tracing.systems.mem0_memory.observed import observe

    instrumentation = Instrumentation()
    observe(memory, instrumentation.replace)
    for part in (memory.llm, memory.embedding_model):
        client = getattr(part, "client", None)
        if client is not None and type(client).__module__.partition(".")[0] == "openai":
            nested = openai(client)
            instrumentation.also(nested.undo)
    return instrumentation
