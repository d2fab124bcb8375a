"""The HTML report of a run, one file that works offline and without scripts, and the pages of traces it links to."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from experiments.display.pages import template
from experiments.reports import run_charts
from experiments.runs.cases_file import RunCase, Side, page_of
from experiments.runs.folder import BASELINE, CHAMPION, RunFolder
from experiments.runs.seen_cases import SeenCase
from experiments.runs.summary import SETTINGS_ALONE, Summary
from experiments.views.trace_page import question_anchor, render_page
from optimizer.evaluation.scores import SPLITS
from optimizer.objectives.alignment import LEAST
from optimizer.proposers.line_changes import LineChange, changes_between
from optimizer.search.rounds import SCREENED
from optimizer.tuning.round import RewriteRecord
from tracing.recording.redaction import redact
from tracing.systems.prompts import Candidate
from tracing.systems.registry import caveats_of

CONTEXT_LINES = 4
"""Unchanged lines shown around a change; a longer stretch is folded."""

FEWEST_FOLDED = 3
"""Hidden lines that are too few to fold."""


@dataclass(frozen=True, slots=True)
class ReportInput:
    """What a report shows.

    Attributes:
        summary: the run's summary.
        baseline, champion: prompt texts.
        error_types: operation → error type → number of failures, from the latest attribution.
        power: of the test for the effect seen; None where there was no test.
        operations: operation → call counts (`Meter.snapshot`).
        settings: flat settings of the run.
        rewrites: the rewrites that were tried, each with its round.
        cases: the questions asked under the baseline prompts and the champion.
    """

    summary: Summary
    baseline: Candidate
    champion: Candidate
    error_types: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    power: float | None = None
    operations: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    rewrites: Sequence[tuple[int, RewriteRecord]] = ()
    cases: Sequence[RunCase] = ()


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a comparison; `parts` are pieces of it with whether they differ, `fold` counts lines left out here."""

    kind: Literal["same", "removed", "added", "fold"]
    parts: tuple[tuple[str, bool], ...] = ()
    fold: int = 0


def render_report(content: ReportInput) -> str:
    """The report as an HTML page."""
    from markupsafe import Markup

    summary = content.summary
    last = summary.rounds[-1] if summary.rounds else None
    drawn = {
        "scores": run_charts.scores(summary),
        "blame": run_charts.blame(summary.rounds[0]) if summary.rounds else None,
        "blame_by_round": run_charts.blame_by_round(summary.rounds),
        "validation": run_charts.validation_curve(summary),
        "cost": run_charts.cost(summary),
        "front": run_charts.front([("", summary.tried)]),
    }
    rewritten = summary.rewritten
    return template("report.html").render(
        content=content,
        run=summary,
        last=last,
        splits=tuple(run_charts.SPLIT_TITLES.items()),
        verdict_line=summary.verdict_sentence,
        settings_alone=SETTINGS_ALONE if summary.settings and content.champion == content.baseline else None,
        screened=SCREENED,
        side_by_side=_side_by_side(summary),
        measured_locally=any(rewrite.local is not None for _, rewrite in content.rewrites),
        least_alignment=LEAST,
        caveats=_caveats(content),
        # Drawn by us from numbers and operation names, which matplotlib escapes.
        charts={name: Markup(svg) if svg else None for name, svg in drawn.items()},  # noqa: S704
        # A word-for-word comparison would split a credential.
        diffs={
            name: list(diff(redact(content.baseline.get(name, "")), redact(text)))
            for name, text in content.champion.items()
        },
        line_gains={
            name: [(redact(str(change)), gain) for change, gain in line_gains(name, content)]
            for name in content.champion
        },
        cases={split: cases_of(content.cases, split) for split in SPLITS},
        sides=(BASELINE, CHAMPION) if rewritten else (BASELINE,),
        links={case.key: trace_links(case, rewritten=rewritten) for case in content.cases},
        changed=[name for name, text in content.champion.items() if content.baseline.get(name) != text],
    )


