"""The matcher that goes by words: stems, numbers, dates and names, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attribution.constants import (
    ABOUT,
    CLEARLY_ABOUT,
    LEFT_OF_A_DENIED_ANSWER,
    LEFT_UNSAID,
    PHRASE_WORDS,
    PLAIN_WORDS,
    STATED,
)
from attribution.survival.matching.matcher import Grade
from attribution.survival.needs import clause_with, fact_of, listed
from attribution.text.clauses import statements_of
from attribution.text.content import MONTH_WORDS, WEEKDAY_WORDS, Vocabulary, content_of, time_words
from attribution.text.dates import as_precise_as, spans_of, without_stamp
from attribution.text.languages.reading_language import in_its_language
from attribution.text.names import names_in, short_for
from attribution.text.phrases import denies, without_courtesies
from attribution.text.utterances import passages_of, repeated

if TYPE_CHECKING:
    from datetime import date

    from attribution.survival.matching.matcher import Claim, Passage, Person
    from attribution.survival.needs import Need
    from attribution.text.utterances import Repeated
    from tracing.llm.access import ModelAccess
    from tracing.systems.conversations import Conversation, Question


class Grader:
    """Grades texts for one question; a text that merely shares a value with the answer does not carry it.

    `confused` says that the reply gave the near miss: then a text that leaves the person out did not prevent it.
    """

    def __init__(
        self, question: Question, conversation: Conversation, vocabulary: Vocabulary, *, confused: bool = False
    ) -> None:
        speakers = frozenset().union(*map(content_of, conversation.speakers))
        question_words = content_of(without_courtesies(question.question))
        self._vocabulary, self._confused = vocabulary, confused
        self._persons = (question_words & speakers) | short_for(question.question, conversation.speakers)
        self._others = frozenset(speakers) - self._persons
        self._names = names_in(question.question) - speakers
        fact = fact_of(question, conversation)
        value = frozenset().union(*map(content_of, question.answers))
        self._speakers = conversation.speakers
        self._turns = {turn.id: turn for turn in conversation.turns()}
        self._topics = [question_words - speakers]
        self._links: dict[tuple[str, ...], frozenset[str]] = {}
        if fact is not None:
            self._topics.append(content_of(fact.text) - speakers - value)

    def person(self, words: frozenset[str], need: Need | None = None) -> Person:
        """Whose the text is: a third party that the question names is as good as the person asked about.

        So is one of whom a need's turns tell, and whom another turn names as what the question asks about.
        """
        if not self._persons or words & self._persons:
            return "right"
        if words & self._others:
            return "other"
        return "right" if words & (self._names | self._linked(need)) else "absent"

    def names_whom(self, words: frozenset[str], need: Need | None = None) -> bool:
        """Whether the text names whom the question is about: a third party, else the speaker; true if nobody."""
        persons = self._names or self._persons
        return not persons or not (persons | self._linked(need)).isdisjoint(words)

    def _linked(self, need: Need | None) -> frozenset[str]:
        """Names in a need's turns that another turn gives with a word of the question: My sister is Greta."""
        if need is None:
            return frozenset()
        links = self._links.get(need.turns)
        if links is None:
            said = self._said(need).difference(self._persons, self._others, *need.forms)
            links = self._links[need.turns] = frozenset(
                name
                for turn in self._turns.values()
                if turn.id not in need.turns and not self._topics[0].isdisjoint(content_of(turn.text))
                for name in names_in(turn.text) & said
            )
        return links

    def tells_whose(self, need: Need, text: str) -> bool:
        """Whether a text names whom the question is about, and nobody else where it gives the content.

        What names nobody is about those who were named last. What no single statement gives is the whole text's.
        """
        asked = self._persons | self._names
        told = self.names_whom(content_of(text), need)
        if not told or need.times or not asked:
            return told
        asked |= self._linked(need)
        named, given = frozenset[str](), False
        for statement in statements_of(text):
            words = content_of(statement)
            named = words & (asked | self._others) or named
            if any(self._vocabulary.coverage(form, words) >= need.threshold for form in need.forms):
                if not named.isdisjoint(asked):
                    return True
                given = True
        return not given

    def gives_whole(self, need: Need, text: str) -> bool:
        """Whether a text names whom the question is about and holds all of the content, which it does not deny."""
        words = content_of(text)
        if need.times:
            return _gives_time(need, text, need.day) and self.names_whom(words, need)
        whole = need.basis in ("stated", "elsewhere") and any(form <= words for form in need.forms if form)
        return whole and self.names_whom(words, need) and not self._denied(need, text)

    def is_plain(self, need: Need, text: str) -> bool:
        """Whether a text says of the owner little more than the content, so that it is what was asked for.

        The verb of the question is often another one, or is inflected, and may be no ground to call it absent.
        """
        if need.times:
            return False  # many things happen at one time
        remaining_words = content_of(text).difference(
            self._persons, self._names, time_words(text), *need.forms, *self._topics
        )
        return len(remaining_words) <= PLAIN_WORDS and self.gives_whole(need, text)

    def about(self, words: frozenset[str]) -> float:
        """Part of the subject, by weight, that the text names; the better of question and annotated fact."""
        return max(self._vocabulary.coverage(topic, words) for topic in self._topics)

    def grade_verbatim(self, need: Need, text: str, *, traced: bool, possible: bool = False) -> Grade:
        """Grade a text cut from the conversation: it carries what the turns that it holds unchanged say.

        A turn that was changed, or is given to another speaker, carries what is left of it, even if other turns echo
        its value. A text without the turns carries what a passage of it says on the subject.
        """
        repetitions = (repeated(self._turns[turn], text, self._speakers) for turn in need.turns)
        repeats = [self._grade_repeated(need, repetition) for repetition in repetitions if repetition is not None]
        if repeats:
            return max(repeats, key=lambda grade: (grade.carries, grade.coverage))
        need_words = frozenset().union(*need.forms)
        passages = [part for part in passages_of(text) if not need_words.isdisjoint(content_of(part))]
        if need.times or not passages:
            passages = [text]
        grades = [self.grade(need, part, traced=traced, possible=possible, verbatim=True) for part in passages]
        return max(grades, key=lambda grade: (grade.carries, grade.relevant, grade.coverage))

    def _grade_repeated(self, need: Need, repetition: Repeated) -> Grade:
        words = content_of(repetition.line)
        coverage = 1.0
        if repetition.share < 1:
            share_left = repetition.share if need.basis in ("unstated", "implied") else 0.0
            coverage = max(share_left, *(self._vocabulary.coverage(form, words) for form in need.forms))
            if need.times:
                coverage = float(_gives_time(need, repetition.line, need.day))
        right = not repetition.misascribed
        carries = right and coverage >= need.threshold
        return Grade(coverage, "right" if right else "other", self.about(words), right, carries, True, words)

    def grade(self, need: Need, text: str, *, traced: bool, possible: bool = False, verbatim: bool = False) -> Grade:
        """Grade the words of a fact, entry or context; verbatim ones are not asked whose they are."""
        answer_words = whose_words = content_of(text)
        about = self.about(answer_words)
        if need.times:
            # What was made from other turns has other days.
            coverage = float(_gives_time(need, text, need.day if traced or possible or verbatim else None))
        else:
            # The numbers of a time stamp answer only "when".
            answer_words = content_of(without_stamp(text)[1])
            coverage = max((self._vocabulary.coverage(form, answer_words) for form in need.forms), default=0.0)
            contradicts = (self._denied, self._turned_round, self._at_another_time)
            if coverage >= min(STATED, need.threshold) and any(told(need, text) for told in contradicts):
                coverage, answer_words = LEFT_OF_A_DENIED_ANSWER, frozenset()
            elif self._says_indirectly(need, text, about=about, traced=traced):
                coverage = 1.0
        person: Person = "right" if verbatim else self.person(whose_words, need)
        whose = person == "right" or (person == "absent" and about >= CLEARLY_ABOUT and not self._confused)
        if need.basis == "dated":
            which = about >= ABOUT
        elif need.basis == "implied":
            which = traced or about >= ABOUT or (possible and coverage >= STATED)
        else:
            # A phrase is rarely used for two things; a single word often is.
            phrase = any(len(form) >= PHRASE_WORDS for form in need.forms)
            which = need.unique or about >= ABOUT or (traced and (phrase or about > 0))
        which = which or ((traced or possible) and self.is_plain(need, text))
        relevant = whose and which
        return Grade(coverage, person, about, relevant, relevant and coverage >= need.threshold, traced, answer_words)

    def _says_indirectly(self, need: Need, text: str, *, about: float, traced: bool) -> bool:
        """Whether a text gives the time from which a span of time follows, or names the things that are counted."""
        same = about >= ABOUT or (traced and about > 0)
        then = spans_of(text, need.day) if need.since and same else ()
        since = any(as_precise_as(span, need_span) for span in then for need_span in need.since)
        return since or (need.count > 0 and same and listed(text) == need.count)

    def _denied(self, need: Need, text: str) -> bool:
        """Whether a text denies what the turns assert; the whole of it is looked at first, since that is quick."""
        asserted = need.basis in ("stated", "partly") and not need.denied
        return asserted and denies(text) and denies(clause_with(need.forms, text, self._vocabulary))

    def _turned_round(self, need: Need, text: str) -> bool:
        """Whether a text denies what the turns say, or the reverse, in their very words.

        Other words may mean the same: who gave up smoking does not smoke.
        """
        if need.denied == denies(text) or (not need.denied and need.basis != "implied"):
            return False
        words = content_of(text) - self._persons - self._others
        clauses = (clause_with(need.forms, self._turns[turn].text, self._vocabulary) for turn in need.turns)
        return any(words <= said and len(said - words) <= LEFT_UNSAID for said in map(content_of, clauses))

    def _at_another_time(self, need: Need, text: str) -> bool:
        """Whether a text gives another month or weekday than the question and the turns do."""
        asked, given = self._topics[0] & self._said(need), content_of(text)
        return any(
            asked & names and given & names and not asked & given & names for names in (MONTH_WORDS, WEEKDAY_WORDS)
        )

    def _said(self, need: Need) -> frozenset[str]:
        """The content words of a need's turns."""
        return frozenset().union(*(content_of(self._turns[turn].text) for turn in need.turns))


