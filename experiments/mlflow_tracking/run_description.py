"""The description of a run in MLflow: verdict, scores and what changed in the prompts, as Markdown."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from experiments.display.terminal import literal, visible
from experiments.reports.run_charts import SPLIT_TITLES
from experiments.runs.intervals import p_phrase
from experiments.runs.progress import Progress
from experiments.runs.summary import SETTINGS_ALONE, Summary
from optimizer.evaluation.scores import Score
from tracing.recording.redaction import redact
from tracing.systems.prompts import Candidate

LONGEST = 7500
"""In characters: MLflow keeps 8,000 of a tag, and a stored one may have some of them replaced by longer marks."""

_CONTEXT_LINES = 2
_GAP = "…"


def describe(summary: Summary, baseline: Candidate, champion: Candidate) -> str:
    """What a run found, in Markdown in which data is literal; at most `LONGEST` characters."""
    parts = [_headline(summary), _scores(summary)]
    sentences = summary.saving_sentence, summary.settings_sentence, summary.noise_sentence
    parts += [literal(sentence) for sentence in sentences if sentence]
    changed = [name for name, text in champion.items() if baseline.get(name) != text]
    if changed:
        parts.append("### What changed in the prompts")
    elif summary.settings:
        parts.append(literal(SETTINGS_ALONE))
    closing = (
        "The runs `baseline` and `champion`, nested in this one, have the scores and traces of each side; "
        "`rewrites.json` among the artifacts has every rewrite that was tried, `report.html` all of it."
    )
    room = LONGEST - len("\n\n".join([*parts, closing])) - 2
    for place, name in enumerate(changed):
        others = sum(len(_pointer(other)) + 2 for other in changed[place + 1 :])
        block = _diff_block(name, baseline.get(name, ""), champion[name], room - others)
        room -= len(block) + 2
        parts.append(block)
    return "\n\n".join([*parts, closing])


def describe_progress(summary: Summary, progress: Progress, run: str, time: str) -> str:
    """How far a run was at a time of day, and its scores, in Markdown; `run` is its name in a command."""
    done = f", {progress.done} of {progress.total}" if progress.total else ""
    spent = f"{progress.calls:,} model calls were made by {time}. Follow it in a terminal: memtune watch {run}"
    return f"## In progress: {literal(progress.phase)}{done}\n\n{literal(spent)}\n\n{_scores(summary)}"


def _headline(summary: Summary) -> str:
    """The verdict; MLflow folds a description after about four lines, so this is the first."""
    outcome = summary.verdict or ("stopped" if summary.finished else "not finished")
    title = f"## {outcome.capitalize()}"
    if summary.delta is not None and summary.rewritten:
        between = f" ({summary.delta_ci[0]:+.3f} to {summary.delta_ci[1]:+.3f})" if summary.delta_ci else ""
        title = f"{title}: {summary.delta:+.3f}{between}"
    before, after = summary.baseline.get("test"), summary.champion.get("test")
    if summary.rewritten and before is not None and after is not None:
        title = f"{title}, from {before.score:.3f} to {after.score:.3f}"
    explanation = summary.verdict_sentence
    if summary.p_value is not None and summary.rewritten:
        explanation = (
            f"{explanation} Difference in {summary.metric} with its 95 % interval, {p_phrase(summary.p_value)}."
        )
    facts = f"{summary.system} on {summary.dataset} with {summary.model}; {summary.stopped}."
    return f"{title}\n\n{literal(explanation)} {literal(facts)}"


def _scores(summary: Summary) -> str:
    # A list: MLflow shows a table of Markdown as one line.
    lines = []
    for split, label in reversed(SPLIT_TITLES.items()):
        before, after = summary.baseline.get(split), summary.champion.get(split)
        size = f", {summary.splits[split].questions} questions" if split in summary.splits else ""
        ended = f" → champion {_score_text(after)}" if summary.rewritten and after is not None else ""
        lines.append(f"- **{label}**{size}: baseline {_score_text(before)}{ended}")
    return "\n".join(lines)


def _score_text(score: Score | None) -> str:
    if score is None:
        return "–"
    between = f" ({score.ci[0]:.3f} to {score.ci[1]:.3f})" if score.ci else ""
    return f"{score.score:.3f}{between}"


def _diff_block(name: str, before: str, after: str, room: int) -> str:
    title = f"**{literal(name)}**"
    lines = list(_diff(visible(redact(before)), visible(redact(after))))
    longest = max((len(run) for line in lines for run in re.findall(r"`+|~+", line)), default=0)
    # Nothing in it is as long as the fence, so nothing in it ends the block.
    fence = "`" * max(3, longest + 1)
    shown_lines: list[str] = []
    room_left = room - len(title) - 2 * len(fence) - 120
    for line in lines:
        room_left -= len(line) + 1
        if room_left < 0:
            break
        shown_lines.append(line)
    if set(shown_lines) <= {_GAP}:  # a gap alone shows nothing
        return _pointer(name)
    block = "\n".join([f"{fence}diff", *shown_lines, fence])
    rest = (
        ""
        if len(shown_lines) == len(lines)
        else f"\n\n… and {len(lines) - len(shown_lines)} lines more, in the artifact `prompts`"
    )
    return f"{title}\n\n{block}{rest}"


def _pointer(name: str) -> str:
    return f"**{literal(name)}**: too long to show here; the artifact `prompts` has it"


def _diff(before: str, after: str) -> Iterator[str]:
    changes = difflib.unified_diff(before.splitlines(), after.splitlines(), n=_CONTEXT_LINES, lineterm="")
    for number, line in enumerate(changes):
        if number >= 2:  # the first two name files
            yield _GAP if line.startswith("@@") else line
