"""pydantic-ai: tools `remember`, `recall` and `revise` that return objects; the person is in the run's metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.agent_traces.drivers.exporting import exported_to, in_sessions
from benchmarks.agent_traces.model import Calls
from benchmarks.agent_traces.tools import Notes
from benchmarks.agent_traces.turns import Turn

CALLS = Calls(
    save=lambda by, text: ("remember", {"fact": text}),
    change=lambda by, name, text: ("revise", {"fact_id": name, "new_fact": text}),
    find=lambda by, query: ("recall", {"about": query}),
    id_in=lambda result: str(json.loads(result)[0]["id"]),
)


def converse(turns: list[Turn], notes: Notes, base_url: str, door: str, path: Path) -> None:
    """Have the conversations with an agent, and record it or export its spans."""
    provider = exported_to(path) if door != "recorded" else None
    if provider is not None and door == "openinference":
        from openinference.instrumentation.pydantic_ai import OpenInferenceSpanProcessor

        # It rewrites the spans in place, so it has to come before what exports them.
        processors = provider._active_span_processor
        processors._span_processors = (OpenInferenceSpanProcessor(), *processors._span_processors)
    if provider is not None:
        Agent.instrument_all()
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=base_url, api_key="none"))
    agent: Any = Agent(model, name="companion", instructions="You remember what people tell you.")

    @agent.tool_plain
    def remember(fact: str) -> dict[str, str]:
        """Remember a fact about the user."""
        name, kept = notes.save(fact)
        return {"id": name, "fact": kept}

    @agent.tool_plain
    def recall(about: str) -> list[dict[str, str]]:
        """What is known about something."""
        return [{"id": name, "fact": kept} for name, kept in notes.find(about)]

    @agent.tool_plain
    def revise(fact_id: str, new_fact: str) -> dict[str, str]:
        """Replace a fact that is no longer so."""
        name, kept = notes.change(fact_id, new_fact)
        return {"id": name, "fact": kept}

    history: dict[str, Any] = {}
    for turn in in_sessions(turns, door):
        result = agent.run_sync(
            turn.text,
            message_history=history.get(turn.session),
            conversation_id=turn.session,
            metadata={"user_id": turn.by},
        )
        history[turn.session] = result.all_messages()
