"""What judge, matcher and leak guard make of the replies in each language, and the time that a reply takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from attribution.cases import PASS_SCORE
from attribution.judging.words import judge_reply
from attribution.survival.matching.matcher import Claim, Passage
from attribution.survival.matching.word_matcher import WordMatcher
from attribution.survival.needs import Need
from attribution.text.languages.reading_language import language_of
from benchmarks.languages.reply_pairs import LANGUAGES, ReplyPair, reply_pairs
from benchmarks.matching.replies import Part
from experiments.bench.attribution import Progress
from optimizer.proposers.text_limits import TrainValuesStayOut
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn

Verdict = Callable[[ReplyPair, str], bool]

_PROMPT = "Answer in a few words. For example:\n{reply}\nIf you are not sure, say so."


@dataclass(frozen=True, slots=True)
class Shares:
    """How often right replies are told as right, and wrong ones as wrong; `right` is the mean of both."""

    n: int
    found: float
    rejected: float
    ms_per_reply: float

    @property
    def right(self) -> float:
        return (self.found + self.rejected) / 2


def measure_languages(part: Part, progress: Progress) -> Mapping[str, Mapping[str, Shares]]:
    """Language → `judge`, `matcher` and `guard` → shares of right verdicts on the replies of a part.

    The judge calls a reply right or wrong; the matcher says whether a text of an entry carries the accepted answer; the
    guard refuses an English prompt that tells the answer in the reply's form.
    """
    figures: dict[str, dict[str, Shares]] = {}
    for done, language in enumerate(LANGUAGES, start=1):
        pairs = reply_pairs(part, language)
        verdicts: dict[str, Verdict] = {
            "judge": _is_judged_right,
            "matcher": _matching(pairs),
            "guard": _refusing(pairs),
        }
        figures[language] = {name: _shares(verdict, pairs) for name, verdict in verdicts.items()}
        progress("languages", done, len(LANGUAGES))
    return figures


def _shares(verdict: Verdict, pairs: list[ReplyPair]) -> Shares:
    started = time.perf_counter()
    found = sum(verdict(pair, pair.right) for pair in pairs)
    accepted = sum(verdict(pair, pair.wrong) for pair in pairs)
    spent = time.perf_counter() - started
    n = len(pairs)
    return Shares(2 * n, found / n, 1 - accepted / n, spent * 1000 / (2 * n))


def _question(pair: ReplyPair) -> Question:
    return Question(id="q", question=pair.question, answers=(pair.answer,), evidence=())


def _is_judged_right(pair: ReplyPair, reply: str) -> bool:
    return judge_reply(_question(pair), reply).score >= PASS_SCORE


def _matching(pairs: list[ReplyPair]) -> Verdict:
    """The matcher by words in a conversation whose turns are the replies."""
    texts = [text for pair in pairs for text in (pair.right, pair.wrong)]
    turns = tuple(Turn(id=f"D1:{at}", speaker="?", text=text) for at, text in enumerate(texts))
    session = DialogueSession(id="D1", time="16 May 2024", turns=turns)
    matcher = WordMatcher(Conversation(id="replies", speakers=("?",), sessions=(session,)))

    def carries(pair: ReplyPair, text: str) -> bool:
        need = Need((matcher.vocabulary.content_of(pair.answer),), (), pair.answer)
        (grade,) = matcher.grades(Claim(_question(pair), need), [Passage(text, traced=True)])
        return grade.carries

    return carries


def _refusing(pairs: list[ReplyPair]) -> Verdict:
    """The guard of answers from conversations in the language of the replies."""
    tongue = language_of(text for pair in pairs for text in (pair.right, pair.wrong))

    def refuses(pair: ReplyPair, reply: str) -> bool:
        return bool(TrainValuesStayOut({pair.answer: tongue}, frozenset(), frozenset())(_PROMPT.format(reply=reply)))

    return refuses
