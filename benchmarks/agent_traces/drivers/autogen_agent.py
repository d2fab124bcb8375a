"""AutoGen: tools `keep_detail`, `get_details` and `edit_detail`, with texts; nothing but the session has the person."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

from benchmarks.agent_traces.drivers.exporting import in_sessions
from benchmarks.agent_traces.model import Calls
from benchmarks.agent_traces.tools import Notes
from benchmarks.agent_traces.turns import Turn

CALLS = Calls(
    save=lambda by, text: ("keep_detail", {"detail": text}),
    change=lambda by, name, text: ("edit_detail", {"detail_id": name, "detail": text}),
    find=lambda by, query: ("get_details", {"about": query}),
    id_in=lambda result: re.findall(r"n\d+", result)[0],
)


def converse(turns: list[Turn], notes: Notes, base_url: str, door: str, path: Path) -> None:
    """Have the conversations with an agent, which is recorded."""

    async def keep_detail(detail: str) -> str:
        """Keep a detail about the user."""
        name, kept = notes.save(detail)
        return f"kept as {name}: {kept}"

    async def get_details(about: str) -> str:
        """Get the details that were kept about something."""
        return "\n".join(f"{name}: {kept}" for name, kept in notes.find(about))

    async def edit_detail(detail_id: str, detail: str) -> str:
        """Edit a detail that was kept."""
        name, kept = notes.change(detail_id, detail)
        return f"edited {name}: {kept}"

    info: Any = {
        "vision": False,
        "function_calling": True,
        "json_output": False,
        "structured_output": False,
        "family": "unknown",
    }
    client = OpenAIChatCompletionClient(model="scripted", base_url=base_url, api_key="none", model_info=info)
    sessions: dict[str, AssistantAgent] = {}

    def agent_of(session: str) -> AssistantAgent:
        return AssistantAgent(
            "companion",
            client,
            tools=[keep_detail, get_details, edit_detail],
            system_message="You remember what people tell you.",
            max_tool_iterations=5,
        )

    async def talk() -> None:
        for turn in in_sessions(turns, door):
            if turn.session not in sessions:
                sessions[turn.session] = agent_of(turn.session)
            await sessions[turn.session].run(task=turn.text)
        await client.close()

    asyncio.run(talk())
