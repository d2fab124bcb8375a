"""Attribution by information survival: follow what the answer needed along the graph, and blame who lost it. No model.

The need (the gold answer's content, from the evidence turns) is looked for in what was extracted, in what the memory
holds in the end, and in what the answer was given. The deepest stage that still carries it tells which operation lost
it: the one whose inputs carry it and whose outputs don't.

How sure a verdict is, is the product of three factors, kept within 0.05 to 0.97:
    - how telling the kind of verdict is (`telling`): a right reply that breaks the format is hardly ever anything
      else; a garbled fact could still have been understood;
    - how the need is known (`needs.PRIORS`): 1 if the evidence states the answer, down to 0.5 if it must be inferred;
    - how clear-cut the survival is (`Trail.clarity`): 1 if all is there up to one stage and nothing after it.
The confidence is how often verdicts that sure were right on labelled cases (`calibration.SURVIVAL`); what is beyond the
system has no such cases, and keeps the product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

from attribution.cases import BEYOND_THE_SYSTEM, Attribution, Blame, Case, ErrorType
from attribution.evidence import EvidenceIndex
from attribution.survival.calibration import SURVIVAL
from attribution.survival.carriers import Inquiry, Trail, quote, quoted
from attribution.survival.flow import Flow, trouble_of
from attribution.survival.mistakes import beyond, unsupported
from attribution.survival.needs import PRIORS, STATED, Need, needs_of
from attribution.survival.outdated import former_value, is_unknowable
from attribution.survival.strength import FAILED, FORMAT, GARBLED, IGNORED, NEVER_EXTRACTED, NOT_RETRIEVED
from attribution.survival.subject import ABOUT
from attribution.survival.updates import left_standing, lost_at_update
from attribution.survival.withdrawals import answered_unanswerable
from attribution.text.content import Vocabulary, content_of, is_number
from attribution.text.phrases import says_unknown
from attribution.text.question_kinds import is_inferred
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.recording.redaction import redact
from tracing.systems.conversations import Conversation, Question
from tracing.systems.protocol import OperationSpec

_LEAST, _MOST = 0.05, 0.97
_SAME_SUBJECT = 0.5
_PART_OF_IT = 0.5
_EARLIEST_FIRST = tuple(one for one in get_args(ErrorType) if one not in BEYOND_THE_SYSTEM)
_MOST_BLAMES = 3
_ASSUMED = 2
_GUESSED = 0.7
_NEXT = 0.6


def attribute(
    case: Case, graph: ExecutionGraph, conversation: Conversation, operations: Sequence[OperationSpec]
) -> Attribution:
    """Attribute one wrong answer. For several of one graph, make one `Survival` and reuse it.

    Args:
        case: the wrong answer.
        graph: the build of the conversation's memory and the answers, in one graph.
        conversation: what the memory was built from, with turns named as in the graph.
        operations: the system's operations with their stages, in pipeline order.
    """
    return Survival(graph, conversation, operations).attribute(case)


class Survival:
    """Attributes the wrong answers of one conversation's graph; what they share is worked out once.

    Args:
        graph, conversation, operations: as of `attribute`.
        review: a second opinion on where the content is, given before the verdict is drawn from it.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        conversation: Conversation,
        operations: Sequence[OperationSpec],
        *,
        review: Callable[[Inquiry, Trail], Trail] | None = None,
    ) -> None:
        self._review = review
        self._flow = Flow(graph, operations)
        self._conversation = conversation
        self._vocabulary = Vocabulary(turn.text for turn in conversation.turns())
        self._index: EvidenceIndex | None = None

    def attribute(self, case: Case) -> Attribution:
        """Whose fault the case is. A passed case, and one the trace tells too little of, is abstained from."""
        if case.passed:
            return Attribution(case, abstained="the answer passed")
        answering = self._flow.answering(case.question.id, case.prediction)
        if answering is None:
            return Attribution(case, abstained=f"the trace has no answer operation for {case.question.id}")
        inquiry = Inquiry(self._with_evidence(case), answering, self._flow, self._conversation, self._vocabulary)
        found = beyond(inquiry) or _answer_alone(inquiry) or self._unsurvived(inquiry)
        if isinstance(found, str):
            return Attribution(case, abstained=found)
        if inquiry.case is not case:
            found = [replace(blame, confidence=blame.confidence * _GUESSED) for blame in found]
        blames = tuple(_calibrated(blame) for blame in found)
        return Attribution(case, blames, alternatives=self._alternatives(inquiry, blames[0]))

    def _alternatives(self, inquiry: Inquiry, main: Blame) -> tuple[Blame, ...]:
        """What else it may be: lost where the evidence was read or, if that is the verdict, there and not used."""
        left = (1 - main.confidence) * _NEXT
        if main.error_type == "ExtractionError":
            answer = inquiry.answering.answer
            reason = "the context may have said it in words that were not recognised"
            return (Blame(answer.name, answer.id, "ResponseError", left, reason),)
        readers = [reader for turn in inquiry.case.question.evidence for reader in self._flow.readers(turn)]
        fault = readers[-1] if readers else None
        name = fault.name if fault is not None else self._flow.named("extract")
        reason = "what was extracted may not be what the answer needed"
        return (Blame(name, fault.id if fault is not None else None, "ExtractionError", left, reason),)

    def _with_evidence(self, case: Case) -> Case:
        """The case with evidence turns: those annotated, or the likeliest ones, preferably such as say the answer."""
        question = case.question
        if question.evidence or is_unknowable(question):
            return case
        if self._index is None:
            self._index = EvidenceIndex(self._conversation)
        found = self._index.search(case, query="gold" if case.knows_answer else "question")
        turns = {turn.id: content_of(turn.text) for turn in self._conversation.turns()}
        forms = list(map(content_of, question.answers))
        saying = [
            turn for turn in found if any(self._vocabulary.coverage(form, turns[turn]) >= STATED for form in forms)
        ]
        assumed = tuple((saying or found)[:_ASSUMED])
        return replace(case, question=question.model_copy(update={"evidence": assumed}))

    def _is_hidden(self, question: Question) -> bool:
        """Whether the evidence says an answer only in what is taken out of whatever is recorded."""
        forms = list(map(content_of, question.answers))
        for turn in self._conversation.turns():
            shown = redact(turn.text) if turn.id in question.evidence else turn.text
            if shown != turn.text:
                said, left = content_of(turn.text), content_of(shown)
                coverage = self._vocabulary.coverage
                if any(coverage(form, said) >= STATED > coverage(form, left) for form in forms):
                    return True
        return False

    def _unsurvived(self, inquiry: Inquiry) -> list[Blame] | str:
        question = inquiry.case.question
        if is_unknowable(question):
            return [answered_unanswerable(inquiry)]
        if self._is_hidden(question):
            return "what the answer needs is a credential, and traces hold none"
        needs = needs_of(question, self._conversation, self._vocabulary)
        if not needs and question.evidence:
            return [unsupported(inquiry)]
        if not needs:
            return (
                f"{question.id} has no evidence turns, and no turn holds the gold answer {quote(question.answers[0])}"
            )
        known = [need for need in needs if any(self._flow.messages(turn) for turn in need.turns)]
        if not known:
            return (
                f"the trace has none of the evidence turns {', '.join(turn for need in needs for turn in need.turns)}"
            )
        former = former_value(question, self._conversation, self._vocabulary)
        # What the reply gives has survived.
        missing = [need for need in known if not inquiry.reply_says(need)] or known
        trails = [inquiry.trail(need) for need in missing]
        if self._review is not None:
            trails = [self._review(inquiry, trail) for trail in trails]
        if is_inferred(question):
            # A conclusion can be drawn from any of the hints that were left.
            trails = [trail for trail in trails if trail.context][:1] or trails
        blames = [_verdict(inquiry, trail, former) for trail in trails]
        return _decisive(blames)


