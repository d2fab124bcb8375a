"""The model of a story: it replies to the real Mem0 as planned, and keeps what it was asked and what it replied."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.mem0_failures.drive import ASKING
from benchmarks.mem0_failures.story import Said, Story
from benchmarks.scripted_model import vector_of
from benchmarks.scripted_server import prompt_of

Step = Literal["extract", "update", "answer"]


@dataclass(frozen=True)
class Exchange:
    """A request as it came over HTTP, and the reply to it.

    Attributes:
        step: what was asked for.
        session: for an extraction, the number of the session that it is about, from 0.
        request: all its texts.
        reply: that was sent.
    """

    step: Step
    session: int | None
    request: str
    reply: str


class PlannedModel:
    """Replies and vectors for one story; `adds` is for a Mem0 that makes no decisions (2.x).

    Attributes:
        exchanges: all chats, in their order.
    """

    def __init__(self, story: Story, *, adds: bool) -> None:
        self._story, self._adds = story, adds
        self.exchanges: list[Exchange] = []

    def __call__(self, body: dict[str, Any]) -> str:
        prompt = prompt_of(body)
        session = None
        step: Step = "answer"
        if prompt.startswith(ASKING):
            reply = self._story.reply
        elif "new retrieved facts" in prompt:
            step, reply = "update", self._decide(prompt)
        else:
            step, session = "extract", self._session_in(prompt)
            reply = self._extract(self._story.sessions[session])
        self.exchanges.append(Exchange(step, session, prompt, reply))
        return reply

    def embed(self, text: str) -> Sequence[float]:
        """By the words in a text, unless the plan says how far it is from the question."""
        if text in self._story.near:
            return vector_of(self._story.question)
        return vector_of("entirely elsewhere" if text in self._story.far else text)

    def _session_in(self, prompt: str) -> int:
        """The last session whose turns are all in a request; Mem0 2 shows earlier messages too."""
        told = [n for n, turns in enumerate(self._story.sessions) if all(turn.spoken in prompt for turn in turns)]
        return told[-1]

    def _extract(self, turns: Sequence[Said]) -> str:
        facts = [fact for turn in turns for fact in turn.facts]
        if not self._adds:
            return json.dumps({"facts": facts})
        return json.dumps({"memory": [{"id": str(n), "text": fact} for n, fact in enumerate(facts)]})

    def _decide(self, prompt: str) -> str:
        blocks = prompt.split("```")
        facts = [str(fact) for fact in ast.literal_eval(blocks[-2].strip())]
        shown = ast.literal_eval(blocks[1].strip()) if len(blocks) > 3 else []
        ids = {str(memory["text"]): str(memory["id"]) for memory in shown}
        decisions = {fact: turn.decision for turns in self._story.sessions for turn in turns for fact in turn.facts}
        items = []
        for fact in facts:
            event, target = decisions[fact]
            items.append({"id": ids[target] if target else "new", "text": fact, "event": event})
        return json.dumps({"memory": items})