def line_gains(prompt: str, content: ReportInput) -> list[tuple[LineChange, float | None]]:
    """What each changed line of the champion's prompt brought on recorded inputs, when it was tried alone.

    The greatest gain where it was tried several times, over one champion or another; None if it was not. Nothing for a
    prompt that differs in more than its instructions.
    """
    measured = [rewrite for _, rewrite in content.rewrites if rewrite.prompt == prompt and rewrite.local is not None]
    accepted = [rewrite.text for rewrite in measured if rewrite.gate is not None and rewrite.gate.accepted]
    gains: dict[LineChange, float] = {}
    for before in (content.baseline.get(prompt, ""), *accepted):
        for rewrite in measured:
            changes = changes_between(before, rewrite.text)
            if len(changes) == 1:
                gains[changes[0]] = max(gains.get(changes[0], -1.0), rewrite.local or 0.0)
    changes = changes_between(content.baseline.get(prompt, ""), content.champion[prompt])
    return [(change, gains.get(change)) for change in changes]


def cases_of(cases: Sequence[RunCase], split: str) -> list[RunCase]:
    """The cases of a split: those that were answered wrong first, by the latest prompts they were asked with."""
    return sorted(
        (case for case in cases if case.split == split), key=lambda case: list(case.replies.values())[-1].passed
    )


def trace_links(case: RunCase, *, rewritten: bool) -> dict[Side, str]:
    """The pages of a case's traces, relative to the run's folder, opened on its question."""
    anchor = question_anchor(case.question_id)
    return {
        side: f"{reply.page}{anchor}"
        for side, reply in case.replies.items()
        if reply.page is not None and (side == BASELINE or rewritten)
    }


def _side_by_side(summary: Summary) -> dict[int, str | None]:
    """Round → its optimizer; empty where there is only one."""
    optimizers = {record.n: record.optimizer for record in summary.rounds}
    return optimizers if any(optimizers.values()) else {}


def diff(before: str, after: str) -> Iterator[DiffLine]:
    """The lines of both texts in order, changed words marked in lines that changed in place."""
    old, new = before.splitlines(), after.splitlines()
    for tag, first, last, start, end in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from _fold(old[first:last], opening=first == 0, closing=last == len(old))
            continue
        removed, added = old[first:last], new[start:end]
        pairs = [_words(old_line, new_line) for old_line, new_line in zip(removed, added, strict=False)]
        for place, line in enumerate(removed):
            yield DiffLine("removed", pairs[place][0] if place < len(pairs) else ((line, False),))
        for place, line in enumerate(added):
            yield DiffLine("added", pairs[place][1] if place < len(pairs) else ((line, False),))


def _caveats(content: ReportInput) -> list[str]:
    prefix = "system_settings."
    settings = {key.removeprefix(prefix): value for key, value in content.settings.items() if key.startswith(prefix)}
    settings |= {name: change.after for name, change in content.summary.settings.items()}
    return caveats_of(content.summary.system, settings, embedded="models.task.base_url" not in content.settings)


def _fold(lines: Sequence[str], *, opening: bool, closing: bool) -> Iterator[DiffLine]:
    head = 0 if opening and not closing else CONTEXT_LINES
    tail = 0 if closing and not opening else CONTEXT_LINES
    is_whole = (opening and closing) or len(lines) <= head + tail + FEWEST_FOLDED
    for place, line in enumerate(lines):
        if is_whole or place < head or place >= len(lines) - tail:
            yield DiffLine("same", ((line, False),))
        elif place == head:
            yield DiffLine("fold", fold=len(lines) - head - tail)


def _words(old_line: str, new_line: str) -> tuple[tuple[tuple[str, bool], ...], tuple[tuple[str, bool], ...]]:
    old, new = re.findall(r"\w+|\W", old_line), re.findall(r"\w+|\W", new_line)
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    # Lines with little in common read better without marks on nearly every word.
    if matcher.ratio() < 0.4:
        return ((old_line, False),), ((new_line, False),)
    removed, added = [], []
    for tag, first, last, start, end in matcher.get_opcodes():
        if first < last:
            removed.append(("".join(old[first:last]), tag != "equal"))
        if start < end:
            added.append(("".join(new[start:end]), tag != "equal"))
    return tuple(removed), tuple(added)


def write_pages(folder: RunFolder, cases: Iterable[SeenCase]) -> None:
    """Write the page of every trace that cases were seen in, beside it.

    Raises:
        RunError: one cannot be written.
    """
    by_trace: dict[Path, list[SeenCase]] = defaultdict(list)
    for seen_case in cases:
        if seen_case.trace is not None:
            by_trace[seen_case.trace].append(seen_case)
    for trace, group in by_trace.items():
        title = f"{group[0].case.conversation} · {folder.id}"
        page = render_page(group[0].graph, title, [(seen_case.case, seen_case.attribution) for seen_case in group])
        folder.write(page_of(trace).relative_to(folder.path).as_posix(), page)
