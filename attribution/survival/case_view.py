"""One wrong answer in its graph: which variables carry what it needed, stage by stage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from attribution.cases import Case
from attribution.constants import MOST_OF_A_REPLY, MOST_OF_A_TURN, PARTLY_STATED, SAME_MATTER, STATED
from attribution.survival.assertion import Assertion
from attribution.survival.flow import Answering, ContentFlow
from attribution.survival.matching.matcher import Claim, Grade, Matcher, Passage
from attribution.survival.matching.word_matcher import WordMatcher
from attribution.survival.needs import Need, shows_something
from attribution.text.content import Vocabulary, content_of, text_of
from attribution.text.phrases import says_retracted, without_courtesies
from attribution.text.utterances import is_most_of, repeated
from tracing.graph.elements import Variable
from tracing.interchange.agent_memory import BY_TEXT, LINKED
from tracing.systems.conversations import Conversation

_NOTHING = Grade(0.0, "absent", 0.0, False, False)


@dataclass(frozen=True, slots=True)
class Trail:
    """The variables that carry a need after each stage, and how clear that is.

    Attributes:
        need: what is followed, with the threshold above which a variable carries it.
        extracted: what was made on reading its turns.
        stored: what the memory holds in the end.
        context: what the answer was given.
        clarity: from 0.5 (no stage loses much) to 1 (one stage loses everything, or none anything).
        traced: whether the graph shows that what carries the need at the last stage was made from its turns.
    """

    need: Need
    extracted: tuple[Variable, ...]
    stored: tuple[Variable, ...]
    context: tuple[Variable, ...]
    clarity: float
    traced: bool

    @property
    def last(self) -> tuple[Variable, ...]:
        """What carries the need at the last stage that still has it."""
        return self.context or self.stored or self.extracted


class CaseView:
    """A case with everything that its verdicts use; `matcher` decides what carries the content."""

    def __init__(
        self,
        case: Case,
        answering: Answering,
        flow: ContentFlow,
        conversation: Conversation,
        vocabulary: Vocabulary,
        matcher: Matcher,
        assertion: Assertion | None = None,
    ) -> None:
        self.case, self.answering, self.flow = case, answering, flow
        self.conversation, self.vocabulary, self.matcher = conversation, vocabulary, matcher
        near = case.question.near_miss
        self.confused = near is not None and self.reply_says(Need((content_of(near.value),), (near.turn,), near.value))
        """Whether the reply is the near miss."""
        self.grader = WordMatcher(conversation, vocabulary).grader(case.question)
        """Whose a text is and what about, by its words."""
        self.assertion = assertion
        """What the reply asserts; None where a right answer is known."""
        self.is_verbatim = not flow.rewrites()
        """Whether what is stored is cut from the conversation."""
        self._trails: dict[Need, Trail] = {}
        self._dropped: dict[tuple[str, ...], frozenset[str]] = {}
        self._turns = {turn.id: turn for turn in conversation.turns()}

    def grade(self, variable: Variable, need: Need, *, traced: bool = False) -> Grade:
        """How well a variable carries a need. A context of several entries counts by its best line."""
        (grades,) = self._grades([(variable, traced)], need)
        return self._best(grades)

    def linked_by_text(self, evidence: Iterable[str]) -> bool:
        """Whether words alone tell what made what carries a need, what the answer was given, or what is evidence."""
        carriers = (variable for trail in self._trails.values() for variable in trail.last)
        cited = filter(None, map(self.flow.graph.variables.get, evidence))
        variables = (*carriers, *self.answering.context, *cited)
        return any(variable.attributes.get(LINKED) == BY_TEXT for variable in variables)

    def carries_somewhere(self, trail: Trail) -> bool:
        """Whether a text on the trail carries the whole need, by the matcher."""
        carriers = (*trail.context, *trail.stored, *trail.extracted)
        need = replace(trail.need, threshold=STATED)
        return any(self.grade(variable, need, traced=True).carries for variable in carriers)

    def read(self, need: Need) -> list[tuple[Variable, Grade]]:
        """Everything that was extracted on reading the need's turns, with its grade."""
        read_from_turns: dict[str, tuple[Variable, bool]] = {}
        for turn in need.turns:
            turn_words = self._said_in(turn)
            for variable, few in self.flow.extracted(turn):
                holds_turn = self.is_verbatim and self._holds_most(variable, turn_words)
                read_from_turns[variable.id] = (variable, few or holds_turn)
        graded = self._grades(list(read_from_turns.values()), need, possible=read_from_turns.keys())
        return [
            (variable, self._best(grades))
            for (variable, _), grades in zip(read_from_turns.values(), graded, strict=True)
        ]

    def gives_all(self, trail: Trail) -> bool:
        """Whether what the answer was given has all content words of a turn on the trail."""
        context_words = frozenset().union(*(content_of(text_of(variable.value)) for variable in trail.context))
        return any(words and words <= context_words for words in map(self._said_in, trail.need.turns))

    def is_given(self, need: Need) -> bool:
        """Whether a text that may have been made from the need's turns gives all of it, and whose it is."""
        if self.is_verbatim:
            return False
        sources = [variable for variable, _ in self.read(need)]
        sources += [entry for entry in self.flow.current if entry.id in self.flow.unmade]
        return any(self.grader.gives_whole(need, text_of(source.value)) for source in sources)

    def trail(self, need: Need) -> Trail:
        """Where a need has survived; found once, so that a verdict and its explanation agree."""
        if need not in self._trails:
            self._trails[need] = self._followed(need)
        return self._trails[need]

    def _followed(self, need: Need) -> Trail:
        """Follow a need through the stages. What reaches the context well enough has survived.

        Otherwise the threshold is set in the middle of the greatest loss at any stage, so that a paraphrase that fades
        a little at each stage is not blamed on the one where it happens to cross a fixed line.
        """
        read = self.read(need)
        sources = [fact for fact, grade in read if grade.relevant and grade.coverage > 0]
        results = (result for fact in sources for result in (fact, *self.flow.written(fact).results))
        descendants = frozenset(version.id for result in results for version in self.flow.later(result))
        texts = frozenset(filter(None, (text_of(self.flow.graph.variables[vid].value) for vid in descendants)))
        entries = [(entry, entry.id in descendants) for entry in self._touching(need, self.flow.current, descendants)]
        grades_held = self._grades(entries, need, possible=self.flow.unmade)
        stored = [(entry, self._best(grades)) for (entry, _), grades in zip(entries, grades_held, strict=True)]
        traced_pieces = [
            (piece, self._shows(piece, descendants))
            for piece in self._touching(need, self.answering.context, descendants, texts)
        ]
        graded_pieces = [
            (piece, grades)
            for (piece, _), grades in zip(traced_pieces, self._grades(traced_pieces, need, texts), strict=True)
        ]
        context = [(piece, self._best(grades)) for piece, grades in graded_pieces]
        stages = (read, stored, context)
        coverages = [self._coverage_of_stage(stage, need) for stage in stages[:2]]
        coverages.append(
            self._coverage_of_stage([(piece, grade) for piece, grades in graded_pieces for grade in grades], need)
        )
        # What is in a later stage was in the earlier ones, if only from other turns.
        coverages = [1.0, max(coverages), max(coverages[1:]), coverages[2]]
        if coverages[-1] >= need.threshold:
            clarity = 0.5 + 0.5 * (coverages[-1] - need.threshold) / (1 - need.threshold)
        else:
            at = max(range(3), key=lambda at: coverages[at] - coverages[at + 1])
            need = replace(need, threshold=(coverages[at] + coverages[at + 1]) / 2)
            clarity = 0.5 + 0.5 * (coverages[at] - coverages[at + 1])
        extracted, in_memory, given_to_it = (
            _carrying(stage, need.threshold, whole) for stage, whole in zip(stages, coverages[1:], strict=True)
        )
        last = {variable.id for variable in given_to_it or in_memory or extracted}
        from_turns = {variable.id for stage in stages for variable, grade in stage if grade.traced}
        traced = not last or not last.isdisjoint(from_turns)
        return Trail(need, extracted, in_memory, given_to_it, clarity, traced)

    def still_stored(self, outdated: Need, instead_of: Need | None) -> list[Variable]:
        """The stored entries that still assert an outdated value, without the value that replaced it."""
        return [
            entry
            for entry in self._touching(outdated, self.flow.current)
            if self.grade(entry, outdated).carries
            and not self.withdraws(entry)
            and (instead_of is None or not self.grade(entry, instead_of).carries)
        ]

    def withdraws(self, entry: Variable) -> bool:
        """Whether an entry says that the value no longer holds; if cut from the conversation, by the evidence."""
        text = text_of(entry.value)
        if not self.is_verbatim:
            return says_retracted(text)
        evidence = (self._turns[turn] for turn in self.case.question.evidence if turn in self._turns)
        repetitions = (repeated(turn, text, self.conversation.speakers) for turn in evidence)
        return any(repetition is not None and not repetition.misascribed for repetition in repetitions)

    def pieces_showing(self, entries: Iterable[Variable]) -> list[Variable]:
        """The pieces of context that show any of these entries."""
        sources = list(entries)
        ids, texts = {entry.id for entry in sources}, [text_of(entry.value) for entry in sources]
        return [
            piece
            for piece in self.answering.context
            if piece.id in ids
            or piece.attributes.get("entry") in ids
            or (self.flow.entry_of(piece) is None and any(text and text in text_of(piece.value) for text in texts))
        ]

    def reply_says(self, need: Need) -> bool:
        """Whether the reply gives this content."""
        (grade,) = self.matcher.grades(Claim(self.case.question, need), [Passage(self.case.reply, wording="reply")])
        return grade.carries

    def drawn_from(self, need: Need) -> Variable | None:
        """What the answer was given of a need's turns, if it is most of the reply; they say the right one in no words.

        Then what they say has reached it, on whatever way. What was in a picture has not.
        """
        pictured = need.basis == "unstated" and any(shows_something(self._turns[turn].text) for turn in need.turns)
        if need.basis not in ("unstated", "implied") or pictured or self.assertion is not None:
            return None
        question = self.case.question
        own_words = content_of(self.case.reply).difference(*map(content_of, (question.question, *question.answers)))
        drawn = own_words & frozenset().union(*map(self._said_in, need.turns))
        if self.vocabulary.coverage(own_words, drawn) < MOST_OF_A_REPLY:
            return None
        return next((piece for piece in self.answering.context if drawn <= content_of(text_of(piece.value))), None)

    def left_out(self, need: Need) -> Need:
        """What a reply leaves out of a need that its turns state, of which it gives a good part; else the need."""
        reply_words = content_of(self.case.reply)
        said = frozenset().union(*(self._said_in(turn) for turn in need.turns))
        form = max(need.forms, key=lambda form: self.vocabulary.coverage(form, reply_words), default=frozenset())
        rest = (form - reply_words) & said
        partial = need.basis in ("stated", "elsewhere") and not need.times and not need.count
        if not partial or not rest or self.vocabulary.coverage(form, reply_words) < PARTLY_STATED:
            return need
        return replace(need, forms=(rest,), unique=False)

    def _touching(
        self,
        need: Need,
        variables: Iterable[Variable],
        descendants: frozenset[str] = frozenset(),
        texts: frozenset[str] = frozenset(),
    ) -> list[Variable]:
        """Those made from a need's turns, which may paraphrase it, or that the matcher holds worth grading.

        Made from its turns are the entries with ids among `descendants`, which say `texts`.
        """
        pairs = [(variable, text_of(variable.value)) for variable in variables]
        worth = self.matcher.may_carry(self._claim(need), [text for _, text in pairs])
        return [
            variable
            for (variable, text), may in zip(pairs, worth, strict=True)
            if may or self._shows(variable, descendants) or any(descendant_text in text for descendant_text in texts)
        ]

    def _claim(self, need: Need) -> Claim:
        return Claim(self.case.question, need, self.confused)

    def _grades(
        self,
        variables: Sequence[tuple[Variable, bool]],
        need: Need,
        texts: frozenset[str] = frozenset(),
        possible: Collection[str] = (),
    ) -> list[list[Grade]]:
        """For each variable the grades of its text; of each of its lines where it is a context of several entries.

        The graph traces to the need's turns the variables marked so, and the entries that say `texts`; those with ids
        among `possible` may have been made from these turns.
        """
        passages = [
            self._passages(variable, need, texts, traced=traced, possible=variable.id in possible)
            for variable, traced in variables
        ]
        graded = iter(self.matcher.grades(self._claim(need), [passage for lines in passages for passage in lines]))
        return [[next(graded) for _ in lines] or [_NOTHING] for lines in passages]

    def _passages(
        self, variable: Variable, need: Need, texts: frozenset[str], *, traced: bool, possible: bool
    ) -> list[Passage]:
        """The texts of a variable to grade: none if what it was cut from lacks the need's turns."""
        text = text_of(variable.value)
        if self.is_verbatim:
            dropped = (self.flow.entry_of(variable) or variable).id in self._dropping(need)
            return [] if dropped else [Passage(text, traced, "verbatim", possible)]
        apart = variable.kind == "context" and self.flow.entry_of(variable) is None
        return [
            Passage(line, traced or any(descendant_text in line for descendant_text in texts), possible=possible)
            for line in (text.splitlines() if apart else (text,))
        ]

    def _said_in(self, turn: str) -> frozenset[str]:
        """The content words of a turn, without courtesies."""
        return content_of(without_courtesies(self._turns[turn].text))

    def _dropping(self, need: Need) -> frozenset[str]:
        """Ids of what was cut from a need's turns but lacks them: even if another turn echoes them, they are lost."""
        dropped = self._dropped.get(need.turns)
        if dropped is None:
            holding, lacking = set[str](), set[str]()
            for turn in need.turns:
                turn_words = self._said_in(turn)
                memories = [variable for variable, _ in self.flow.extracted(turn)]
                memory_words = frozenset().union(*(content_of(text_of(variable.value)) for variable in memories))
                (holding if is_most_of(turn_words, memory_words) else lacking).update(
                    variable.id for variable in memories
                )
            dropped = self._dropped[need.turns] = frozenset(lacking - holding)
        return dropped

    def _best(self, grades: Sequence[Grade]) -> Grade:
        return max(grades, key=lambda grade: (grade.carries, grade.relevant, grade.coverage), default=_NOTHING)

    def _coverage_of_stage(self, graded: Sequence[tuple[Variable, Grade]], need: Need) -> float:
        """How much of a need a stage has: in one text, or in several that are on its subject taken together."""
        relevant = [grade for _, grade in graded if grade.relevant and grade.coverage > 0]
        if not relevant:
            return 0.0
        best = max(grade.coverage for grade in relevant)
        if need.times:
            return best
        near = [grade for grade in relevant if grade.about >= SAME_MATTER or grade.traced]
        together = frozenset().union(*(grade.words for grade in near))
        return max([best, *(self.vocabulary.coverage(form, together) for form in need.forms)])

    def _shows(self, piece: Variable, entries: frozenset[str]) -> bool:
        entry = self.flow.entry_of(piece)
        return piece.id in entries or (entry is not None and entry.id in entries)

    def _holds_most(self, variable: Variable, turn_words: frozenset[str]) -> bool:
        return self.vocabulary.coverage(turn_words, content_of(text_of(variable.value))) >= MOST_OF_A_TURN


def _carrying(
    graded: Iterable[tuple[Variable, Grade]], threshold: float, coverage_of_stage: float
) -> tuple[Variable, ...]:
    """What carries a need alone; if only several together do, what carries most of it."""
    if coverage_of_stage < threshold:
        return ()
    relevant = [(variable, grade.coverage) for variable, grade in graded if grade.relevant and grade.coverage > 0]
    most = max((coverage for _, coverage in relevant), default=0.0)
    return tuple(variable for variable, coverage in relevant if coverage >= min(threshold, most))
