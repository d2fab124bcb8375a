"""All searches of the bench, in several processes, each kept as soon as it is done."""

from __future__ import annotations

import logging
import multiprocessing
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from benchmarks.blame.one_search import Search, Task, search
from benchmarks.blame.pipelines import PIPELINES
from benchmarks.blame.rules import rules
from experiments.bench.attribution import Progress
from tracing.errors import RunError
from tracing.systems.conversations import first_problem

_SEARCH = TypeAdapter(Search)
_SEEDS_APART = 1000
"""Between the seeds of two prompts of a system."""


def tasks_of(
    systems: Sequence[str], contenders: Sequence[str], seeds: int, calls: int, first_seed: int
) -> Iterator[Task]:
    """The searches, seed by seed, so that all contenders are compared soon. Flaws take turns, also among prompts."""
    flaws = rules().flaws
    for number in range(first_seed, first_seed + seeds):
        for system in systems:
            for place, step in enumerate(PIPELINES[system]):
                for contender in contenders:
                    flaw = flaws[(number + place) % len(flaws)].name
                    yield Task(system, step.prompt, flaw, contender, place * _SEEDS_APART + number, calls)


def searched(
    tasks: Sequence[Task],
    kept: Path | None,
    processes: int,
    *,
    progress: Progress,
    finished: Callable[[Sequence[Search]], None],
) -> list[Search]:
    """Make the searches that are not kept yet, and return all.

    Args:
        tasks: the searches.
        kept: file to which each is added, and from which finished ones are read; None for none.
        processes: that make searches at the same time.
        finished: called with those that are done, after all contenders have met one flaw.

    Raises:
        RunError: the file is damaged.
        MemtuneError: as `search`.
    """
    wanted = set(tasks)
    done = {result.task: result for result in _read(kept) if result.task in wanted}
    missing = [task for task in tasks if task not in done]
    progress("searches", len(done), len(tasks))
    with multiprocessing.get_context("spawn").Pool(processes, _quiet) as pool:
        for results in pool.imap_unordered(_searches, _by_flaw(missing)):
            done |= {result.task: result for result in results}
            if kept is not None:
                with kept.open("ab") as file:
                    file.writelines(_SEARCH.dump_json(result) + b"\n" for result in results)
            progress("searches", len(done), len(tasks))
            finished(list(done.values()))
    return [done[task] for task in tasks]


def _by_flaw(tasks: Sequence[Task]) -> list[list[Task]]:
    """The tasks that begin alike, together."""
    groups: dict[tuple[str, str, str, int], list[Task]] = defaultdict(list)
    for task in tasks:
        groups[task.system, task.prompt, task.flaw, task.seed].append(task)
    return list(groups.values())


def _searches(tasks: Sequence[Task]) -> list[Search]:
    return [search(task) for task in tasks]


def _read(kept: Path | None) -> Iterator[Search]:
    if kept is None or not kept.exists():
        return
    for number, line in enumerate(kept.read_bytes().splitlines(), start=1):
        try:
            yield _SEARCH.validate_json(line)
        except ValidationError as error:
            raise RunError(f"{kept}, line {number}: {first_problem(error)}; delete the line") from None


def _quiet() -> None:
    """What an optimizer warns of, such as a baseline that answers little, is meant to be so here."""
    logging.getLogger("optimizer").setLevel(logging.ERROR)
