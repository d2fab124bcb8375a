"""Verdicts on content that did not survive: which operation lost it, by the deepest stage that still carries it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from attribution.cases import Blame
from attribution.constants import (
    ABOUT,
    FAILED,
    GARBLED,
    IGNORED,
    NEVER_EXTRACTED,
    NOT_RETRIEVED,
    PART_OF_IT,
    SAME_SUBJECT,
)
from attribution.explanations import quote, quoted
from attribution.survival.case_view import CaseView, Trail
from attribution.survival.flow import ContentFlow, unusable_reply_of
from attribution.survival.needs import PRIORS, Need
from attribution.survival.verdicts.updates import lost_at_update, not_updated
from attribution.text.content import text_of
from attribution.text.phrases import says_unknown
from tracing.graph.elements import Operation, Variable


def verdict_on(view: CaseView, trail: Trail, outdated: Need | None) -> Blame:
    """Blame for the wrong answer, as far as the need of a trail explains it; `outdated` is what that replaced."""
    stale = not_updated(view, trail, outdated) if outdated is not None else None
    if stale is not None:
        blame = stale
    elif trail.context:
        blame = _without_owner(view, trail) or _ignored(view, trail)
    elif piece := view.drawn_from(trail.need):
        blame = _wrongly_concluded(view, trail, piece)
    elif trail.stored:
        blame = _misdated(view, trail) or _without_topic(view, trail) or _not_retrieved(view, trail)
    elif trail.extracted:
        blame = lost_at_update(view, trail)
    else:
        blame = _not_extracted(view, trail)
    return replace(blame, confidence=blame.confidence * PRIORS[trail.need.basis])


def _ignored(view: CaseView, trail: Trail) -> Blame:
    piece = trail.context[0]
    near = view.case.question.near_miss
    confused = f", which {near.turn} gives for another matter" if near is not None and view.confused else ""
    needed = quote(trail.need.label) if trail.need.basis != "implied" else trail.need.label
    holding = f"the context held {needed} in {piece.name}, {quoted(piece)}"
    reason = f"{holding}, but the reply is {quote(view.case.reply)}{confused}"
    return _of_answer(view, IGNORED * trail.clarity, reason, piece)


def _of_answer(view: CaseView, confidence: float, reason: str, piece: Variable) -> Blame:
    """Blame for what the answer made of a piece of its context."""
    evidence = (piece.id, *((view.case.prediction,) if view.case.prediction else ()))
    return view.flow.blame(view.answering.answer, "ResponseError", confidence, reason, evidence)


def _wrongly_concluded(view: CaseView, trail: Trail, piece: Variable) -> Blame:
    turns = " and ".join(trail.need.turns)
    reply = quote(view.case.reply)
    reason = f"the reply is {reply}, as {turns} and {piece.name} say, and something else was to be concluded from it"
    return _of_answer(view, IGNORED * trail.clarity, reason, piece)


def _misdated(view: CaseView, trail: Trail) -> Blame | None:
    """Blame for an answer that was given an entry which tells the time, though under another time stamp."""
    for entry in trail.stored if trail.need.times else ():
        text = text_of(entry.value)
        piece = next((piece for piece in view.pieces_showing([entry]) if text in text_of(piece.value)), None)
        if piece is not None:
            holding = f"the context held {quoted(entry)} in {piece.name}, under another time stamp"
            reason = f"{holding}, but the reply is {quote(view.case.reply)}"
            return _of_answer(view, GARBLED * trail.clarity, reason, piece)
    return None


def _without_owner(view: CaseView, trail: Trail) -> Blame | None:
    """Blame for an extraction that kept a value but not whose it is, so that the answer rightly did not know."""
    if not says_unknown(view.case.reply) or not view.flow.rewrites():
        return None
    memories = (*trail.context, *trail.extracted)
    if _tells_whose(view, trail.need, memories):
        return None

    def is_fault(reader: Operation) -> bool:
        given = [made for made in view.flow.outputs_of(reader) if view.grade(made, trail.need, traced=True).carries]
        return bool(given) and not _tells_whose(view, trail.need, given)

    readers = view.flow.readers(*trail.need.turns)
    return _blame_of_reader(view, trail, trail.context[0], "whom", next(filter(is_fault, readers), None))


def _tells_whose(view: CaseView, need: Need, texts: Iterable[Variable]) -> bool:
    return any(view.grader.tells_whose(need, text_of(text.value)) for text in texts)


def _without_topic(view: CaseView, trail: Trail) -> Blame | None:
    """Blame for an extraction that kept a value but not its subject, so that no search could find it."""
    about = (view.grade(entry, trail.need, traced=True).about for entry in trail.stored)
    plain = (view.grader.is_plain(trail.need, text_of(entry.value)) for entry in trail.stored)
    if not view.flow.rewrites() or any(share >= ABOUT for share in about) or any(plain):
        return None
    return _blame_of_reader(view, trail, trail.stored[0], "what")


def _blame_of_reader(
    view: CaseView, trail: Trail, memory: Variable, lost: str, fault: Operation | None = None
) -> Blame | None:
    """Blame for the extraction that left only this of its turns, by default the last; None if none read them."""
    readers = view.flow.readers(*trail.need.turns)
    if not readers:
        return None
    fault = fault or readers[-1]
    turns = " and ".join(trail.need.turns)
    reason = f"of {turns}, {fault.name} left only {quoted(memory)}, which does not name {lost} the question is about"
    return view.flow.blame(fault, "ExtractionError", GARBLED * trail.clarity, reason, (memory.id,))


def _not_retrieved(view: CaseView, trail: Trail) -> Blame:
    flow, answering, need = view.flow, view.answering, trail.need
    entry = trail.stored[0]
    carriers = {variable.id for variable in trail.stored}
    holding = f"entry {entry.name} holds {quoted(entry)}"
    confidence = NOT_RETRIEVED * trail.clarity
    if not flow.has("retrieve"):
        reason = f"{holding}, but it is not in what {answering.answer.name} was given"
        return flow.blame(answering.answer, "ResponseError", confidence, reason, (entry.id,))
    if not answering.retrievals:
        reason = f"{holding}, but nothing was retrieved for {view.case.question.id}"
        return flow.blame(None, "RetrievalError", confidence, reason, (entry.id,))

    def carried(variables: Sequence[Variable]) -> bool:
        return any(variable.id in carriers or view.grade(variable, need).carries for variable in variables)

    fault = _last_losing(answering.retrievals, flow, carried)
    count = len(answering.context)
    failure = f" ({fault.error})" if fault.error else ""
    reason = f"{holding}, but it is not among the {count} that {fault.name} gave{failure}"
    return flow.blame(fault, "RetrievalError", confidence, reason, (entry.id,))


def _last_losing(
    operations: Sequence[Operation], flow: ContentFlow, carried: Callable[[Sequence[Variable]], bool]
) -> Operation:
    """The last of some operations that was given the content and did not pass it on; else the last of all."""
    losing = [
        operation
        for operation in operations
        if carried(flow.inputs_of(operation)) and not carried(flow.outputs_of(operation))
    ]
    return (losing or operations)[-1]


def _not_extracted(view: CaseView, trail: Trail) -> Blame:
    flow, need = view.flow, trail.need
    turns = " and ".join(need.turns)
    messages = [message.id for message in flow.messages(*need.turns)]
    readers = flow.readers(*need.turns)
    content = quote(need.label) if need.basis != "implied" else "its content"
    if not readers:
        reason = f"no extract operation read {turns}, which says {content}"
        return flow.blame(None, "ExtractionError", NEVER_EXTRACTED, reason, messages)

    def carried(variables: Sequence[Variable]) -> bool:
        return any(variable.id in messages or view.grade(variable, need, traced=True).carries for variable in variables)

    fault = _last_losing(readers, flow, carried)
    if unusable_reply_of(fault) is not None:
        return flow.blame(fault, "ExtractionError", FAILED, f"it had read {turns}, which says {content}", messages)
    if fault.error:
        reason = f"{fault.name} read {turns} but failed ({fault.error}), so {content} was never extracted"
        return flow.blame(fault, "ExtractionError", FAILED, reason, messages)
    garbled = _garbled(view, need)
    if garbled is not None:
        fact, how = garbled
        reason = f"{fault.name} turned {turns}, which says {content}, into {quoted(fact)}, {how}"
        return flow.blame(fault, "ExtractionError", GARBLED * trail.clarity, reason, (*messages, fact.id))
    reason = f"{fault.name} read {turns}, but nothing that it made says {content}"
    return flow.blame(fault, "ExtractionError", NEVER_EXTRACTED * trail.clarity, reason, messages)


def _garbled(view: CaseView, need: Need) -> tuple[Variable, str] | None:
    """The extracted fact in which the needed content is distorted, and how; None if nothing resembles it."""
    read = view.read(need)
    threshold = need.threshold
    closest = max(read, key=lambda graded: graded[1].coverage, default=None)
    if closest is not None and closest[1].coverage >= threshold and closest[1].person != "right":
        how = "which gives it to somebody else" if closest[1].person == "other" else "which does not tell whose it is"
        return closest[0], how
    similar = [graded for graded in read if graded[1].about >= SAME_SUBJECT and graded[1].person == "right"]
    if similar:
        return max(similar, key=lambda graded: graded[1].about)[0], "which says something else"
    if closest is not None and threshold > closest[1].coverage >= threshold * PART_OF_IT:
        return closest[0], "which keeps only a part of it"
    return None
