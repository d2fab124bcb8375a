"""What a draft must be to become a question: tests without a model first, then tests that ask the author.

A test that fails gives the reason for which the draft is dropped. The order is that of the table, the cheap ones first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from typing import TYPE_CHECKING

from attribution.gold_answers.claim import claim_of
from attribution.judging.words import judge
from attribution.text.content import content_of
from attribution.text.dates import same_time, spans_of
from attribution.text.languages.reading_language import language, reading
from attribution.text.names import is_name, names_in
from attribution.text.phrases import clauses_of, list_patterns, says_retracted, says_unknown
from attribution.text.question_kinds import asks_a_name, is_count, is_yes_or_no
from attribution.text.stems import is_number
from attribution.text.tokens import contains, word_count
from experiments.data.generating.citations import stated
from tracing.package_data import packaged_tables
from tracing.systems.conversations import NearMiss, Question

if TYPE_CHECKING:
    from experiments.data.generating.author import QuestionAuthor
    from experiments.data.generating.dialogue import Dialogue

_WORDS = packaged_tables("experiments", "data/generating/prompts.toml")
_LONGEST_ANSWER = 6
_TOPIC_WORDS = 2
_PART = 0.5
"""The least share of an answer, by weight, that a shorter reply may give."""
_SOME_DAY = date(2024, 2, 15)
"""What names a day only by when it is said, names one on this."""

_NEAREST, _OTHERS = 3, 5
"""Among how many likeliest turns the cited ones must be; how many others the author reads beside them."""


@dataclass(frozen=True)
class Trial:
    """One draft under test, and the replies to it; each is asked for once."""

    dialogue: Dialogue
    draft: Question
    author: QuestionAuthor

    @property
    def value(self) -> str:
        """What the cited turns say, also where it was taken back."""
        return self.draft.near_miss.value if self.draft.near_miss is not None else self.draft.answers[0]

    @cached_property
    def nearest(self) -> Sequence[str]:
        """The turns likeliest to answer the question."""
        return self.dialogue.found(self.draft.question, _NEAREST + _OTHERS)

    def reply(self, turns: Iterable[str]) -> str:
        """The author's answer from these turns."""
        return self.author.answer(self.dialogue, self.draft.question, turns)

    def is_right(self, reply: str, *, value: bool = False) -> bool:
        """Whether a reply gives the answer, or a good part of it; or the value that was taken back."""
        if self.draft.unanswerable and not value:
            return says_unknown(reply)
        if self.draft.kind == "time" and (gold := spans_of(self.draft.answers[0])):
            day = self.dialogue.days[self.draft.evidence[-1]]
            return any(same_time(span, gold[0]) for span in spans_of(reply, day))
        answers = (self.value,) if value else self.draft.answers
        if self.draft.kind == "several_turns":
            return all(content_of(answer) <= content_of(reply) for answer in answers)
        return judge(reply, answers).score == 1 or any(self._is_part(reply, answer) for answer in answers)

    def covers(self, words: frozenset[str]) -> float:
        """The share of what a reply says, by weight, that the answer says: an item of a list is no whole answer."""
        return self.dialogue.vocabulary.coverage(words, frozenset().union(*map(content_of, self.draft.answers)))

    def _is_part(self, reply: str, answer: str) -> bool:
        share = self.dialogue.vocabulary.coverage(content_of(answer), content_of(reply))
        return share >= _PART and contains(answer, reply)


Check = Callable[[Trial], bool]


def _answer_is_cited(trial: Trial) -> bool:
    """Every word of the answer is in the cited turns: for a time as it resolves, for a person as who speaks."""
    cited = [trial.dialogue.turns[turn] for turn in trial.draft.evidence]
    if trial.draft.kind == "who":
        return contains(cited[-1].speaker, trial.value)
    if trial.draft.kind == "time":
        gold, day = spans_of(trial.value), trial.dialogue.days[trial.draft.evidence[-1]]
        return len(gold) == 1 and gold[0] in spans_of(cited[-1].text, day)
    if trial.draft.kind == "several_turns":
        parts = [part for part in list_patterns(language())["between"].split(trial.value) if content_of(part)]
        says = [{turn.id for turn in cited if content_of(part) <= content_of(turn.text)} for part in parts]
        return all(says) and len(set().union(*says)) == len(cited) if says else False
    return contains(stated(cited[0] if trial.draft.unanswerable else cited[-1]), trial.value)


def _answer_is_short(trial: Trial) -> bool:
    longest = 2 * _LONGEST_ANSWER if trial.draft.kind == "several_turns" else _LONGEST_ANSWER
    return word_count(trial.value) <= longest and bool(content_of(trial.value))


def _question_asks(trial: Trial) -> bool:
    """It asks about a matter, not for yes or no, and does not hold what it asks for."""
    question, topic = trial.draft.question, claim_of(trial.draft, trial.dialogue.talk).topic
    held = trial.draft.kind != "who" and content_of(trial.value) & content_of(question)
    particular = len(topic) >= _TOPIC_WORDS or any(map(trial.dialogue.is_rare, topic))
    return not held and particular and not is_yes_or_no(trial.draft) and "?" in question


