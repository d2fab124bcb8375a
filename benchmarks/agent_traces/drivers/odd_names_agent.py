"""Agent Framework with tools of odd names: `jot_down`, `consult` and `put_right`, told the person, with objects."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from agent_framework import Agent
from agent_framework.observability import enable_instrumentation
from agent_framework.openai import OpenAIChatCompletionClient

from benchmarks.agent_traces.drivers.exporting import exported_to
from benchmarks.agent_traces.model import Calls
from benchmarks.agent_traces.tools import Notes
from benchmarks.agent_traces.turns import Turn

CALLS = Calls(
    save=lambda by, text: ("jot_down", {"person": by, "remark": text}),
    change=lambda by, name, text: ("put_right", {"person": by, "number": name, "remark": text}),
    find=lambda by, query: ("consult", {"person": by, "about": query}),
    id_in=lambda result: str(json.loads(result)["remarks"][0]["number"]),
)


def converse(turns: list[Turn], notes: Notes, base_url: str, door: str, path: Path) -> None:
    """Have the conversations with an agent, and export its spans."""
    exported_to(path)
    enable_instrumentation(enable_sensitive_data=True)

    def jot_down(person: str, remark: str) -> str:
        """Jot down a remark."""
        name, kept = notes.save(remark)
        return json.dumps({"number": name, "remark": kept})

    def consult(person: str, about: str) -> str:
        """Consult the remarks."""
        return json.dumps({"remarks": [{"number": name, "remark": kept} for name, kept in notes.find(about)]})

    def put_right(person: str, number: str, remark: str) -> str:
        """Put a remark right."""
        name, kept = notes.change(number, remark)
        return json.dumps({"number": name, "remark": kept})

    client: Any = OpenAIChatCompletionClient(model="scripted", base_url=base_url, api_key="none")
    agent: Any = Agent(
        client, "You remember what people tell you.", name="companion", tools=[jot_down, consult, put_right]
    )

    async def talk() -> None:
        sessions: dict[str, Any] = {}
        for turn in turns:
            session = sessions.setdefault(turn.session, agent.create_session(session_id=turn.session))
            await agent.run(turn.text, session=session)

    asyncio.run(talk())
