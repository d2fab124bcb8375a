"""A deterministic model on loopback that works without mistakes from annotated conversations: the bench's control.

It reads what it is sent as a model would, at the HTTP boundary, and knows the conversations' gold facts: it extracts
the facts of the turns it sees, decides as annotated on the memories it is shown, and answers with what the first text
about the question says, right or wrong. All errors with it are therefore injected.

A text is about a fact if it has one of the fact's wordings, or its turn with the speaker's name, word for word, with
any value in the place of the answer. So the model shares no judgement of likeness with what it is to measure.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import SecretStr

from benchmarks.injected_faults.trail import as_words
from benchmarks.injected_faults.wordings import Wordings, values_of
from tracing.llm.serving.loopback import LoopbackServer, Request
from tracing.llm.settings import ModelSettings, Role
from tracing.systems.conversations import Conversation, Fact, Question

MODEL = "scripted"
UNKNOWN = "unknown"

_FORMS = ("boundaries", "is_sufficient", "content", "atomic_fact", "profile", "memory")
"""Keys of the replies that EverMemOS, EverOS and Mem0 2.x ask for."""

_NEW = ("New fact: ", "New: ")
"""Before the new fact in a request for a decision."""

_DIMENSIONS = 256
_SHORT = 2
_STEM = 6
_COMMON_WORDS = """
    a an and are as at be but by did do does for from had has have her his how i in is it its many me my now of on or
    our s she so that the their them they this to was we were what when where which who will with you your
"""
_COMMON = frozenset(_COMMON_WORDS.split())


@contextmanager
def serve(model: ScriptedModel) -> Iterator[dict[Role, ModelSettings]]:
    """Serve a model while inside, for chat and embedding; gives the settings that reach it.

    Raises:
        ConfigError: no port can be listened on.
    """
    server = LoopbackServer(
        "memtune scripted model",
        {"POST /v1/chat/completions": model.chat, "POST /v1/embeddings": model.embeddings},
    )
    server.start()
    try:
        settings = ModelSettings(model=MODEL, base_url=server.base_url, api_key=SecretStr(server.key))
        yield {"task": settings, "embedding": settings.model_copy(update={"model": f"{MODEL}-embedding"})}
    finally:
        server.close()


@dataclass(frozen=True, slots=True)
class _Told:
    """What a text says on a matter: the value, and where."""

    place: int
    value: str


class _Matter:
    """What a fact or turn tells, found in texts by its wordings with any value in the place of its answers.

    Args:
        wordings: in which it may be told.
        values: its answers, the canonical one first; without any of them in a wording, the first is what that tells.
    """

    def __init__(self, wordings: Sequence[str], values: Sequence[str]) -> None:
        self._wordings, self._values = wordings, values

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        told = (text.strip().removesuffix(".") for text in self._wordings if len(text.split()) > _SHORT)
        return [_with_any_value(text, self._values) for text in dict.fromkeys(told)]

    def told(self, text: str) -> _Told | None:
        """What a text says first on the matter; None where it says nothing."""
        found = [match for pattern in self._patterns if (match := pattern.search(text)) is not None]
        if not found:
            return None
        first = min(found, key=lambda match: match.start())
        value = next((group for group in first.groups() if group), "")
        accepted = not value or value.casefold() in {each.casefold() for each in self._values}
        return _Told(first.start(), (self._values[0] if self._values else "") if accepted else value)


@dataclass(frozen=True, slots=True)
class _Known:
    """A fact with what it tells, and what the fact that it changes told."""

    fact: Fact
    matter: _Matter
    former: _Matter | None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a question is about: its answer, and what held before; as facts, and as it was said.

    Attributes:
        withdrawn: the answer is that it is not known, and `fact` and `said` are the withdrawal.
    """

    fact: _Matter
    said: _Matter
    former_fact: _Matter
    former_said: _Matter
    withdrawn: bool


