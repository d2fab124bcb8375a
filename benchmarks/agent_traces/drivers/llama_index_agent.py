"""LlamaIndex's agent: tools `memorize`, `look_in_memory` and `rewrite_memory`; the person is in the session alone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.workflow import Context
from llama_index.llms.openai_like import OpenAILike

from benchmarks.agent_traces.drivers.exporting import in_sessions
from benchmarks.agent_traces.model import Calls
from benchmarks.agent_traces.tools import Notes
from benchmarks.agent_traces.turns import Turn

CALLS = Calls(
    save=lambda by, text: ("memorize", {"text": text}),
    change=lambda by, name, text: ("rewrite_memory", {"memory_id": name, "text": text}),
    find=lambda by, query: ("look_in_memory", {"query": query}),
    id_in=lambda result: str(json.loads(result)[0]["memory_id"]),
)


def converse(turns: list[Turn], notes: Notes, base_url: str, door: str, path: Path) -> None:
    """Have the conversations with an agent, which is recorded."""

    def memorize(text: str) -> str:
        """Memorize a text."""
        name, kept = notes.save(text)
        return json.dumps({"memory_id": name, "text": kept})

    def look_in_memory(query: str) -> str:
        """Look for what was memorized."""
        return json.dumps([{"memory_id": name, "text": kept} for name, kept in notes.find(query)])

    def rewrite_memory(memory_id: str, text: str) -> str:
        """Rewrite what was memorized."""
        name, kept = notes.change(memory_id, text)
        return json.dumps({"memory_id": name, "text": kept})

    llm = OpenAILike(
        model="scripted", api_base=base_url, api_key="none", is_chat_model=True, is_function_calling_model=True
    )
    agent: Any = FunctionAgent(
        tools=[memorize, look_in_memory, rewrite_memory],
        llm=llm,
        system_prompt="You remember what people tell you.",
        streaming=False,
    )

    async def talk() -> None:
        contexts: dict[str, Context] = {}
        for turn in in_sessions(turns, door):
            context = contexts.setdefault(turn.session, Context(agent))
            await agent.run(turn.text, ctx=context)

    asyncio.run(talk())