def _answer_alone(inquiry: Inquiry) -> list[Blame] | None:
    """Blame for what the reply alone shows: the operation failed, or its reply is right but not as asked for."""
    case, answer = inquiry.case, inquiry.answering.answer
    trouble = trouble_of(answer)
    if trouble:
        return [
            Blame(answer.name, answer.id, "ResponseError", FAILED, f"{answer.name} failed ({trouble})", (answer.id,))
        ]
    evidence = (case.prediction,) if case.prediction else ()
    unknown = says_unknown(case.reply)
    if case.judgement.contains and (not unknown or is_unknowable(case.question)) and not _hedged(case):
        reason = f"format: the reply {quote(case.reply)} holds the right answer, but not in the form asked for"
        return [Blame(answer.name, answer.id, "ResponseError", FORMAT, reason, evidence)]
    if is_unknowable(case.question) and unknown:
        reason = f"format: the reply {quote(case.reply)} owns not to know, but not in an accepted form"
        return [Blame(answer.name, answer.id, "ResponseError", FORMAT, reason, evidence)]
    return None


def _hedged(case: Case) -> bool:
    """Whether a number was asked for and the reply gives several, so that it does not say which."""
    numbers = {word for word in content_of(case.reply) - content_of(case.question.question) if is_number(word)}
    return all(map(is_number, content_of(case.question.answers[0]))) and len(numbers) > 1


