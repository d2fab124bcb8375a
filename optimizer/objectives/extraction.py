"""The local objective of an extraction: what the messages say that is needed survives, and nothing is made up."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attribution.constants import SAME_FACT
from attribution.explanations import quote
from attribution.survival.gold import Gold
from attribution.text.content import Vocabulary
from optimizer.objectives.objective import Credit, RecordedInput
from optimizer.objectives.objectives import Golds, ObjectiveMeans
from tracing.systems.conversations import Fact
from tracing.systems.layouts import Item

SUPPORTED = 0.5
"""Least share of a statement's content words, by weight, that the messages must contain."""

MADE_UP = 0.5
"""What a statement that nobody made costs, as a share of the credit, if all statements are like that."""

_FEW_MESSAGES = 2


class ExtractionObjective:
    """The share of needs in the messages that the statements keep, with the person they belong to.

    A need is the fact, change or withdrawal that a question depends on, or an annotated fact that no question asks
    for. Where a question names no fact, but its evidence has annotated facts, these are the needs. Statements that the
    messages do not support, or that are annotated as not to be stored, reduce the credit, so that writing everything
    down does not win.
    An operation that reads what another one made of the messages has to keep what that still tells.
    """

    def __init__(self, golds: Golds) -> None:
        self._golds = golds

    def weight(self, execution: RecordedInput) -> float:
        """The number of needs in the messages; 0 for an operation that makes no statements."""
        if execution.outputs and not _statements(execution.outputs):
            return 0.0
        turns = _turns(execution)
        return float(len(self._golds_in(execution, turns)) + len(self._facts_in(execution, turns)))

    def credit(self, execution: RecordedInput, outputs: Sequence[Item]) -> Credit:
        """The share of needs kept, less the share of statements that are made up."""
        turns = _turns(execution)
        statements = _statements(outputs)
        traced = len(turns) <= _FEW_MESSAGES
        golds, facts = self._golds_in(execution, turns), self._facts_in(execution, turns)
        lost = [
            quote(" ".join(gold.statements(turns)))
            for gold in golds
            if not gold.states(turns, [text for text in statements if gold.names_owner(text)], traced=traced)
        ]
        vocabulary = self._golds.vocabulary(execution.conversation)
        people = frozenset().union(*map(vocabulary.content_of, execution.conversation.speakers))
        lost += [
            quote(fact)
            for fact in facts
            if not any(_states_fact(fact, statement, people, vocabulary) for statement in statements)
        ]
        messages_content = vocabulary.content_of("\n".join(_texts_read(execution)))
        made_up = [
            text
            for text in statements
            if vocabulary.coverage(vocabulary.content_of(text), messages_content) < SUPPORTED
        ]
        taken_in = [text for text in statements if text not in made_up and self._to_be_ignored(execution, text)]
        needs = len(golds) + len(facts)
        recall = (needs - len(lost)) / needs if needs else 1.0
        value = max(0.0, recall - MADE_UP * len([*made_up, *taken_in]) / max(len(statements), 1))
        lacks = [f"not told, or not of the right person: {need}" for need in lost]
        lacks += [f"nobody said {quote(text)}" for text in made_up]
        lacks += [f"not to be stored: {quote(text)}" for text in taken_in]
        return Credit(value, tuple(lacks))

    def right(self, execution: RecordedInput) -> Sequence[Item] | None:
        """The annotated facts of the messages; None if there are none, or more than a reply may hold."""
        turns = _turns(execution)
        facts = [fact.text for fact in _facts(execution) if fact.turn in turns]
        if not facts:
            return None
        role = execution.outputs[0].role if execution.outputs else _list_in(execution.prompt.contract.reply_schema)
        right = [Item(role, f"fact{number}", "fact", text) for number, text in enumerate(facts, start=1)]
        return right if _fits(right, execution.prompt.contract.reply_schema) else None

    def _golds_in(self, execution: RecordedInput, turns: Sequence[str]) -> list[Gold]:
        annotated_turns = {fact.turn for fact in _facts(execution)}
        golds = [
            gold
            for gold in self._golds.of(execution.conversation)
            if gold.statements(turns) and not _stated_by_facts(gold, turns, annotated_turns)
        ]
        if execution.items("message"):
            return golds
        read = _texts_read(execution)
        return [gold for gold in golds if gold.states(turns, read, traced=True)]

    def _facts_in(self, execution: RecordedInput, turns: Sequence[str]) -> list[str]:
        """The annotated facts of the messages on which no question depends."""
        fact_ids = {gold.question.fact for gold in self._golds.of(execution.conversation)}
        facts = [fact.text for fact in _facts(execution) if fact.turn in turns and fact.id not in fact_ids]
        if execution.items("message"):
            return facts
        vocabulary, read = self._golds.vocabulary(execution.conversation), _texts_read(execution)
        return [fact for fact in facts if any(_states_fact(fact, text, frozenset(), vocabulary) for text in read)]

    def _to_be_ignored(self, execution: RecordedInput, statement: str) -> bool:
        """Whether a statement says what is not to be stored, more than any fact that is."""
        turns, vocabulary = set(_turns(execution)), self._golds.vocabulary(execution.conversation)
        facts = [fact for fact in execution.conversation.facts if fact.turn in turns]
        if not any(fact.action == "ignore" for fact in facts):
            return False
        content = vocabulary.content_of(statement)
        likeness = [
            (vocabulary.coverage(vocabulary.content_of(fact.text), content), fact.action == "ignore") for fact in facts
        ]
        best, is_ignored = max(likeness, key=lambda pair: (pair[0], not pair[1]), default=(0.0, False))
        return is_ignored and best >= SAME_FACT


