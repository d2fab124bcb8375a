"""The author: a model that drafts a question with its answer from cited turns, and that answers drafts to test them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from experiments.data.generating.citations import Citation
from experiments.data.generating.dialogue import Dialogue, in_quotes
from experiments.data.generating.values import dates_for
from experiments.data.published.locomo import NOT_TOLD
from optimizer.evaluation.memories import digest
from tracing.llm.models import ChatModel
from tracing.package_data import packaged_tables
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace
from tracing.systems.conversations import NearMiss, Question

_PROMPTS = packaged_tables("experiments", "data/generating/prompts.toml")
DRAFT_TOKENS, ANSWER_TOKENS = 48, 24
"""The longest replies."""


class QuestionAuthor:
    """Asks one model for drafts, and for answers from given turns. The same request always has the same reply."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    def draft(self, dialogue: Dialogue, citation: Citation) -> Question | None:
        """A question with the answer of a citation, not yet tested; None if the model has nothing to ask.

        Raises:
            CallFailedError, BudgetExceededError: as `ChatModel.chat`.
        """
        reply = self._text("draft", draft_request(dialogue, citation), DRAFT_TOKENS)
        line = next((line for line in reply.splitlines() if line.rstrip(' "').endswith(("?", "？"))), "")
        question = " ".join(line.strip(' "*').removeprefix(_LABEL).split())
        return _drafted(dialogue, citation, question) if question else None

    def answer(self, dialogue: Dialogue, question: str, turns: Iterable[str], *, dated: bool = False) -> str:
        """The reply to a question from these turns alone; without any, what the model guesses. Raises as `draft`.

        Unless they are `dated`, a time is told as it was said: small models reckon days wrongly.
        """
        lines = dialogue.lines(turns, dated=dated)
        request = _PROMPTS["ask" if lines else "blind"].format(messages=lines, question=question)
        return self._text("ask", [{"role": "user", "content": request}], ANSWER_TOKENS).strip()

    def _text(self, name: str, messages: Sequence[Mapping[str, str]], max_tokens: int) -> str:
        # A separate trace: nothing of a memory system is recorded, but the cost has its own name in the meter.
        with trace(), operation(name, kind="llm"):
            reply = self._model.chat(messages, max_tokens=max_tokens, temperature=0.0, whole=False)
        return reply.text


_LABEL = "Question: "


def prompts_digest() -> str:
    """Tells the texts with which the author is asked apart from those of another version."""
    return digest(_PROMPTS)


def draft_request(dialogue: Dialogue, citation: Citation) -> list[dict[str, str]]:
    """What the author is asked for a draft: examples of all kinds, then cited turns, sentences and the answer."""
    shown = dialogue.lines(citation.turns, dated=False)
    speakers = _among(dialogue.conversation.speakers)
    return [*_examples(), _turn("user", _form(citation.kind, shown, citation.sentences, citation.answer, speakers))]


@cache
def _examples() -> tuple[dict[str, str], ...]:
    messages: list[dict[str, str]] = []
    for example in _PROMPTS["examples"]:
        lines = "\n".join(f"{speaker}: {in_quotes(text)}" for speaker, text in example["messages"])
        form = _form(example["kind"], lines, example["sentences"], example["answer"], _among(("Ana", "Bo")))
        messages += [_turn("user", form), _turn("assistant", example["question"])]
    # Not every model takes a system message.
    messages[0] = _turn("user", f"{_PROMPTS['draft']}\n\n{messages[0]['content']}")
    return tuple(messages)


def _form(kind: str, lines: str, sentences: Iterable[str], answer: str, speakers: str) -> str:
    task = _PROMPTS["tasks"][kind].format(speakers=speakers)
    return str(_PROMPTS["form"]).format(
        messages=lines, sentences=" ".join(map(in_quotes, sentences)), task=task, answer=in_quotes(answer)
    )


def _turn(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def _among(speakers: Sequence[str]) -> str:
    return " and ".join(speakers)


def _drafted(dialogue: Dialogue, citation: Citation, question: str) -> Question:
    answer = citation.answer
    values: dict[str, Any] = {"answers": (answer,), "near_miss": None}
    if citation.kind == "taken_back":
        values |= {"answers": NOT_TOLD, "near_miss": NearMiss(turn=citation.turns[0], value=answer)}
    if citation.kind == "time":
        values["answers"] = dates_for(answer, dialogue.days[citation.turns[-1]])
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
