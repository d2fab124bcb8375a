"""Verdicts on questions without an answer: the value asked for was withdrawn, or never given."""

from __future__ import annotations

from collections.abc import Sequence

from attribution.cases import Blame
from attribution.constants import IGNORED, INVENTED, NEVER_EXTRACTED, NOT_RETRIEVED
from attribution.explanations import quote, quoted
from attribution.survival.case_view import CaseView
from attribution.survival.needs import outdated_value
from attribution.survival.verdicts.updates import kept_of, not_deleted, retractions_read
from tracing.graph.elements import Variable


def answered_unanswerable(view: CaseView) -> Blame:
    """Blame for an answer where there is none: a value that was withdrawn, or one that was never given."""
    question, flow, answering = view.case.question, view.flow, view.answering
    made_up = f"the right answer is {quote(question.answers[0])}, but the reply is {quote(view.case.reply)}"
    outdated = outdated_value(question, view.conversation, view.vocabulary)
    answer = answering.answer
    if outdated is None or not view.reply_says(outdated):
        return flow.blame(answer, "ResponseError", INVENTED, f"{made_up}, which nothing calls for")
    turns = [turn for turn in question.evidence if turn not in outdated.turns]
    withdrawn = " and ".join(turns)
    standing = view.still_stored(outdated, instead_of=None)
    stale_context = view.pieces_showing(standing)
    if not stale_context:
        reason = f"{made_up}, although no entry in the context asserts what {withdrawn} withdrew"
        return flow.blame(answer, "ResponseError", INVENTED, reason)
    withdrawals = [entry for entry in flow.current if view.withdraws(entry)] if view.is_verbatim else []
    if withdrawals:
        return _unresolved(view, turns, stale_context, withdrawals)
    readers = flow.readers(*turns)
    retractions = [] if view.is_verbatim else retractions_read(view, turns)
    if retractions:
        unresolved = _unresolved(view, turns, stale_context, kept_of(view, retractions))
        return not_deleted(view, retractions, standing) or unresolved
    messages = [message.id for message in flow.messages(*turns)]
    entry = standing[0]
    failure = readers[-1].error if readers else "no operation read it"
    cause = f" ({failure})" if failure else ""
    unread = f"{withdrawn} withdraws {quote(outdated.label)}, but this was never extracted{cause}"
    reason = f"{unread}, so entry {entry.name} still says it"
    fault = readers[-1] if readers else None
    return flow.blame(fault, "ExtractionError", NEVER_EXTRACTED, reason, (*messages, entry.id))


def _unresolved(
    view: CaseView, turns: Sequence[str], stale_context: Sequence[Variable], withdrawals: Sequence[Variable]
) -> Blame:
    """Blame if old and new are both kept: the answer must resolve it, if it is given both.

    `turns` withdraw the value, `stale_context` still asserts it, and `withdrawals` are entries that state that.
    """
    answering = view.answering
    withdrawal_context = view.pieces_showing(withdrawals)
    withdrawn = " and ".join(turns)
    if withdrawal_context or not answering.retrievals:
        holding = f"the context held both {quoted(stale_context[0])} and {withdrawn}, which withdraws it"
        reason = f"{holding}, but the reply is {quote(view.case.reply)}"
        return view.flow.blame(answering.answer, "ResponseError", IGNORED, reason, (stale_context[0].id,))
    fault = answering.retrievals[-1]
    reason = f"{fault.name} gave {quoted(stale_context[0])} but not {withdrawn}, which withdraws it"
    return view.flow.blame(fault, "RetrievalError", NOT_RETRIEVED, reason, (stale_context[0].id,))
