"""The model behind the agents: what it replies to a request of any framework, over OpenAI's protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from benchmarks.agent_traces.story import Fault, Said, Story
from benchmarks.scripted_server import Reply, Script

Arguments = dict[str, Any]


@dataclass(frozen=True)
class Calls:
    """How a framework's agent calls its tools.

    Attributes:
        save: a person and a text → the tool and its arguments.
        change: a person, the id of an entry and a text → likewise; find: a person and a query → likewise.
        id_in: the id of the entry in a result of the search.
        clear: where a change takes two calls, a person, a result of the search and a text → the first of them.
    """

    save: Callable[[str, str], tuple[str, Arguments]]
    change: Callable[[str, str, str], tuple[str, Arguments]]
    find: Callable[[str, str], tuple[str, Arguments]]
    id_in: Callable[[str], str]
    clear: Callable[[str, str, str], tuple[str, Arguments]] | None = None


def script_of(story: Story, fault: Fault, calls: Calls) -> Script:
    """A model that saves what is new, changes what changed, and answers from what the search gave."""

    def reply(body: dict[str, Any]) -> Reply | str:
        said, results = _latest(body["messages"])
        turn = next((turn for turn in story.told if turn.text in said), None)
        if turn is None:
            return _call(*calls.find(story.needed.by, story.question)) if not results else answer(results[-1])
        return told(turn, results)

    def told(turn: Said, results: list[str]) -> Reply | str:
        if turn.changes and not results:
            return _call(*calls.find(turn.by, turn.text))
        if turn.changes and calls.clear is not None and len(results) == 1:
            return _call(*calls.clear(turn.by, results[0], turn.text))
        if turn.changes and len(results) == 1 + (calls.clear is not None):
            return _call(*calls.change(turn.by, calls.id_in(results[0]), turn.fact))
        if not results:
            left_out = fault == "left_out" and turn is story.needed
            return _call(*calls.save(turn.by, "Said hello." if left_out else turn.fact))
        return "Noted."

    def answer(result: str) -> str:
        if fault == "ignored":
            return f"That would be {story.wrong}."
        return f"It is {story.answer}." if story.answer in result else "I do not know."

    return reply


def _latest(messages: list[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """The last message of the person, and the results of tools since."""
    at = max(number for number, message in enumerate(messages) if message["role"] == "user")
    results = [_text(message) for message in messages[at + 1 :] if message["role"] == "tool"]
    return _text(messages[at]), results


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content or ())


_NUMBERS = count(1)


def _call(name: str, arguments: Arguments) -> Reply:
    """A reply that calls a tool."""

    def change(reply: dict[str, Any]) -> dict[str, Any]:
        call = {"id": f"call_{next(_NUMBERS)}", "type": "function"}
        reply["choices"][0]["message"] |= {
            "content": None,
            "tool_calls": [{**call, "function": {"name": name, "arguments": json.dumps(arguments)}}],
        }
        reply["choices"][0]["finish_reason"] = "tool_calls"
        return reply

    return Reply(change=change)
