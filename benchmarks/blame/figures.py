"""What many searches come to: how soon each contender wins back what a flaw costs, beside the others."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import TypeVar

from pydantic import BaseModel

from attribution.confidence_intervals import Interval, middle
from benchmarks.blame.contenders import CONTENDERS, WITHOUT_BLAME
from benchmarks.blame.one_search import Search

LOOKS = (100, 300, 1000)
"""Calls after which the share won back is told."""

RESAMPLES = 1000

_T = TypeVar("_T")

ALL = "all"
"""In the place of a prompt: of all prompts of the system together."""


class Mean(BaseModel):
    """A mean over searches with its 95 % interval, bootstrapped over seeds."""

    value: float
    ci: Interval


class CellFigures(BaseModel):
    """What one contender does on one system, where one prompt is spoiled or each in turn.

    Attributes:
        system, prompt, contender: names; the prompt is `ALL` for each in turn.
        searches: their number, as many for each flaw as they are divisible.
        cost: what the flaw costs, as a share of all questions; mean.
        blamed: share of the blame that the spoiled prompt has at the start; None where nothing attributes.
        won_back: by calls, the share of the cost that is won back by then.
        enough: share of the searches that win back nine tenths.
        calls: calls until that; those of a search that does not get there count as all that it may make.
        median_calls: the middle one of the same; None if it is of a search that does not get there.
    """

    system: str
    prompt: str
    contender: str
    searches: int
    cost: float
    blamed: float | None
    won_back: dict[int, Mean]
    enough: Mean
    calls: Mean
    median_calls: int | None


class Ratio(BaseModel):
    """Calls until enough is won back by blame, divided by those of another contender on the same seeds.

    Attributes:
        system, prompt: as of a cell.
        other: the contender without blame that needs the fewest calls there; or one that is told of a wrong operation,
            in the place of blame, divided by that best.
        ratio: of the means.
    """

    system: str
    prompt: str
    contender: str
    other: str
    ratio: Mean


class BlameFigures(BaseModel):
    """All figures.

    Attributes:
        calls: that each search might make.
        costless: searches that are left out, since what was planted costs nothing with their seed.
        cells, ratios: of the others.
    """

    calls: int
    costless: int = 0
    cells: tuple[CellFigures, ...]
    ratios: tuple[Ratio, ...]


def figures_of(searches: Iterable[Search], calls: int) -> BlameFigures:
    """The figures of searches of at most so many calls."""
    cells: dict[tuple[str, str, str], dict[tuple[str, str, int], Search]] = defaultdict(dict)
    costless = 0
    for search in searches:
        task = search.task
        if search.cost <= 0:
            costless += 1
            continue
        for prompt in (ALL, task.prompt):
            cells[task.system, prompt, task.contender][task.prompt, task.flaw, task.seed] = search
    order = list(CONTENDERS)
    named = sorted(cells, key=lambda key: (key[0], key[1] != ALL, key[1], order.index(key[2])))
    return BlameFigures(
        calls=calls,
        costless=costless,
        cells=tuple(_cell(*key, list(cells[key].values())) for key in named),
        ratios=tuple(_ratios(cells)),
    )


def _cell(system: str, prompt: str, contender: str, searches: Sequence[Search]) -> CellFigures:
    blamed = [search.blamed for search in searches if search.blamed is not None]
    needed = [search.calls_until_enough for search in searches]
    return CellFigures(
        system=system,
        prompt=prompt,
        contender=contender,
        searches=len(searches),
        cost=fmean(search.cost for search in searches),
        blamed=fmean(blamed) if blamed else None,
        won_back={look: _mean([search.won_back(look) for search in searches]) for look in LOOKS},
        enough=_mean([float(calls is not None) for calls in needed]),
        calls=_mean([_calls(search) for search in searches]),
        median_calls=_median(needed),
    )


def _calls(search: Search) -> float:
    needed = search.calls_until_enough
    return float(search.task.calls if needed is None else needed)


def _median(needed: Sequence[int | None]) -> int | None:
    middle_one = median(10**9 if calls is None else calls for calls in needed)
    return None if middle_one >= 10**8 else round(middle_one)


def _ratios(cells: Mapping[tuple[str, str, str], Mapping[tuple[str, str, int], Search]]) -> Iterable[Ratio]:
    for system, prompt in dict.fromkeys((system, prompt) for system, prompt, _ in cells):

        def met(contender: str, system: str = system, prompt: str = prompt) -> Mapping[tuple[str, str, int], Search]:
            return cells.get((system, prompt, contender), {})

        others = [name for name in WITHOUT_BLAME if met(name)]
        if not others:
            continue
        best = min(others, key=lambda name: fmean(map(_calls, met(name).values())))
        for contender in CONTENDERS:
            if contender in WITHOUT_BLAME or not met(contender):
                continue
            pairs = [
                (_calls(met(contender)[key]), _calls(met(best)[key])) for key in met(contender) if key in met(best)
            ]
            yield Ratio(system=system, prompt=prompt, contender=contender, other=best, ratio=_ratio(pairs))


def _ratio(pairs: Sequence[tuple[float, float]]) -> Mean:
    def ratio(chosen: Sequence[tuple[float, float]]) -> float:
        return sum(ours for ours, _ in chosen) / sum(theirs for _, theirs in chosen)

    return _bootstrapped(pairs, ratio)


def _mean(values: Sequence[float]) -> Mean:
    return _bootstrapped(values, fmean)


def _bootstrapped(values: Sequence[_T], of: Callable[[Sequence[_T]], float]) -> Mean:
    chance = random.Random(0)  # noqa: S311 (resampling)
    samples = [of(chance.choices(values, k=len(values))) for _ in range(RESAMPLES)]
    return Mean(value=of(values), ci=middle(samples))
