"""Recording without changing the recorded code: one call each, and each can be undone.

from tracing import instrument

with instrument.openai(), trace("run.jsonl"), operation("answer"):
    client.chat.completions.create(…)
"""

from tracing.instrument.frameworks import agents, crewai, langchain, langgraph, langmem, llama_index
from tracing.instrument.litellm_calls import litellm
from tracing.instrument.openai_calls import anthropic, openai
from tracing.instrument.patches import Instrumentation, threads
from tracing.plugins import PluginRegistry

__all__ = [
    "Instrumentation",
    "agents",
    "anthropic",
    "crewai",
    "langchain",
    "langgraph",
    "langmem",
    "litellm",
    "llama_index",
    "mem0",
    "openai",
    "threads",
]

RECORDERS = PluginRegistry(
    kind="recorders", key="recorder", built_in={"mem0": "experiments.systems.mem0.recorder:mem0"}
)
"""Of memory libraries: each takes the library's object and returns an `Instrumentation`; `instrument.NAME` is it."""


def __getattr__(name: str) -> object:
    """The recorder of a memory library, such as `instrument.mem0`, imported when it is first used."""
    if name not in RECORDERS.names():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return RECORDERS.open(name)
