"""The author: a model that drafts a question with its answer from cited turns, and that answers drafts to test them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from attribution.text.dates import spans_of
from experiments.data.generating.values import Values
from experiments.data.published.locomo import NOT_TOLD
from optimizer.evaluation.memories import digest
from tracing.llm.reply_json import object_in
from tracing.package_data import packaged_tables
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace
from tracing.systems.conversations import NearMiss, Question

if TYPE_CHECKING:
    from experiments.data.generating.citations import Citation
    from experiments.data.generating.dialogue import Dialogue
    from tracing.llm.models import ChatModel

_PROMPTS = packaged_tables("experiments", "data/generating/prompts.toml")
_COPIED = ("fact", "change", "taken_back")
"""Kinds of which the answer is copied from one turn."""
DRAFT_TOKENS, ANSWER_TOKENS = 160, 40
"""The longest replies."""


class QuestionAuthor:
    """Asks one model for drafts, and for answers from given turns. The same request always has the same reply."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    def draft(self, dialogue: Dialogue, citation: Citation) -> Question | None:
        """A question of the kind of a citation, not yet tested; None if the model has nothing to ask.

        Raises:
            CallFailedError, BudgetExceededError: as `ChatModel.chat`.
        """
        request, schema = draft_request(dialogue, citation), _schema(dialogue, citation)
        reply = object_in(self._text("draft", request, DRAFT_TOKENS, schema=schema)) or {}
        texts = [" ".join(value.split()) if isinstance(value, str) else "" for value in map(reply.get, _KEYS)]
        question, answer = texts[0], texts[1].strip(" .\"'")
        return _drafted(dialogue, citation, question, answer) if question and answer else None

    def answer(self, dialogue: Dialogue, question: str, turns: Iterable[str]) -> str:
        """The reply to a question from these turns alone; without any, what the model guesses. Raises as `draft`."""
        lines = dialogue.lines(turns)
        request = _PROMPTS["ask" if lines else "blind"].format(messages=lines, question=question)
        return self._text("ask", request, ANSWER_TOKENS).strip()

    def _text(self, name: str, request: str, max_tokens: int, **options: Any) -> str:
        # A separate trace: nothing of a memory system is recorded, but the cost has its own name in the meter.
        with trace(), operation(name, kind="llm"):
            messages = [{"role": "user", "content": request}]
            reply = self._model.chat(messages, max_tokens=max_tokens, temperature=0.0, whole=False, **options)
        return reply.text


_KEYS = ("question", "answer")


def prompts_digest() -> str:
    """Tells the texts with which the author is asked apart from those of another version."""
    return digest(_PROMPTS)


def _schema(dialogue: Dialogue, citation: Citation) -> Mapping[str, Any]:
    """The form of a draft; the answer is one of the values of the turn from which it is to be copied.

    Nothing to ask is an empty question: small models chose an empty answer wherever they might.
    """
    schema: Mapping[str, Any] = _PROMPTS["schema"]
    if citation.kind not in _COPIED:
        return schema
    values = Values(dialogue).of(dialogue.turns[citation.turns[0 if citation.kind == "taken_back" else -1]])
    answer = {"enum": values} if values else schema["properties"]["answer"]
    return {**schema, "properties": {"answer": answer, "question": schema["properties"]["question"]}}


def draft_request(dialogue: Dialogue, citation: Citation) -> str:
    """What the author is asked for a draft: cited turns, and before a single one the turn that it may reply to."""
    kind, last = _PROMPTS["kinds"][citation.kind], dialogue.turns[citation.turns[-1]]
    before = dialogue.before(last.id) if len(citation.turns) == 1 else None
    shown = (*citation.turns, *([before.id] if before is not None else []))
    speakers = " and ".join(dialogue.conversation.speakers)
    return str(_PROMPTS["draft"]).format(
        example=kind["example"],
        example_task=kind["task"].format(speaker="Ana", speakers="Ana and Bo"),
        example_reply=kind["reply"],
        messages=dialogue.lines(shown, dated=False),
        task=kind["task"].format(speaker=last.speaker, speakers=speakers),
    )


def _drafted(dialogue: Dialogue, citation: Citation, question: str, answer: str) -> Question:
    values: dict[str, Any] = {"answers": (answer,), "near_miss": None}
    if citation.kind == "taken_back":
        values |= {"answers": NOT_TOLD, "near_miss": NearMiss(turn=citation.turns[0], value=answer)}
    if citation.kind == "time":
        values["answers"] = dates_for(answer, dialogue.days[citation.turns[-1]]) or (answer,)
    return Question(
        id="",
        question=question,
        kind=citation.kind,
        supersedes=citation.kind == "change",
        unanswerable=citation.kind == "taken_back",
        evidence=citation.turns,
        source="generated",
        **values,
    )


def dates_for(text: str, spoken_on: date | None) -> tuple[str, ...]:
    """The day, month or year that a text names, in the usual forms, and as it was said where that depends on no day."""
    spans = spans_of(text, spoken_on)
    if len(spans) != 1:
        return ()
    first, last = map(date.fromordinal, spans[0])
    absolute = (text,) if spans_of(text) == spans else ()
    forms: tuple[str, ...] = ()
    if first == last:
        forms = (f"{first.day} {first:%B %Y}", f"{first:%B} {first.day}, {first.year}", f"{first:%Y-%m-%d}")
    elif (first.day, first.month, first.year) == (1, last.month, last.year) and (last - first).days >= 27:
        forms = (f"{first:%B %Y}",)
    elif (first.month, first.day, last.month, last.day) == (1, 1, 12, 31) and first.year == last.year:
        forms = (f"{first.year}",)
    return tuple(dict.fromkeys((*forms, *absolute)))