class ScriptedModel:
    """The replies; equal requests get equal ones."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self._told = [
            (turn.text, [fact.text for fact in conversation.facts if fact.turn == turn.id])
            for conversation in conversations
            for turn in conversation.turns()
        ]
        self._facts = [known for conversation in conversations for known in _known(Wordings.of(conversation))]
        self._questions = {
            question.question: _asked(question, wordings)
            for wordings in map(Wordings.of, conversations)
            for question in wordings.conversation.questions
        }

    def chat(self, request: Request) -> dict[str, Any]:
        """The route for chats."""
        texts = [str(message["content"]) for message in request.body["messages"]]
        calls = self.calls(texts, request.body["tools"]) if request.body.get("tools") else []
        reply = "" if calls else self.reply("\n".join(texts), json.dumps(request.body.get("response_format") or {}))
        message: dict[str, Any] = {"role": "assistant", "content": reply}
        if calls:
            functions = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in calls]
            asked = [{"id": f"call{at}", "type": "function", "function": f} for at, f in enumerate(functions)]
            message |= {"content": None, "tool_calls": asked}
        read, written = sum(len(text.split()) for text in texts), len(reply.split())
        return {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": 0,
            "model": request.body.get("model"),
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
        }

    def embeddings(self, request: Request) -> dict[str, Any]:
        """The route for embeddings."""
        given = request.body["input"]
        texts = given if isinstance(given, list) else [given]
        data = [{"object": "embedding", "index": at, "embedding": vector_of(text)} for at, text in enumerate(texts)]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        return {"object": "list", "model": request.body.get("model"), "data": data, "usage": usage}

    def reply(self, text: str, schema: str) -> str:
        """The reply to a request, by what it asks for."""
        form = next((key for key in _FORMS if f'"{key}"' in schema), None)
        if form is not None:
            return json.dumps(self._formed(form, text))
        if "new retrieved facts" in text:
            return self._decide_all(text)
        asked_about = next((label for label in _NEW if label in text), None)
        if asked_about is not None:
            memories, _, fact = text.rpartition(asked_about)
            listed = re.findall(r"^(\d+): (.*)$", memories, re.MULTILINE)
            event, at = self._decide(fact.strip(), [memory for _, memory in listed])
            return json.dumps({"event": event, "id": listed[at or 0][0] if listed else ""})
        if "Question: " in text:
            context, _, asked = text.rpartition("Question: ")
            return self._answer(asked.splitlines()[0].strip(), context)
        return json.dumps({"facts": [fact for turn, facts in self._told if turn in text for fact in facts]})

    def calls(self, texts: Sequence[str], tools: Sequence[Mapping[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
        """What is called of LangMem's tools, by the memories that are shown and the messages."""
        found = re.findall(r'<instance id=(\S+) schema_type="Memory">\n(.*)\n</instance>', texts[0])
        memories = [str(ast.literal_eval(memory)["content"]) for _, memory in found]
        calls: list[tuple[str, dict[str, Any]]] = []
        for fact in (fact for turn, facts in self._told if turn in texts[-1] for fact in facts):
            event, at = self._decide(fact, memories)
            changed = {} if at is None else {"json_doc_id": found[at][0]}
            patches = [{"op": "replace", "path": "/content", "value": fact}]
            if event == "ADD":
                calls.append(("Memory", {"content": fact}))
            elif event == "DELETE":
                calls.append(("RemoveDoc", changed))
            elif event == "UPDATE":
                calls.append(("PatchDoc", {**changed, "planned_edits": "-", "patches": patches}))
        return calls

    def _formed(self, form: str, text: str) -> dict[str, Any]:
        """The reply to a request, by a key of its form: nothing is divided, lost or missing."""
        if form == "boundaries":
            return {"reasoning": "", "boundaries": [], "should_wait": False}
        if form == "is_sufficient":
            return {"is_sufficient": True, "key_information_found": [], "missing_information": []}
        if form == "content":
            told = [fact for turn, facts in self._told if turn in text for fact in facts]
            return {"title": "A talk", "content": "\n".join(told)}
        if form == "atomic_fact":
            return {"event_log": {"time": "unknown", "atomic_fact": _episode_in(text).splitlines()}}
        if form == "memory":
            return {"memory": [{"text": fact} for turn, facts in self._told if turn in text for fact in facts]}
        return {"profile": re.findall(r"^(?:- )?(.+\.(?: \(.*\))?)$", text.partition("\n\n")[2], re.MULTILINE)}

    def _decide_all(self, text: str) -> str:
        """The reply to Mem0's request for the decisions on all new facts."""
        blocks = text.split("```")
        facts = [str(fact) for fact in ast.literal_eval(blocks[-2].strip())]
        shown = ast.literal_eval(blocks[1].strip()) if len(blocks) > 3 else []
        items = []
        for fact in facts:
            event, at = self._decide(fact, [str(memory["text"]) for memory in shown])
            items.append({"id": str(shown[at]["id"]) if at is not None else "0", "text": fact, "event": event})
        return json.dumps({"memory": items})

    def _decide(self, text: str, memories: Sequence[str]) -> tuple[str, int | None]:
        """The event for a fact, and the number of the memory it is about."""
        if text in memories:
            return "NONE", memories.index(text)
        for known in self._facts:
            if known.former is None or known.matter.told(text) is None:
                continue
            former = (at for at, memory in enumerate(memories) if known.former.told(memory) is not None)
            if (at := next(former, None)) is not None:
                return ("DELETE" if known.fact.action == "delete" else "UPDATE"), at
        return "ADD", None

    def _answer(self, asked: str, context: str) -> str:
        """What the context says first on the question."""
        about = self._questions.get(asked)
        if about is None:
            return UNKNOWN
        told, said = about.fact.told(context), about.said.told(context)
        former, formerly = about.former_fact.told(context), about.former_said.told(context)
        if about.withdrawn:
            stands = former or formerly
            return stands.value if stands is not None and told is None and said is None else UNKNOWN
        # Facts have no dates to tell which of two holds, messages stand in the order in which they were said.
        first = min((one for one in (told, said, former) if one is not None), key=lambda one: one.place, default=None)
        found = first or formerly
        return found.value if found is not None and found.value else UNKNOWN


