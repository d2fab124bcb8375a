"""A scripted model that understands the two requests of Mem0 1.0.x."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from typing import Any

from scripted_server import Reply, prompt_of


def is_extraction(body: dict[str, Any]) -> bool:
    return body["messages"][-1]["content"].startswith("Input:\n")


def is_update(body: dict[str, Any]) -> bool:
    return "new retrieved facts" in prompt_of(body)


def facts_shown(body: dict[str, Any]) -> list[str]:
    """The new facts in an update request."""
    return list(ast.literal_eval(prompt_of(body).split("```")[-2].strip()))


def memories_shown(body: dict[str, Any]) -> list[dict[str, str]]:
    """The stored memories in an update request."""
    blocks = prompt_of(body).split("```")
    return list(ast.literal_eval(blocks[1].strip())) if len(blocks) > 3 else []


def every_line(lines: Sequence[str]) -> list[str]:
    return list(lines)


def decide(event: str, target: str = "0") -> Callable[[dict[str, Any]], str]:
    """Replies to an update: `event` for every new fact where memories are shown, ADD where none is."""

    def reply(body: dict[str, Any]) -> str:
        chosen = event if memories_shown(body) else "ADD"
        items = [{"id": target, "text": fact, "event": chosen} for fact in facts_shown(body)]
        return json.dumps({"memory": items})

    return reply


class Mem0Model:
    """Extracts by `extract` from the lines said, decides by `update`, and answers with the first memory given."""

    def __init__(
        self,
        *,
        extract: Callable[[Sequence[str]], list[str]] = every_line,
        update: Callable[[dict[str, Any]], Reply | str] | None = None,
        answer: str | None = None,
    ) -> None:
        self.extract, self.update, self.answer = extract, update or decide("ADD"), answer

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        if is_extraction(body):
            lines = body["messages"][-1]["content"].partition("Input:\n")[2].splitlines()
            return json.dumps({"facts": self.extract([line.removeprefix("user: ") for line in lines])})
        if is_update(body):
            return self.update(body)
        given = (line[2:] for line in prompt_of(body).splitlines() if line.startswith("- "))
        return self.answer or next(given, "unknown")
