"""The conformance suites of `AttributorFactory`, `MatcherFactory` and `Metric`, to subclass in a test file for pytest.

    class TestMine(AttributorConformance):
        def factory(self):
            return MyAttributor  # takes (recording, access)

    class TestMyMetric(MetricConformance):
        def metric(self):
            return my_metric  # takes (reply, answers)

They need no network and no model, and import no test framework.
"""

from __future__ import annotations

from itertools import product
from typing import Any, cast, get_args

from attribution.attributor import AttributorFactory, checked_attribution
from attribution.cases import OUTSIDE_THE_SYSTEM, Case
from attribution.judging.metrics import Metric, measured_by
from attribution.judging.words import judge
from attribution.recordings import Recording
from attribution.survival.matching.matcher import Claim, Matcher, MatcherFactory, Passage, Wording
from attribution.survival.needs import needs_of
from attribution.text.content import Vocabulary
from tracing.conformance import Conformance, require
from tracing.errors import MemtuneError
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import session, trace
from tracing.systems.calls import settled
from tracing.systems.suite.notebook import Notebook, notebook_conversations


class AttributorConformance(Conformance):
    """What memtune expects of a method of attribution.

    Example:
        >>> from attribution.methods import survival
        >>> class TestSurvival(AttributorConformance):
        ...     def factory(self):
        ...         return survival
        >>> TestSurvival().problems()
        []
    """

    def factory(self) -> AttributorFactory:
        """The factory under test."""
        raise NotImplementedError

    def access(self) -> ModelAccess:
        """Models for a method that asks one; by default there are none."""
        return cast("ModelAccess", None)

    def test_every_wrong_answer_is_blamed_or_abstained_from(self) -> None:
        """Exactly one of the two, with confidences from 0 to 1, for the case that was asked about."""
        recording, cases = recorded()
        method = self.factory()(recording, self.access())
        for case in cases:
            try:
                checked_attribution(method.attribute(case), case)
            except MemtuneError as error:
                raise AssertionError(str(error)) from None

    def test_blames_name_operations_of_the_recording(self) -> None:
        """A name that no operation has is missing from signals; an id must be an execution of that operation."""
        recording, cases = recorded()
        method = self.factory()(recording, self.access())
        names = {spec.name for spec in recording.operations}
        for case in cases:
            attribution = method.attribute(case)
            for blame in (*attribution.decisive, *attribution.alternatives):
                if blame.error_type in OUTSIDE_THE_SYSTEM:
                    continue
                require(blame.operation in names, f"no operation is called {blame.operation!r}")
                if blame.operation_id is not None:
                    operation = recording.graph.operations.get(blame.operation_id)
                    require(operation is not None, f"the graph has no operation {blame.operation_id!r}")
                    require(
                        operation is not None and operation.name == blame.operation,
                        f"{blame.operation_id!r} is not an execution of {blame.operation!r}",
                    )

    def test_equal_recordings_lead_to_equal_attributions(self) -> None:
        """A resumed run attributes again, and must get the same result."""
        rounds = []
        for _ in range(2):
            recording, cases = recorded()
            method = self.factory()(recording, self.access())
            rounds.append([method.attribute(case) for case in (*cases, *cases)])
        require(rounds[0] == rounds[1], "the same recording was attributed differently the second time")
        half = len(rounds[0]) // 2
        require(rounds[0][:half] == rounds[0][half:], "the same case was attributed differently the second time")


