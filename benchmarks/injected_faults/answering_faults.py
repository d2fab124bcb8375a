"""Faults of answering: what retrieval does not find, and what the answer makes of a context that has it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from benchmarks.injected_faults.faults import Fault
from benchmarks.injected_faults.trail import holds
from tracing.systems.entries import Entry

UNKNOWN = "unknown"


class RetrievalMiss(Fault):
    """The needed entries are left out of what was found."""

    def misfind(self, entries: Sequence[Entry], found: list[Entry]) -> list[Entry]:
        return [entry for entry in found if not self.trails.needed.on(entry.text)]


class RankedOut(Fault):
    """Other entries crowd the needed ones out."""

    def misfind(self, entries: Sequence[Entry], found: list[Entry]) -> list[Entry]:
        needed = self.trails.needed
        kept = [entry for entry in found if not needed.on(entry.text)]
        others = [entry for entry in entries if not needed.on(entry.text) and entry not in found]
        missed = len(found) - len(kept)
        return [*others[:missed], *kept] if missed and others else found


class NearMissFound(Fault):
    """An entry that could be taken for the needed one is found in its place."""

    def misfind(self, entries: Sequence[Entry], found: list[Entry]) -> list[Entry]:
        needed = self.trails.needed
        near = [
            entry
            for entry in entries
            if not needed.on(entry.text) and (self.trails.near.on(entry.text) or self.trails.former.on(entry.text))
        ]
        kept = [entry for entry in found if not needed.on(entry.text) and entry not in near]
        missed = any(needed.on(entry.text) for entry in found)
        return [*near, *kept][: len(found)] if missed and near else found


class NothingRetrieved(Fault):
    """Nothing is found at all."""

    def misfind(self, entries: Sequence[Entry], found: list[Entry]) -> list[Entry]:
        return [] if any(self.trails.needed.on(entry.text) for entry in found) else found


class DistractorFirst(Fault):
    """The answer's model is shown a wrong value before the right one."""

    def mispresent(self, lines: list[str]) -> list[str]:
        told = [line for text in lines for line in text.splitlines() if self.trails.needed.on(line)]
        wrong = self.target.with_value(told[0]) if told else ""
        return [wrong, *lines] if told and wrong != told[0] else lines


class IgnoredContext(Fault):
    """The answer is a value that has nothing to do with the question."""

    def misanswer(self, context: Sequence[str]) -> str | None:
        return self.target.wrong


class AnotherLineRead(Fault):
    """The answer is taken from another line of the context than the right one."""

    def misanswer(self, context: Sequence[str]) -> str | None:
        lines = [line for text in context for line in text.splitlines() if not self.trails.needed.on(line)]
        told = [value for value in self.target.answers if any(holds(line, value) for line in lines)]
        chance = random.Random(self.target.question.id)  # noqa: S311 - a choice of examples, no secret
        return chance.choice(told) if told else None


class UnknownAlthoughKnown(Fault):
    """The answer says that it does not know what the context says."""

    def misanswer(self, context: Sequence[str]) -> str | None:
        return None if self.target.question.unanswerable else UNKNOWN


class TakenForAnother(Fault):
    """The answer is the value that a careless reader would take for it: another speaker's, or the former one."""

    def misanswer(self, context: Sequence[str]) -> str | None:
        near = self.target.question.near_miss
        return near.value if near is not None else None
