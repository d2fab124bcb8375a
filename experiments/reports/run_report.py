"""The HTML report of a run, one file that works offline, and the pages of traces it links to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.display.pages import picture_html, template
from experiments.reports import run_charts
from experiments.reports.text_difference import difference
from experiments.runs.cases_file import RunCase, page_of
from experiments.runs.folder import BASELINE, CHAMPION, RunFolder
from experiments.runs.run_settings import nested
from experiments.runs.seen_cases import SeenCase
from experiments.runs.summary import SETTINGS_ALONE, Summary
from experiments.views.trace_page import question_anchor, render_page
from optimizer.objectives.alignment import LEAST
from optimizer.proposers.line_changes import LineChange, changes_between
from optimizer.search.rounds import SCREENED
from optimizer.tuning.round import RewriteRecord
from tracing.llm.accounting.token_counts import estimated_tokens
from tracing.recording.redaction import redact
from tracing.systems.prompts import Candidate
from tracing.systems.registry import caveats_of

if TYPE_CHECKING:
    from markupsafe import Markup

    from attribution.survival.failure_picture import FailurePicture


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
        champions: round → prompts that its rewrites began with, where they are not the baseline's.
        cases: the questions asked under the baseline prompts and the champion.
        pictures: of their wrong replies, by conversation, question and side.
        resume: the command that goes on with the run.
    """

    summary: Summary
    baseline: Candidate
    champion: Candidate
    error_types: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    power: float | None = None
    operations: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    rewrites: Sequence[tuple[int, RewriteRecord]] = ()
    champions: Mapping[int, Candidate] = field(default_factory=dict)
    cases: Sequence[RunCase] = ()
    pictures: Mapping[tuple[str, str, str], FailurePicture] = field(default_factory=dict)
    resume: str | None = None


def render_report(content: ReportInput) -> str:
    """The report as an HTML page."""
    from markupsafe import Markup

    summary = content.summary
    last = summary.rounds[-1] if summary.rounds else None
    drawn = {
        "scores": run_charts.scores(summary),
        "blame": run_charts.blame(summary.rounds[0]) if summary.rounds else None,
    }
    sides = (BASELINE, CHAMPION) if summary.rewritten else (BASELINE,)
    return template("report.html").render(
        content=content,
        run=summary,
        last=last,
        splits=tuple(run_charts.SPLIT_TITLES.items()),
        settings_alone=SETTINGS_ALONE if summary.settings and content.champion == content.baseline else None,
        screened=SCREENED,
        least_alignment=LEAST,
        caveats=_caveats(content),
        # Drawn by us from numbers and operation names, which matplotlib escapes.
        charts={name: Markup(svg) if svg else None for name, svg in drawn.items()},  # noqa: S704
        difference=difference,
        gains={
            name: [(redact(str(change)), gain) for change, gain in line_gains(name, content)]
            for name in content.champion
        },
        sides=sides,
        replies=lambda case: [case.replies[side] for side in sides if side in case.replies],
        anchor=question_anchor,
        picture=lambda case: _picture(content, case, sides),
        tokens=estimated_tokens,
    )


def _picture(content: ReportInput, case: RunCase, sides: Sequence[str]) -> Markup | None:
    """Of the last wrong reply, whose blame the table shows too; None if it was not attributed."""
    wrong = [side for side, reply in case.replies.items() if side in sides and not reply.passed]
    picture = content.pictures.get((*case.key, wrong[-1])) if wrong else None
    return picture_html(picture, case.replies[wrong[-1]].page) if picture is not None else None


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


def _caveats(content: ReportInput) -> list[str]:
    own = {key: value for key, value in content.settings.items() if key.startswith("system_settings.")}
    settings = nested(own).get("system_settings", {})
    settings |= {name: change.after for name, change in content.summary.settings.items()}
    own_endpoint = "models.task.base_url" in content.settings or content.settings.get("models.task.litellm")
    return caveats_of(content.summary.system, settings, embedded=not own_endpoint)


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
        judged = [(seen_case.case, seen_case.attribution) for seen_case in group]
        pictures = {seen.case.prediction or "": seen.picture for seen in group if seen.picture is not None}
        page = render_page(group[0].graph, title, judged, pictures)
        folder.write(page_of(trace).relative_to(folder.path).as_posix(), page)
