"""The kinds of fault: each changes what one operation emits, or what two do, the way a real error would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from attribution.cases import ErrorType
from benchmarks.injected_faults.answering_faults import (
    AnotherLineRead,
    DistractorFirst,
    IgnoredContext,
    NearMissFound,
    NothingRetrieved,
    RankedOut,
    RetrievalMiss,
    TakenForAnother,
    UnknownAlthoughKnown,
)
from benchmarks.injected_faults.building_faults import (
    ConfusedEvents,
    CorruptedValue,
    CutShort,
    DroppedFact,
    GarbledWrite,
    LostWrite,
    MergedAway,
    MissedDelete,
    MissedUpdate,
    OpenPronoun,
    ShiftedDate,
    StaleKept,
    SwappedSpeakers,
    TakenForKnown,
    VagueValue,
    WrongfulDelete,
    WrongPronoun,
    WrongUpdate,
)
from benchmarks.injected_faults.faults import Fault, FaultTarget, SeveralFaults

Nature = Literal["removed", "altered", "misled", "several"]
"""Whether a fault takes the content away, changes it, or leaves it there to be ignored; or two of these at once."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: which errors it makes (the first, where it makes two), and what it does with the content."""

    error_type: ErrorType
    nature: Nature
    make: Callable[[FaultTarget], Fault | SeveralFaults]

    @property
    def spoils(self) -> bool:
        """Whether it takes the content out of the memory, or changes it there."""
        builds = self.error_type in ("ExtractionError", "UpdateError", "DeletionError")
        return (builds and self.nature in ("removed", "altered")) or self.error_type == "ExtractionError"


KINDS: Mapping[str, Kind] = {
    "dropped fact": Kind("ExtractionError", "removed", DroppedFact),
    "merged away": Kind("ExtractionError", "removed", MergedAway),
    "cut short": Kind("ExtractionError", "removed", CutShort),
    "vague value": Kind("ExtractionError", "altered", VagueValue),
    "corrupted value": Kind("ExtractionError", "altered", CorruptedValue),
    "confused events": Kind("ExtractionError", "altered", ConfusedEvents),
    "shifted date": Kind("ExtractionError", "altered", ShiftedDate),
    "swapped speakers": Kind("ExtractionError", "altered", SwappedSpeakers),
    "wrong pronoun": Kind("ExtractionError", "altered", WrongPronoun),
    "open pronoun": Kind("ExtractionError", "altered", OpenPronoun),
    "taken for known": Kind("UpdateError", "removed", TakenForKnown),
    "missed update": Kind("UpdateError", "removed", MissedUpdate),
    "stale entry kept": Kind("UpdateError", "misled", StaleKept),
    "wrong update": Kind("UpdateError", "removed", WrongUpdate),
    "wrongful delete": Kind("DeletionError", "removed", WrongfulDelete),
    "missed delete": Kind("DeletionError", "removed", MissedDelete),
    "lost write": Kind("UpdateError", "removed", LostWrite),
    "garbled write": Kind("UpdateError", "altered", GarbledWrite),
    "retrieval miss": Kind("RetrievalError", "removed", RetrievalMiss),
    "ranked out": Kind("RetrievalError", "removed", RankedOut),
    "near miss found": Kind("RetrievalError", "removed", NearMissFound),
    "nothing retrieved": Kind("RetrievalError", "removed", NothingRetrieved),
    "distractor first": Kind("ResponseError", "misled", DistractorFirst),
    "ignored context": Kind("ResponseError", "misled", IgnoredContext),
    "another line read": Kind("ResponseError", "misled", AnotherLineRead),
    "unknown although known": Kind("ResponseError", "misled", UnknownAlthoughKnown),
    "taken for another": Kind("ResponseError", "misled", TakenForAnother),
    "garbled, then missed": Kind(
        "ExtractionError", "several", partial(SeveralFaults, first=CorruptedValue, second=RetrievalMiss)
    ),
    "garbled, then ignored": Kind(
        "ExtractionError", "several", partial(SeveralFaults, first=ConfusedEvents, second=UnknownAlthoughKnown)
    ),
    "stale, then missed": Kind("UpdateError", "several", partial(SeveralFaults, first=StaleKept, second=RetrievalMiss)),
}
"""Every kind of fault, by its name, in pipeline order; those of two operations last."""
