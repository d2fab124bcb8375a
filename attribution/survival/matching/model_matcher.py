"""The matcher that asks a chat model whether a text carries a claim, and believes it as far as it can be believed.

A model is tried on claims and replies whose verdict is known first: a small one may call every text silent, or every
reply right. So a verdict that a text carries a claim, or that it does not, counts only if nearly all of the model's
verdicts of that kind are right where they are known. A reply is called right above the margin that hardly any known
wrong one reaches, and wrong below the one that hardly any right one falls under. Where the model does not count, words
decide.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from attribution.constants import BELIEVED, FEWEST_TOLD, MISJUDGED
from attribution.judging.llm_judge import LlmJudge, replied_value, request
from attribution.survival.matching.known_verdicts import known_pairs, known_replies
from attribution.survival.matching.matcher import Claim, Grade, Passage
from attribution.survival.matching.reviewed_matcher import ReviewedMatcher
from attribution.survival.matching.word_matcher import WordMatcher
from attribution.text.content import content_of
from tracing.package_data import packaged_tables
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace
from tracing.systems.conversations import Question

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess
    from tracing.llm.models import ChatModel
    from tracing.llm.threads import Threads
    from tracing.systems.conversations import Conversation, Turn

MOST_ASKED = 4
"""Texts of one stage that the model is asked about, the likeliest first; the others carry nothing."""

_SURE = 0.95
_REPLY_TOKENS = 60
_LONGEST_TEXT = 2000
_PROMPTS = packaged_tables("attribution", "prompts.toml")["matcher"]

_log = logging.getLogger(__name__)


def tells(model: ChatModel, question: str, content: str, text: str) -> bool | None:
    """Whether a text tells a content, by a model at temperature 0; None if its reply is neither yes nor no."""
    messages = request(_PROMPTS["task"], question=question, content=content, text=text[:_LONGEST_TEXT])
    with trace(), operation("matcher", kind="llm"):
        verdict = replied_value(model, messages, _PROMPTS["schema"], "tells", max_tokens=_REPLY_TOKENS)
    return verdict if isinstance(verdict, bool) else None


class Margins(NamedTuple):
    """From where on a judge's margin is a verdict: right above the one, wrong below the other, and none between."""

    right: float
    wrong: float

    def verdict(self, margin: float) -> bool | None:
        """What a margin says; None for nothing."""
        return True if margin > self.right else False if margin < self.wrong else None


_NEVER = Margins(math.inf, -math.inf)


def margins_of(right: Sequence[float], wrong: Sequence[float]) -> Margins:
    """The margins beyond which a further wrong reply, or right one, lies with a chance of at most `MISJUDGED`.

    If that leaves a gap that either verdict would fit, its middle parts them. A verdict that would be given to less
    than `FEWEST_TOLD` of the replies that deserve it does not count: beyond such a margin chance alone leaves no
    wrong one.
    """
    above, below = _seldom_exceeded(wrong), -_seldom_exceeded([-margin for margin in right])
    if above < below:
        above = below = (above + below) / 2
    tells_right = sum(margin > above for margin in right) >= FEWEST_TOLD * len(right)
    tells_wrong = sum(margin < below for margin in wrong) >= FEWEST_TOLD * len(wrong)
    return Margins(above if tells_right else math.inf, below if tells_wrong else -math.inf)


def _seldom_exceeded(margins: Sequence[float]) -> float:
    """What a further margin like these exceeds with a chance of at most `MISJUDGED`; infinite if they are too few.

    Split conformal prediction (Vovk et al. 2005, Algorithmic Learning in a Random World).
    """
    rank = int(MISJUDGED * (len(margins) + 1))
    return sorted(margins, reverse=True)[rank - 1] if rank else math.inf


def believed(verdicts: Sequence[tuple[bool | None, bool]]) -> frozenset[bool]:
    """Which verdicts count, by pairs of a verdict and the truth."""
    truths = {kind: [truth for verdict, truth in verdicts if verdict is kind] for kind in (True, False)}
    return frozenset(kind for kind, truth in truths.items() if truth and truth.count(kind) >= BELIEVED * len(truth))


