"""A loop around OpenAI's client, with the tools of a server of the Model Context Protocol: entries with their ids."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.server import MCPServer
from openai import AsyncOpenAI

from benchmarks.agent_traces.drivers.exporting import in_sessions
from benchmarks.agent_traces.model import Calls
from benchmarks.agent_traces.tools import Notes
from benchmarks.agent_traces.turns import Turn

CALLS = Calls(
    save=lambda by, text: ("create_entry", {"content": text}),
    change=lambda by, name, text: ("update_entry", {"entry_id": name, "content": text}),
    find=lambda by, query: ("search_entries", {"query": query}),
    id_in=lambda result: str(json.loads(result)["entries"][0]["entry_id"]),
)


def converse(turns: list[Turn], notes: Notes, base_url: str, door: str, path: Path) -> None:
    """Have the conversations by a loop of calls, which is recorded."""
    server = MCPServer("memory")

    @server.tool()
    def create_entry(content: str) -> str:
        """Create an entry in the memory."""
        name, kept = notes.save(content)
        return json.dumps({"entry_id": name, "content": kept})

    @server.tool()
    def search_entries(query: str) -> str:
        """Search the entries of the memory."""
        return json.dumps({"entries": [{"entry_id": name, "content": kept} for name, kept in notes.find(query)]})

    @server.tool()
    def update_entry(entry_id: str, content: str) -> str:
        """Update an entry of the memory."""
        name, kept = notes.change(entry_id, content)
        return json.dumps({"entry_id": name, "content": kept})

    talked(server, turns, base_url, door)


def talked(server: Any, turns: list[Turn], base_url: str, door: str) -> None:
    """Have the conversations by a loop of calls, with the tools of this server, or of the one that this starts."""
    model = AsyncOpenAI(base_url=base_url, api_key="none")

    async def reply(memory: Client, tools: list[Any], messages: list[Any]) -> None:
        while True:
            answer = await model.chat.completions.create(model="scripted", messages=messages, tools=tools)
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                function: Any = getattr(call, "function", None)
                result = await memory.call_tool(function.name, json.loads(function.arguments))
                texts = [part.text for part in result.content if part.type == "text"]
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "\n".join(texts)})

    async def talk() -> None:
        instructions = {"role": "system", "content": "You remember what people tell you."}
        conversations: dict[str, list[Any]] = {}
        async with Client(server) as memory:
            tools = [
                {"type": "function", "function": {"name": tool.name, "parameters": tool.input_schema}}
                for tool in (await memory.list_tools()).tools
            ]
            for turn in in_sessions(turns, door):
                messages = conversations.setdefault(turn.session, [instructions])
                messages.append({"role": "user", "content": turn.text})
                await reply(memory, tools, messages)

    asyncio.run(talk())
