"""The matcher that goes by words: stems, numbers, dates and names, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attribution.constants import STATED
from attribution.survival.matching.grading import Grader
from attribution.survival.matching.matcher import Claim, Grade, Passage
from attribution.survival.need import Need
from attribution.text.content import Vocabulary, content_of
from attribution.text.dates import as_precise_as, spans_of
from attribution.text.languages.reading import in_its_language

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess
    from tracing.systems.conversations import Conversation, Question


class WordMatcher:
    """A `Matcher` by words.

    Args:
        conversation: whose questions are matched.
        vocabulary: of that conversation, if known already.
    """

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
