"""The dialogues in spans of other tools: what users asked and were answered, a conversation for each user or thread.

An exchange is an agent's span or a call to a chat model: the user's last message, and the reply. What runs inside an
exchange is how the system made the reply. Nor are calls about the dialogue a part of it, such as those that extract
facts from it: they are known by where they run, by their names and instructions, by replies in JSON, and by quoting
what was said elsewhere.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from attribution.text.content import text_of
from tracing.graph.elements import Link, Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.identities import CHATS, USERS, first_id
from tracing.interchange.speech import ASSISTANT, SPEAKERS, USER


class _Identity(NamedTuple):
    """Attributes of spans by which conversations are told apart: their usual names, and what others are like."""

    usual: tuple[str, ...]
    like: re.Pattern[str]


_OWNER = _Identity(USERS, re.compile(r"(?:.*_)?(?:user|enduser|customer)_?id"))
_THREAD = _Identity(
    CHATS,
    # LangSmith's sessions are its projects.
    re.compile(r"(?!langsmith_trace_)(?:.*_)?(?:conversation|session|chat|thread|dialog)_?id"),
)
_TENANT = _Identity((), re.compile(r"(?:.*_)?tenant(?:_?id)?"))
_OF_THE_MACHINE = "thread.id"
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])|[.-]")
_AGENTS = ("agent", "invoke_agent", "chain", "workflow", "invoke_workflow")
_ASIDE = re.compile(r"retriev|rerank|tool|embed|guardrail|evaluat|judge|memory")
"""Kinds of operations whose calls are none of the dialogue."""
_ABOUT = re.compile(
    r"extract|summar|consolidat|memori[sz]|memory|reflect|rewrit|condens|rerank|classif|judg|evaluat|guardrail|"
    r"ingest|dedup|titl(?:e|ing)",
    re.IGNORECASE,
)
"""Names of operations, and instructions, of calls about a dialogue."""
_INSTRUCTED = 400
_FENCE = re.compile(r"\A```\w*\s*(.*?)\s*```\Z", re.DOTALL)
_QUOTED = 2
"""Words that a message has at least, to be known where it is quoted."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its reply, of a user's or else a thread's conversation; `chat` is empty if spans name neither."""

    call: Operation
    question: str
    reply: str
    chat: str
    session: str


def exchanges_in(graph: ExecutionGraph) -> tuple[list[Exchange], int]:
    """The exchanges of a graph in the order of their times, and how many calls were the system's own."""
    spans = _Spans(graph)
    exchanges = [exchange for operation in spans.ordered if (exchange := spans.exchange(operation)) is not None]
    by_id = {exchange.call.id: exchange for exchange in exchanges}
    outer = [
        exchange
        for exchange in exchanges
        if not any(ancestor.id in by_id for ancestor in spans.around(exchange.call)[1:])
    ]
    aside = [exchange for exchange in outer if spans.is_aside(exchange)]
    rest = [exchange for exchange in outer if exchange not in aside]
    hinted = {exchange.call.id for exchange in rest if spans.is_about(exchange, rest)}
    # Where everything in a conversation looks like that, it tells nothing.
    plain_chats = {exchange.chat for exchange in rest if exchange.call.id not in hinted}
    in_dialogue = [
        exchange
        for exchange in rest
        if exchange.call.id not in hinted or (exchange.chat and exchange.chat not in plain_chats) or not plain_chats
    ]
    # The steps of a loop with tools ask the same; the last of them replies.
    steps = {exchange.call.id for exchange, after in pairwise(in_dialogue) if _loop_of(exchange) == _loop_of(after)}
    in_dialogue = [exchange for exchange in in_dialogue if exchange.call.id not in steps]
    return in_dialogue, len(exchanges) - len(in_dialogue) - len(steps)


def _loop_of(exchange: Exchange) -> tuple[str, ...]:
    return exchange.chat, exchange.session, exchange.question, _trace_of(exchange.call)


