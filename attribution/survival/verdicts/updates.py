"""Verdicts on the update stage: new content lost there, old content kept, a deletion not carried out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attribution.cases import Blame, ErrorType
from attribution.constants import LOST, NOT_DELETED, NOT_UPDATED, SAME_REQUEST
from attribution.explanations import quote, quoted
from attribution.recorded_values import event_of
from attribution.survival.case_view import CaseView, Trail
from attribution.survival.needs import Need, fact_of
from attribution.text.content import content_of, text_of
from attribution.text.phrases import says_retracted
from tracing.graph.elements import Operation, Variable


@dataclass(frozen=True, slots=True)
class _Loss:
    operation: Operation
    error_type: ErrorType
    reason: str
    evidence: tuple[str, ...]


def lost_at_update(view: CaseView, trail: Trail) -> Blame:
    """Blame for content that was extracted but is not in the final memory: of several losses, the last."""
    losses = [loss for fact in trail.extracted for loss in _losses_of(view, fact, trail.need)]
    if not losses:
        fact = trail.extracted[0]
        reason = f"{quoted(fact)} was extracted from {_turns(trail.need)}, but no update operation took it up"
        return view.flow.blame(None, "UpdateError", LOST * trail.clarity, reason, (fact.id,))
    position = {oid: at for at, oid in enumerate(view.flow.graph.operations)}
    loss = max(losses, key=lambda loss: position[loss.operation.id])
    return view.flow.blame(loss.operation, loss.error_type, LOST * trail.clarity, loss.reason, loss.evidence)


def not_updated(view: CaseView, trail: Trail, outdated: Need) -> Blame | None:
    """Blame for a superseded value that is stored beside the new one, if a decision left it and it explains the answer.

    It explains it if the reply gives the outdated value, or if that displaced the new one in the context. If no
    decision was shown the outdated value, the retrieval and the answer should have preferred the new one.
    """
    if not view.flow.has("update") or not trail.stored:
        return None
    standing = view.still_stored(outdated, instead_of=trail.need)
    stale_context = view.pieces_showing(standing)
    if not stale_context or not (view.reply_says(outdated) or not trail.context):
        return None
    entry = standing[0]
    effect = "and the answer gave it" if view.reply_says(outdated) else "and was retrieved in place of the new value"
    unanswered = _unanswered_change(view, trail.extracted, standing)
    if unanswered is None:
        return None
    fault, how = unanswered
    change = f"{_turns(trail.need)} changed it to {quote(trail.need.label)}"
    observation = f"entry {entry.name} still says {quoted(entry)} although {change}"
    evidence = (entry.id, *(fact.id for fact in trail.extracted[:1]), *(piece.id for piece in stale_context[:1]))
    reason = f"{observation}, {effect}: {how}"
    return view.flow.blame(fault, "UpdateError", NOT_UPDATED * trail.clarity, reason, evidence)


def not_deleted(view: CaseView, retractions: Sequence[Variable], standing: Sequence[Variable]) -> Blame | None:
    """Blame for an entry that a retraction should have removed; None if no decision was shown both and both are kept.

    `retractions` are the facts that state it, `standing` the entries that assert what was withdrawn.
    """
    entry = standing[0]
    unanswered = _unanswered_change(view, retractions, standing)
    if unanswered is None:
        return None if kept_of(view, retractions) else _dropped(view, retractions)
    fault, how = unanswered
    reason = f"entry {entry.name} still says {quoted(entry)} although {quoted(retractions[0])} was extracted: {how}"
    return view.flow.blame(fault, "DeletionError", NOT_DELETED, reason, (entry.id, retractions[0].id))


def kept_of(view: CaseView, facts: Sequence[Variable]) -> list[Variable]:
    """The entries made from these facts that the memory holds in the end."""
    flow = view.flow
    current = {entry.id: entry for entry in flow.current}
    versions = (version for fact in facts for result in flow.written(fact).results for version in flow.later(result))
    return list({version.id: version for version in versions if version.id in current}.values())


def _dropped(view: CaseView, retractions: Sequence[Variable]) -> Blame:
    """Blame for a retraction that the update stage neither acted on nor kept."""
    flow, fact = view.flow, retractions[0]
    operations = flow.written(fact).operations
    fault = flow.at_fault(operations[-1]) if operations else None
    reason = f"{quoted(fact)} was extracted but neither acted on nor stored"
    return flow.blame(fault, "UpdateError", LOST, reason, (fact.id,))


def retractions_read(view: CaseView, turns: Sequence[str]) -> list[Variable]:
    """The facts extracted from these turns that state a retraction on the question's subject."""
    gold = fact_of(view.case.question, view.conversation)
    fact_words = content_of(gold.text) if gold is not None else frozenset()
    retractions: dict[str, Variable] = {}
    for turn in turns:
        for fact, _ in view.flow.extracted(turn):
            text = text_of(fact.value)
            words = content_of(text)
            same = view.vocabulary.coverage(fact_words, words) >= SAME_REQUEST
            cued = says_retracted(text) and view.grader.about(words) > 0
            if view.grader.person(words) != "other" and (same or cued or _deletes(view, fact)):
                retractions[fact.id] = fact
    return list(retractions.values())


