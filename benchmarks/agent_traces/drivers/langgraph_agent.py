"""LangGraph's agent: tools `save_memory`, `search_memory` and `update_memory`; the person is in the configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.agent_traces.drivers.exporting import exported_to, in_sessions
from benchmarks.agent_traces.model import Calls
from benchmarks.agent_traces.tools import Notes
from benchmarks.agent_traces.turns import Turn

RECORDER = "langgraph"
CALLS = Calls(
    save=lambda by, text: ("save_memory", {"text": text}),
    change=lambda by, name, text: ("update_memory", {"memory_id": name, "text": text}),
    find=lambda by, query: ("search_memory", {"query": query}),
    id_in=lambda result: str(json.loads(result)[0]["id"]),
)


def converse(turns: list[Turn], notes: Notes, base_url: str, door: str, path: Path) -> None:
    """Have the conversations with an agent, and record or export them."""

    @tool
    def save_memory(text: str) -> str:
        """Save a memory."""
        name, kept = notes.save(text)
        return json.dumps({"id": name, "memory": kept})

    @tool
    def search_memory(query: str) -> str:
        """Search the memories."""
        return json.dumps([{"id": name, "memory": kept} for name, kept in notes.find(query)])

    @tool
    def update_memory(memory_id: str, text: str) -> str:
        """Update a memory."""
        name, kept = notes.change(memory_id, text)
        return json.dumps({"id": name, "memory": kept})

    if door == "openinference":
        from openinference.instrumentation.langchain import LangChainInstrumentor

        LangChainInstrumentor().instrument(tracer_provider=exported_to(path))
    elif door == "openllmetry":
        from opentelemetry.instrumentation.langchain import LangchainInstrumentor

        LangchainInstrumentor().instrument(tracer_provider=exported_to(path))
    model = ChatOpenAI(model="scripted", base_url=base_url, api_key="none")
    agent: Any = create_agent(
        model,
        [save_memory, search_memory, update_memory],
        system_prompt="You remember what people tell you.",
        checkpointer=InMemorySaver(),
    )
    for turn in in_sessions(turns, door):
        agent.invoke(
            {"messages": [HumanMessage(turn.text)]},
            {
                "configurable": {"thread_id": turn.session},
                "metadata": {"user_id": turn.by, "session_id": turn.session},
            },
        )
