"""Clusters of attributed cases: the same operation, the same error type, and reasons that say the same of other values.

What a reason quotes, its ids and its numbers are masked; what is left are the words for how it went wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from attribution.clusters import grouped
from experiments.attributions import CaseLine

_QUOTED = re.compile(r"(?<!\w)'.*?'(?!\w)|\"[^\"]*\"|‘[^’]*’|“[^”]*”|`[^`]*`")
_SPECIFIC = re.compile(r"(?<!\w)\S*\d\S*?(?=[,.;:)]?(?:\s|$))")
_LIST = re.compile(r"…(?:(?:,| and| or)? …)+")


@dataclass(frozen=True, slots=True)
class CaseCluster:
    """A way in which several failures went wrong.

    Attributes:
        operation, error_type: of their main blames.
        words: how it went wrong, with `…` for what differs from case to case.
        cases: the failures, the surest first.
    """

    operation: str
    error_type: str
    words: str
    cases: list[CaseLine]


def case_clusters(cases: Iterable[CaseLine]) -> list[CaseCluster]:
    """The clusters of what was attributed, the largest first; abstentions are in none."""
    blamed = [(case, main) for case in cases if (main := case.main) is not None]
    blamed.sort(key=lambda item: (-item[1].confidence, item[0].key))
    led = grouped(
        blamed,
        kind=lambda item: (item[1].operation, item[1].error_type),
        words=lambda item: frozenset(masked(item[1].reason).lower().split()),
    )
    found = []
    for members in led:
        _, surest = members[0]
        cases_of = [case for case, _ in members]
        found.append(CaseCluster(surest.operation, surest.error_type, masked(surest.reason), cases_of))
    return sorted(found, key=lambda cluster: -len(cluster.cases))


def masked(reason: str) -> str:
    """A reason without what is particular to its case."""
    text = _SPECIFIC.sub("…", _QUOTED.sub("…", " ".join(reason.split())))
    return _LIST.sub("…", text)
