"""Recording without changing the recorded code: one call each, and each can be undone.

from tracing import instrument

with instrument.openai(), trace("run.jsonl"), operation("answer"):
    client.chat.completions.create(…)
"""

from tracing.instrument.frameworks import langchain, langgraph, langmem, llama_index
from tracing.instrument.openai_calls import openai
from tracing.instrument.patches import Instrumentation, threads
from tracing.instrument.recorders import RECORDERS

__all__ = ["Instrumentation", "langchain", "langgraph", "langmem", "llama_index", "mem0", "openai", "threads"]


def __getattr__(name: str) -> object:
    """The recorder of a memory library, such as `instrument.mem0`, imported when it is first used."""
    if name not in RECORDERS.names():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return RECORDERS.open(name)