def vector_of(text: str) -> list[float]:
    """A vector of length 1 that is near those of texts with the same content words."""
    counts = [0.0] * _DIMENSIONS
    words = {word[:_STEM] for word in re.findall(r"\w+", text.casefold()) if word not in _COMMON}
    for word in sorted(words):
        counts[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % _DIMENSIONS] += 1.0
    length = math.sqrt(sum(x * x for x in counts))
    return [x / length for x in counts] if length else [1.0, *counts[1:]]


def _episode_in(request: str) -> str:
    """The episode whose facts are asked for, as EverOS or EverMemOS show it."""
    shown = re.search(r'- EPISODE_TEXT: "(.+)"\n- TIME: "', request, re.DOTALL)
    return shown[1] if shown is not None else request.partition("Text:\n")[2]


def _known(wordings: Wordings) -> Iterator[_Known]:
    conversation = wordings.conversation
    matters = {
        fact.id: _Matter(
            wordings.of_fact[fact.id], [each for values in values_of(fact, conversation) for each in values]
        )
        for fact in conversation.facts
    }
    for fact in conversation.facts:
        yield _Known(fact, matters[fact.id], matters.get(fact.of or ""))


def _asked(question: Question, wordings: Wordings) -> _Asked:
    facts = {fact.id: fact for fact in wordings.conversation.facts}
    fact = facts.get(question.fact or "")
    former = facts.get(fact.of or "") if fact is not None else None
    near = question.near_miss
    values = () if question.unanswerable else question.answers
    former_values = (near.value,) if near is not None and former is not None and near.turn == former.turn else ()

    def told(fact: Fact | None, values: Sequence[str]) -> _Matter:
        return _Matter(wordings.of_fact[fact.id] if fact is not None else (), values)

    def said(turns: Sequence[str], values: Sequence[str]) -> _Matter:
        return _Matter([turn.spoken for turn in wordings.conversation.turns() if turn.id in turns], values)

    return _Asked(
        told(fact, values),
        said(question.evidence, values),
        told(former, former_values),
        said([former.turn] if former is not None else [], former_values),
        question.unanswerable,
    )


def _with_any_value(text: str, values: Sequence[str]) -> re.Pattern[str]:
    """Finds a text with any value in the place of the first of these values that is in it."""
    for value in sorted(values, key=len, reverse=True):
        found = as_words(value).search(text)
        if found is not None:
            rest = re.escape(text[found.end() :]) or r"(?=[.,;\n]|$)"
            return re.compile(re.escape(text[: found.start()]) + r"([^\n]+?)" + rest)
    return re.compile(re.escape(text))
