"""Attribution by information survival: follow what the answer needed along the graph, and blame who lost it. No model.

The need (the gold answer's content, from the evidence turns) is looked for in what was extracted, in what the memory
holds in the end, and in what the answer was given. The deepest stage that still carries it shows which operation lost
it: the one whose inputs carry it and whose outputs don't.

What a verdict states is the product of three factors, kept within 0.05 to 0.97:
    - how strong the kind of verdict is (`constants`): a right reply that breaks the format is hardly ever anything
      else; a garbled fact could still have been understood;
    - how the need is known (`needs.PRIORS`): 1 if the evidence states the answer, down to 0.5 if it must be inferred;
    - how clear-cut the survival is (`Trail.clarity`): 1 if all is there up to one stage and nothing after it.
Its confidence is how often verdicts with such `grounds` are right (`calibration`): what they state, and beside it
whether the text that carried the content last names whom the question is about, whether the graph shows where it comes
from, and the like. For judge errors there are no cases to learn from; they keep the product. That of an annotation
error is how often spoiled and sound gold answers have such evidence (`attribution.gold_answers.suspicion`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import get_args

from attribution.cases import OUTSIDE_THE_SYSTEM, Attribution, Blame, Case, ErrorType
from attribution.constants import (
    ASSUMED_EVIDENCE,
    BY_WORDS_ALONE,
    COMPLAINT_EVIDENCE,
    FAILED,
    FORMAT,
    MOST_BLAMES,
    NEXT_BEST,
    STATED,
)
from attribution.evidence_index import EvidenceIndex
from attribution.explanations import quote
from attribution.gold_answers.answer_audit import Audit
from attribution.gold_answers.suspicion import NOT_CALIBRATED, Suspicion
from attribution.history import History, as_known_in
from attribution.recordings import Recording
from attribution.survival.assertion import Assertion
from attribution.survival.calibration import GroundedBlame, Grounds, confidence_of, grounds_of, is_calibrated
from attribution.survival.case_view import CaseView, Trail
from attribution.survival.failure_picture import FailurePicture, drawn
from attribution.survival.flow import ContentFlow, unusable_reply_of
from attribution.survival.matching.matcher import Matcher
from attribution.survival.matching.word_matcher import WordMatcher
from attribution.survival.needs import Need, needs_of, outdated_value, stating
from attribution.survival.unread import NOT_READ, UNREAD, is_guess
from attribution.survival.verdicts.complaints import at_its_word, on_assertion
from attribution.survival.verdicts.lost import verdict_on
from attribution.survival.verdicts.mistakes import misannotated, misjudged, unsupported
from attribution.survival.verdicts.withdrawals import answered_unanswerable
from attribution.text.content import Vocabulary, content_of
from attribution.text.languages.language_data import Tongue
from attribution.text.languages.reading_language import in_its_language, reading
from attribution.text.phrases import is_unknowable, says_unknown
from attribution.text.question_kinds import is_count, is_inferred
from attribution.text.stems import is_number
from tracing.errors import in_one_line
from tracing.graph.execution_graph import ExecutionGraph
from tracing.recording.redaction import redact
from tracing.systems.conversations import Conversation, Question, Turn
from tracing.systems.protocol import OperationSpec

_EARLIEST_FIRST = tuple(kind for kind in get_args(ErrorType) if kind not in OUTSIDE_THE_SYSTEM)


def attribute(
    case: Case, graph: ExecutionGraph, conversation: Conversation, operations: Sequence[OperationSpec]
) -> Attribution:
    """Attribute one wrong answer of a graph. For several of one graph, make one `Survival` and reuse it."""
    return Survival(graph, conversation, operations).attribute(case)


def pictures_of(recording: Recording, attributions: Iterable[Attribution]) -> list[FailurePicture]:
    """The picture of each attribution of a recording; one that cannot be drawn has no steps, and says why."""
    method: Survival | None = None
    pictures: list[FailurePicture] = []
    for attribution in attributions:
        try:
            method = method or Survival(recording.graph, recording.conversation, recording.operations)
            pictures.append(method.picture(attribution))
        except Exception as error:  # whatever a damaged graph brings about; a page has more to show
            pictures.append(FailurePicture((), f"it cannot be drawn: {in_one_line(error)}"))
    return pictures


class _Talk:
    """A conversation, as its cases read it; what they share is computed once. It may be the past of a `whole`."""

    def __init__(self, conversation: Conversation, matcher: Matcher | None, whole: _Talk | None = None) -> None:
        self.conversation, self.own_matcher, self._whole = conversation, matcher, whole
        texts = (turn.text for turn in conversation.turns())
        self.vocabulary: Vocabulary = Vocabulary(texts) if whole is None else whole.vocabulary.past(texts)
        self.matcher = matcher or WordMatcher(conversation, self.vocabulary)

    @cached_property
    def index(self) -> EvidenceIndex:
        return EvidenceIndex(self.conversation)

    @cached_property
    def audit(self) -> Audit:
        return Audit(self.conversation, self._whole.audit if self._whole is not None else None)


class Survival:
    """Attributes the wrong answers of one conversation's graph; what they share is computed once.

    What was said or stored after a question was answered does not exist for it.

    Args:
        graph, conversation, operations: as of `attribute`.
        matcher: decides what carries the content; by default its words.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        conversation: Conversation,
        operations: Sequence[OperationSpec],
        *,
        matcher: Matcher | None = None,
    ) -> None:
        self._history = History(Recording(graph, conversation, tuple(operations)))
        self._untold: str | None = None
        self._flow = ContentFlow(graph, operations)
        self._talk = _Talk(conversation, matcher)
        self._last_past: _Talk | None = None
        """Questions of one moment come one after the other, and had the same turns before them."""

    @property
    def language(self) -> Tongue:
        """The conversation's language, in which texts are read."""
        return self._talk.vocabulary.language

    def attribute(self, case: Case) -> Attribution:
        """Whose fault the case is. It abstains from a passed case, and from one with too little in the trace."""
        past, case_then = self._as_of(case)
        with reading(past.language):
            return replace(past._judged(case_then, past._view(case_then)), case=case)

    def verdicts(self, case: Case) -> list[GroundedBlame] | str:
        """The blames of a case before they are calibrated, each with what it rests on; or why there are none."""
        past, case_then = self._as_of(case)
        with reading(past.language):
            view = past._view(case_then)
            return view if isinstance(view, str) else past._verdicts(view, case_then)

    def picture(self, attribution: Attribution) -> FailurePicture:
        """A verdict on a case, by whatever method, with what carries each need at every step."""
        past, case_then = self._as_of(attribution.case)
        with reading(past.language):
            view = past._view(case_then)
            if isinstance(view, str):
                return drawn(attribution, past._flow, None, ())
            trails = past._trails(view, past._known_needs(past._needs(view)))
            return drawn(attribution, past._flow, view, trails)

    def _as_of(self, case: Case) -> tuple[Survival, Case]:
        """The same for what there was when the case was answered, and the case as far as it was known then."""
        past = self._history.at(case)
        if past is self._history.recording:
            return self, case
        case_then = as_known_in(case, past)
        then = copy(self)
        then._flow = ContentFlow(past.graph, past.operations)
        if past.conversation is not self._talk.conversation:
            then._talk = self._talk_of(past.conversation)
            then._untold = then._told_by(self._history.later_than(past), case, case_then)
        return then, case_then

    def _talk_of(self, past: Conversation) -> _Talk:
        last = self._last_past
        if last is None or last.conversation is not past:
            last = self._last_past = _Talk(past, self._talk.own_matcher, self._talk)
        return last

    @in_its_language
    def _told_by(self, later: Sequence[Turn], case: Case, case_then: Case) -> str | None:
        """What says that only later turns tell what the answer needs; None if others do, or nothing tells it."""
        question = case.question
        forms = [form for form in map(content_of, question.answers) if form]
        literal = forms and not (is_unknowable(question) or is_inferred(question) or is_count(question))
        stated = literal and stating(self._talk.conversation.turns(), forms, self._talk.vocabulary)
        if case_then.question.evidence or stated:
            return None
        telling: Sequence[str] = question.evidence
        if literal and not telling:
            telling = [turn.id for turn in stating(later, forms, self._talk.vocabulary)]
        if not telling:
            return None
        return f"{quote(question.answers[0])} was said only in {', '.join(telling)}, after the question was answered"

    def _judged(self, case: Case, view: CaseView | str) -> Attribution:
        if isinstance(view, str):
            return Attribution(case, abstained=view)
        verdicts = self._verdicts(view, case)
        if isinstance(verdicts, str):
            return Attribution(case, abstained=verdicts)
        if any(is_guess(grounds, case) for _, grounds in verdicts):
            return Attribution(case, abstained=UNREAD)
        blames = tuple(_calibrated(blame, grounds) for blame, grounds in verdicts)
        if view.linked_by_text(vid for blame in blames for vid in blame.evidence):
            blames = tuple(map(_less_sure, blames))
        return Attribution(case, blames, alternatives=self._alternatives(view, blames[0]))

    def _view(self, case: Case) -> CaseView | str:
        if case.passed:
            return "the answer passed"
        answering = self._flow.answering(case.question.id, case.prediction)
        if answering is None:
            return f"the trace has no answer operation for {case.question.id}"
        flow, talk = self._flow, self._talk
        assertion = None if case.knows_answer else Assertion(case, answering, flow, talk.conversation, talk.vocabulary)
        shared = talk.conversation, talk.vocabulary, talk.matcher
        return CaseView(self._with_evidence(case, assertion), answering, flow, *shared, assertion)

    def _verdicts(self, view: CaseView, case: Case) -> list[GroundedBlame] | str:
        alone = misjudged(view) or _answer_alone(view)
        if alone is not None:
            return [GroundedBlame(alone, grounds_of(alone, None, view))]
        # Evidence that was only assumed says nothing against the gold answer.
        verdicts = self._unsurvived(view, self._talk.audit.suspicion(case.question, case.reply))
        if isinstance(verdicts, str):
            return verdicts
        return [GroundedBlame(blame, grounds_of(blame, trail, view)) for blame, trail in verdicts]

    def _alternatives(self, view: CaseView, main: Blame) -> tuple[Blame, ...]:
        """What else it may be: lost where the evidence was read or, if that is the verdict, there and not used."""
        remainder = (1 - main.confidence) * NEXT_BEST
        if main.error_type == "ExtractionError":
            answer = view.answering.answer
            reason = "the context may have said it in words that were not recognised"
            return (self._flow.blame(answer, "ResponseError", remainder, reason),)
        readers = self._flow.readers(*view.case.question.evidence)
        reason = "what was extracted may not be what the answer needed"
        return (self._flow.blame(readers[-1] if readers else None, "ExtractionError", remainder, reason),)

    def _with_evidence(self, case: Case, assertion: Assertion | None) -> Case:
        """The case with evidence turns: those annotated, or the likeliest ones, preferably some that say the answer.

        Where no answer is known, the reply is wrong: the likeliest one that does not say what it asserts.
        """
        question = case.question
        if question.evidence or is_unknowable(question):
            return case
        likely_turns = self._talk.index.search(case, query="gold" if case.knows_answer else "question")
        if assertion is not None:
            spoken = {turn.id: turn.spoken for turn in self._talk.conversation.turns()}
            likeliest = assertion.without_it((turn, spoken[turn]) for turn in likely_turns)[:COMPLAINT_EVIDENCE]
            return replace(case, question=question.model_copy(update={"evidence": tuple(likeliest)}))
        turns, coverage = {turn.id: turn for turn in self._talk.conversation.turns()}, self._talk.vocabulary.coverage
        forms = list(map(content_of, question.answers))
        words = {turn: content_of(turns[turn].text) for turn in likely_turns}
        saying = [turn for turn in likely_turns if any(coverage(form, words[turn]) >= STATED for form in forms)]
        # What several people say of themselves is asked of one.
        asked = [turn for turn in saying if content_of(turns[turn].speaker) & content_of(question.question)]
        assumed = tuple((asked or saying or likely_turns)[:ASSUMED_EVIDENCE])
        return replace(case, question=question.model_copy(update={"evidence": assumed}))

    def _is_hidden(self, question: Question) -> bool:
        """Whether the evidence says an answer only in text that is redacted from every recording."""
        forms = list(map(content_of, question.answers))
        for turn in self._talk.conversation.turns():
            redacted = redact(turn.text) if turn.id in question.evidence else turn.text
            if redacted != turn.text:
                words, redacted_words = content_of(turn.text), content_of(redacted)
                coverage = self._talk.vocabulary.coverage
                if any(coverage(form, words) >= STATED > coverage(form, redacted_words) for form in forms):
                    return True
        return False

    def _unsurvived(self, view: CaseView, suspicion: Suspicion | None) -> list[tuple[Blame, Trail | None]] | str:
        question = view.case.question
        if self._untold is not None:
            return self._untold
        if suspicion is not None and not suspicion.goes_by_words:
            return [(misannotated(suspicion, view), None)]
        if is_unknowable(question):
            return [(answered_unanswerable(view), None)]
        if self._is_hidden(question):
            return "what the answer needs is a credential, and traces hold none"
        asserted = on_assertion(view, view.assertion) if view.assertion is not None else None
        if asserted is not None:
            return [(asserted, None)]
        needs = self._needs(view)
        if not needs and view.assertion is not None:
            return "no right answer is known, and no turn has a word of the question"
        if not needs and question.evidence:
            return [(misannotated(suspicion, view) if suspicion is not None else unsupported(view), None)]
        if not needs:
            gold = quote(question.answers[0])
            return f"{question.id} has no evidence turns, and no turn holds the gold answer {gold}"
        needs_in_trace = self._known_needs(needs)
        if not needs_in_trace:
            turns = ", ".join(turn for need in needs for turn in need.turns)
            return f"the trace has none of the evidence turns {turns}"
        outdated = outdated_value(question, self._talk.conversation, self._talk.vocabulary)
        trails = self._trails(view, needs_in_trace)
        if not self._flow.shows_memory() and not any(trail.context for trail in trails):
            return (
                f"the trace shows no operation that writes a memory, and {quote(question.answers[0])} is not in what "
                f"{view.answering.answer.name} was given, so nothing tells where it was lost; record what is stored "
                "and found as memory_entry and context (docs/tracing.md)"
            )
        if suspicion is not None and not any(map(view.carries_somewhere, trails)):
            return [(misannotated(suspicion, view), None)]
        if is_inferred(question):
            # A conclusion can be drawn from any of the hints that were left.
            trails = [trail for trail in trails if trail.context][:1] or trails
        verdicts = [(verdict_on(view, trail, outdated), trail) for trail in trails]
        if view.assertion is not None and view.assertion.standing == "unknown":
            verdicts = [(at_its_word(view, trail, blame), trail) for blame, trail in verdicts]
        return _decisive(verdicts, self._flow)

    def _needs(self, view: CaseView) -> list[Need]:
        return needs_of(view.case.question, self._talk.conversation, self._talk.vocabulary)

    def _known_needs(self, needs: Sequence[Need]) -> list[Need]:
        """Those of which the trace has a turn."""
        return [need for need in needs if self._flow.messages(*need.turns)]

    def _trails(self, view: CaseView, needs: Sequence[Need]) -> list[Trail]:
        """Where what the answer needs and the reply lacks has survived."""
        # What the reply gives has survived.
        missing = [need for need in needs if not view.reply_says(need)] or needs
        return [view.trail(view.left_out(need)) for need in missing]


