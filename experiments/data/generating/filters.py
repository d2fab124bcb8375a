"""What a draft must be to become a question: tests without a model first, then tests that ask the author.

A test that fails gives the reason for which the draft is dropped. The order is that of the table, the cheap ones first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from attribution.gold_answers.claim import claim_of
from attribution.judging.words import judge
from attribution.text.content import content_of
from attribution.text.dates import same_time, spans_of
from attribution.text.languages.reading_language import reading
from attribution.text.names import is_name
from attribution.text.phrases import says_retracted, says_unknown
from attribution.text.question_kinds import is_count, is_yes_or_no
from attribution.text.stems import is_number
from attribution.text.tokens import contains
from experiments.data.generating.statements import stated
from experiments.data.generating.values import SOME_DAY
from experiments.data.generating.word_sorts import has
from tracing.systems.conversations import NearMiss, Question

if TYPE_CHECKING:
    from experiments.data.generating.author import QuestionAuthor
    from experiments.data.generating.dialogue import Dialogue
    from tracing.systems.conversations import Turn

_TOPIC_WORDS = 2
_PART, _MOST = 0.5, 0.65
"""The least share of an answer, by weight, that a shorter reply may give; and of a reply that the answer must be."""
_ALIKE = 0.7
"""The least share of a question's matter with which another turn is about it."""

_COUNTED = 3
"""Among how many words behind a number is what it counts: `three very large pizzas`."""
_PARTS = re.compile(r"[,;–—]|\s-+\s")
_NEAREST, _OTHERS = 3, 5
"""Among how many likeliest turns the cited ones must be; how many others the author reads beside them."""


@dataclass(frozen=True)
class Trial:
    """One draft under test, and the replies to it; each is asked for once."""

    dialogue: Dialogue
    draft: Question
    author: QuestionAuthor
    sentences: Sequence[str] = ()
    """Those of the cited turns that tell the answer."""

    @property
    def value(self) -> str:
        """What the cited turns say, also where it was taken back."""
        return self.draft.near_miss.value if self.draft.near_miss is not None else self.draft.answers[0]

    @cached_property
    def nearest(self) -> Sequence[str]:
        """The turns likeliest to answer the question."""
        return self.dialogue.found(self.draft.question, _NEAREST + _OTHERS)

    @cached_property
    def later(self) -> Sequence[Turn]:
        """What the speaker of the last cited turn said after it."""
        turns = list(self.dialogue.turns.values())
        cited = self.dialogue.turns[self.draft.evidence[-1]]
        return [turn for turn in turns[turns.index(cited) + 1 :] if turn.speaker == cited.speaker]

    @cached_property
    def matter(self) -> frozenset[str]:
        """Of what the question is about, what the sentences say that tell the answer."""
        talk, text = self.dialogue.talk, " ".join(self.sentences)
        return frozenset(word for word in claim_of(self.draft, talk).topic if talk.in_text(word, text))

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

    def is_all(self, reply: str) -> bool:
        """Whether a reply gives the answer and hardly more: an item of a list is no whole answer."""
        more = content_of(reply) - content_of(self.draft.question)
        answer = frozenset().union(*map(content_of, self.draft.answers))
        whole = self.draft.kind == "time" or not more or self.dialogue.vocabulary.coverage(more, answer) >= _MOST
        return whole and self.is_right(reply)

    def _is_part(self, reply: str, answer: str) -> bool:
        share = self.dialogue.vocabulary.coverage(content_of(answer), content_of(reply))
        return share >= _PART and contains(answer, reply)


Check = Callable[[Trial], bool]


def _question_asks(trial: Trial) -> bool:
    """It asks for one thing, not for what was said of it, and does not hold what it asks for."""
    question, topic = trial.draft.question, claim_of(trial.draft, trial.dialogue.talk).topic
    held = trial.draft.kind != "who" and content_of(trial.value) & content_of(question)
    particular = len(topic) > _TOPIC_WORDS or any(map(trial.dialogue.is_rare, topic))
    return particular and not held and not has("vague", question) and not is_yes_or_no(trial.draft)


def _names_its_subject(trial: Trial) -> bool:
    """It names a speaker or somebody else, and points at nothing that it does not name."""
    claim = claim_of(trial.draft, trial.dialogue.talk)
    named = trial.draft.kind == "who" or claim.person == trial.dialogue.turns[trial.draft.evidence[-1]].speaker
    speaks = has("own", trial.draft.question) or has("addressed", trial.draft.question)
    return named and not speaks and not points_outside(trial.draft.question)


