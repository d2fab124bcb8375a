"""Microsoft's Agent Framework: tools `add_note`, `find_notes` and `change_note`, each told the person, with texts."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from agent_framework import Agent
from agent_framework.observability import enable_instrumentation
from agent_framework.openai import OpenAIChatCompletionClient

from benchmarks.agent_traces.drivers.exporting import exported_to, in_sessions
from benchmarks.agent_traces.model import Calls
from benchmarks.agent_traces.tools import Notes
from benchmarks.agent_traces.turns import Turn

CALLS = Calls(
    save=lambda by, text: ("add_note", {"user": by, "content": text}),
    change=lambda by, name, text: ("change_note", {"user": by, "note_id": name, "content": text}),
    find=lambda by, query: ("find_notes", {"user": by, "question": query}),
    id_in=lambda result: re.findall(r"n\d+", result)[0],
)


def converse(turns: list[Turn], notes: Notes, base_url: str, door: str, path: Path) -> None:
    """Have the conversations with an agent, and record it or export its spans."""
    if door != "recorded":
        exported_to(path)
        enable_instrumentation(enable_sensitive_data=True)

    def add_note(user: str, content: str) -> str:
        """Add a note about the user."""
        name, kept = notes.save(content)
        return f"Added note {name}: {kept}"

    def find_notes(user: str, question: str) -> str:
        """Find notes that may answer a question."""
        return "\n".join(f"- [{name}] {kept}" for name, kept in notes.find(question))

    def change_note(user: str, note_id: str, content: str) -> str:
        """Change a note."""
        name, kept = notes.change(note_id, content)
        return f"Changed note {name}: {kept}"

    client: Any = OpenAIChatCompletionClient(model="scripted", base_url=base_url, api_key="none")
    agent: Any = Agent(
        client, "You remember what people tell you.", name="companion", tools=[add_note, find_notes, change_note]
    )

    async def talk() -> None:
        sessions: dict[str, Any] = {}
        for turn in in_sessions(turns, door):
            session = sessions.setdefault(turn.session, agent.create_session(session_id=turn.session))
            await agent.run(turn.text, session=session)

    asyncio.run(talk())