def extraction(means: ObjectiveMeans) -> ExtractionObjective:
    """What the messages say that is needed survives, and nothing is made up."""
    return ExtractionObjective(means.golds)


def _statements(outputs: Sequence[Item]) -> list[str]:
    """The facts and entries among the outputs; all texts where none is called so."""
    texts = [item for item in outputs if isinstance(item.value, str)]
    return [item.text for item in texts if item.kind in ("fact", "memory_entry")] or [item.text for item in texts]


def _stated_by_facts(gold: Gold, turns: Sequence[str], annotated_turns: Collection[str]) -> bool:
    """Whether annotated facts say what of these turns a question depends on, better than its answer does.

    That is so where the question names no fact, but facts were annotated of all its evidence in these turns.
    """
    evidence = [turn for turn in gold.question.evidence if turn in turns]
    return (
        gold.question.fact is None
        and not gold.unknowable
        and bool(evidence)
        and all(turn in annotated_turns for turn in evidence)
    )


def _facts(execution: RecordedInput) -> list[Fact]:
    """The annotated facts that a memory is to keep."""
    return [fact for fact in execution.conversation.facts if fact.action != "ignore"]


def _turns(execution: RecordedInput) -> list[str]:
    return [item.name for item in execution.items("message")] or list(execution.turns)


def _texts_read(execution: RecordedInput) -> list[str]:
    """The messages, or what an operation that reads none was given instead."""
    items = execution.items("message") or [*execution.items("fact"), *execution.items("memory_entry")]
    return [item.text for item in items]


def _states_fact(fact: str, statement: str, people: frozenset[str], vocabulary: Vocabulary) -> bool:
    """Whether a statement says what an annotated fact says, of the same people."""
    needed, content = vocabulary.content_of(fact), vocabulary.content_of(statement)
    return needed & people <= content and vocabulary.coverage(needed, content) >= SAME_FACT


def _list_in(schema: Mapping[str, Any] | None) -> str:
    """The first property of a reply that is a list."""
    properties = (schema or {}).get("properties", {})
    return next((name for name, form in properties.items() if form.get("type") == "array"), "facts")


def _fits(right: Sequence[Item], schema: Mapping[str, Any] | None) -> bool:
    """Whether a reply may hold these statements."""
    form = (schema or {}).get("properties", {}).get(right[0].role, {})
    longest = form.get("items", {}).get("maxLength", sys.maxsize)
    return len(right) <= form.get("maxItems", len(right)) and all(len(item.text) <= longest for item in right)
