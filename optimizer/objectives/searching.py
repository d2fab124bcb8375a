"""The local objective of a step of the search: its verdict on what was found, what it passes on, or its queries."""

from __future__ import annotations

from collections.abc import Sequence

from attribution.survival.gold import Gold
from optimizer.objectives.objective import Credit, RecordedInput
from optimizer.objectives.objectives import Golds, ObjectiveMeans
from tracing.systems.layouts import Item


class SearchObjective:
    """Whether what a step of the search makes leads to the answer, by what it was shown.

    A verdict whether that is enough is right if it says so of texts that tell the answer, and only of these. What is
    passed on has to tell the answer, if what was shown does. Queries are credited for the words of what is needed,
    apart from the answer, which nobody knows before.
    """

    def __init__(self, golds: Golds) -> None:
        self._golds = golds

    def weight(self, execution: RecordedInput) -> float:
        """1 for a question that has an answer; 0 where a choice was to be made among texts that do not tell it."""
        gold = self._gold(execution)
        if gold is None or gold.unknowable:
            return 0.0
        outputs = execution.outputs
        decides = not outputs or _verdict(outputs) is not None or bool(_texts(outputs, "query"))
        return float(decides or _holds(gold, execution))

    def credit(self, execution: RecordedInput, outputs: Sequence[Item]) -> Credit:
        """1 for what leads to the answer."""
        gold = self._gold(execution)
        if gold is None:
            return Credit(0.0, ("the question is not known",))
        verdict, held = _verdict(outputs), _holds(gold, execution)
        if verdict is not None:
            right = verdict == held
            lack = (
                "was content with texts that lack the answer" if verdict else "asked for more although the texts tell"
            )
            return Credit(float(right), () if right else (lack,))
        queries = _texts(outputs, "query")
        if queries:
            value = self._worded(gold, execution, queries)
            return Credit(value, () if value == 1 else ("no query names all that is asked about",))
        passed = gold.answered_by(_texts(outputs, "context"))
        return Credit(float(passed), () if passed else ("what is passed on lacks the answer",))

    def _worded(self, gold: Gold, execution: RecordedInput, queries: Sequence[str]) -> float:
        """The share of the words of what is needed that the best query has."""
        vocabulary = self._golds.vocabulary(execution.conversation)
        statements = " ".join(gold.statements(gold.question.evidence))
        needed = vocabulary.content_of(statements) - vocabulary.content_of(gold.answer)
        return max(vocabulary.coverage(needed, vocabulary.content_of(query)) for query in queries)

    def _gold(self, execution: RecordedInput) -> Gold | None:
        question = execution.question
        golds = self._golds.of(execution.conversation) if question is not None else ()
        return next((gold for gold in golds if question is not None and gold.question.id == question.id), None)


def search(means: ObjectiveMeans) -> SearchObjective:
    """What leads to the answer: a right verdict, the texts that tell it, or its words in a query."""
    return SearchObjective(means.golds)


def _verdict(outputs: Sequence[Item]) -> bool | None:
    """Whether what was found is said to be enough; None where nothing is said."""
    return next((item.value for item in outputs if isinstance(item.value, bool)), None)


def _texts(items: Sequence[Item], kind: str) -> list[str]:
    return [item.text for item in items if item.kind == kind]


def _holds(gold: Gold, execution: RecordedInput) -> bool:
    """Whether the texts that the prompt shows tell the answer."""
    shown = [item for name in execution.prompt.contract.placeholders for item in execution.parts.get(name, ())]
    return gold.answered_by(_texts(shown, "context"))
