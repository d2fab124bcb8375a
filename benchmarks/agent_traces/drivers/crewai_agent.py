"""CrewAI: tools `record_fact`, `fetch_facts` and `modify_fact`, with texts; nothing but the session has the person."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}  # read when it is imported

from crewai import LLM, Agent
from crewai.tools import tool

from benchmarks.agent_traces.drivers.exporting import in_sessions
from benchmarks.agent_traces.model import Calls
from benchmarks.agent_traces.tools import Notes
from benchmarks.agent_traces.turns import Turn

CALLS = Calls(
    save=lambda by, text: ("record_fact", {"fact": text}),
    change=lambda by, name, text: ("modify_fact", {"fact_id": name, "fact": text}),
    find=lambda by, query: ("fetch_facts", {"topic": query}),
    id_in=lambda result: re.findall(r"n\d+", result)[0],
)


def converse(turns: list[Turn], notes: Notes, base_url: str, door: str, path: Path) -> None:
    """Have the conversations with an agent, which is recorded."""

    @tool
    def record_fact(fact: str) -> str:
        """Record a fact about the user."""
        name, kept = notes.save(fact)
        return f"recorded {name}: {kept}"

    @tool
    def fetch_facts(topic: str) -> str:
        """Fetch the facts that were recorded on a topic."""
        return "\n".join(f"{name}: {kept}" for name, kept in notes.find(topic))

    @tool
    def modify_fact(fact_id: str, fact: str) -> str:
        """Modify a fact that was recorded."""
        name, kept = notes.change(fact_id, fact)
        return f"modified {name}: {kept}"

    agent: Any = Agent(
        role="companion",
        goal="Be of help.",
        backstory="You remember what people tell you.",
        tools=[record_fact, fetch_facts, modify_fact],
        llm=LLM(model="openai/scripted", base_url=base_url, api_key="none"),
    )
    conversations: dict[str, list[Any]] = {}
    for turn in in_sessions(turns, door):
        messages = conversations.setdefault(turn.session, [])
        messages.append({"role": "user", "content": turn.text})
        messages.append({"role": "assistant", "content": agent.kickoff(list(messages)).raw})
