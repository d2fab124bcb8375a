"""The comparison in words: cells of a table, sentences about the default search, and both as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.optimize.contenders import OURS
from benchmarks.optimize.figures import ContenderComparison, ContenderFigures, OptimizeFigures, SystemFigures
from experiments.display.terminal import literal
from experiments.runs.folder import BASELINE
from experiments.runs.intervals import interval_text, p_phrase

_TIE = 1e-9

_USED = 0.9
"""Share of its calls from which a search counts as having used them: the last evaluation may not fit."""

SCORES = ("contender", "held-out", "95 % interval", "to the baseline", "95 % interval", "p")
COSTS = ("area", "calls", "tokens", "minutes", "rewritten")
NOTE = (
    "Held-out: mean over test conversations of the mean over seeds. To the baseline: the paired difference to its "
    "prompts. Intervals (95 %) and p (two-sided sign-flip test, not corrected for the number of comparisons) are by "
    "conversation. Area: under the champion's validation score over the calls of the search, divided by the budget. "
    "Calls, tokens and minutes are means of the search alone, without baselines and test. Rewritten: runs that ended "
    "with other prompts than the baseline's."
)


def score_cells(contender: ContenderFigures) -> tuple[str, ...]:
    """A contender under the headings of `SCORES`."""
    difference = contender.against_baseline
    return (
        contender.contender,
        f"{contender.score:.3f}",
        interval_text(contender.ci),
        *(
            ("", "", "")
            if difference is None
            else (f"{difference.delta:+.3f}", _between(difference), f"{difference.p_value:.3f}")
        ),
    )


def cost_cells(contender: ContenderFigures) -> tuple[str, ...]:
    """A contender under the headings of `COSTS`."""
    runs = len(contender.by_seed)
    if contender.contender == BASELINE:
        return (f"{contender.area:.3f}", "–", "–", "–", "–")
    return (
        f"{contender.area:.3f}",
        f"{contender.calls:,.0f}",
        f"{contender.tokens:,.0f}",
        f"{contender.minutes:,.1f}",
        f"{contender.rewritten} of {runs}",
    )


def conclusions(system: SystemFigures) -> list[str]:
    """How the default search compares with each other one, and where it comes out; nothing while it has no run."""
    if not system.ours:
        return []
    lines = [
        f"{OURS} against {contender}: {_comparison_text(comparison)}" for contender, comparison in system.ours.items()
    ]
    scores = {contender.contender: contender.score for contender in system.contenders}
    ahead = [contender for contender, score in scores.items() if score > scores[OURS] + _TIE]
    if ahead:
        first = f"{OURS} is number {len(ahead) + 1} of {len(scores)} contenders by held-out score; {ahead[0]} is first"
    else:
        level = [contender for contender, score in scores.items() if contender != OURS and score > scores[OURS] - _TIE]
        first = f"{OURS} has the highest held-out score of {len(scores)} contenders"
        first += f", and so has {', '.join(level)}" if level else ""
    better, worse = (
        ", ".join(contender for contender, comparison in system.ours.items() if comparison.conclusion == which)
        or "none"
        for which in ("better", "worse")
    )
    return [*lines, f"{first}; shown to be better than {better}, and worse than {worse}"]


def markdown(figures: OptimizeFigures) -> str:
    """The whole comparison for a README."""
    parts = []
    for system in figures.systems:
        headings = (*SCORES, *COSTS)
        rows = [(*score_cells(contender), *cost_cells(contender)) for contender in system.contenders]
        parts += [f"### {literal(heading(figures, system))}", _markdown_table(headings, rows)]
        parts += ["\n".join(f"- {literal(line)}" for line in conclusions(system))]
    return "\n\n".join(part for part in (*parts, NOTE) if part) + "\n"


def heading(figures: OptimizeFigures, system: SystemFigures) -> str:
    """What was compared, in a line."""
    seeds = max(len(contender.by_seed) for contender in system.contenders)
    return (
        f"{system.system} on {figures.dataset}, {figures.model}: {figures.calls:,} calls a search, "
        f"{seeds} seed{'s' if seeds != 1 else ''}, {system.conversations} held-out conversations"
    )


def notes(figures: OptimizeFigures) -> list[str]:
    """What a reader of the figures must know: missing runs, unused calls, failed champions, other code."""
    lines = []
    missing = figures.runs_planned - len(figures.runs)
    if missing > 0:
        lines.append(f"{missing} of {figures.runs_planned} runs are not finished")
    for system in figures.systems:
        seeds = {
            contender.contender: len(contender.by_seed)
            for contender in system.contenders
            if contender.contender != BASELINE
        }
        if len(set(seeds.values())) > 1:
            counts = ", ".join(f"{contender} {count}" for contender, count in seeds.items())
            lines.append(f"{system.system}: means are over different numbers of seeds ({counts})")
    for run in figures.runs:
        if run.failed:
            lines.append(
                f"{run.system}, {run.contender}, seed {run.seed}: the champion fails on {len(run.failed)} of "
                f"{len(run.scores)} held-out conversations, which count as 0"
            )
    for system in figures.systems:
        for contender in system.contenders:
            own = [run for run in figures.runs if (run.system, run.contender) == (system.system, contender.contender)]
            early = [run for run in own if contender.contender != BASELINE and run.calls < _USED * figures.calls]
            if early:
                lines.append(
                    f"{system.system}, {contender.contender}: {len(early)} of {len(own)} searches left calls unused "
                    f"({early[0].stopped})"
                )
    codes = len({run.code for run in figures.runs})
    if codes > 1:
        lines.append(f"the runs were made by {codes} versions of memtune's code")
    return lines


def _markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)]]
    head = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([*head, *("| " + " | ".join((literal(row[0]), *row[1:])) + " |" for row in rows)])


def _comparison_text(comparison: ContenderComparison) -> str:
    interval = f"95 % {_between(comparison)}, " if comparison.ci is not None else ""
    return f"{comparison.delta:+.3f} ({interval}{p_phrase(comparison.p_value)}): {comparison.conclusion}"


def _between(comparison: ContenderComparison) -> str:
    return interval_text(comparison.ci, "+.3f", between=" to ")
