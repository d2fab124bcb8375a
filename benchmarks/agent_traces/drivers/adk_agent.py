"""Google's ADK: tools `write_profile`, `read_profile`, `overwrite_profile` with a status; the runner has the person."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import litellm  # noqa: F401 (takes half a minute, which the process of each story would take again)
from google.adk.agents import Agent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from benchmarks.agent_traces.drivers.exporting import exported_to, in_sessions
from benchmarks.agent_traces.model import Calls
from benchmarks.agent_traces.tools import Notes
from benchmarks.agent_traces.turns import Turn

CALLS = Calls(
    save=lambda by, text: ("write_profile", {"line": text}),
    change=lambda by, name, text: ("overwrite_profile", {"key": name, "line": text}),
    find=lambda by, query: ("read_profile", {"topic": query}),
    id_in=lambda result: str(json.loads(result)["lines"][0]["key"]),
)


def converse(turns: list[Turn], notes: Notes, base_url: str, door: str, path: Path) -> None:
    """Have the conversations with an agent, and record it or export its spans."""
    if door != "recorded":
        os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"  # else spans have no messages
        provider = exported_to(path)
    if door == "openinference":
        from openinference.instrumentation.google_adk import GoogleADKInstrumentor

        GoogleADKInstrumentor().instrument(tracer_provider=provider)

    def write_profile(line: str) -> dict[str, Any]:
        """Write a line into the user's profile."""
        name, kept = notes.save(line)
        return {"status": "success", "key": name, "line": kept}

    def read_profile(topic: str) -> dict[str, Any]:
        """Read lines of the user's profile."""
        return {"status": "success", "lines": [{"key": name, "line": kept} for name, kept in notes.find(topic)]}

    def overwrite_profile(key: str, line: str) -> dict[str, Any]:
        """Overwrite a line of the user's profile."""
        name, kept = notes.change(key, line)
        return {"status": "success", "key": name, "line": kept}

    agent = Agent(
        name="companion",
        model=LiteLlm(model="openai/scripted", api_base=base_url, api_key="none"),
        instruction="You remember what people tell you.",
        tools=[write_profile, read_profile, overwrite_profile],
    )
    service = InMemorySessionService()
    runner = Runner(agent=agent, app_name="companion", session_service=service)

    async def talk() -> None:
        for session, by in dict.fromkeys((turn.session, turn.by) for turn in turns):
            await service.create_session(app_name="companion", user_id=by, session_id=session)
        for turn in in_sessions(turns, door):
            content = types.Content(role="user", parts=[types.Part(text=turn.text)])
            async for _ in runner.run_async(user_id=turn.by, session_id=turn.session, new_message=content):
                pass

    asyncio.run(talk())
