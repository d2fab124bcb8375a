"""Failures by symptom: the same operation, the same error type, and reasons that say the same of other values.

What a reason quotes, its ids and its numbers are masked; what is left are the words for how it went wrong. It joins
the first symptom whose words it shares well enough, the surest failures first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from experiments.attributions import BlameLine, CaseLine

ALIKE = 0.6
"""Least part of their words, by Jaccard's index, that two reasons of one symptom share."""

_QUOTED = re.compile(r"(?<!\w)'.*?'(?!\w)|\"[^\"]*\"|‘[^’]*’|“[^”]*”|`[^`]*`")
_SPECIFIC = re.compile(r"(?<!\w)\S*\d\S*?(?=[,.;:)]?(?:\s|$))")
_LIST = re.compile(r"…(?:(?:,| and| or)? …)+")


@dataclass(slots=True)
class Symptom:
    """A way in which several failures went wrong.

    Attributes:
        operation, error_type: of their main blames.
        words: how it went wrong, with `…` for what differs from case to case.
        cases: the failures, the surest first.
    """

    operation: str
    error_type: str
    words: str
    cases: list[CaseLine] = field(default_factory=list)


def symptoms_of(cases: Iterable[CaseLine]) -> list[Symptom]:
    """The symptoms of what was attributed, the most frequent first; abstentions have none."""
    blamed = [(case, main) for case in cases if (main := case.main) is not None]
    blamed.sort(key=lambda item: (-item[1].confidence, item[0].key))
    found: list[tuple[frozenset[str], Symptom]] = []
    for case, main in blamed:
        words = masked(main.reason)
        spoken = frozenset(words.lower().split())
        symptom = _joined(found, main, spoken)
        if symptom is None:
            symptom = Symptom(main.operation, main.error_type, words)
            found.append((spoken, symptom))
        symptom.cases.append(case)
    return sorted((symptom for _, symptom in found), key=lambda symptom: -len(symptom.cases))


def masked(reason: str) -> str:
    """A reason without what is particular to its case."""
    text = _SPECIFIC.sub("…", _QUOTED.sub("…", " ".join(reason.split())))
    return _LIST.sub("…", text)


def _joined(found: Iterable[tuple[frozenset[str], Symptom]], main: BlameLine, spoken: frozenset[str]) -> Symptom | None:
    for words, symptom in found:
        same = (symptom.operation, symptom.error_type) == (main.operation, main.error_type)
        if same and len(words & spoken) >= ALIKE * len(words | spoken):
            return symptom
    return None