class MatcherConformance(Conformance):
    """What memtune expects of a matcher.

    Example:
        >>> from attribution.survival.matching.word_matcher import by_words
        >>> class TestWords(MatcherConformance):
        ...     def factory(self):
        ...         return by_words
        >>> TestWords().problems()
        []
    """

    def factory(self) -> MatcherFactory:
        """The factory under test."""
        raise NotImplementedError

    def access(self) -> ModelAccess:
        """Models for a matcher that asks one; by default there are none."""
        return cast("ModelAccess", None)

    def test_a_text_that_says_it_carries_it_and_others_do_not(self) -> None:
        """In the words of the conversation; an empty text carries nothing."""
        matcher, claim, statement = self._claim()
        right, other, empty = matcher.grades(claim, [Passage(statement), Passage("It rained all day."), Passage("")])
        require(right.carries, f"{statement!r} does not carry {claim.need.label!r}")
        require(not other.carries, f"a text about something else carries {claim.need.label!r}")
        require(not empty.carries, "an empty text carries something")

    def test_each_passage_has_its_grade(self) -> None:
        """In their order, with a coverage from 0 to 1; what carries is relevant, and none are needed."""
        matcher, claim, statement = self._claim()
        texts = [statement, "It rained all day.", "", statement]
        for wording in get_args(Wording):
            grades = matcher.grades(claim, [Passage(text, wording=wording) for text in texts])
            require(len(grades) == len(texts), f"{len(texts)} passages got {len(grades)} grades")
            require(all(0 <= grade.coverage <= 1 for grade in grades), "a coverage is not from 0 to 1")
            require(all(grade.relevant for grade in grades if grade.carries), "what carries is not relevant")
        require(len(matcher.grades(claim, [])) == 0, "no passage got a grade")
        require(len(matcher.may_carry(claim, texts)) == len(texts), "may_carry does not answer for each text")

    def test_equal_passages_have_equal_grades(self) -> None:
        """A resumed run attributes again, and must get the same result."""
        matcher, claim, statement = self._claim()
        again, _, _ = self._claim()
        passages = [Passage(statement), Passage("It rained all day.")]
        first = list(matcher.grades(claim, passages))
        require(first == list(matcher.grades(claim, passages)), "the same passages were graded differently")
        require(first == list(again.grades(claim, passages)), "another matcher of the same kind graded differently")

    def _claim(self) -> tuple[Matcher, Claim, str]:
        (conversation,) = notebook_conversations("contract", 1)
        question = conversation.questions[0]
        vocabulary = Vocabulary(turn.text for turn in conversation.turns())
        (need,) = needs_of(question, conversation, vocabulary)
        statement = f"The parrot of Anke is called {question.answers[0]}."
        return self.factory()(conversation, self.access()), Claim(question, need), statement


class MetricConformance(Conformance):
    """What memtune expects of a metric.

    Example:
        >>> class TestExact(MetricConformance):
        ...     def metric(self):
        ...         return lambda reply, answers: float(reply in answers)
        >>> TestExact().problems()
        []
    """

    REPLIES = (
        *("Zibbel", "zibbel.", "It is Zibbel.", "no idea", "unknown", "齐贝尔"),
        *("", "  ", "{x} \x1b[0m", "word " * 500),
    )
    ANSWERS = (("Zibbel",), ("Zibbel", "the parrot Zibbel"), ("unknown",), ("齐贝尔",), ("3.5",))

    def metric(self) -> Metric:
        """The metric under test."""
        raise NotImplementedError

    def test_every_reply_has_a_score_from_0_to_1(self) -> None:
        """Empty and odd replies too: models write them."""
        metric = self.metric()
        for reply, answers in product(self.REPLIES, self.ANSWERS):
            try:
                measured_by(metric, "metric", reply, answers)
            except MemtuneError as error:
                raise AssertionError(str(error)) from None

    def test_the_same_reply_has_the_same_score(self) -> None:
        """Reports judge traces again."""
        metric = self.metric()
        for reply, answers in product(self.REPLIES, self.ANSWERS):
            require(metric(reply, answers) == metric(reply, answers), f"{reply!r} was scored in two ways")

    def test_an_accepted_answer_is_right_and_an_empty_reply_wrong(self) -> None:
        """Otherwise nothing could be improved."""
        metric = self.metric()
        for answers in self.ANSWERS:
            for answer in answers:
                require(metric(answer, answers) >= 0.5, f"{answer!r} is an accepted answer and does not pass")
            require(metric("", answers) < 0.5, f"an empty reply passes for {answers!r}")


def recorded() -> tuple[Recording, list[Case]]:
    """A recording of a small system and two failed cases: their replies are right but far too long."""
    system, (conversation,) = Notebook(), notebook_conversations("contract", 1)
    candidate, nobody = {"answer": system.prompts["answer"].text}, cast("Any", None)
    cases = []
    with trace(prefix="") as recorder:
        memory = settled(system.build(conversation, candidate, nobody))
        for question in conversation.questions:
            with session(question.id):
                answer = settled(system.answer(memory, question, candidate, nobody))
            judgement = judge(answer.text, question.answers)
            cases.append(Case(conversation.id, question, answer.text, judgement, answer.variable))
    return Recording(recorder.graph, conversation, system.operations), cases
