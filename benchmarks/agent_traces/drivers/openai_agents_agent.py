"""OpenAI Agents: tools `log_fact`, which says only that it is done, `lookup`, `amend`; the context has the person."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
)
from openai import AsyncOpenAI
from openinference.instrumentation import using_attributes
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

from benchmarks.agent_traces.drivers.exporting import exported_to, in_sessions
from benchmarks.agent_traces.model import Calls
from benchmarks.agent_traces.tools import Notes
from benchmarks.agent_traces.turns import Turn

CALLS = Calls(
    save=lambda by, text: ("log_fact", {"statement": text}),
    change=lambda by, name, text: ("amend", {"entry": name, "statement": text}),
    find=lambda by, query: ("lookup", {"keywords": query}),
    id_in=lambda result: re.findall(r"n\d+", result)[0],
)


def converse(turns: list[Turn], notes: Notes, base_url: str, door: str, path: Path) -> None:
    """Have the conversations with an agent, and record it or export its spans."""
    if door != "recorded":
        OpenAIAgentsInstrumentor().instrument(tracer_provider=exported_to(path))

    @function_tool
    def log_fact(statement: str) -> str:
        """Log a fact for later conversations."""
        notes.save(statement)
        return "done"

    @function_tool
    def lookup(keywords: str) -> str:
        """Look up what was logged."""
        return "\n".join(f"({name}) {kept}" for name, kept in notes.find(keywords)) or "nothing"

    @function_tool
    def amend(entry: str, statement: str) -> str:
        """Amend what was logged."""
        name, kept = notes.change(entry, statement)
        return f"({name}) {kept}"

    kind = OpenAIResponsesModel if door.endswith("responses") else OpenAIChatCompletionsModel
    model = kind("scripted", AsyncOpenAI(base_url=base_url, api_key="none"))
    agent = Agent(
        "companion", instructions="You remember what people tell you.", model=model, tools=[log_fact, lookup, amend]
    )
    sessions: dict[str, Any] = {}
    for turn in in_sessions(turns, door):
        session = sessions.setdefault(turn.session, SQLiteSession(turn.session))
        with using_attributes(user_id=turn.by, session_id=turn.session):
            run = RunConfig(group_id=turn.session, trace_metadata={"user_id": turn.by})
            Runner.run_sync(agent, turn.text, session=session, run_config=run)
