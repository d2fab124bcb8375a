"""The operations whose requests EverOS makes: each asks our model, and records what became of the reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from experiments.systems.building_blocks.structured_replies import LONGEST_SHOWN
from experiments.systems.everos.prompts import FACTS_SCHEMA, PROMPTS, SLOTS
from experiments.systems.everos.reply_forms import ends_of, episode_of, facts_of
from tracing.errors import MalformedReplyError
from tracing.graph.elements import Variable
from tracing.llm.access import ModelAccess
from tracing.llm.models import ChatReply
from tracing.recording.operations import ActiveOperation
from tracing.recording.recorder import operation, variable
from tracing.recording.redaction import excerpt
from tracing.systems.interventions import Step, intervening
from tracing.systems.prompts import Candidate
from tracing.systems.texts import Text, variables_of

R = TypeVar("R")

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
            ends = self._read(lambda text: ends_of(text, len(messages)), reply, op)
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
            read = self._read(episode_of, reply, op)
            if read is None:
                return reply, None
            title, content = read
            contents = intervening().extracted(Step("extract_episode", op.id), variables_of(messages), [content])
            if contents != [content]:
                content = "\n".join(contents) or _NOTHING
                reply = _saying(reply, {"title": title, "content": content})
            op.output("title", title, name="title", kind="value")
            return reply, Text(content, op.output("content", content, name="episode", kind="fact"))

    def facts(self, request: str, episode: Text | None) -> tuple[ChatReply, list[Text]]:
        """The facts of an episode: the reply, and the facts that EverOS is to store."""
        sources = [] if episode is None else [episode.variable]
        with operation("extract_facts", kind="llm", inputs={"episode": sources}) as op:
            reply = self._reply(request, FACTS_SCHEMA)
            texts = self._read(facts_of, reply, op)
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

    def _read(self, read: Callable[[str], R], reply: ChatReply, op: ActiveOperation) -> R | None:
        try:
            return read(reply.text)
        except MalformedReplyError as error:
            op.annotate(malformed=str(error), reply=excerpt(reply.text, LONGEST_SHOWN))
            return None


def _saying(reply: ChatReply, value: Mapping[str, Any]) -> ChatReply:
    return ChatReply(
        text=json.dumps(value, ensure_ascii=False),
        finish_reason=reply.finish_reason,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        cached=reply.cached,
        model=reply.model,
    )