def _unanswered_change(
    view: CaseView, facts: Sequence[Variable], standing: Sequence[Variable]
) -> tuple[Operation, str] | None:
    """Who failed to change an entry when a fact required it, and how; None if no decision was shown both.

    An operation is responsible only for what it did with its own inputs.
    """
    flow = view.flow
    lineage = {version.id for entry in standing for version in flow.graph.versions(entry.id)}
    for fact in facts:
        for last in flow.written(fact).operations[-1:]:
            decider = flow.decider(last)
            if decider is not None and not lineage.isdisjoint(decider.input_ids()):
                fault = flow.at_fault(last)
                return fault, _what(view, fault, decider)
    return None


def _what(view: CaseView, fault: Operation, decider: Operation) -> str:
    if fault.error:
        return f"{fault.name} failed ({fault.error})"
    decision = event_of(view.flow.outputs_of(decider))
    if decision is None:
        return f"{fault.name} did not change it"
    event, target = decision
    decision_text = event if target is None else f"{event} {_entry_name(view, target)}"
    return (
        f"{fault.name} decided {decision_text}"
        if fault is decider
        else f"{fault.name} did not carry out the decision {decision_text}"
    )


def _losses_of(view: CaseView, fact: Variable, need: Need) -> list[_Loss]:
    """Where the content of one extracted fact got lost, if it went through the update stage at all."""
    flow = view.flow
    writing = flow.written(fact)
    carrying = [result for result in writing.results if _carries(view, result, need)]
    if carrying:
        return [loss for entry in carrying for loss in _overwritten(view, entry, need)]
    if not writing.operations:
        return []
    last = writing.operations[-1]
    decider = flow.decider(last)
    fault = flow.at_fault(last)
    did = _what(view, fault, decider) if decider is not None else f"{last.name} did not keep it"
    stored = next((result for result in writing.results if result.kind == "memory_entry"), None)
    markers = any(result.kind == "delete_marker" for result in writing.results)
    outcome = f", which left entry {stored.name} as {quoted(stored)}" if stored else ""
    reason = f"{quoted(fact)} was extracted from {_turns(need)} but never stored: {did}{outcome}"
    kind: ErrorType = "DeletionError" if markers and stored is None else "UpdateError"
    return [_Loss(fault, kind, reason, (fact.id, *(result.id for result in writing.results)))]


def _overwritten(view: CaseView, entry: Variable, need: Need) -> list[_Loss]:
    """The operations that replaced a stored entry by one without its content, or deleted it."""
    flow = view.flow
    losses: list[_Loss] = []
    queue = [entry]
    for version in queue:
        following = flow.following(version)
        carrying = [later for later in following if _carries(view, later, need)]
        queue += [later for later in carrying if later not in queue]
        for later in following if not carrying else ():
            makers = [maker for maker in flow.graph.producers(later.id) if flow.stage(maker) == "update"]
            if not makers:
                continue
            fault = flow.at_fault(makers[-1])
            cause = next((source for source in flow.inputs_of(makers[-1]) if source.kind == "fact"), None)
            because = f" on reading the fact {quoted(cause)}" if cause is not None else ""
            deleted = later.kind == "delete_marker"
            how = "deleted it" if deleted else f"replaced it by {quoted(later)}"
            reason = f"entry {version.name} held {quoted(version)} until {fault.name} {how}{because}"
            kind: ErrorType = "DeletionError" if deleted else "UpdateError"
            losses.append(_Loss(fault, kind, reason, (version.id, later.id)))
    return losses


def _carries(view: CaseView, variable: Variable, need: Need) -> bool:
    return variable.kind != "delete_marker" and view.grade(variable, need, traced=True).carries


def _deletes(view: CaseView, fact: Variable) -> bool:
    """Whether the decision on a fact was to delete something on the question's subject."""
    for operation in view.flow.written(fact).operations:
        decision = event_of(view.flow.outputs_of(operation))
        if decision is not None and decision[0] == "DELETE":
            return view.grader.about(content_of(text_of(fact.value))) > 0
    return False


def _entry_name(view: CaseView, target: str) -> str:
    variable = view.flow.graph.variables.get(target)
    return variable.name if variable is not None else target


def _turns(need: Need) -> str:
    return " and ".join(need.turns)