def _is_their_deed(trial: Trial) -> bool:
    """Who does it in the question is who says in the clause that tells it: I do, or we do; not: my sister does."""
    speaker = trial.dialogue.turns[trial.draft.evidence[-1]].speaker
    before, _, after = trial.draft.question.partition(speaker)
    does = has("auxiliary", before) and not has("owner", after)
    if not does and trial.draft.kind != "who":
        return True
    matter = content_of(trial.draft.question) | content_of(trial.value)
    parts = [part for sentence in trial.sentences for part in _PARTS.split(sentence)]
    told = [len(matter & content_of(part)) for part in parts]
    return any(has("doer", part) for part, words in zip(parts, told, strict=True) if words == max(told))


def points_outside(question: str) -> bool:
    """Whether a question, in the language that is read, has a word for a thing or a day that it does not name."""
    return has("dangling", question) or (bool(spans_of(question, SOME_DAY)) and not spans_of(question))


def _answer_fits(trial: Trial) -> bool:
    """The answer is of the sort that the question asks for: a name, a number, a time, one of the speakers."""
    words, asks_when = content_of(trial.value), has("asks_when", trial.draft.question)
    if trial.draft.kind in ("time", "who"):
        speakers = trial.dialogue.conversation.speakers
        return asks_when if trial.draft.kind == "time" else all(name in trial.draft.question for name in speakers)
    if is_count(trial.draft):
        return any(map(is_number, words)) and any(map(partial(_counts, trial), trial.sentences))
    if has("asks_who", trial.draft.question):
        return any(map(is_name, trial.value.split()))
    return not asks_when


def _counts(trial: Trial, sentence: str) -> bool:
    """Whether a number stands before what is counted: after `ponchos on three sides` nobody asks how many ponchos."""
    behind = sentence.partition(trial.value)[2].split()
    counted = content_of(" ".join([trial.value, *behind[:_COUNTED]]))
    return not content_of(" ".join(behind[:1])) or not counted.isdisjoint(content_of(trial.draft.question))


def _keeps_to_what_is_said(trial: Trial) -> bool:
    """The sentences that tell the answer say what the question is about, the turns the rest but for a word or two."""
    draft, talk = trial.draft, trial.dialogue.talk
    topic, inside = claim_of(draft, talk).topic, trial.matter
    enough = len(inside) >= _TOPIC_WORDS or any(map(trial.dialogue.is_rare, inside))
    text = " ".join(trial.dialogue.turns[turn].text for turn in draft.evidence)
    beside = [word for word in topic if not talk.in_text(word, text)]
    return enough and len(beside) <= (0 if draft.kind in ("time", "who") else max(1, len(topic) // 3))


def _is_only_one(trial: Trial) -> bool:
    """No other turn is about as much of the matter, unless it says the same."""
    dialogue, claim = trial.dialogue, claim_of(trial.draft, trial.dialogue.talk)
    for place, turn in enumerate(dialogue.turns.values()):
        may_rival = turn.speaker == dialogue.turns[trial.draft.evidence[-1]].speaker or trial.draft.kind == "who"
        alike = dialogue.vocabulary.coverage(trial.matter, content_of(stated(turn))) >= _ALIKE
        if may_rival and place not in claim.cited and alike and not contains(turn.text, trial.value):
            return False
    return not any(map(partial(_revokes, trial), trial.later))


def _revokes(trial: Trial, turn: Turn) -> bool:
    """Whether a later turn says that the answer has changed, or asks to forget what the question is about."""
    if contains(turn.text, trial.value) and has("changed", turn.text):
        return trial.draft.kind not in ("who", "time")
    words = content_of(turn.text)
    matter = filter(trial.dialogue.is_rare, (trial.matter | content_of(trial.value)) & words)
    return not trial.draft.unanswerable and says_retracted(turn.text) and any(matter)


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
    return trial.is_all(reply)


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
    named = [turn.id for turn in trial.later if contains(turn.text, trial.value)]
    others = [turn for turn in dict.fromkeys((*named, *trial.nearest)) if turn not in trial.draft.evidence][:_OTHERS]
    reply = trial.reply((*trial.draft.evidence, *others))
    return trial.is_right(reply) if trial.draft.unanswerable else trial.is_all(reply)


CHECKS: Sequence[tuple[str, Check]] = (
    ("the question asks for nothing particular, or for what was said of it", _question_asks),
    ("the question does not name its subject", _names_its_subject),
    ("the answer is not of the sort that is asked for", _answer_fits),
    ("the question says of a speaker what another does", _is_their_deed),
    ("the question is about more than the cited sentences", _keeps_to_what_is_said),
    ("another turn is on the same matter", _is_only_one),
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
