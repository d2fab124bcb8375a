"""pydantic-ai with a single tool, `memory`, whose argument `action` says what it does, as memory servers have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.agent_traces.drivers.exporting import exported_to
from benchmarks.agent_traces.model import Calls
from benchmarks.agent_traces.tools import Notes
from benchmarks.agent_traces.turns import Turn

CALLS = Calls(
    save=lambda by, text: ("memory", {"action": "add", "text": text}),
    change=lambda by, name, text: ("memory", {"action": "replace", "key": name, "text": text}),
    find=lambda by, query: ("memory", {"action": "search", "text": query}),
    id_in=lambda result: result.split(":")[0],
)


def converse(turns: list[Turn], notes: Notes, base_url: str, door: str, path: Path) -> None:
    """Have the conversations with an agent, and export its spans."""
    exported_to(path)
    Agent.instrument_all()
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=base_url, api_key="none"))
    agent: Any = Agent(model, name="companion", instructions="You remember what people tell you.")

    @agent.tool_plain
    def memory(action: Literal["add", "replace", "search"], text: str, key: str = "") -> str:
        """The memory of all that was said."""
        if action == "search":
            return "\n".join(f"{name}: {kept}" for name, kept in notes.find(text))
        return ": ".join(notes.save(text) if action == "add" else notes.change(key, text))

    history: dict[str, Any] = {}
    for turn in turns:
        asked = {"message_history": history.get(turn.session), "conversation_id": turn.session}
        result = agent.run_sync(turn.text, **asked, metadata={"user_id": turn.by})
        history[turn.session] = result.all_messages()
