"""Clusters of similar failures: the same operation, the same error type, and reasons that say the same of other values.

What a reason quotes, its ids and its numbers are masked; what is left are the words for how it went wrong. Reasons join
the first cluster whose words they share well enough (leader clustering), so the result depends on the order of the cases
only where reasons are free prose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from attribution.cases import Attribution, Blame

ALIKE = 0.6
"""Least part of their words, by Jaccard's index, that two reasons of one cluster share."""

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|‘[^’]*’|“[^”]*”|`[^`]*`")
_SPECIFIC = re.compile(r"\b\S*\d\S*")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Failures that went wrong in the same way.

    Attributes:
        operation, error_type: of their main blames.
        symptom: the reason of the surest one, its values masked by `…`.
        cases: places of the attributions in the sequence that was clustered, the surest first.
    """

    operation: str
    error_type: str
    symptom: str
    cases: tuple[int, ...]


def clusters(attributions: Sequence[Attribution]) -> list[Cluster]:
    """The clusters of what was attributed, the largest first. Every case is in one; abstentions are in none."""
    blamed = [(place, said.main) for place, said in enumerate(attributions) if said.main is not None]
    blamed.sort(key=lambda item: -item[1].confidence)
    groups: list[tuple[Blame, frozenset[str], list[int]]] = []
    for place, blame in blamed:
        words = frozenset(masked(blame.reason).lower().split())
        for leader, spoken, places in groups:
            same = (leader.operation, leader.error_type) == (blame.operation, blame.error_type)
            if same and _alike(words, spoken) >= ALIKE:
                places.append(place)
                break
        else:
            groups.append((blame, words, [place]))
    groups.sort(key=lambda group: (-len(group[2]), group[2][0]))
    return [
        Cluster(leader.operation, leader.error_type, masked(leader.reason), tuple(places))
        for leader, _, places in groups
    ]


def masked(reason: str) -> str:
    """A reason without what is particular to its case."""
    text = _SPECIFIC.sub("…", _QUOTED.sub("…", reason))
    # "… and …" and "…, …" are lists of the particular.
    return re.sub(r"…(?:(?:,| and|,? or)? …)+", "…", " ".join(text.split()))


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    both = len(one | other)
    return len(one & other) / both if both else 1.0
