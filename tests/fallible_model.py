"""A scripted model that makes mistakes where a test says so, whatever has been repaired before it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from scripted_server import ScriptedServer, prompt_of

from benchmarks.scripted_model import ScriptedModel, vector_of
from tracing.systems.conversations import Conversation

Mistake = Callable[[str, str], str]
"""From a request and its right reply to the reply that is given."""


def let_answer(server: ScriptedServer, *conversations: Conversation, mistakes: Sequence[Mistake] = ()) -> None:
    """Let the server answer for these conversations as the scripted model does, with these mistakes."""
    model = ScriptedModel(conversations)

    def script(body: dict[str, Any]) -> str:
        request = prompt_of(body)
        reply = model.reply(request, json.dumps(body.get("response_format") or {}))
        for mistake in mistakes:
            reply = mistake(request, reply)
        return reply

    server.script, server.embed = script, vector_of


def forgets(word: str) -> Mistake:
    """Extracts no fact with this word."""

    def mistake(request: str, reply: str) -> str:
        if not reply.startswith('{"facts"'):
            return reply
        return json.dumps({"facts": [fact for fact in json.loads(reply)["facts"] if word not in fact]})

    return mistake


def decides(event: str, about: str) -> Mistake:
    """Decides on a new fact with these words for this event, on the first memory shown."""

    def mistake(request: str, reply: str) -> str:
        asked = request.rpartition("New fact: ")
        return json.dumps({"event": event, "id": "1"}) if asked[1] and about in asked[2] else reply

    return mistake


def answers(wrong: str, asked: str) -> Mistake:
    """Answers a question with these words wrongly."""

    def mistake(request: str, reply: str) -> str:
        return wrong if asked in request.rpartition("Question: ")[2] else reply

    return mistake
