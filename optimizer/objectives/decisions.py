"""The local objective of an update decision: what a correct decision makes of the same fact and the same entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attribution.explanations import quote
from attribution.replay.repair import right_decision
from attribution.survival.gold import Gold
from optimizer.objectives.golds import Golds
from optimizer.objectives.objective import Credit, RecordedInput
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change
from tracing.systems.layouts import Item


class DecisionObjective:
    """Whether a decision is right for every question that depends on the fact or on an entry shown."""

    def __init__(self, golds: Golds) -> None:
        self._golds = golds

    def weight(self, given: RecordedInput) -> float:
        """1 if any question depends on the decision; 0 for an operation that makes something else."""
        if given.outputs and _change(given, given.outputs) is None:
            return 0.0
        return float(bool(self._concerned(given)))

    def credit(self, given: RecordedInput, outputs: Sequence[Item]) -> Credit:
        """1 for a decision that needs no repair."""
        change = _change(given, outputs)
        if change is None:
            return Credit(0.0, ("no decision could be read from the reply",))
        fact, shown = _fact(given), _shown(given)
        for gold in self._concerned(given):
            right = right_decision(gold, fact, shown, change)
            if right != change:
                made = f"decided {change.event} on {quote(fact)}, where {right.event} was right"
                about = next((entry.text for entry in shown if entry.id == right.target), None)
                return Credit(0.0, (made if about is None else f"{made}, about {quote(about)}",))
        return Credit(1.0)

    def right(self, given: RecordedInput) -> Sequence[Item] | None:
        """The decision recorded, or what the questions that depend on it make of it; None if they disagree."""
        change = _change(given, given.outputs)
        concerned = self._concerned(given)
        if change is None or not concerned:
            return None
        fact, shown = _fact(given), _shown(given)
        due = [right_decision(gold, fact, shown, change) for gold in concerned]
        repaired = [each for each in due if each != change] or [change]
        if any(each != repaired[0] for each in repaired):
            return None
        value = {"event": repaired[0].event, "target": repaired[0].target}
        return [Item(given.outputs[0].role, given.outputs[0].name, "value", value)]

    def _concerned(self, given: RecordedInput) -> list[Gold]:
        fact, shown = _fact(given), [entry.text for entry in _shown(given)]
        return [
            gold
            for gold in self._golds.of(given.conversation)
            if gold.retracts(fact) or gold.carries_any(fact) or any(map(gold.carries_any, shown))
        ]


def _fact(given: RecordedInput) -> str:
    return " ".join(item.text for item in given.items("fact"))


def _shown(given: RecordedInput) -> list[Entry]:
    return [Entry(item.name, item.text, (), "") for item in given.items("memory_entry")]


def _change(given: RecordedInput, outputs: Sequence[Item]) -> Change | None:
    """The decision among the outputs; text is the new fact unless it says another."""
    for item in outputs:
        if isinstance(item.value, Mapping) and isinstance(item.value.get("event"), str):
            target = item.value.get("target")
            text = item.value.get("text")
            return Change(
                item.value["event"].upper(),
                None if target is None else str(target),
                text if isinstance(text, str) and text else _fact(given),
            )
    return None