def _gives_time(need: Need, text: str, spoken_on: date | None) -> bool:
    """Whether a text gives a needed time, in words or, for what was said on the day it happened, by its time stamp.

    Relative times refer to its time stamp, else to the day that it was `spoken_on`.
    """
    stamped_day, rest = without_stamp(text)
    day = stamped_day or spoken_on
    if any(as_precise_as(span, need_span) for span in spans_of(rest, day) for need_span in need.times):
        return True
    return (
        need.on_that_day
        and day is not None
        and any(as_precise_as((day.toordinal(),) * 2, need_span) for need_span in need.times)
    )


class WordMatcher:
    """A `Matcher` by words."""

    def __init__(self, conversation: Conversation, vocabulary: Vocabulary | None = None) -> None:
        self._conversation = conversation
        self.vocabulary = vocabulary or Vocabulary(turn.text for turn in conversation.turns())
        """How informative each word is."""
        self.language = self.vocabulary.language
        """The conversation's language, in which texts are read."""
        self._graders: dict[tuple[str, tuple[str, ...], str | None, bool], Grader] = {}

    @in_its_language
    def grader(self, question: Question, *, confused: bool = False) -> Grader:
        """What grades texts for a question; `confused` as in `Claim`."""
        key = (question.question, question.answers, question.fact, confused)
        if key not in self._graders:
            self._graders[key] = Grader(question, self._conversation, self.vocabulary, confused=confused)
        return self._graders[key]

    @in_its_language
    def may_carry(self, claim: Claim, texts: Sequence[str]) -> Sequence[bool]:
        """Those with any word of the need."""
        need_words = frozenset().union(*claim.need.forms)
        return [not need_words.isdisjoint(content_of(text)) for text in texts]

    @in_its_language
    def grades(self, claim: Claim, passages: Sequence[Passage]) -> Sequence[Grade]:
        """How well each passage carries the claim, by its words."""
        grader = self.grader(claim.question, confused=claim.confused)
        return [self._grade(grader, claim.need, passage) for passage in passages]

    def _grade(self, grader: Grader, need: Need, passage: Passage) -> Grade:
        if passage.wording == "reply":
            return self._grade_reply(need, passage.text)
        grade = grader.grade_verbatim if passage.wording == "verbatim" else grader.grade
        return grade(need, passage.text, traced=passage.traced, possible=passage.possible)

    def _grade_reply(self, need: Need, reply: str) -> Grade:
        """A reply is about what was asked, so that it only has to give the content."""
        words = content_of(reply)
        if need.times:
            carried = any(
                as_precise_as(span, need_span) for span in spans_of(reply, need.day) for need_span in need.times
            )
            coverage = float(carried)
        else:
            coverage = max((self.vocabulary.coverage(form, words) for form in need.forms), default=0.0)
            carried = coverage >= STATED
        return Grade(coverage, "right", 1.0, True, carried, words=words)


def by_words(conversation: Conversation, access: ModelAccess | None = None) -> WordMatcher:
    """The matcher by words; no model is asked."""
    return WordMatcher(conversation)
