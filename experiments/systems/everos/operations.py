"""The operations whose requests EverOS makes: each asks our model, reads the reply as EverOS does, and records it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from experiments.systems.building_blocks.structured_replies import read_reply
from experiments.systems.everos.prompts import FACTS_SCHEMA, PROMPTS, SLOTS
from tracing.errors import MalformedReplyError
from tracing.graph.elements import Variable
from tracing.llm.access import ModelAccess
from tracing.llm.models import ChatReply
from tracing.recording.operations import operation
from tracing.recording.trace_context import variable
from tracing.systems.interventions import Step, intervening
from tracing.systems.prompts import Candidate
from tracing.systems.texts import Text, variables_of

_NOTHING = "Nothing was said."
"""Instead of an episode without content, which EverOS refuses."""


class Asker:
    """Asks the task model what EverOS asks.

    Args:
        enforced: whether the form of a reply is enforced, which EverOS alone does not do.
    """

    def __init__(self, access: ModelAccess, candidate: Candidate, *, max_tokens: int, enforced: bool) -> None:
        self._access, self._max_tokens, self._enforced = access, max_tokens, enforced
        self._prompts = {name: variable(candidate[name], name=name, kind="prompt") for name in SLOTS}

    def boundaries(
        self, request: str, values: Mapping[str, str], messages: Sequence[Text]
    ) -> tuple[ChatReply, list[tuple[Sequence[Text], Variable]]]:
        """Where a conversation is split: the reply, and the stretches with their variables."""
        log = variable(values["messages"], name="messages", kind="value")
        inputs = {"turns": variables_of(messages), "messages": log, "prompt": self._prompts["boundary_detection"]}
        with operation("detect_boundaries", kind="llm", inputs=inputs) as op:
            reply = self._reply(request, PROMPTS["boundary_detection"].contract.reply_schema)
            ends = read_reply(lambda text: ends_of(text, len(messages)), reply.text, op)
            cuts = [0, *(ends or ()), len(messages)] if ends is not None else []
            stretches = [messages[start:end] for start, end in pairwise(cuts)]
            return reply, [
                (
                    stretch,
                    op.output("segments", "\n".join(message.text for message in stretch), name=f"s{n}", kind="segment"),
                )
                for n, stretch in enumerate(stretches, start=1)
            ]

    def episode(
        self, request: str, values: Mapping[str, str], messages: Sequence[Text], segment: Sequence[Variable]
    ) -> tuple[ChatReply, Text | None]:
        """What an episode tells: the reply, with the content that EverOS is to store; None if it is malformed."""
        value_variables = {name: variable(text, name=name, kind="value") for name, text in values.items()}
        inputs: dict[str, Any] = {
            "segment": list(segment),
            **value_variables,
            "prompt": self._prompts["episode_extract"],
        }
        with operation("extract_episode", kind="llm", inputs=inputs) as op:
            reply = self._reply(request, PROMPTS["episode_extract"].contract.reply_schema)
            read = read_reply(episode_of, reply.text, op)
            if read is None:
                return reply, None
            title, content = read
            lines = [line for line in content.splitlines() if line.strip()]
            told = intervening().extracted(Step("extract_episode", op.id), variables_of(messages), lines)
            if told != lines:
                content = "\n".join(told).strip() or _NOTHING
                reply = _saying(reply, {"title": title, "content": content})
            op.output("title", title, name="title", kind="value")
            return reply, Text(content, op.output("content", content, name="episode", kind="fact"))

    def facts(self, request: str, episode: Text | None) -> tuple[ChatReply, list[Text]]:
        """The facts of an episode: the reply, and the facts that EverOS is to store."""
        sources = [] if episode is None else [episode.variable]
        with operation("extract_facts", kind="llm", inputs={"episode": sources}) as op:
            reply = self._reply(request, FACTS_SCHEMA)
            texts = read_reply(facts_of, reply.text, op)
            if texts is None:
                return reply, []
            statements = intervening().extracted(Step("extract_facts", op.id), sources, texts)
            if statements != texts:
                reply = _saying(reply, {"atomic_facts": {"time": "unknown", "atomic_fact": statements}})
            facts = [fact for fact in statements if fact]
            return reply, [
                Text(text, op.output("facts", text, name=f"fact{number}", kind="fact"))
                for number, text in enumerate(facts, start=1)
            ]

    def _reply(self, request: str, schema: Mapping[str, Any] | None) -> ChatReply:
        return self._access.task.chat(
            [{"role": "user", "content": request}],
            max_tokens=self._max_tokens,
            schema=schema if self._enforced else None,
        )


def _saying(reply: ChatReply, value: Mapping[str, Any]) -> ChatReply:
    return replace(reply, text=json.dumps(value, ensure_ascii=False))


_FLAT = re.compile(r"\{[^{}]*\}", re.DOTALL)


def ends_of(reply: str, count: int) -> list[int]:
    """After which of `count` messages an episode ends.

    Raises:
        MalformedReplyError: EverOS would ask again, and give up in the end.
    """
    match = _FLAT.search(reply)
    data = _parsed(match.group() if match else "")
    ends = data.get("boundaries", [])
    if not isinstance(ends, list) or "should_wait" not in data:
        raise MalformedReplyError("the reply has no list 'boundaries' or no 'should_wait'")
    try:
        numbers = {int(end) for end in ends if end is not None}
    except (TypeError, ValueError):
        raise MalformedReplyError("'boundaries' is not a list of numbers") from None
    return sorted(number for number in numbers if 1 <= number < count)


def episode_of(reply: str) -> tuple[str, str]:
    """Title and content of an episode. Raises as `ends_of`."""
    data = _parsed(_balanced(reply))
    if "title" not in data or not str(data.get("content", "")).strip():
        raise MalformedReplyError("the reply has no 'title' or no 'content'")
    return str(data["title"]), str(data["content"])


def facts_of(reply: str) -> list[str]:
    """The facts of an episode. Raises as `ends_of`."""
    data = _parsed(_balanced(reply))
    block = data.get("event_log", data.get("atomic_facts"))
    if not isinstance(block, dict) or not block.get("time") or not isinstance(block.get("atomic_fact", []), list):
        raise MalformedReplyError("the reply has no 'atomic_facts' with 'time' and a list 'atomic_fact'")
    return [fact.strip() for fact in block.get("atomic_fact", []) if isinstance(fact, str) and fact.strip()]


def _parsed(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError:
        raise MalformedReplyError("the reply has no JSON object") from None
    if not isinstance(data, dict):
        raise MalformedReplyError("the reply is not a JSON object")
    return data


def _balanced(text: str) -> str:
    """The first object in a text, by its braces alone."""
    start, depth = text.find("{"), 0
    for at in range(max(start, 0), len(text) if start >= 0 else 0):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start : at + 1]
    raise MalformedReplyError("the reply has no whole JSON object")
