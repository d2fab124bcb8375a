"""Other wordings of annotated facts, made by rule: what a model that extracts them might have written instead."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tracing.graph.elements import Variable
from tracing.systems.conversations import Conversation, Fact
from tracing.systems.interventions import Intervention, Step

Style = Literal["as annotated", "paraphrased", "merged"]
"""How a conversation's facts are worded when a system extracts them: as they are annotated, in other words, or two
facts about one person in one sentence."""

STYLES: tuple[Style, ...] = ("as annotated", "paraphrased", "merged")

# The first that fits is used, so the longer patterns come first. Synonyms stand for whole words outside of any answer.
_SYNONYMS: tuple[tuple[str, str], ...] = (
    (r"wants (.+) forgotten", r"asked that nobody mention \1 again"),
    (r"(is|was) (?:called|named)", r"\1 known by the name of"),
    (r"sleeps", "spends the nights"),
    (r"lives", "has made a home"),
    (r"eats", "feeds on"),
    (r"keeps", "holds on to"),
    (r"plays", "has taken up"),
    (r"carries", "never leaves without"),
    (r"uses", "makes use of"),
    (r"sketches", "draws"),
    (r"painted", "did a painting of"),
    (r"is learning", "takes lessons in"),
    (r"is designing", "is working on"),
    (r"pays", "hands over"),
    (r"looks after", "takes care of"),
    (r"belongs to", "is owned by"),
    (r"works as", "earns a living as"),
    (r"moved to", "relocated to"),
    (r"bought", "purchased"),
    (r"likes", "is fond of"),
    (r"when camping", "on camping trips"),
    (r"while observing", "at the eyepiece"),
    (r"is (an? \w+)(?=\.?$)", r"works as \1"),
    (r"always", "without exception"),
    (r"now", "these days"),
    (r"only", "solely"),
    (r"old", "ancient"),
    (r"brother|sister", "sibling"),
    (r"uncle|aunt|cousin|niece|nephew", "relative"),
    (r"grandfather|grandmother", "grandparent"),
    (r"snack", "nibble"),
    (r"flat", "apartment"),
    (r"shed", "hut"),
    (r"neighbour", "person next door"),
    (r"party", "get-together"),
)


@dataclass(frozen=True, slots=True)
class Wordings:
    """The wordings of one conversation's facts: by fact id, as annotated first, then the others.

    A wording keeps the fact's answers, or puts another accepted answer in their place.
    """

    conversation: Conversation
    of_fact: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, conversation: Conversation) -> Wordings:
        """Every wording of a conversation's facts; the same for equal conversations."""
        speakers = {turn.id: turn.speaker for turn in conversation.turns()}
        return cls(
            conversation,
            {
                fact.id: _wordings(fact.text, speakers[fact.turn], values_of(fact, conversation))
                for fact in conversation.facts
            },
        )


def values_of(fact: Fact, conversation: Conversation) -> tuple[tuple[str, ...], ...]:
    """The values that a fact tells: for each question about it, its accepted answers in order."""
    asked = [
        question.answers
        for question in conversation.questions
        if question.fact == fact.id and not question.unanswerable
    ]
    former = [
        (question.near_miss.value,)
        for question in conversation.questions
        if question.near_miss is not None and question.near_miss.turn == fact.turn
    ]
    return (*asked, *former)


class Reworded(Intervention):
    """A system whose extraction words the annotated facts in a style; it is no fault, since nothing is lost."""

    def __init__(self, wordings: Wordings, style: Style, seed: int) -> None:
        self._wordings, self._style, self._seed = wordings, style, seed
        self._facts = {fact.text: fact for fact in wordings.conversation.facts}
        self._speakers = {turn.id: turn.speaker for turn in wordings.conversation.turns()}

    def extracted(self, step: Step, messages: Sequence[Variable], statements: list[str]) -> list[str]:
        if self._style == "paraphrased":
            return [self._paraphrase(text) for text in statements]
        return self._merged(statements) if self._style == "merged" else statements

    def _paraphrase(self, text: str) -> str:
        fact = self._facts.get(text)
        others = self._wordings.of_fact[fact.id][1:] if fact is not None else ()
        chance = random.Random(f"{self._seed} {text}")  # noqa: S311 - a choice of examples, no secret
        return chance.choice(others) if others else text

    def _merged(self, statements: Sequence[str]) -> list[str]:
        """Neighbours about one person in one sentence; a fact that changes another, or is changed, stays on its own.

        Else a change of the one would replace the other as well, and the run without faults would have lost it.
        """
        changed = {fact.of for fact in self._facts.values()}
        made: list[str] = []
        open_for: str | None = None
        for text in statements:
            fact = self._facts.get(text)
            alone = fact is None or fact.action != "add" or fact.id in changed
            speaker = None if fact is None or alone else self._speakers[fact.turn]
            if speaker is not None and speaker == open_for:
                made[-1] = f"{made[-1].removesuffix('.')}, and {text}"
                open_for = None
            else:
                made.append(text)
                open_for = speaker
        return made


def style_of(conversation: Conversation, seed: int) -> Style:
    """The style in which a conversation's facts are told, drawn from the seed."""
    return random.Random(f"{seed} style {conversation.id}").choice(STYLES)  # noqa: S311 - a choice of examples


def _wordings(text: str, speaker: str, values: Sequence[Sequence[str]]) -> tuple[str, ...]:
    other = _in_synonyms(text, [value for accepted in values for value in accepted])
    owned = f"{speaker}'s "
    if other.startswith(owned):
        told = f"{speaker} mentioned that their {other.removeprefix(owned)}"
    else:
        told = f"According to {speaker}, {other}"
    return tuple(dict.fromkeys((text, other, told, _in_other_value(told, values))))


def _in_synonyms(text: str, kept: Sequence[str]) -> str:
    """A text with synonyms; the values in `kept` stay as they are."""
    for pattern, synonym in _SYNONYMS:
        found = re.search(rf"\b(?:{pattern})(?:\b|$)", text)
        if found is None or any(_overlaps(found.span(), text, value) for value in kept if not found.groups()):
            continue
        text = text[: found.start()] + found.expand(synonym) + text[found.end() :]
    return text


def _overlaps(span: tuple[int, int], text: str, value: str) -> bool:
    return any(span[0] < one.end() and one.start() < span[1] for one in re.finditer(re.escape(value), text))


def _in_other_value(text: str, values: Sequence[Sequence[str]]) -> str:
    """A text with another accepted answer in place of the one in it."""
    for accepted in values:
        held = next((value for value in accepted if re.search(rf"\b{re.escape(value)}\b", text)), None)
        others = sorted((value for value in accepted if value != held), key=len)
        if held is not None and others:
            return re.sub(rf"\b{re.escape(held)}\b", lambda found: others[0], text, count=1)  # noqa: B023
    return text
