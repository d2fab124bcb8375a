"""Questions that several runs asked their champions, and those that some answered right and others wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from experiments.runs.cases_file import CaseReply, RunCase
from optimizer.evaluation.scores import SplitName
from optimizer.gating.verdict import Verdict, verdict_over


@dataclass(frozen=True, slots=True)
class AskedByAll:
    """A question, and the reply of each run's champion, in the order of the runs."""

    case: RunCase
    replies: tuple[CaseReply, ...]

    @property
    def flipped(self) -> bool:
        """Whether it is right in one run and wrong in another."""
        return len({reply.passed for reply in self.replies}) > 1


@dataclass(frozen=True, slots=True)
class SplitFlips:
    """The questions of a split that all runs asked; a question is in the split that the first run has it in.

    Attributes:
        split: of the data set.
        asked: number of these questions.
        right: how many of them each run answered right.
        flips: those that are right in one run and wrong in another.
        differences: of each further run to the first in mean score over conversations.
    """

    split: SplitName
    asked: int
    right: tuple[int, ...]
    flips: tuple[AskedByAll, ...]
    differences: tuple[Verdict, ...]


def flips_of(runs: Sequence[Sequence[RunCase]]) -> list[SplitFlips]:
    """Compare the champions of runs by question, test first."""
    first, *others = ({case.key: case for case in cases if "champion" in case.replies} for cases in runs)
    by_split: dict[SplitName, list[AskedByAll]] = defaultdict(list)
    for key, case in first.items():
        cases = [case, *(other[key] for other in others if key in other)]
        if len(cases) == len(runs):
            by_split[case.split].append(AskedByAll(case, tuple(one.replies["champion"] for one in cases)))
    splits: tuple[SplitName, ...] = ("test", "validation", "train")
    return [_compared(split, by_split[split], len(runs)) for split in splits if by_split[split]]


def _compared(split: SplitName, asked: Sequence[AskedByAll], runs: int) -> SplitFlips:
    return SplitFlips(
        split,
        len(asked),
        tuple(sum(one.replies[run].passed for one in asked) for run in range(runs)),
        tuple(one for one in asked if one.flipped),
        tuple(verdict_over(_deltas(asked, run), len(asked)) for run in range(1, runs)),
    )


def _deltas(asked: Sequence[AskedByAll], run: int) -> list[float]:
    """The difference of a run to the first in each conversation."""
    found: dict[str, list[float]] = defaultdict(list)
    for one in asked:
        found[one.case.conversation].append(one.replies[run].score - one.replies[0].score)
    return [fmean(each) for each in found.values()]
