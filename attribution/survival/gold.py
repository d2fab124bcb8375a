"""What a faultless system would know and say about one question, from its gold evidence: no graph, no model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attribution.constants import GARBLED_FACT, SAME_FACT
from attribution.survival.matching.matcher import Claim, Matcher, Passage
from attribution.survival.matching.word_matcher import WordMatcher
from attribution.survival.needs import Need, fact_of, needs_of, outdated_value
from attribution.text.content import Vocabulary, content_of
from attribution.text.languages.reading_language import in_its_language, reading
from attribution.text.phrases import is_unknowable, says_retracted
from tracing.systems.conversations import Conversation, Fact, Question


class Gold:
    """The gold content of one question, and which texts carry it.

    Where a system is `verbatim`, a text carries only what was said word for word; else as `matcher` decides.
    """

    def __init__(
        self,
        question: Question,
        conversation: Conversation,
        vocabulary: Vocabulary,
        *,
        verbatim: bool,
        matcher: Matcher | None = None,
    ) -> None:
        self.question, self.conversation = question, conversation
        self.language = vocabulary.language
        """The conversation's language, in which texts are read."""
        with reading(self.language):
            self.unknowable = is_unknowable(question)
            self.needs: Sequence[Need] = () if self.unknowable else needs_of(question, conversation, vocabulary)
            self._outdated = outdated_value(question, conversation, vocabulary)
        self._fact = fact_of(question, conversation)
        self._vocabulary = vocabulary
        self.is_verbatim = verbatim
        words = WordMatcher(conversation, vocabulary)
        self._matcher, self._grader = matcher or words, words.grader(question)
        self._turns = {turn.id: turn for turn in conversation.turns()}
        self._times = {turn.id: session.time for session in conversation.sessions for turn in session.turns}

    @property
    def answer(self) -> str:
        """The canonical gold answer."""
        return self.question.answers[0]

    @in_its_language
    def carries(self, text: str, need: Need, *, traced: bool = False) -> bool:
        """Whether a text carries a need, of the person asked about; `traced` if it is known to come from its turns."""
        if self.is_verbatim:
            return any(self._repeats(text, turn, dated=need.basis == "dated") for turn in need.turns)
        (grade,) = self._matcher.grades(Claim(self.question, need), [Passage(text, traced=traced)])
        return grade.carries

    def carries_any(self, text: str) -> bool:
        """Whether a text carries a part of what the answer needs."""
        return any(self.carries(text, need) for need in self.needs)

    def answered_by(self, texts: Iterable[str]) -> bool:
        """Whether texts together say what the answer needs; or, if there is no answer, that none of them does."""
        statements = list(texts)
        if self.unknowable:
            return not any(map(self.asserts_outdated, statements)) or any(map(self.retracts, statements))
        return bool(self.needs) and all(any(self.carries(text, need) for text in statements) for need in self.needs)

    @in_its_language
    def asserts_outdated(self, text: str) -> bool:
        """Whether a text still asserts the value that was changed or withdrawn, and not the present one."""
        if self._outdated is None or self.carries_any(text):
            return False
        return self.carries(text, self._outdated) and (self.is_verbatim or not says_retracted(text))

    @in_its_language
    def retracts(self, text: str) -> bool:
        """Whether a text is the withdrawal because of which the question has no answer."""
        if not self.unknowable:
            return False
        if self.is_verbatim:
            return any(self._repeats(text, turn, dated=False) for turn in self.question.evidence)
        words = content_of(text)
        if self._grader.person(words) == "other":
            return False
        same = self._fact is not None and self._same(self._fact, text)
        return same or (says_retracted(text) and self._grader.about(words) > 0)

    def statements(self, turns: Collection[str]) -> list[str]:
        """What must be extracted from these turns: the gold fact, or what was said if no fact is annotated."""
        if self._fact is not None and not self.is_verbatim:
            return [self._fact.text] if self._fact.turn in turns else []
        evidence = self.question.evidence if self.unknowable else [turn for need in self.needs for turn in need.turns]
        return [self.spoken(turn) for turn in dict.fromkeys(evidence) if turn in turns]

    def states(self, turns: Collection[str], statements: Sequence[str], *, traced: bool) -> bool:
        """Whether statements made from these turns say what the turns say on the subject."""
        if self.unknowable:
            return any(map(self.retracts, statements))
        needs = [need for need in self.needs if not set(need.turns).isdisjoint(turns)]
        return all(any(self.carries(text, need, traced=traced) for text in statements) for need in needs)

    @in_its_language
    def names_owner(self, text: str) -> bool:
        """Whether a text names the person that the question is about."""
        return self._grader.person(content_of(text)) == "right"

    def garbles(self, text: str, turns: Collection[str]) -> bool:
        """Whether a text is a distorted form of what these turns say on the subject, not about something else."""
        if self._fact is None or self._fact.turn not in turns:
            return False
        likeness = {fact.id: self._likeness(fact, text) for fact in self.conversation.facts if fact.turn in turns}
        return likeness[self._fact.id] >= max(GARBLED_FACT, *likeness.values())

    def fact_of(self, text: str) -> Fact | None:
        """The annotated fact that a text states, if it states one."""
        likely = max(self.conversation.facts, key=lambda fact: self._likeness(fact, text), default=None)
        return likely if likely is not None and self._same(likely, text) else None

    def replaced_by(self, fact: Fact, texts: Sequence[str]) -> int | None:
        """Which of the texts an update or deletion is about; None if it is none of them."""
        old = next((other for other in self.conversation.facts if other.id == fact.of), None)
        if old is None:
            return None
        return next((at for at, text in enumerate(texts) if self._same(old, text)), None)

    def spoken(self, turn: str) -> str:
        """A turn as systems are given it."""
        return self._turns[turn].spoken

    def time_of(self, turns: Iterable[str]) -> str:
        """When the first of these turns was said, according to the conversation."""
        return next((self._times[turn] for turn in turns if turn in self._times), "")

    def _same(self, fact: Fact, text: str) -> bool:
        return self._likeness(fact, text) >= SAME_FACT

    @in_its_language
    def _likeness(self, fact: Fact, text: str) -> float:
        return self._vocabulary.coverage(content_of(fact.text), content_of(text))

    def _repeats(self, text: str, turn: str, *, dated: bool) -> bool:
        """Whether a text holds a turn word for word, not ascribed to anyone else."""
        original = self._turns[turn]
        others = tuple(f"{name}:" for name in self.conversation.speakers if name != original.speaker)
        lines = [line.strip() for line in text.splitlines() if original.text in line]
        if dated and self._times[turn] not in text:
            return False
        return any(not line.startswith(others) for line in lines)
