"""Clusters of attributed cases: the same operation, the same error type, and reasons that differ only in their values.

Quotes, ids and numbers in a reason are masked; the remaining words say how it went wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import fmean

from attribution.cases import Blame
from experiments.attributing.attributions import CaseLine
from experiments.display.terminal import shortened

_ALIKE = 0.6
_LONGEST_EXAMPLE = 240
_QUOTED = re.compile(r"(?<!\w)'.*?'(?!\w)|\"[^\"]*\"|‘[^’]*’|“[^”]*”|`[^`]*`")
_SPECIFIC = re.compile(r"(?<!\w)\S*\d\S*?(?=[,.;:)]?(?:\s|$))")
_LIST = re.compile(r"…(?:(?:,| and| or)? …)+")


@dataclass(frozen=True, slots=True)
class CaseCluster:
    """A way in which several failures went wrong, the surest first; `words` has `…` for what differs between them.

    It is `alone` if all failures that were attributed have this operation and error type.
    """

    operation: str
    error_type: str
    words: str
    cases: list[CaseLine]
    alone: bool = False

    @property
    def caveat(self) -> str | None:
        """What it does not prove, where no right answer is known of any of its failures; otherwise None."""
        if any(answer.strip() for case in self.cases for answer in case.answers):
            return None
        sure = fmean(main.confidence for case in self.cases if (main := case.main) is not None)
        if self.alone and len(self.cases) > 1:
            return (
                "that all have one cause proves nothing: no right answer is known, so question and wrong reply alone "
                f"chose what was looked at; some {sure:.0%} of such verdicts are right; give the right answers of a few"
            )
        return f"no right answer is known: some {sure:.0%} of such verdicts are right"

    @property
    def example(self) -> str | None:
        """The reason of the surest failure, shortened, if `words` leaves something out; otherwise None."""
        main = self.cases[0].main
        if main is None or "…" not in self.words:
            return None
        return shortened(" ".join(main.reason.split()), _LONGEST_EXAMPLE)


def case_clusters(cases: Iterable[CaseLine]) -> list[CaseCluster]:
    """The clusters of what was attributed, the largest first; abstentions are in none.

    The surest failure leads the first cluster; each further one joins the first leader with the same operation and
    error type that shares at least 0.6 of the words of either with it (Jaccard index), or leads a new cluster.
    The result is a function of the set of failures.
    """
    blamed = [(case, main) for case in cases if (main := case.main) is not None]
    blamed.sort(key=lambda pair: (-pair[1].confidence, pair[0].key))
    led: list[tuple[frozenset[str], CaseCluster]] = []
    for case, blame in blamed:
        words = masked(blame.reason)
        reason_words = frozenset(words.lower().split())
        for leader_words, cluster in led:
            shared = len(leader_words & reason_words)
            if _same_error(cluster, blame) and shared >= _ALIKE * len(leader_words | reason_words):
                cluster.cases.append(case)
                break
        else:
            led.append((reason_words, CaseCluster(blame.operation, blame.error_type, words, [case])))
    clusters = [cluster for _, cluster in led]
    alone = len({(cluster.operation, cluster.error_type) for cluster in clusters}) == 1
    return sorted((replace(cluster, alone=alone) for cluster in clusters), key=lambda cluster: -len(cluster.cases))


def masked(reason: str) -> str:
    """A reason without what is specific to its case."""
    text = _SPECIFIC.sub("…", _QUOTED.sub("…", " ".join(reason.split())))
    return _LIST.sub("…", text)


def _same_error(cluster: CaseCluster, blame: Blame) -> bool:
    return (cluster.operation, cluster.error_type) == (blame.operation, blame.error_type)
