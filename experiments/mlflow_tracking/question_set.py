"""The questions whose cases become traces: the same for both sides, so that MLflow's comparison pairs them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from experiments.runs.seen_cases import SeenCase
from optimizer.evaluation.scores import SplitName
from tracing.recording.redaction import excerpt

LONGEST_TITLE = 900
"""In characters: MLflow keeps 1,000 of a request's preview."""

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The cases that become traces, in the same order for both sides.

    Attributes:
        baseline: the cases under the prompts that the run began with.
        champion: those under the champion; none where it is the baseline.
        titles: each question by its conversation and id; MLflow pairs two traces by this text alone, so it is unique.
        parts: split → how many of its questions are among them, and how many the baseline answered.
    """

    baseline: tuple[SeenCase, ...]
    champion: tuple[SeenCase, ...]
    titles: Mapping[_Key, str]
    parts: Mapping[SplitName, tuple[int, int]]

    def metric(self, name: str, split: SplitName) -> str:
        """What the score of a split's questions is called: their mean is the run's where it has the metric's own name.

        The test has that name, if it is there as a whole; others say their split, and how much of it is there.
        """
        here, of_all = self.parts[split]
        restrictions: list[str] = [] if (split, here) == ("test", of_all) else [split]
        if here < of_all:
            restrictions.append(f"{here} of {of_all}")
        return f"{name} ({', '.join(restrictions)})" if restrictions else name


def question_set(baseline: Sequence[SeenCase], champion: Sequence[SeenCase], most: int) -> QuestionSet:
    """At most `most` questions that both sides answered: those of the test, then those that flipped, then the rest.

    Where not all of a group has room, what is taken has right and wrong answers, kinds and splits in proportion.
    """
    alone = champion == baseline
    sides = (
        {_key(seen_case): seen_case for seen_case in baseline},
        {_key(seen_case): seen_case for seen_case in champion},
    )
    both = {key: (seen_case, sides[1][key]) for key, seen_case in sides[0].items() if key in sides[1]}

    def group(pair: tuple[SeenCase, SeenCase]) -> int:
        if pair[0].split == "test":
            return 0
        return 1 if pair[0].case.passed != pair[1].case.passed else 2

    def stratum(pair: tuple[SeenCase, SeenCase]) -> Hashable:
        before, after = pair
        return group(pair), before.split, before.case.question.kind, before.case.passed, after.case.passed

    places = _spread([stratum(pair) for pair in both.values()])
    ranked = sorted(zip(both, places, strict=True), key=lambda pair: (group(both[pair[0]]), pair[1]))
    chosen = {key for key, _ in ranked[:most]}
    chosen_pairs = [pair for key, pair in both.items() if key in chosen]
    here = Counter(before.split for before, _ in chosen_pairs)
    of_all = Counter(seen_case.split for seen_case in baseline)
    return QuestionSet(
        tuple(before for before, _ in chosen_pairs),
        () if alone else tuple(after for _, after in chosen_pairs),
        _titles([before for before, _ in chosen_pairs]),
        {split: (count, of_all[split]) for split, count in here.items()},
    )


def _spread(strata: Sequence[Hashable]) -> list[float]:
    """A place from 0 to 1 for each, so that every beginning of the order has the strata in proportion."""
    sizes, counts = Counter(strata), Counter[Hashable]()
    places = []
    for stratum in strata:
        places.append((counts[stratum] + 0.5) / sizes[stratum])
        counts[stratum] += 1
    return places


def _titles(cases: Sequence[SeenCase]) -> dict[_Key, str]:
    """The questions as they were put; one that was put several times says where."""
    further: tuple[Callable[[SeenCase], str], ...] = (
        lambda entry: entry.case.conversation,
        lambda entry: _key(entry)[1],
    )
    titles = {_key(seen_case): excerpt(seen_case.case.question.question, LONGEST_TITLE) for seen_case in cases}
    for distinction in further:
        by_title: dict[str, list[SeenCase]] = defaultdict(list)
        for seen_case in cases:
            by_title[titles[_key(seen_case)]].append(seen_case)
        for title, alike in by_title.items():
            for seen_case in alike if len(alike) > 1 else ():
                titles[_key(seen_case)] = f"{title} · {excerpt(distinction(seen_case), 40)}"
    return titles


def _key(seen_case: SeenCase) -> _Key:
    return seen_case.case.conversation, seen_case.case.question.id
