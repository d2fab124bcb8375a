"""The local objective of an update decision: what a correct decision makes of the same fact and the same entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attribution.explanations import quote
from attribution.replay.repair import right_decision
from attribution.survival.gold import Gold
from optimizer.objectives.objective import Credit, RecordedInput
from optimizer.objectives.objectives import Golds, ObjectiveMeans
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change
from tracing.systems.layouts import Item


class DecisionObjective:
    """Whether a decision is right for every question that depends on the fact or on an entry shown."""

    def __init__(self, golds: Golds) -> None:
        self._golds = golds

    def weight(self, execution: RecordedInput) -> float:
        """1 if any question depends on the decision; 0 for an operation that makes something else."""
        if execution.outputs and change_in(execution, execution.outputs) is None:
            return 0.0
        return float(bool(self._dependent_golds(execution)))

    def credit(self, execution: RecordedInput, outputs: Sequence[Item]) -> Credit:
        """1 for a decision that needs no repair."""
        change = change_in(execution, outputs)
        if change is None:
            return Credit(0.0, ("no decision could be read from the reply",))
        fact, entries = _fact(execution), _entries(execution)
        for gold in self._dependent_golds(execution):
            right = right_decision(gold, fact, entries, change)
            if right != change:
                mistake = f"decided {change.event} on {quote(fact)}, where {right.event} was right"
                about = next((entry.text for entry in entries if entry.id == right.target), None)
                return Credit(0.0, (mistake if about is None else f"{mistake}, about {quote(about)}",))
        return Credit(1.0)

    def right(self, execution: RecordedInput) -> Sequence[Item] | None:
        """The decision recorded, or what the questions that depend on it make of it; None if they disagree."""
        change = change_in(execution, execution.outputs)
        concerned = self._dependent_golds(execution)
        if change is None or not concerned:
            return None
        fact, entries = _fact(execution), _entries(execution)
        due = [right_decision(gold, fact, entries, change) for gold in concerned]
        repaired = [decision for decision in due if decision != change] or [change]
        if any(decision != repaired[0] for decision in repaired):
            return None
        value = {"event": repaired[0].event, "target": repaired[0].target}
        return [Item(execution.outputs[0].role, execution.outputs[0].name, "value", value)]

    def _dependent_golds(self, execution: RecordedInput) -> list[Gold]:
        fact, entry_texts = _fact(execution), [entry.text for entry in _entries(execution)]
        read = set(execution.turns)
        return [
            gold
            for gold in self._golds.of(execution.conversation)
            # A decision that was made later is none of a question's.
            if read <= {turn.id for turn in gold.conversation.turns()}
            if gold.retracts(fact) or gold.carries_any(fact) or any(map(gold.carries_any, entry_texts))
        ]


def decision(means: ObjectiveMeans) -> DecisionObjective:
    """The decision is what a correct one makes of the same fact and the same entries."""
    return DecisionObjective(means.golds)


def _fact(execution: RecordedInput) -> str:
    return " ".join(item.text for item in execution.items("fact"))


def _entries(execution: RecordedInput) -> list[Entry]:
    return [Entry(item.name, item.text, (), "") for item in execution.items("memory_entry")]


def change_in(execution: RecordedInput, outputs: Sequence[Item]) -> Change | None:
    """The decision among the outputs; text is the new fact unless it says another."""
    for item in outputs:
        if isinstance(item.value, Mapping) and isinstance(item.value.get("event"), str):
            target = item.value.get("target")
            text = item.value.get("text")
            return Change(
                item.value["event"].upper(),
                None if target is None else str(target),
                text if isinstance(text, str) and text else _fact(execution),
            )
    return None
