"""Grading texts: how well each carries what a question needs, and whether it is about the same person and subject."""

from __future__ import annotations

from attribution.constants import ABOUT, CLEARLY_ABOUT, LEFT_OF_A_DENIED_ANSWER, PHRASE_WORDS, PLAIN_WORDS, STATED
from attribution.survival.matching.matcher import Grade, Person
from attribution.survival.need import Need
from attribution.survival.needs import clause_with, listed
from attribution.survival.outdated import fact_of
from attribution.text.content import Vocabulary, content_of, time_words
from attribution.text.dates import as_precise_as, spans_of, without_stamp
from attribution.text.names import names_in, short_for
from attribution.text.phrases import denies, without_courtesies
from attribution.text.utterances import Repeated, passages_of, repeated
from tracing.systems.conversations import Conversation, Question


class Grader:
    """Grades texts for one question; a text that merely shares a value with the answer does not carry it.

    `confused` says that the reply gave the near miss: then a text that leaves the person out did not prevent it.
    """

    def __init__(
        self, question: Question, conversation: Conversation, vocabulary: Vocabulary, *, confused: bool = False
    ) -> None:
        speakers = frozenset().union(*map(content_of, conversation.speakers))
        asked = content_of(without_courtesies(question.question))
        self._vocabulary, self._confused = vocabulary, confused
        self._persons = (asked & speakers) | short_for(question.question, conversation.speakers)
        self._others = frozenset(speakers) - self._persons
        self._names = names_in(question.question) - speakers
        fact = fact_of(question, conversation)
        value = frozenset().union(*map(content_of, question.answers))
        self._speakers = conversation.speakers
        self._turns = {turn.id: turn for turn in conversation.turns()}
        self._topics = [asked - speakers]
        if fact is not None:
            self._topics.append(content_of(fact.text) - speakers - value)

    def person(self, found: frozenset[str]) -> Person:
        """Whose the text is: a third party that the question names is as good as the person asked about."""
        if not self._persons or found & self._persons:
            return "right"
        if found & self._others:
            return "other"
        return "right" if found & self._names else "absent"

    def names_whom(self, found: frozenset[str]) -> bool:
        """Whether the text names whom the question is about: a third party, else the speaker; true if nobody."""
        wanted = self._names or self._persons
        return not wanted or not wanted.isdisjoint(found)

    def gives_whole(self, need: Need, text: str) -> bool:
        """Whether a text names whom the question is about and holds all of the content, which it does not deny."""
        found = content_of(text)
        if need.times:
            return _gives_time(need, text) and self.names_whom(found)
        whole = need.basis in ("stated", "elsewhere") and any(form <= found for form in need.forms if form)
        return whole and self.names_whom(found) and not self._denied(need, text)

    def is_plain(self, need: Need, text: str) -> bool:
        """Whether a text says of the owner little more than the content, so that it is what was asked for.

        The verb of the question is often another one, or is inflected, and may be no ground to call it absent.
        """
        if need.times:
            return False  # many things happen at one time
        told = content_of(text).difference(self._persons, self._names, time_words(text), *need.forms, *self._topics)
        return len(told) <= PLAIN_WORDS and self.gives_whole(need, text)

    def about(self, found: frozenset[str]) -> float:
        """Part of the subject, by weight, that the text names; the better of question and annotated fact."""
        return max(self._vocabulary.coverage(topic, found) for topic in self._topics)

    def grade(self, need: Need, text: str, *, traced: bool, possible: bool = False) -> Grade:
        """Grade a text in somebody's own words.

        Args:
            need: what it should carry.
            text: the words of a fact, entry or context.
            traced, possible: as of `Passage`.
        """
        return self._grade(need, text, traced=traced, possible=possible, verbatim=False)

    def grade_verbatim(self, need: Need, text: str, *, traced: bool, possible: bool = False) -> Grade:
        """Grade a text cut from the conversation: it carries what the turns that it holds unchanged say.

        A turn that was changed, or is given to another speaker, carries what is left of it, even if other turns echo
        its value. A text without the turns carries what a passage of it says on the subject.
        """
        held = [one for turn in need.turns if (one := repeated(self._turns[turn], text, self._speakers))]
        if held:
            return max(
                (self._grade_repeated(need, one) for one in held), key=lambda grade: (grade.carries, grade.coverage)
            )
        wanted = frozenset().union(*need.forms)
        passages = [part for part in passages_of(text) if not wanted.isdisjoint(content_of(part))]
        if need.times or not passages:
            passages = [text]
        grades = [self._grade(need, part, traced=traced, possible=possible, verbatim=True) for part in passages]
        return max(grades, key=lambda grade: (grade.carries, grade.relevant, grade.coverage))

    def _grade_repeated(self, need: Need, held: Repeated) -> Grade:
        found = content_of(held.line)
        coverage = 1.0
        if held.share < 1:
            left = held.share if need.basis in ("unstated", "implied") else 0.0
            coverage = max(left, *(self._vocabulary.coverage(form, found) for form in need.forms))
            if need.times:
                coverage = float(_gives_time(need, held.line))
        right = not held.misascribed
        carries = right and coverage >= need.threshold
        return Grade(coverage, "right" if right else "other", self.about(found), right, carries, True, found)

    def _grade(self, need: Need, text: str, *, traced: bool, possible: bool, verbatim: bool) -> Grade:
        found = whose_words = content_of(text)
        about = self.about(found)
        if need.times:
            coverage = float(_gives_time(need, text))
        else:
            # The numbers of a time stamp answer only "when".
            found = content_of(without_stamp(text)[1])
            coverage = max((self._vocabulary.coverage(form, found) for form in need.forms), default=0.0)
            if coverage >= STATED and self._denied(need, text):
                coverage, found = LEFT_OF_A_DENIED_ANSWER, frozenset()
            elif self._says_indirectly(need, text, about=about, traced=traced):
                coverage = 1.0
        person: Person = "right" if verbatim else self.person(whose_words)
        whose = person == "right" or (person == "absent" and about >= CLEARLY_ABOUT and not self._confused)
        if need.basis == "dated":
            which = about >= ABOUT
        elif need.basis == "implied":
            which = traced or about >= ABOUT
        else:
            # A phrase is rarely used for two things; a single word often is.
            phrase = any(len(form) >= PHRASE_WORDS for form in need.forms)
            which = need.unique or about >= ABOUT or (traced and (phrase or about > 0))
        which = which or ((traced or possible) and self.is_plain(need, text))
        relevant = whose and which
        return Grade(coverage, person, about, relevant, relevant and coverage >= need.threshold, traced, found)

    def _says_indirectly(self, need: Need, text: str, *, about: float, traced: bool) -> bool:
        """Whether a text gives the time from which a span of time follows, or names the things that are counted."""
        same = about >= ABOUT or (traced and about > 0)
        then = spans_of(text, need.said) if need.since and same else ()
        since = any(as_precise_as(span, one) for span in then for one in need.since)
        return since or (need.count > 0 and same and listed(text) == need.count)

    def _denied(self, need: Need, text: str) -> bool:
        """Whether a text denies what the turns assert; the whole of it is looked at first, since that is quick."""
        asserted = need.basis in ("stated", "partly") and not need.denied
        return asserted and denies(text) and denies(clause_with(need.forms, text, self._vocabulary))


def _gives_time(need: Need, text: str) -> bool:
    """Whether a text gives a needed time, in words or, for what was said on the day it happened, by its time stamp."""
    said, rest = without_stamp(text)
    day = said or need.said
    if any(as_precise_as(span, wanted) for span in spans_of(rest, day) for wanted in need.times):
        return True
    return (
        need.on_that_day and day is not None and any(as_precise_as((day.toordinal(),) * 2, one) for one in need.times)
    )
