"""Runs side by side: what was the same, the results, and the questions that some answered right and others wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from statistics import fmean
from typing import TypeVar

from experiments.runs.cases_file import CaseReply, RunCase, read_cases
from experiments.runs.folder import CHAMPION, RunFolder
from experiments.runs.intervals import interval_text, money_text
from experiments.runs.summary import Summary
from optimizer.evaluation.scores import SplitName, settings_text
from optimizer.evaluation.statistics import p_text
from optimizer.gating.verdict import Verdict, verdict_over
from optimizer.tuning.tried import TriedCandidate
from tracing.errors import RunError
from tracing.systems.prompts import Candidate

_Part = TypeVar("_Part")

COMPARABLE = ("dataset", "splits", "metric", "model")
"""What must agree for the scores of two runs to be comparable."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Several runs: their `names`, `rows` of what and its value in each run, and their `champions`' prompts.

    If there are `differences`, the keys of `COMPARABLE` in which they differ, the scores are not comparable.
    `left_out` says what of the runs could not be read; what is then missing of one is empty. `tried` is what each run
    tried, with its score and tokens. `splits` are the questions that all were asked, or `unread` why these are not
    known.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    differences: tuple[str, ...]
    champions: tuple[Candidate, ...]
    left_out: tuple[str, ...]
    tried: tuple[tuple[TriedCandidate, ...], ...]
    splits: tuple[SplitFlips, ...]
    unread: tuple[str, ...]

    @property
    def prompts(self) -> dict[str, bool]:
        """By prompt, whether all champions that are known have the same text; empty for fewer than two."""
        readable = [champion for champion in self.champions if champion]
        names = dict.fromkeys(name for champion in readable for name in champion) if len(readable) > 1 else ()
        return {name: len({champion.get(name) for champion in readable}) == 1 for name in names}


def list_runs(home: Path) -> list[tuple[RunFolder, Summary | RunError]]:
    """Every run under a home, latest first; with the error of a summary that is missing or unreadable."""
    return [(folder, _read(folder.summary)) for folder in reversed(RunFolder.all(home))]


def _read(part: Callable[[], _Part]) -> _Part | RunError:
    try:
        return part()
    except RunError as error:
        return error


def compare(*folders: RunFolder) -> RunComparison:
    """Compare runs by their folders.

    Raises:
        RunError: no run has a summary that can be read.
    """
    read = [_read(folder.summary) for folder in folders]
    summaries = [summary for summary in read if not isinstance(summary, RunError)]
    texts = [_read(partial(folder.prompts, CHAMPION)) for folder in folders]
    left_out = [part for part in (*read, *texts) if isinstance(part, RunError)]
    if not summaries:
        raise left_out[0]
    cases = [_read(partial(read_cases, folder)) for folder in folders]
    unread = tuple(str(part) for part in cases if isinstance(part, RunError))
    keys = [key for key, _ in _facts(summaries[0])]
    facts = zip(
        *(zip(keys, repeat("–")) if isinstance(summary, RunError) else _facts(summary) for summary in read), strict=True
    )
    return RunComparison(
        names=names_apart([folder.path for folder in folders]),
        rows=tuple((row[0][0], *(value for _, value in row)) for row in facts),
        differences=tuple(
            key for key in COMPARABLE if any(getattr(other, key) != getattr(summaries[0], key) for other in summaries)
        ),
        champions=tuple({} if isinstance(prompts, RunError) else prompts for prompts in texts),
        left_out=tuple(map(str, left_out)),
        tried=tuple(() if isinstance(summary, RunError) else summary.tried for summary in read),
        splits=() if unread else tuple(flips_of([part for part in cases if not isinstance(part, RunError)])),
        unread=unread,
    )


def names_apart(paths: Sequence[Path]) -> tuple[str, ...]:
    """Names of folders: the last part of their paths, or as many parts as tell those apart that are not the same.

    >>> names_apart([Path("/mine/before/run"), Path("/mine/after/run")])
    ('before/run', 'after/run')
    """
    parts = [path.resolve().parts for path in paths]
    lengths = range(1, max(map(len, parts)) + 1)
    named = (tuple(Path(*part[-length:]).as_posix() for part in parts) for length in lengths)
    return next(names for names in named if len(set(names)) == len(set(parts)))


