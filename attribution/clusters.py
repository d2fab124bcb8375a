"""Clusters of similar failures: those in which the same went wrong in the same way, whatever the question was about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from attribution.cases import Blame, Case, ErrorType
from attribution.content import content_of

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
    leaders: list[tuple[frozenset[str], list[tuple[Case, Blame]]]] = []
    for case, blame in ordered:
        words = content_of(_PARTICULARS.sub(" ", blame.reason))
        for leading, members in leaders:
            if members[0][1].error_type == blame.error_type and _alike(leading, words):
                members.append((case, blame))
                break
        else:
            leaders.append((words, [(case, blame)]))
    found = [_cluster(members) for _, members in leaders]
    return tuple(sorted(found, key=lambda cluster: -cluster.size))


def _cluster(members: Sequence[tuple[Case, Blame]]) -> Cluster:
    surest = members[0][1]
    kinds = Counter(case.question.kind for case, _ in members)
    cases = tuple(case.question.id for case, _ in members[:REPRESENTATIVES])
    return Cluster(surest.error_type, surest.reason, len(members), dict(kinds), cases)


def _alike(left: frozenset[str], right: frozenset[str]) -> bool:
    return left == right or len(left & right) >= _ALIKE * len(left | right)
