"""The memory server of the Model Context Protocol from npm: a person is an entity, what is known its observations."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters

from benchmarks.agent_traces.drivers.mcp_agent import talked
from benchmarks.agent_traces.model import Calls
from benchmarks.agent_traces.tools import Notes, words_of
from benchmarks.agent_traces.turns import Turn


def _observation(result: str, text: str) -> str:
    """The observation in a result of the search that is most like a text."""
    known = [line for entity in json.loads(result)["entities"] for line in entity["observations"]]
    return str(max(known, key=lambda line: len(words_of(line) & words_of(text))))


def _deleting(by: str, result: str, text: str) -> tuple[str, dict[str, Any]]:
    deletion = {"entityName": by, "observations": [_observation(result, text)]}
    return "delete_observations", {"deletions": [deletion]}


def _adding(by: str, text: str) -> tuple[str, dict[str, Any]]:
    return "add_observations", {"observations": [{"entityName": by, "contents": [text]}]}


CALLS = Calls(
    save=_adding,
    change=lambda by, name, text: _adding(by, text),
    find=lambda by, query: ("search_nodes", {"query": by}),
    id_in=lambda result: "",
    clear=_deleting,
)


def converse(turns: list[Turn], notes: Notes, base_url: str, door: str, path: Path) -> None:
    """Have the conversations by a loop of calls, which is recorded; a fault lies between the client and the server."""
    memory = path.with_suffix(".memory")
    entities = [
        {"type": "entity", "name": by, "entityType": "person", "observations": []}
        for by in dict.fromkeys(turn.by for turn in turns)
    ]
    memory.write_text("\n".join(map(json.dumps, entities)), encoding="utf-8")
    module = Path(sys.prefix, "node_modules/@modelcontextprotocol/server-memory/dist/index.js")
    between = ["-m", "benchmarks.agent_traces.faulty_server", notes.story.name, notes.fault, "node", str(module)]
    settings = {"MEMORY_FILE_PATH": str(memory), "PYTHONPATH": str(Path(__file__).parents[3])}
    talked(StdioServerParameters(command=sys.executable, args=between, env=settings), turns, base_url, door)
    memory.unlink()