def _names_its_subject(trial: Trial) -> bool:
    """It names a speaker or somebody else, and points at nothing that it does not name."""
    claim = claim_of(trial.draft, trial.dialogue.talk)
    named = trial.draft.kind == "who" or claim.person == trial.dialogue.turns[trial.draft.evidence[-1]].speaker
    named = named or bool(names_in(trial.draft.question) - trial.dialogue.talk.names)
    speaks = _matches("own", trial.draft.question) or _matches("addressed", trial.draft.question)
    return named and not speaks and not points_outside(trial.draft.question)


def points_outside(question: str) -> bool:
    """Whether a question, in the language that is read, has a word for a thing or a day that it does not name."""
    return _matches("dangling", question) or _is_relative(question)


def _is_relative(text: str) -> bool:
    """Whether a text names a time that depends on when it is said."""
    return bool(spans_of(text, _SOME_DAY)) and not spans_of(text)


def _is_of_the_speaker(trial: Trial) -> bool:
    """The clause that tells the answer is not about whom it speaks to."""
    telling = trial.dialogue.turns[trial.draft.evidence[0 if trial.draft.unanswerable else -1]]
    clauses = [clause for clause in clauses_of(telling.text) if content_of(trial.value) & content_of(clause)]
    return not any(_matches("addressed", clause) and not _matches("own", clause) for clause in clauses)


def _matches(key: str, question: str) -> bool:
    return _pattern(key, language()).search(question) is not None


@cache
def _pattern(key: str, read: str) -> re.Pattern[str]:
    return re.compile(_WORDS[key].get(read, "(?!)"), re.IGNORECASE)


def _answer_fits(trial: Trial) -> bool:
    """The answer is of the sort that the question asks for: a name, a number, a time."""
    words = content_of(trial.value)
    if trial.draft.kind in ("time", "who"):
        return True
    if is_count(trial.draft):
        return any(map(is_number, words))
    if asks_a_name(trial.draft):
        return any(map(is_name, trial.value.split()))
    return not _is_relative(trial.value) and any(is_number(word) or trial.dialogue.is_rare(word) for word in words)


def _is_found(trial: Trial) -> bool:
    """Of all turns the cited ones are among the likeliest for the question, so it is about them and about no others."""
    return trial.draft.evidence[-1] in trial.nearest[:_NEAREST]


def _passes_the_audit(trial: Trial) -> bool:
    """`memtune data audit --gold` would find nothing against it."""
    return trial.dialogue.audit.suspicion(trial.draft) is None


def _cited_suffice(trial: Trial) -> bool:
    reply = trial.reply(trial.draft.evidence)
    if trial.draft.unanswerable:
        return says_retracted(trial.dialogue.turns[trial.draft.evidence[-1]].text) and trial.is_right(reply)
    more = content_of(reply) - content_of(trial.draft.question)
    whole = trial.draft.kind == "time" or not more or trial.covers(more) >= _PART
    return whole and trial.is_right(reply)


def _needs_the_turns(trial: Trial) -> bool:
    """Nobody guesses it; between two people a guess says nothing."""
    return trial.draft.kind == "who" or not trial.is_right(trial.reply(()), value=True)


def _needs_each_turn(trial: Trial) -> bool:
    """Of two cited turns, the first alone gives another answer, or only a part."""
    draft = trial.draft
    if len(draft.evidence) == 1:
        return True
    first = trial.reply(draft.evidence[:1])
    if draft.kind == "taken_back":
        return trial.is_right(first, value=True)
    if draft.kind == "change":
        earlier = trial.dialogue.turns[draft.evidence[0]]
        return not trial.is_right(first) and not says_unknown(first) and contains(earlier.text, first)
    return not any(content_of(trial.value) <= content_of(trial.reply((turn,))) for turn in draft.evidence)


def _others_agree(trial: Trial) -> bool:
    """Beside the turns that are nearest to the question, the answer is still the same."""
    others = [turn for turn in trial.nearest if turn not in trial.draft.evidence][:_OTHERS]
    return trial.is_right(trial.reply((*trial.draft.evidence, *others)))


CHECKS: Sequence[tuple[str, Check]] = (
    ("the answer is not in the cited turns", _answer_is_cited),
    ("the answer is too long", _answer_is_short),
    ("the question asks for nothing particular", _question_asks),
    ("the question does not name its subject", _names_its_subject),
    ("the answer is not of the sort that is asked for, or nothing particular", _answer_fits),
    ("the answer is told of the one who is spoken to", _is_of_the_speaker),
    ("other turns are nearer to the question", _is_found),
    ("the audit of gold answers speaks against it", _passes_the_audit),
    ("asked with the cited turns alone, the answer is another", _cited_suffice),
    ("asked without any turn, the answer is the same", _needs_the_turns),
    ("one of the cited turns is not needed", _needs_each_turn),
    ("asked with other turns too, the answer is another", _others_agree),
)
"""The reason for which a draft is dropped, and what must hold of it."""


def objection(trial: Trial) -> str | None:
    """Why a draft is dropped; None if it passes every test.

    Raises:
        CallFailedError, BudgetExceededError: of the author.
    """
    with reading(trial.dialogue.language):
        return next((reason for reason, holds in CHECKS if not holds(trial)), None)


def with_near_miss(trial: Trial) -> Question:
    """A question that passed, with what a careless reader would answer where the first turn says so."""
    draft = trial.draft
    if draft.kind != "change":
        return draft
    value = trial.reply(draft.evidence[:1])
    return draft.model_copy(update={"near_miss": NearMiss(turn=draft.evidence[0], value=value)})
