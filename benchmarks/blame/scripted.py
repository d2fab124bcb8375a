"""The scripted model and author, answering in this process."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from benchmarks.blame.pipelines import NO_LINE, Pipeline, StepRequest, read_request
from benchmarks.blame.rules import EXAMPLE_VALUE, GENERAL, Harm, Statement, harm, rules, written
from benchmarks.blame.stories import Matter, Stories
from tracing.llm.access import ModelAccess
from tracing.llm.booking import Booking
from tracing.llm.cache import ResponseCache
from tracing.llm.capabilities import Capabilities
from tracing.llm.http.bodies import ChatCompletion
from tracing.llm.http.endpoint import Endpoint
from tracing.llm.models import ChatModel
from tracing.llm.replies import Replies
from tracing.llm.settings import Limits, ModelSettings, Role
from tracing.llm.single_flight import SingleFlight

UNKNOWN = "unknown"
_LONG = "With pleasure: as far as the memories that were given tell, the answer to this good question is {value}."
_POLITE = "It is a pleasure to note what {who} tells about the {topic}."
_NOTHING = "There is nothing to add."
SHOWN = re.compile(r"\[\[ ## basic_instruction ## \]\]\n(.*?)\n\n(?:\[\[ ##|Respond)|```\n(.*?)\n```", re.DOTALL)
"""An instruction as DSPy shows it to an author, after the form in which it does, and as gepa and our proposer do."""


class ScriptedModel:
    """Replies of the model of one seed: each step does what its prompt asks for, as well as the rules say."""

    def __init__(self, pipeline: Pipeline, stories: Stories, seed: int) -> None:
        self._stories, self._seed = stories, seed
        self._work = {step.operation: step.work for step in pipeline.steps}

    def reply(self, text: str) -> str:
        """The reply to a step's request."""
        request = read_request(text)
        work = self._work[request.operation]
        if work in ("extract", "begin", "revise"):
            return "\n".join(filter(None, (self._passed_on(request, line) for line in request.lines))) or NO_LINE
        matter = self._stories.matter_in(request.lines[0])
        if matter is None:
            return GENERAL
        about = [line for line in request.stored if self._stories.matter_in(line) is matter]
        if work == "answer":
            return self._answer(request, matter, about)
        harmed = self._harm(request, matter.statement_in(request.lines[0]) or matter.statements[-1]) is not None
        if work == "decide":
            right = f"UPDATE {request.stored.index(about[0]) + 1}" if about else "ADD"
            return "NONE" if harmed else right
        if work == "check":
            return "yes" if about or harmed else "no"
        if work == "select":
            return "\n".join(line for line in request.stored if not (harmed and line in about)) or NO_LINE
        return GENERAL if harmed else f"{matter.who} {matter.topic}"

    def _harm(self, request: StepRequest, statement: Statement) -> Harm | None:
        return harm(self._seed, request.operation, request.instruction, statement)

    def _passed_on(self, request: StepRequest, line: str) -> str | None:
        """What a step that reads makes of a line; None if it leaves it out."""
        matter = self._stories.matter_in(line)
        if matter is None:
            return None
        statement = matter.statement_in(line)
        kind = self._harm(request, statement or matter.statements[-1])
        if kind == "lost":
            return None
        if kind == "long":
            return _POLITE.format(who=matter.who, topic=matter.topic)
        if kind is not None:
            return matter.fact_of(_value_instead(kind, statement or matter.statements[-1]))
        return matter.fact_of(statement.value) if statement is not None else line

    def _answer(self, request: StepRequest, matter: Matter, about: list[str]) -> str:
        """What the first memory on the matter tells, or what the step makes of that."""
        if not about:
            return UNKNOWN
        statement = matter.statement_in(about[0])
        if statement is None:
            return GENERAL
        kind = self._harm(request, statement)
        if kind is None:
            return statement.value
        if kind == "long":
            return _LONG.format(value=statement.value)
        return UNKNOWN if kind == "lost" else _value_instead(kind, statement)


def _value_instead(kind: Harm, statement: Statement) -> str:
    return {"general": GENERAL, "example": EXAMPLE_VALUE}.get(kind) or statement.earlier or GENERAL


class Author:
    """Replies of the author of one seed: to whoever shows an instruction of a prompt, a rewrite of it by the rules."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def reply(self, text: str, sample: str) -> str:
        """The reply to a request for an instruction; to any other, that there is nothing to add."""
        shown = [(in_dspy, in_dspy or fenced) for in_dspy, fenced in SHOWN.findall(text)]
        shown = [pair for pair in shown if any(flaw.asks in pair[1] for flaw in rules().flaws)]
        if not shown:
            return _NOTHING
        in_dspy, instruction = shown[-1]
        rewritten = written(self._seed, instruction, f"{text}{sample}")
        return rewritten if in_dspy else f"```\n{rewritten}\n```"


class _CallClock:
    """A clock on which each call takes a second, so that equal searches reckon with equal times."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class _InProcess:
    """In the place of an `Endpoint`: what it is asked is answered here."""

    def __init__(
        self, settings: ModelSettings, clock: _CallClock, reply: Callable[[str, Mapping[str, Any]], str]
    ) -> None:
        self.settings, self._clock, self._reply = settings, clock, reply
        self.capabilities = Capabilities(None, settings.model)

    def chat(self, body: Mapping[str, Any]) -> ChatCompletion:
        """The reply to a chat request."""
        self._clock.seconds += 1
        text = "\n".join(str(message["content"]) for message in body["messages"])
        reply = self._reply(text, body)
        return ChatCompletion(
            text=reply, finish_reason="stop", prompt_tokens=len(text) // 4, completion_tokens=len(reply) // 4 + 1
        )


class RepliesInMemory(dict[str, bytes]):
    """In the place of a `ResponseCache`."""

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The stored replies of `keys`, by key."""
        return {key: self[key] for key in keys if key in self}

    def put_many(self, entries: Mapping[str, bytes]) -> bool:
        """Store several replies."""
        self.update(entries)
        return True


def scripted_access(model: ScriptedModel, author: Author, folder: Path, cache: RepliesInMemory) -> ModelAccess:
    """An access whose task model and author are scripted; calls are cached, booked and recorded as any others."""
    settings = ModelSettings(model="scripted", base_url="http://127.0.0.1:9/v1")
    clock = _CallClock()
    roles: dict[Role, ModelSettings] = {"task": settings, "embedding": settings}
    access = ModelAccess.open(roles, cache_dir=folder, limits=Limits(), concurrency=1, clock=clock)
    replies = Replies(cast("ResponseCache", cache), Booking(access.budget, access.meter, None), SingleFlight())

    def chat_model(name: str, reply: Callable[[str, Mapping[str, Any]], str]) -> ChatModel:
        return ChatModel(replies, cast("Endpoint", _InProcess(settings, clock, reply)), name)

    access.task = access.judge = chat_model("scripted model", lambda text, body: model.reply(text))
    access.proposer = chat_model("scripted author", lambda text, body: author.reply(text, str(body.get("seed"))))
    return access