class _Spans:
    """The operations of a graph, with what surrounds each."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self._graph = graph
        self.ordered = sorted(graph.operations.values(), key=lambda operation: operation.started or 0.0)
        self._of_trace: dict[str, list[Operation]] = defaultdict(list)
        for operation in self.ordered:
            self._of_trace[_trace_of(operation)].append(operation)
        self._shown = {
            text for operation in self.ordered for who, text in self._messages(operation.inputs) if who == ASSISTANT
        }
        facts = (attributes for operation in self.ordered for attributes in (operation.attributes, *_around(operation)))
        self._alike = not any(_usual(attributes, identity) for attributes in facts for identity in (_OWNER, _THREAD))
        self._threaded = any(
            _usual(operation.attributes, _THREAD) for operation in self.ordered if operation.kind == "llm"
        )

    def around(self, operation: Operation) -> list[Operation]:
        """An operation and those it runs in, from the inside out."""
        ancestors = {operation.id: operation}
        while operation.parent in self._graph.operations and operation.parent not in ancestors:
            operation = self._graph.operations[operation.parent]
            ancestors[operation.id] = operation
        return list(ancestors.values())

    def exchange(self, operation: Operation) -> Exchange | None:
        """What an operation asked and replied; None if it is no call to a chat model and no agent."""
        if operation.kind != "llm" and operation.kind not in _AGENTS:
            return None
        questions = [text for who, text in self._messages(operation.inputs) if who != ASSISTANT]
        reply = [text for who, text in self._messages(operation.outputs) if who != USER]
        if operation.kind in _AGENTS and not questions and not reply:
            questions, reply = self._plain(operation.inputs), self._plain(operation.outputs)
        if not questions or not reply:
            return None
        session = self._graph.sessions.get(operation.session or "")
        thread = self._id(operation, _THREAD)
        named = session.name if session is not None else ""
        chat = self._id(operation, _OWNER) or thread or self._id(operation, _TENANT)
        return Exchange(operation, questions[-1], reply[-1], chat, thread or named)

    def is_aside(self, exchange: Exchange) -> bool:
        """Whether a call runs inside a tool, a retrieval or the like."""
        return any(_ASIDE.search(ancestor.kind) for ancestor in self.around(exchange.call))

    def is_about(self, exchange: Exchange, others: Sequence[Exchange]) -> bool:
        """Whether a call looks like one about a dialogue, and its reply is not shown as said in it."""
        if exchange.call.kind in _AGENTS or exchange.reply in self._shown:
            return False
        names = " ".join(ancestor.name for ancestor in self.around(exchange.call))
        system = (self._graph.variables[vid] for _, vid in exchange.call.inputs)
        instructions = " ".join(
            text_of(variable.value)[:_INSTRUCTED] for variable in system if variable.kind == "prompt"
        )
        unthreaded = self._threaded and not _usual(exchange.call.attributes, _THREAD)
        return bool(
            unthreaded
            or _ABOUT.search(names)
            or _ABOUT.search(instructions)
            or _is_json(exchange.reply)
            or any(_quotes(exchange.question, other.question) for other in others if other is not exchange)
        )

    def _messages(self, links: Sequence[Link]) -> Iterator[tuple[str, str]]:
        """Who said what, if the role tells; the import names a message by its role."""
        for role, vid in links:
            variable = self._graph.variables[vid]
            text = text_of(variable.value).strip() if variable.kind == "message" else ""
            if text:
                yield SPEAKERS.get(role.lower(), ""), text

    def _plain(self, links: Sequence[Link]) -> list[str]:
        """The single text among values that are no messages."""
        values = [self._graph.variables[vid].value for _, vid in links]
        texts = [text.strip() for text in values if isinstance(text, str) and text.strip()]
        return texts if len(texts) == 1 else []

    def _id(self, operation: Operation, identity: _Identity) -> str:
        """The value of the first of its attributes: of the span, those around it, what it came with, or its trace.

        Where no span has one by a usual name, it is one whose name is like these.
        """
        named = _alike if self._alike else _usual
        for attributes in (*(ancestor.attributes for ancestor in self.around(operation)), *_around(operation)):
            if identifier := named(attributes, identity):
                return identifier
        rest = {named(operation.attributes, identity) for operation in self._of_trace[_trace_of(operation)]} - {""}
        return rest.pop() if len(rest) == 1 else ""


def _around(operation: Operation) -> list[object]:
    """What an operation came with: facts about its trace and its resource."""
    origin = operation.attributes.get("span")
    return [origin.get(key) for key in ("metadata", "resource")] if isinstance(origin, Mapping) else []


def _usual(facts: object, identity: _Identity) -> str:
    return first_id(facts, identity.usual)


def _alike(facts: object, identity: _Identity) -> str:
    if not isinstance(facts, Mapping):
        return ""
    about = _parsed(facts.get("metadata"))
    merged = {**facts, **about} if isinstance(about, Mapping) else facts
    alike = (name for name in merged if identity.like.fullmatch(_JOINT.sub("_", str(name)).lower()))
    return first_id(merged, [name for name in alike if name != _OF_THE_MACHINE])


def _parsed(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _trace_of(operation: Operation) -> str:
    origin = operation.attributes.get("span")
    return str(origin.get("trace_id", "")) if isinstance(origin, Mapping) else ""


def _is_json(reply: str) -> bool:
    """Whether a reply is data, which nobody is told."""
    fenced = _FENCE.match(reply)
    return isinstance(_parsed(fenced[1] if fenced else reply), dict | list)


def _quotes(message: str, other: str) -> bool:
    """Whether a message holds another whole: behind a colon, in quotes or tags, or as a line of its own."""
    if message == other or len(other.split()) < _QUOTED:
        return False
    at = message.find(other)
    return at >= 0 and (at == 0 or message[:at].rstrip(" ")[-1:] in tuple(":\"'“«>\n"))
