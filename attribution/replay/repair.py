"""Repairs: what a correct operation would have emitted from its own actual inputs, in its own format.

Each rule compares an output with what the gold content of one question calls for, given what the operation saw:
    - extraction: the gold facts of the turns it read, replacing garbled versions;
    - decision: the event on the entries it was shown that keeps what is needed and removes what was changed;
    - storing: what was decided;
    - retrieval: the needed entry, if the store holds it;
    - answer: the gold answer, if the context carries it.
If the inputs lack what is needed, there is nothing to repair: the fault is earlier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from attribution.cases import ErrorType
from attribution.constants import FEW_MESSAGES
from attribution.explanations import quote
from attribution.survival.gold import Gold
from tracing.graph.elements import Variable
from tracing.recording.redaction import redact
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change, Intervention, Step

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Execution:
    """Which execution of an operation about some turns, a fact or a question: the same in every run of a system."""

    operation: str
    about: tuple[str, ...]
    number: int = 1


@dataclass(frozen=True, slots=True)
class WrongOutput:
    """An output that a correct operation would not have emitted from the same inputs, and which it should have."""

    place: Execution
    operation_id: str
    error_type: ErrorType
    reason: str


class Repairs(Intervention):
    """Finds the outputs of one run that are wrong for one question, and corrects those of chosen places."""

    def __init__(self, gold: Gold, chosen: Collection[Execution] | None = ()) -> None:
        """`chosen` are the places to correct; None corrects whatever is wrong."""
        self.wrong_outputs: list[WrongOutput] = []
        self._gold, self._chosen = gold, chosen
        self._execution_counts: Counter[tuple[str, tuple[str, ...]]] = Counter()

    def extracted(self, step: Step, messages: Sequence[Variable], statements: list[str]) -> list[str]:
        """The gold facts of the turns read, if not already in the output."""
        gold, turns = self._gold, [message.name for message in messages]
        missing = gold.statements(turns)
        right = statements
        if missing and not gold.states(turns, statements, traced=len(turns) <= FEW_MESSAGES):
            if gold.is_verbatim:
                right = [gold.time_of(turns), *map(gold.spoken, turns)]
            else:
                right = [*(text for text in statements if not gold.garbles(text, turns)), *missing]
        reason = f"{step.operation} read {quote(' '.join(missing))} in {', '.join(turns)} and did not tell it"
        return self._put_right(step, tuple(turns), statements, right, "ExtractionError", reason)

    def decided(self, step: Step, fact: str, entries: Sequence[Entry], change: Change) -> Change:
        """The event that keeps what is needed and removes what was changed or withdrawn."""
        right = right_decision(self._gold, fact, entries, change)
        kind: ErrorType = "DeletionError" if "DELETE" in (right.event, change.event) else "UpdateError"
        reason = f"{step.operation} decided {_described(change)} on {quote(fact)}, where {_described(right)} was due"
        return self._put_right(step, (fact,), change, right, kind, reason)

    def stored(self, step: Step, decision: Change, change: Change) -> Change:
        """What was decided."""
        kind: ErrorType = "DeletionError" if "DELETE" in (decision.event, change.event) else "UpdateError"
        actual, due = f"{_described(change)} {quote(change.text)}", f"{_described(decision)} {quote(decision.text)}"
        reason = f"{step.operation} did {actual}, where {due} was due"
        return self._put_right(step, (decision.text,), change, decision, kind, reason)

    def retrieved(self, step: Step, query: Variable, entries: Sequence[Entry], results: list[Entry]) -> list[Entry]:
        """The needed entries first, if the store holds any that were not found."""
        missed = self._missed(entries, results)
        rest = [entry for entry in results if entry not in missed]
        right = [*missed, *rest][: max(len(results), len(missed))] if missed else results
        missed_texts = ", ".join(f"{entry.id} {quote(entry.text)}" for entry in missed)
        reason = f"the store held {missed_texts}, but it is not among the {len(results)} that {step.operation} gave"
        return self._put_right(step, (query.name,), results, right, "RetrievalError", reason)

    def answered(self, step: Step, query: Variable, context: Sequence[str], reply: str) -> str:
        """The gold answer, if the context contains it."""
        right = self._gold.answer if self._gold.answered_by(context) else reply
        reason = f"the context tells {quote(right)}, but the reply of {step.operation} is {quote(reply)}"
        return self._put_right(step, (query.name,), reply, right, "ResponseError", reason)

    def _put_right(
        self, step: Step, about: tuple[str, ...], output: T, right: T, error_type: ErrorType, reason: str
    ) -> T:
        about = tuple(map(redact, about))
        self._execution_counts[step.operation, about] += 1
        place = Execution(step.operation, about, self._execution_counts[step.operation, about])
        if output == right:
            return output
        self.wrong_outputs.append(WrongOutput(place, step.id, error_type, reason))
        return right if self._chosen is None or place in self._chosen else output

    def _missed(self, entries: Sequence[Entry], results: Sequence[Entry]) -> list[Entry]:
        gold, texts = self._gold, [entry.text for entry in results]
        requirements: list[Callable[[str], bool]]
        if gold.unknowable:
            requirements = [] if gold.answered_by(texts) else [gold.retracts]
        else:
            requirements = [lambda text, need=need: gold.carries(text, need) for need in gold.needs]  # type: ignore[misc]
        missed: Mapping[str, Entry] = {
            entry.id: entry
            for tells in requirements
            if not any(map(tells, texts))
            for entry in [entry for entry in entries if tells(entry.text)][:1]
        }
        return list(missed.values())


def right_decision(gold: Gold, fact: str, entries: Sequence[Entry], change: Change) -> Change:
    """What a correct operation would have decided on a new fact and the entries shown; `change` if that is correct."""
    target = next((entry for entry in entries if entry.id == change.target), None)
    outdated = next((entry for entry in entries if gold.asserts_outdated(entry.text)), None)
    stores = change.event in ("ADD", "UPDATE")
    if gold.unknowable:
        if not gold.retracts(fact) or (change.event == "DELETE" and target is outdated):
            return change
        if outdated is not None:
            return Change("DELETE", outdated.id, fact)
        # What it withdraws was not put before the decision: the withdrawal itself must be kept.
        kept_already = any(gold.retracts(entry.text) for entry in entries)
        return change if stores or kept_already else Change("ADD", text=fact)
    if gold.carries_any(fact):
        if outdated is not None and not (target is outdated and stores):
            return Change("UPDATE", outdated.id, fact)
        if stores and not gold.carries_any(change.text):
            return replace(change, text=fact)
        kept_already = any(
            gold.carries_any(entry.text) for entry in entries if change.event == "NONE" or entry != target
        )
        return change if stores or kept_already else Change("ADD", text=fact)
    # What is needed holds to the end of the conversation, so no other fact may replace it.
    lost = change.event in ("UPDATE", "DELETE") and target is not None and gold.carries_any(target.text)
    if not lost or (stores and gold.carries_any(change.text)):
        return change
    return _elsewhere(gold, fact, entries, target)


def _elsewhere(gold: Gold, fact: str, entries: Sequence[Entry], spared: Entry | None) -> Change:
    """The right event for a fact about something else, which must leave an entry unchanged."""
    annotated = gold.fact_of(fact)
    others = [entry for entry in entries if entry != spared]
    at = gold.replaced_by(annotated, [entry.text for entry in others]) if annotated is not None else None
    if annotated is None or at is None:
        return Change("ADD", text=fact)
    return Change("DELETE" if annotated.action == "delete" else "UPDATE", others[at].id, fact)


def _described(change: Change) -> str:
    return change.event if change.target is None else f"{change.event} {change.target}"
