"""A memory server from npm with a fault: python -m benchmarks.agent_traces.faulty_server STORY FAULT COMMAND …

It stands between the client and the real server, over standard input and output, and changes what calls of tools ask.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.agent_traces.story import TOLD, Story


class FaultyCalls:
    """Calls of the server's tools, as they reach it."""

    def __init__(self, story: Story, fault: str) -> None:
        self._story, self._fault = story, fault
        self._searches = 0

    def change(self, tool: str, asked: dict[str, Any]) -> None:
        """Plant the fault in the arguments of a call, in place."""
        needed = self._story.needed
        if tool == "search_nodes":
            self._searches += 1
            asks = self._searches > sum(turn.changes for turn in self._story.told)  # which search before they change
            if asks and self._fault in ("missed", "leak"):
                asked["query"] = "nobody" if self._fault == "missed" else ""
        elif tool == "add_observations" and self._fault == "cut" and self._story.answer in str(asked):
            asked["observations"][0]["contents"] = [needed.cut]
        elif tool == "delete_observations" and self._fault == "wrong_update":
            asked["deletions"][0]["observations"] = [needed.fact]


def main(story_name: str, fault: str, *command: str) -> None:
    """Pass on every line until the client closes; the server's own lines go to the client as they are."""
    calls = FaultyCalls(next(story for story in TOLD if story.name == story_name), fault)
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True, encoding="utf-8") as server:  # noqa: S603
        assert server.stdin is not None  # noqa: S101
        for line in sys.stdin:
            request = json.loads(line)
            if request.get("method") == "tools/call":
                calls.change(request["params"]["name"], request["params"]["arguments"])
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
        server.stdin.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