def _verdict(inquiry: Inquiry, trail: Trail, former: Need | None) -> Blame:
    stale = left_standing(inquiry, trail, former) if former is not None else None
    if stale is not None:
        found = stale
    elif trail.context:
        found = _ignored(inquiry, trail)
    elif trail.stored:
        unnamed = None if trail.reviewed else _without_subject(inquiry, trail)
        found = unnamed or _not_retrieved(inquiry, trail)
    elif trail.extracted:
        found = lost_at_update(inquiry, trail)
    else:
        found = _not_extracted(inquiry, trail)
    return replace(found, confidence=found.confidence * PRIORS[trail.need.basis])


def _decisive(blames: Sequence[Blame]) -> list[Blame]:
    """The blames that count: where a part was lost on the way, the answer could not be whole with the rest of it."""
    lost = [blame for blame in blames if blame.error_type != "ResponseError"] or list(blames)
    lost.sort(key=lambda blame: _EARLIEST_FIRST.index(blame.error_type))
    distinct = {(blame.operation, blame.operation_id): blame for blame in reversed(lost)}
    return list(reversed(distinct.values()))[:_MOST_BLAMES]


def _ignored(inquiry: Inquiry, trail: Trail) -> Blame:
    answer = inquiry.answering.answer
    given = trail.context[0]
    near = inquiry.case.question.near_miss
    confused = f", which {near.turn} gives for another matter" if near is not None and inquiry.confused else ""
    needed = quote(trail.need.label) if trail.need.basis != "implied" else trail.need.label
    held = f"the context held {needed} in {given.name}, {quoted(given)}"
    reason = f"{held}, but the reply is {quote(inquiry.case.reply)}{confused}"
    evidence = (given.id, *((inquiry.case.prediction,) if inquiry.case.prediction else ()))
    return Blame(answer.name, answer.id, "ResponseError", IGNORED * trail.clarity, reason, evidence)


def _without_subject(inquiry: Inquiry, trail: Trail) -> Blame | None:
    """Blame for an extraction that kept a value but not what it is about, so that no search could find it."""
    flow = inquiry.flow
    if not flow.rewrites() or any(inquiry.grade(entry, trail.need).about >= ABOUT for entry in trail.stored):
        return None
    readers = [reader for turn in trail.need.turns for reader in flow.readers(turn)]
    if not readers:
        return None
    entry, fault = trail.stored[0], readers[-1]
    turns = " and ".join(trail.need.turns)
    reason = f"of {turns}, {fault.name} left only {quoted(entry)}, which does not name what the question is about"
    return Blame(fault.name, fault.id, "ExtractionError", GARBLED * trail.clarity, reason, (entry.id,))