class CheckedModel:
    """A chat model's verdicts, as far as they count. What counts is found out when it is first needed."""

    def __init__(self, model: ChatModel, threads: Threads) -> None:
        self._model, self._threads = model, threads
        self._judge = LlmJudge(model)
        self._margins: Margins | None = None
        self._believed: dict[str, frozenset[bool]] = {}
        self._checking = threading.Lock()

    def tells(self, question: str, content: str, text: str, language: str) -> bool | None:
        """Whether a text tells a content; None if the model does not know, or is not believed."""
        counting = self.counting(language)
        verdict = tells(self._model, question, content, text) if counting else None
        return verdict if verdict in counting else None

    def right(self, question: Question, reply: str) -> bool | None:
        """Whether a reply is right; None if the model does not know, or is not believed."""
        counting = self._calibrated()
        if counting == _NEVER:
            return None
        margin = self._judge.opinion(question, reply).margin
        return None if margin is None else counting.verdict(margin)

    def counting(self, language: str) -> frozenset[bool]:
        """Which of the two verdicts on a text count in a language."""
        with self._checking:
            if language not in self._believed:
                pairs = known_pairs(language)
                verdicts = self._threads.map(
                    lambda pair: tells(self._model, pair.question, pair.answer, pair.text), pairs
                )
                counting = believed([(verdict, pair.carries) for verdict, pair in zip(verdicts, pairs, strict=True)])
                if not counting:
                    self._warn("whether a text tells an answer")
                self._believed[language] = counting
            return self._believed[language]

    def _calibrated(self) -> Margins:
        with self._checking:
            if self._margins is None:
                self._judge.calibrate(
                    (_question(question, answer), reply)
                    for question, answer, wrong in _PROMPTS["plain"]
                    for reply in (answer, wrong)
                )
                replies = [
                    (_question(twins.question, twins.answer), reply)
                    for twins in known_replies()
                    for reply in (twins.right, twins.wrong)
                ]
                margins = list(self._threads.map(lambda pair: self._judge.opinion(*pair).margin, replies))
                # Where it says nothing it is neither right nor wrong.
                right, wrong = ([0.0 if margin is None else margin for margin in margins[at::2]] for at in (0, 1))
                self._margins = margins_of(right, wrong)
                if self._margins == _NEVER:
                    self._warn("whether a reply is right")
            return self._margins

    def _warn(self, what: str) -> None:
        _log.warning(
            "the model %s cannot tell %s, where that is known; words decide, since the matcher llm needs more",
            self._model.settings.model,
            what,
        )


def _question(question: str, answer: str) -> Question:
    return Question(id="known", question=question, answers=(answer,), evidence=())


_CHECKED_MODELS: WeakKeyDictionary[ModelAccess, CheckedModel] = WeakKeyDictionary()
_MAKING = threading.Lock()


def checked_model_of(access: ModelAccess) -> CheckedModel:
    """The checked judge of an access: one for all conversations."""
    with _MAKING:
        return _CHECKED_MODELS.setdefault(access, CheckedModel(access.judge, access.threads))


class ModelOpinions:
    """Opinions of a chat model on what the turns of a conversation tell."""

    def __init__(self, conversation: Conversation, language: str, model: CheckedModel) -> None:
        self._turns = {turn.id: turn for turn in conversation.turns()}
        self._language, self._model = language, model

    def worth(self, claim: Claim, texts: Sequence[str]) -> Sequence[bool]:
        """Those that share most words with what the need's turns say."""
        evidence_words = content_of("\n".join(turn.text for turn in self._evidence_of(claim)))
        shared = [len(evidence_words & content_of(text)) for text in texts]
        least = sorted(shared, reverse=True)[:MOST_ASKED][-1] if shared else 0
        return [count >= max(1, least) for count in shared]

    def opinions(self, claim: Claim, passages: Sequence[Passage], grades: Sequence[Grade]) -> Sequence[float | None]:
        """What the model says of the likeliest texts; the others, if words would match them, are no match.

        Where it is not believed that a text does not carry a claim, words decide on the others too.
        """
        near = [
            grade.carries + grade.coverage + grade.about + passage.traced
            for passage, grade in zip(passages, grades, strict=True)
        ]
        likeliest = sorted(range(len(passages)), key=lambda at: (-near[at], at))[:MOST_ASKED]
        denies = False in self._model.counting(self._language)
        return [
            self._tells(claim, passage) if at in likeliest else (0.0 if denies and grades[at].carries else None)
            for at, passage in enumerate(passages)
        ]

    def right(self, question: Question, reply: str) -> bool | None:
        """The model's verdict on a reply; None where it abstains, or is not believed."""
        return self._model.right(question, reply)

    def _tells(self, claim: Claim, passage: Passage) -> float | None:
        content = claim.need.label
        if claim.need.basis == "implied":
            content = " ".join(turn.spoken for turn in self._evidence_of(claim))
        tells = self._model.tells(claim.question.question, content, passage.text, self._language)
        return None if tells is None else _SURE if tells else 1 - _SURE

    def _evidence_of(self, claim: Claim) -> list[Turn]:
        return [self._turns[turn] for turn in claim.need.turns if turn in self._turns]


def by_asking(conversation: Conversation, access: ModelAccess) -> ReviewedMatcher:
    """The matcher that asks the judge's model of `access`."""
    words = WordMatcher(conversation)
    return ReviewedMatcher(words, ModelOpinions(conversation, words.language, checked_model_of(access)))