def _answer_alone(view: CaseView) -> Blame | None:
    """Blame for what the reply alone shows: the operation failed, or its reply is right but not as asked for."""
    case, flow, answer = view.case, view.flow, view.answering.answer
    if answer.error or (unusable_reply_of(answer) is not None and not case.reply.strip()):
        reason = f"{answer.name} failed ({answer.error})" if answer.error else "so the question has no answer"
        return flow.blame(answer, "ResponseError", FAILED, reason, (answer.id,))
    evidence = (case.prediction,) if case.prediction else ()
    unknown = says_unknown(case.reply)
    if case.judgement.contains and (not unknown or is_unknowable(case.question)) and not _hedged(case):
        reason = f"format: the reply {quote(case.reply)} holds the right answer, but not in the form asked for"
        return Blame(answer.name, answer.id, "ResponseError", FORMAT, reason, evidence)
    if is_unknowable(case.question) and unknown:
        reason = f"format: the reply {quote(case.reply)} says that it does not know, but not in an accepted form"
        return Blame(answer.name, answer.id, "ResponseError", FORMAT, reason, evidence)
    return None


def _hedged(case: Case) -> bool:
    """Whether a number was asked for and the reply gives several, so that it does not say which."""
    numbers = {word for word in content_of(case.reply) - content_of(case.question.question) if is_number(word)}
    return all(map(is_number, content_of(case.question.answers[0]))) and len(numbers) > 1


def _decisive(verdicts: Sequence[tuple[Blame, Trail]], flow: ContentFlow) -> list[tuple[Blame, Trail | None]]:
    """The blames that count: if a part was lost on the way, the rest could not make a complete answer."""
    losses = [verdict for verdict in verdicts if flow.stage_error(verdict[0]) != "ResponseError"] or list(verdicts)
    losses.sort(key=lambda verdict: _EARLIEST_FIRST.index(flow.stage_error(verdict[0])))
    distinct: dict[tuple[str, str | None], tuple[Blame, Trail | None]] = {
        (blame.operation, blame.operation_id): (blame, trail) for blame, trail in reversed(losses)
    }
    return list(reversed(distinct.values()))[:MOST_BLAMES]


def _less_sure(blame: Blame) -> Blame:
    reason = f"{blame.reason}; which entry was made from which message is known by their words alone"
    return replace(blame, confidence=blame.confidence * BY_WORDS_ALONE, reason=reason)


def _calibrated(blame: Blame, grounds: Grounds) -> Blame:
    doubt = NOT_READ if not grounds.read else "" if is_calibrated(grounds) else NOT_CALIBRATED
    return replace(blame, confidence=confidence_of(grounds), reason=blame.reason + doubt)