def _not_retrieved(inquiry: Inquiry, trail: Trail) -> Blame:
    flow, answering, need = inquiry.flow, inquiry.answering, trail.need
    entry = trail.stored[0]
    carriers = {variable.id for variable in trail.stored}
    held = f"entry {entry.name} holds {quoted(entry)}"
    confidence = NOT_RETRIEVED * trail.clarity
    if not flow.has("retrieve"):
        reason = f"{held}, but it is not in what {answering.answer.name} was given"
        return Blame(answering.answer.name, answering.answer.id, "ResponseError", confidence, reason, (entry.id,))
    if not answering.retrievals:
        reason = f"{held}, but nothing was retrieved for {inquiry.case.question.id}"
        return Blame(flow.named("retrieve"), None, "RetrievalError", confidence, reason, (entry.id,))

    def carried(variables: Sequence[Variable]) -> bool:
        return any(variable.id in carriers or inquiry.grade(variable, need).carries for variable in variables)

    fault = _last_losing(answering.retrievals, flow, carried)
    trouble = trouble_of(fault)
    count = len(answering.context)
    reason = f"{held}, but it is not among the {count} that {fault.name} gave" + (f" ({trouble})" if trouble else "")
    return Blame(fault.name, fault.id, "RetrievalError", confidence, reason, (entry.id,))


def _last_losing(
    operations: Sequence[Operation], flow: Flow, carried: Callable[[Sequence[Variable]], bool]
) -> Operation:
    """The last of some operations that was given the content and did not pass it on; else the last of all."""
    losing = [one for one in operations if carried(flow.inputs_of(one)) and not carried(flow.outputs_of(one))]
    return (losing or operations)[-1]


def _not_extracted(inquiry: Inquiry, trail: Trail) -> Blame:
    flow, need = inquiry.flow, trail.need
    turns = " and ".join(need.turns)
    messages = tuple(message.id for turn in need.turns for message in flow.messages(turn))
    readers = [reader for turn in need.turns for reader in flow.readers(turn)]
    wanted = quote(need.label) if need.basis != "implied" else "its content"
    if not readers:
        reason = f"no extract operation read {turns}, which says {wanted}"
        return Blame(flow.named("extract"), None, "ExtractionError", NEVER_EXTRACTED, reason, messages)

    def carried(variables: Sequence[Variable]) -> bool:
        return any(one.id in messages or inquiry.grade(one, need, traced=True).carries for one in variables)

    fault = _last_losing(readers, flow, carried)
    trouble = trouble_of(fault)
    if trouble:
        reason = f"{fault.name} read {turns} but failed ({trouble}), so {wanted} was never extracted"
        return Blame(fault.name, fault.id, "ExtractionError", FAILED, reason, messages)
    garbled = _garbled(inquiry, need)
    if garbled is not None:
        fact, how = garbled
        confidence = GARBLED * trail.clarity
        reason = f"{fault.name} turned {turns}, which says {wanted}, into {quoted(fact)}, {how}"
        return Blame(fault.name, fault.id, "ExtractionError", confidence, reason, (*messages, fact.id))
    reason = f"{fault.name} read {turns}, but none of its {len(flow.outputs_of(fault))} outputs says {wanted}"
    return Blame(fault.name, fault.id, "ExtractionError", NEVER_EXTRACTED * trail.clarity, reason, messages)


def _garbled(inquiry: Inquiry, need: Need) -> tuple[Variable, str] | None:
    """The extracted fact in which the needed content is distorted, and how; None if nothing resembles it."""
    read = inquiry.read(need)
    threshold = need.threshold
    closest = max(read, key=lambda item: item[1].coverage, default=None)
    if closest is not None and closest[1].coverage >= threshold and closest[1].person != "right":
        how = "which gives it to somebody else" if closest[1].person == "other" else "which does not tell whose it is"
        return closest[0], how
    similar = [item for item in read if item[1].about >= _SAME_SUBJECT and item[1].person == "right"]
    if similar:
        return max(similar, key=lambda item: item[1].about)[0], "which says something else"
    if closest is not None and threshold > closest[1].coverage >= threshold * _PART_OF_IT:
        return closest[0], "which keeps only a part of it"
    return None


def _calibrated(blame: Blame) -> Blame:
    sure = min(_MOST, max(_LEAST, blame.confidence))
    return replace(blame, confidence=round(sure if blame.error_type in BEYOND_THE_SYSTEM else SURVIVAL(sure), 3))
