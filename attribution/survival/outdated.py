"""What no longer holds: values that an update or a deletion should have removed, as annotated."""

from __future__ import annotations

from attribution.survival.need import Need
from attribution.survival.needs import stating
from attribution.text.content import Vocabulary, content_of
from attribution.text.phrases import is_unknown
from tracing.systems.conversations import Conversation, Fact, Question


def outdated_value(question: Question, conversation: Conversation, vocabulary: Vocabulary) -> Need | None:
    """The value that an update or a deletion should have removed, if annotated."""
    annotated = _outdated_value(question, conversation)
    if annotated is None:
        return None
    label, form, turn = annotated
    # The turn that ends a value often repeats it.
    silent = [other for other in conversation.turns() if other.id not in (turn, *question.evidence)]
    return Need((form,), (turn,), label, unique=not stating(silent, (form,), vocabulary))


def _outdated_value(question: Question, conversation: Conversation) -> tuple[str, frozenset[str], str] | None:
    fact = fact_of(question, conversation)
    old = next((other for other in conversation.facts if fact is not None and other.id == fact.of), None)
    near = question.near_miss
    withdrawn = is_unknowable(question)
    # What the evidence itself says was not ended by it: it is a near miss about another person or matter.
    earlier = near is not None and near.turn not in question.evidence and (old is None or old.turn == near.turn)
    if near is not None and earlier and (withdrawn or question.supersedes):
        return near.value, content_of(near.value), near.turn
    if old is None or fact is None:
        return None
    speakers = frozenset().union(*map(content_of, conversation.speakers))
    context_words = content_of(fact.text) | content_of(question.question) | speakers
    value = content_of(old.text) - context_words
    return (old.text, value, old.turn) if value else None


def fact_of(question: Question, conversation: Conversation) -> Fact | None:
    """The annotated fact that answers the question."""
    return next((fact for fact in conversation.facts if fact.id == question.fact), None)


def is_unknowable(question: Question) -> bool:
    """Whether the right answer is that there is none."""
    return question.unanswerable or all(is_unknown(answer, question.question) for answer in question.answers)
