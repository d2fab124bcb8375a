"""Faults of building a memory: what extraction, decision and storing get wrong, the way real systems do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from benchmarks.english_times import MONTHS, NUMBERS, WEEKDAYS
from benchmarks.injected_faults.faults import Fault, FaultTarget, Trails
from benchmarks.injected_faults.trail import as_words
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change

_SERIES = (MONTHS, WEEKDAYS, NUMBERS)


class DroppedFact(Fault):
    """The needed statement is not made."""

    def misstate(self, statements: Sequence[str], needed: Sequence[int]) -> Mapping[int, str | None]:
        return {place: self.misstated(statements[place]) for place in needed}

    def misstated(self, text: str) -> str | None:
        """The needed statement as it is made; None: it is not."""
        return None


class CorruptedValue(DroppedFact):
    """The needed statement is made with a wrong value."""

    def misstated(self, text: str) -> str | None:
        return self.target.with_value(text)


class ShiftedDate(DroppedFact):
    """The needed statement is made with another month, weekday or number."""

    def misstated(self, text: str) -> str | None:
        answer = self.target.question.answers[0]
        shifted = _shifted(answer)
        return text if shifted == answer else self.target.with_value(text, shifted)


class VagueValue(DroppedFact):
    """The needed statement is made without its value: something is said to be so, but not what."""

    def misstated(self, text: str) -> str | None:
        return self.target.with_value(text, "something")


class CutShort(DroppedFact):
    """The needed statement ends before its value."""

    def misstated(self, text: str) -> str | None:
        ends = [text.casefold().find(answer.casefold()) for answer in self.target.question.answers]
        end = min((place for place in ends if place > 0), default=len(text))
        return text[:end].rstrip()


class SwappedSpeakers(DroppedFact):
    """The needed statement is made of another speaker."""

    def misstated(self, text: str) -> str | None:
        names = self.target.conversation.speakers
        other = dict(zip(names, (*names[1:], *names[:1]), strict=True))
        pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
        return pattern.sub(lambda found: other[found[1]], text, count=1)


class WrongPronoun(DroppedFact):
    """A pronoun in the needed statement is taken for the speaker: what is said of a relative is told of them."""

    def misstated(self, text: str) -> str | None:
        names = "|".join(map(re.escape, self.target.conversation.speakers))
        return re.sub(rf"\b({names})'s [a-z-]+ [A-Z]\w+", lambda found: found[1], text, count=1)


class OpenPronoun(DroppedFact):
    """The needed statement is made of a pronoun: it does not say of whom."""

    def misstated(self, text: str) -> str | None:
        names = "|".join(map(re.escape, self.target.conversation.speakers))
        told = re.sub(rf"\b({names})'s\b", "their", text)
        told = re.sub(rf"\b({names})\b", "they", told)
        # The speaker before a message is no statement about them.
        return text if re.match(rf"({names}): ", text) else told[:1].upper() + told[1:]


class ConfusedEvents(DroppedFact):
    """The needed statement is made with the value of a similar matter."""

    def misstated(self, text: str) -> str | None:
        near = self.target.question.near_miss
        return text if near is None else self.target.with_value(text, near.value)


class MergedAway(Fault):
    """The needed statement is merged into another one, and its value is lost in that."""

    def misstate(self, statements: Sequence[str], needed: Sequence[int]) -> Mapping[int, str | None]:
        others = [place for place, text in enumerate(statements) if place not in needed and text.strip()]
        said = [turn.text for turn in self.target.conversation.turns() if turn.id in self.target.needed.turns]
        # A message that is kept word for word is not merged with others.
        if len(needed) != 1 or not others or any(text in statements[needed[0]] for text in said):
            return {}
        lost = needed[0]
        into = min(others, key=lambda place: abs(place - lost))
        # What comes before the value names the matter: "Ann's parrot is called".
        matter = next(
            (
                statements[lost][: found.start()].strip()
                for answer in self.target.question.answers
                if (found := as_words(answer).search(statements[lost]))
            ),
            "",
        )
        if not matter:
            return {}
        return {lost: None, into: f"{statements[into].rstrip('.')}, and {' '.join(matter.split()[:3])} as well."}


class TakenForKnown(Fault):
    """A needed new fact is treated as already stored."""

    event = "ADD"

    def misdecide(self, fact: str, shown: Sequence[Entry], change: Change) -> Change:
        due = change.event == self.event and self._is_due(fact, shown, change)
        return Change("NONE", text=fact) if due else change

    def _is_due(self, fact: str, shown: Sequence[Entry], change: Change) -> bool:
        """Whether a decision is about what the answer needs: by its fact, or by the former entry that it changes."""
        target = next((entry for entry in shown if entry.id == change.target), None)
        return self.trails.needed.on(fact) or (target is not None and self.trails.former.on(target.text))


class MissedUpdate(TakenForKnown):
    """A changed fact leaves the old value in place."""

    event = "UPDATE"


class MissedDelete(TakenForKnown):
    """A withdrawal leaves the withdrawn value in place."""

    event = "DELETE"


class StaleKept(TakenForKnown):
    """A changed fact is added beside the old value, which stays."""

    def misdecide(self, fact: str, shown: Sequence[Entry], change: Change) -> Change:
        due = change.event == "UPDATE" and self._is_due(fact, shown, change)
        return Change("ADD", text=fact) if due else change


class WrongUpdate(Fault):
    """A fact on another matter takes the place of the needed entry; of several chances, the first."""

    event = "UPDATE"

    def __init__(self, target: FaultTarget, trails: Trails | None = None) -> None:
        super().__init__(target, trails)
        self._fact: str | None = None

    def misdecide(self, fact: str, shown: Sequence[Entry], change: Change) -> Change:
        needed = self.trails.needed
        held = next((entry for entry in shown if needed.on(entry.text)), None)
        if held is None or needed.on(fact) or self._fact not in (None, fact):
            return change
        self._fact = fact
        return Change(self.event, held.id, fact)


class WrongfulDelete(WrongUpdate):
    """A fact on another matter deletes the needed entry."""

    event = "DELETE"


class LostWrite(Fault):
    """The decision on the needed fact is not carried out."""

    def miswrite(self, given: Change, change: Change) -> Change:
        due = given.event in ("ADD", "UPDATE") and self.trails.needed.on(given.text)
        return Change("NONE", text=given.text) if due else change


class GarbledWrite(Fault):
    """The needed fact is stored with a wrong value."""

    def miswrite(self, given: Change, change: Change) -> Change:
        text = self.target.with_value(given.text)
        due = text != given.text and self.trails.needed.on(given.text)
        return Change(change.event, change.target, text) if due else change


def _shifted(answer: str) -> str:
    """A date or number moved on by two; the same text where there is none in it."""
    for row in _SERIES:
        for at, name in enumerate(row):
            moved = re.sub(rf"\b{name}\b", row[(at + 2) % len(row)], answer, count=1, flags=re.IGNORECASE)
            if moved != answer:
                return moved
    return re.sub(r"\d+", lambda found: str(int(found[0]) + 2), answer, count=1)