def _facts(summary: Summary) -> Iterator[tuple[str, str]]:
    for key in ("system", "dataset", "model", "metric", "attribution", "optimizer"):
        yield key, str(getattr(summary, key) or "–")
    yield "seed", str(summary.seed)
    for split in ("validation", "test"):
        for side in ("baseline", "champion"):
            score = getattr(summary, side).get(split)
            text = f"{score.score:.3f} ({interval_text(score.ci)})" if score else "–"
            yield f"{side}, {split}", text
    yield "settings tuned", settings_text({name: change.after for name, change in summary.settings.items()}) or "–"
    yield "verdict", summary.verdict or "–"
    yield "delta", "–" if summary.delta is None else f"{summary.delta:+.3f}"
    yield "p value", p_text(summary.p_value)
    for side in ("baseline", "champion"):
        tokens = summary.tokens_per_question.get(side)
        yield f"tokens, {side}", "–" if tokens is None else f"{tokens:,.0f}"
    allowed = "" if summary.margin is None else f", allowed {-summary.margin:+.3f}"
    yield "delta at least", "–" if summary.bound is None else f"{summary.bound:+.3f}{allowed}"
    best = [
        f"{-candidate.saved or 0.0:+.0%} tokens {candidate.delta:+.3f}"
        for candidate in summary.tried
        if candidate.front
    ]
    yield "not beaten", "; ".join(best) or "–"
    yield (
        "accepted",
        f"{sum(row.accepted for row in summary.rounds)} of {len(summary.rounds)} rounds",
    )
    yield "calls made", f"{summary.calls.made:,}"
    yield "money", money_text(summary.calls.money)
    yield "stopped", summary.stopped


@dataclass(frozen=True, slots=True)
class SharedQuestion:
    """A question, and the reply of each run's champion, in the order of the runs."""

    case: RunCase
    replies: tuple[CaseReply, ...]


@dataclass(frozen=True, slots=True)
class SplitFlips:
    """The questions of a split that all runs asked; a question is in the split that the first run has it in.

    `right` is how many of them each run answered right, `flips` those that are right in one run and wrong in another,
    `differences` those of each further run to the first in mean score over `conversations`.
    """

    split: SplitName
    questions: int
    conversations: int
    right: tuple[int, ...]
    flips: tuple[SharedQuestion, ...]
    differences: tuple[Verdict, ...]


def flips_of(runs: Sequence[Sequence[RunCase]]) -> list[SplitFlips]:
    """Compare the champions of runs by question, test first.

    A question with another text or other accepted answers is another one, though data sets may give both the same id.
    """
    first, *others = (
        {(case.key, case.question, case.answers): case for case in cases if "champion" in case.replies}
        for cases in runs
    )
    by_split: dict[SplitName, list[SharedQuestion]] = defaultdict(list)
    for key, case in first.items():
        cases = [case, *(other[key] for other in others if key in other)]
        if len(cases) == len(runs):
            by_split[case.split].append(SharedQuestion(case, tuple(run_case.replies["champion"] for run_case in cases)))
    splits: tuple[SplitName, ...] = ("test", "validation", "train")
    return [_compared(split, by_split[split], len(runs)) for split in splits if by_split[split]]


def _compared(split: SplitName, questions: Sequence[SharedQuestion], runs: int) -> SplitFlips:
    return SplitFlips(
        split,
        len(questions),
        len({question.case.conversation for question in questions}),
        tuple(sum(question.replies[run].passed for question in questions) for run in range(runs)),
        tuple(question for question in questions if len({reply.passed for reply in question.replies}) > 1),
        tuple(verdict_over(_deltas(questions, run), len(questions)) for run in range(1, runs)),
    )


def _deltas(questions: Sequence[SharedQuestion], run: int) -> list[float]:
    """The difference of a run to the first in each conversation."""
    by_conversation: dict[str, list[float]] = defaultdict(list)
    for question in questions:
        by_conversation[question.case.conversation].append(question.replies[run].score - question.replies[0].score)
    return [fmean(differences) for differences in by_conversation.values()]
