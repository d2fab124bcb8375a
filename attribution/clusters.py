"""Clusters of similar failures: those in which the same went wrong in the same way, whatever the question was about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from attribution.cases import Blame, Case, ErrorType
from attribution.content import content_of

T = TypeVar("T")
REPRESENTATIVES = 5

_ALIKE = 0.6
_PARTICULARS = re.compile(r"'[^']*(?:'(?=\w)[^']*)*'|\S*\d\S*")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Failures of one operation that are alike.

    Attributes:
        error_type: of all of them.
        example: reason of the surest of them, which names what happened.
        size: how many they are.
        kinds: how many of which kind of question.
        cases: question ids of the surest, at most five.
    """

    error_type: ErrorType
    example: str
    size: int
    kinds: Mapping[str, int]
    cases: tuple[str, ...]


def clusters_of(blamed: Iterable[tuple[Case, Blame]]) -> tuple[Cluster, ...]:
    """Cluster the failures that one operation is blamed for, the largest cluster first.

    The surest failure leads the first cluster; each further one joins the first leader with the same error type whose
    reason says the same once quotes, ids and numbers are left out (at least 0.6 of the words of either in common), or
    leads a cluster of its own. The result is a function of the set of failures.
    """
    ordered = sorted(blamed, key=lambda pair: (-pair[1].confidence, pair[0].conversation, pair[0].question.id))
    led = grouped(
        ordered,
        kind=lambda pair: pair[1].error_type,
        words=lambda pair: content_of(_PARTICULARS.sub(" ", pair[1].reason)),
    )
    return tuple(sorted(map(_cluster, led), key=lambda cluster: -cluster.size))


def grouped(
    failures: Iterable[T], *, kind: Callable[[T], Hashable], words: Callable[[T], frozenset[str]]
) -> list[list[T]]:
    """Failures that are alike, in the order of the first of each group.

    Each joins the first group that is led by one of its kind and has at least 0.6 of the words of either in common
    (Jaccard's index), or leads a group of its own.
    """
    led: list[tuple[Hashable, frozenset[str], list[T]]] = []
    for failure in failures:
        own, said = kind(failure), words(failure)
        for leading, spoken, members in led:
            if leading == own and len(spoken & said) >= _ALIKE * len(spoken | said):
                members.append(failure)
                break
        else:
            led.append((own, said, [failure]))
    return [members for _, _, members in led]


def _cluster(members: Sequence[tuple[Case, Blame]]) -> Cluster:
    surest = members[0][1]
    kinds = Counter(case.question.kind for case, _ in members)
    cases = tuple(case.question.id for case, _ in members[:REPRESENTATIVES])
    return Cluster(surest.error_type, surest.reason, len(members), dict(kinds), cases)
