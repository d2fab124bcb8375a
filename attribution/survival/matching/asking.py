"""The matcher that asks a chat model whether a text carries a claim: a structured yes or no, cached and budgeted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attribution.judging.llm_judge import LlmJudge
from attribution.survival.matching.matcher import Claim, Grade, Passage
from attribution.survival.matching.reviewed import Reviewed
from attribution.survival.matching.words import WordMatcher
from attribution.text.content import content_of
from tracing.errors import MalformedReplyError
from tracing.llm.http.strict_json import strict_json
from tracing.recording.recorder import operation, trace
from tracing.systems.conversations import Question

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess
    from tracing.llm.models import ChatModel
    from tracing.systems.conversations import Conversation, Turn

MOST_ASKED = 4
"""Texts of one stage that the model is asked about, the likeliest first; the others carry nothing."""

_REPLY_TOKENS = 60
_LONGEST_TEXT = 2000
_SURE = 0.95
_TASK = """Does a text tell what it takes to answer a question? Judge by meaning: other words, another language, \
another form of a date or number are all fine. It does not if it says the contrary, tells it of another person or of \
another time, exchanges who did what to whom, tells of a plan where a fact is asked for, or leaves the answer open.

Question: {question}
What the text has to tell: {content}
Text: {text}

Reply with JSON: {{"tells": true}} or {{"tells": false}}."""
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"tells": {"type": "boolean"}},
    "required": ["tells"],
    "additionalProperties": False,
}
_PLAIN = (
    ("Which pet does Rosa have?", "a tortoise", "a parrot"),
    ("In which city does Emil live?", "Bergen", "Lyon"),
    ("What does Vera play?", "the cello", "football"),
    ("When did the shop open?", "in June 2019", "last winter"),
    ("How many sisters does Kofi have?", "three", "none"),
    ("What is Lena's job?", "a baker", "she repairs clocks"),
)
"""Questions with an accepted answer and a wrong one, which a judge is calibrated on."""


class Asked:
    """Opinions of a chat model.

    Args:
        conversation: whose turns say what is to be told.
        model: asked at temperature 0.
    """

    def __init__(self, conversation: Conversation, model: ChatModel) -> None:
        self._turns = {turn.id: turn for turn in conversation.turns()}
        self._model = model
        self._judge: LlmJudge | None = None

    def worth(self, claim: Claim, texts: Sequence[str]) -> Sequence[bool]:
        """Those that share most words with what the need's turns say."""
        said = content_of("\n".join(turn.text for turn in self._said(claim)))
        shared = [len(said & content_of(text)) for text in texts]
        least = sorted(shared, reverse=True)[:MOST_ASKED][-1] if shared else 0
        return [count >= max(1, least) for count in shared]

    def opinions(self, claim: Claim, passages: Sequence[Passage], grades: Sequence[Grade]) -> Sequence[float | None]:
        """What the model says of the likeliest texts; the others, if words would match them, are no match."""
        near = [
            grade.carries + grade.coverage + grade.about + passage.traced
            for passage, grade in zip(passages, grades, strict=True)
        ]
        likeliest = sorted(range(len(passages)), key=lambda at: (-near[at], at))[:MOST_ASKED]
        return [
            self._tells(claim, passage) if at in likeliest else (0.0 if grades[at].carries else None)
            for at, passage in enumerate(passages)
        ]

    def right(self, question: Question, reply: str) -> bool | None:
        """The verdict of a calibrated judge; None where it abstains."""
        if self._judge is None:
            judge = LlmJudge(self._model)
            judge.calibrate(
                (Question(id="q", question=asked, answers=(answer,), evidence=()), said)
                for asked, answer, wrong in _PLAIN
                for said in (answer, wrong)
            )
            self._judge = judge
        margin = self._judge.opinion(question, reply).margin
        return None if margin is None else margin > 0

    def _tells(self, claim: Claim, passage: Passage) -> float | None:
        content = claim.need.label
        if claim.need.basis == "implied":
            content = " ".join(turn.spoken for turn in self._said(claim))
        # As JSON strings, so that a text cannot pass for a part of the task.
        asked, told, text = (
            json.dumps(each, ensure_ascii=False)
            for each in (claim.question.question, content, passage.text[:_LONGEST_TEXT])
        )
        with trace(), operation("matcher", kind="llm"):
            said = self._model.chat(
                [{"role": "user", "content": _TASK.format(question=asked, content=told, text=text)}],
                max_tokens=_REPLY_TOKENS,
                schema=_SCHEMA,
                temperature=0.0,
                whole=False,
            )
        try:
            tells = strict_json(said.text)["tells"]
        except (MalformedReplyError, KeyError, TypeError):
            return None
        return {True: _SURE, False: 1 - _SURE}.get(tells) if isinstance(tells, bool) else None

    def _said(self, claim: Claim) -> list[Turn]:
        return [self._turns[turn] for turn in claim.need.turns if turn in self._turns]


def by_asking(conversation: Conversation, access: ModelAccess) -> Reviewed:
    """The matcher that asks the judge's model of `access`."""
    return Reviewed(WordMatcher(conversation), Asked(conversation, access.judge))
