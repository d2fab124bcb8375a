"""A run on the terminal: progress on stderr; results as tables, and what was found and changed, on stdout."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from operator import itemgetter
from typing import TYPE_CHECKING

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from experiments.display.literal_console import LiteralConsole, styled
from experiments.display.progress import CallsColumn, FailedColumn, progress_on
from experiments.display.terminal import shortened
from experiments.runs.folder import RunFolder
from experiments.runs.intervals import interval_text, money_text, p_phrase
from experiments.runs.summary import Summary, SummaryJudge
from optimizer.evaluation.scores import SPLITS, Score, SplitName
from optimizer.evaluation.statistics import p_text
from optimizer.gating.verdict import Verdict
from optimizer.tuning.round import AcceptedEdit, Change, ChangedCase, RewriteRecord, RoundRecord
from tracing.errors import RunError

if TYPE_CHECKING:
    from rich.live import Live

    from attribution.signals import Signal
    from experiments.runs.comparison import RunComparison
    from tracing.llm.accounting.budget import Budget

DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
VERDICT_STYLES = {
    **dict.fromkeys(("improved", "cheaper"), "bold green"),
    "inconclusive": "bold yellow",
    **dict.fromkeys(("regressed", "worse"), "bold red"),
}
_EXAMPLES = 2
"""Questions that are shown of those an edit fixed, and of those it broke."""
_LONGEST_REPLY = 60
"""Characters of a reply on the last screen; `report.html` has it whole."""
_MOST_DIFF_LINES = 24


class RunView:
    """An observer that shows a run as it goes, line by line, with the phase it is in.

    Args:
        console: to print on.
        progress: of the phase.
        live: what is drawn below the lines, and has to pause while people are asked; `progress` by default.
    """

    def __init__(self, console: LiteralConsole, progress: Progress, live: Live | None = None) -> None:
        self._console, self._progress, self._live = console, progress, live or progress
        self._task: TaskID | None = None
        self._phase, self._done = "", 0
        self._budget: Budget | None = None
        self._asked_again: Mapping[str, str] = {}

    def watch(self, budget: Budget) -> None:
        """Show with each phase how many calls were made so far."""
        self._budget = budget

    def line(self, text: str) -> None:
        """Print a line above what is drawn."""
        self._say(text)

    def baseline(self, split: SplitName, score: Score) -> None:
        interval = (f" ({interval_text(score.ci, between=' to ')})", "dim")
        title = (split, "bold")
        self._say("baseline ", title, f": {score.score:.3f}", interval, f" over {score.n} questions")

    def blame(self, n: int, signals: Sequence[Signal]) -> None:
        if not signals:
            self._say(f"round {n}: no wrong answer to attribute")
            return
        parts = ", ".join(f"{signal.operation} {signal.share:.0%}" for signal in signals if signal.failures)
        self._say(f"round {n}: blame: {parts or 'none'}")

    def round(self, record: RoundRecord) -> None:
        edited = ", ".join(record.edited)
        plural = "" if record.proposals == 1 else "s"
        tried = f"tried {record.proposals} rewrite{plural} of {edited}" if edited else "no prompt was rewritten"
        self._say(
            f"round {record.n}: {tried}, ",
            ("accepted" if edited else "other settings accepted", "green") if record.accepted else "kept the champion",
            f"; validation {record.validation_score:.3f}",
            (f" ({record.calls_made} calls, {record.calls_cached} from cache)", "dim"),
        )
        for rewrite in record.rewrites if record.accepted else ():
            # What was accepted together has no line for each.
            if rewrite.gate is not None and rewrite.gate.accepted and not rewrite.gate.about:
                self._say(f"round {record.n}: {rewrite.prompt} by {rewrite.source} {rewrite.gate}")
        closest = None if record.accepted else _closest(record.rewrites)
        if closest is not None:
            why = closest.gate or f"{closest.local:+.3f} on recorded inputs, so nothing was asked with it"
            self._say(f"round {record.n}: closest was {closest.prompt} by {closest.source}: {why}")
        if record.settings_sentence:
            self._say(f"round {record.n}: {record.settings_sentence}")
        for name, sentence in record.asked_again.items():
            if self._asked_again.get(name) != sentence:
                self._say(f"round {record.n}: {sentence}")
        self._asked_again = {**self._asked_again, **record.asked_again}
        for name, alignment in record.alignment.items():
            if alignment.misleads:
                self._say(
                    f"round {record.n}: what {name} gains on recorded inputs does not predict the answers; its "
                    "rewrites are compared end to end from now on"
                )

    def verdict(self, verdict: Verdict) -> None:
        by = " by" if verdict.margin is None else ", score"
        self._say("test: ", (verdict.verdict, VERDICT_STYLES[verdict.verdict]), f"{by} {verdict.delta:+.3f}")

    def approve(self, change: Change, before: str) -> bool:
        """Show what an accepted change is, and ask whether it becomes the champion.

        Raises:
            KeyboardInterrupt: Ctrl-C, or the end of the input, instead of an answer.
        """
        self._live.stop()
        if isinstance(change, RewriteRecord):
            self._say((change.prompt, "bold"), f", {change.source}: {change.reason} ({change.gate or ''})")
        else:
            self._say(("settings", "bold"), f" of the memory system ({change.gate or ''})")
        for line in unified_diff(before.splitlines(), change.text.splitlines(), "champion", "rewrite", lineterm=""):
            self._say((line, DIFF_STYLES.get(line[:1], "")))
        try:
            answer = click.confirm("make it the champion?", err=True)
        except click.Abort:
            # To all but click's own commands this is an error like any other.
            raise KeyboardInterrupt from None
        self._live.start()
        return answer

    def progress(self, phase: str, completed: int, total: int, failed: int = 0) -> None:
        """Show the progress of a phase: `done` of `total`, and separately how many failed."""
        # A phase that measures one thing after another begins again, and a task that has ended does not.
        if self._task is None or phase != self._phase or completed < self._done:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._task = self._progress.add_task(phase, total=total, budget=self._budget)
            self._phase = phase
        self._done = completed
        self._progress.update(self._task, completed=completed, total=total, failed=failed)

    def _say(self, *parts: str | tuple[str, str]) -> None:
        self._console.print(styled(*parts))


def _closest(rewrites: Sequence[RewriteRecord]) -> RewriteRecord | None:
    """Of the rewrites that the gate decided on, the one that gained most end to end.

    If there is none, and none gained on recorded inputs either, the one that lost least there.
    """
    decided = [rewrite for rewrite in rewrites if rewrite.gate is not None]
    if decided:
        return max(decided, key=lambda rewrite: -math.inf if rewrite.screening is None else rewrite.screening)
    measured = [(rewrite.local, rewrite) for rewrite in rewrites if rewrite.local is not None]
    gain, closest = max(measured, key=lambda candidate: candidate[0], default=(math.inf, None))
    return closest if gain <= 0 else None


@contextmanager
def run_view(*, quiet: bool = False, stderr: bool = True) -> Iterator[RunView]:
    """A view of a run: with a live progress bar on a terminal, with lines of progress elsewhere."""
    console = LiteralConsole(stderr=stderr, quiet=quiet)
    with progress_on(
        console, BarColumn(), MofNCompleteColumn(), FailedColumn(), CallsColumn(), TimeElapsedColumn()
    ) as progress:
        yield RunView(console, progress)


def plain_table(title: str | None = None, *, gap: int = 1) -> Table:
    """A table without a frame, for a terminal of 80 columns; `gap` spaces separate its columns."""
    return Table(title=title, box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")


def result_table(summary: Summary) -> Table:
    """The scores of a run, baseline beside champion; `n` counts questions, `tokens` are what a test question costs."""
    table = plain_table()
    for name in ("split", "prompts", "score", "95 % interval", "EM", "F1", "contained", "n", "tokens"):
        table.add_column(name, justify="left" if name in ("split", "prompts") else "right", no_wrap=True)
    for split in SPLITS:
        for side, scores in (("baseline", summary.baseline), ("champion", summary.champion)):
            if split in scores:
                cost = summary.tokens_per_question.get(side) if split == "test" else None
                table.add_row(split, side, *score_cells(scores[split]), f"{cost:,.0f}" if cost is not None else "–")
    return table


def score_cells(score: Score) -> tuple[str, ...]:
    """A score as the cells of a table: primary metric, interval, EM, F1, contained, questions."""
    return (
        f"{score.score:.3f}",
        interval_text(score.ci),
        f"{score.em:.3f}",
        f"{score.f1:.3f}",
        f"{score.contains:.3f}",
        str(score.n),
    )


def verdict_lines(summary: Summary, power: float | None) -> list[Text]:
    """The verdict in words, and what the run cost."""
    lines = []
    if summary.verdict and summary.delta is not None and summary.p_value is not None:
        count = len(summary.splits["test"].conversations)
        interval = f"95 % {interval_text(summary.delta_ci, '+.3f', between=' to ')}, " if summary.delta_ci else ""
        # Without an effect there is no power to report.
        chance = f", power {power:.2f}" if power is not None and summary.delta and summary.margin is None else ""
        explanation = (
            f": {summary.delta:+.3f} on test ({interval}{p_phrase(summary.p_value)}{chance}, "
            f"{count} conversation{'s' if count != 1 else ', which gives no interval'})"
            if summary.rewritten
            else ": the champion is the baseline prompts, so there is no difference to test"
        )
        lines.append(styled((summary.verdict, VERDICT_STYLES[summary.verdict]), explanation))
    else:
        lines.append(styled(("no verdict", "bold"), ": the run stopped before the champion met the test conversations"))
    judge = judge_line(summary.judge) if summary.judge is not None else None
    sentences = summary.saving_sentence, summary.gain_sentence, summary.settings_sentence, summary.form_sentence
    others = summary.noise_sentence, judge, *summary.endpoint_sentences
    lines += [styled(sentence) for sentence in (*sentences, *others) if sentence is not None]
    calls = summary.calls
    spending = f"calls: {calls.made:,} made, {calls.cached:,} from cache; {calls.without_reuse:,} without reuse"
    if calls.money is not None:
        spending += f"; money {money_text(calls.money)}"
    if calls.estimated_sentence is not None:
        spending += f"; {calls.estimated_sentence}"
    lines.append(styled(spending))
    lines += [styled((sentence, "yellow")) for sentence in calls.cut_prompts]
    unusable = calls.unusable_replies
    if unusable.sentence is not None:
        lines.append(styled((unusable.warning() or unusable.sentence, "yellow" if unusable.warning() else "")))
    return [*lines, styled(f"stopped: {summary.stopped}")]


def difference_line(verdict: Verdict, conversations: int) -> Text:
    """The difference between two candidates on the same conversations."""
    interval = f"95 % {interval_text(verdict.delta_ci, '+.3f', between=' to ')}, " if verdict.delta_ci else ""
    units = f"{conversations} conversation{'s' if conversations != 1 else ''}"
    explanation = f": {verdict.delta:+.3f} ({interval}{p_phrase(verdict.p_value)}, {units})"
    return styled((verdict.verdict, VERDICT_STYLES[verdict.verdict]), explanation)


def judge_line(judge: SummaryJudge) -> str:
    """Who judged, and how it agrees with the judging by words."""
    agreed = judge.agreement.get("held_out") or judge.agreement.get("train")
    share = f"{agreed.accuracy:.0%} of {agreed.n}" if agreed else "none to compare"
    kappa = f", kappa {agreed.kappa:.2f}" if agreed and agreed.kappa is not None else ""
    return (
        f"judge: {judge.model} by {judge.mode}, agrees with {judge.compared_with} on {share}{kappa}; "
        f"abstained from {judge.abstained} of {judge.judged}"
    )


def runs_table(runs: Sequence[tuple[RunFolder, Summary | RunError]]) -> Table:
    """Runs, the latest first, each with what was run under its id; the scores are those of the test conversations, and
    under the verdict stands the operation that is blamed most.

    It fits a terminal of 80 columns.
    """
    table = plain_table()
    table.add_column("run", overflow="fold")
    for name, width in (("baseline", 8), ("champion", 8), ("delta", 6), ("p", 7)):
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    table.add_column("verdict", overflow="fold", min_width=12)
    for folder, summary in runs:
        if isinstance(summary, RunError):
            table.add_row(folder.id, *["–"] * 4, styled(("unreadable" if folder.has_summary else "unfinished", "red")))
            continue
        baseline, champion = (scores.get("test") for scores in (summary.baseline, summary.champion))
        table.add_row(
            styled(folder.id, (f"\n{summary.system} on {summary.dataset}, {summary.model}", "dim")),
            f"{baseline.score:.3f}" if baseline else "–",
            f"{champion.score:.3f}" if champion else "–",
            "–" if summary.delta is None else f"{summary.delta:+.3f}",
            p_text(summary.p_value),
            styled(
                (summary.verdict or summary.ended.heading, VERDICT_STYLES.get(summary.verdict or "", "yellow")),
                (f"\n{_most_blamed(summary)}", "dim"),
            ),
        )
    return table


def _most_blamed(summary: Summary) -> str:
    """The operation with most of the wrong answers that the run began with."""
    blame = next((record.blame for record in summary.rounds if record.blame), {})
    operation, share = max(((name, part.share) for name, part in blame.items()), key=itemgetter(1), default=("", 0))
    return f"blame: {operation} {share:.0%}" if share else ""


def comparison_table(comparison: RunComparison) -> Table:
    """Runs side by side under their names; two fit a terminal of 80 columns."""
    table = plain_table()
    table.add_column("", no_wrap=True, min_width=max(len(row[0]) for row in comparison.rows))
    for name in comparison.names:
        table.add_column(name, overflow="fold")
    for row in comparison.rows:
        table.add_row(*row)
    return table


def comparison_lines(comparison: RunComparison) -> Iterator[Text]:
    """How each further run differs from the first, on test first; which prompts differ; what cannot be compared."""
    for split in comparison.splits:
        for place, verdict in enumerate(split.differences, 1):
            changed = [flip for flip in split.flips if flip.replies[0].passed != flip.replies[place].passed]
            lost = sum(flip.replies[0].passed for flip in changed)
            yield styled((f"{comparison.names[place]} against {comparison.names[0]}, {split.split}:", "bold"))
            yield styled("  ").append_text(difference_line(verdict, split.conversations))
            yield styled(
                f"  of {split.questions} questions ",
                (f"{len(changed) - lost} turned right ✓", "green" if len(changed) > lost else "dim"),
                ", ",
                (f"{lost} turned wrong ✗", "red" if lost else "dim"),
            )
    for problem in comparison.unread:
        yield styled((f"The questions are not compared: {problem}", "yellow"))
    if comparison.differences:
        differences = ", ".join(comparison.differences)
        yield styled((f"The runs differ in {differences}: their scores are not comparable.", "yellow"))
    for name, same in comparison.prompts.items():
        yield styled(f"prompt {name}: ", ("no difference", "dim") if same else ("differs", "yellow"))


def change_lines(summary: Summary) -> Iterator[Text]:
    """Whose fault the wrong answers were, and what each accepted edit changed, fixed and broke."""
    first = next((record for record in summary.rounds if record.blame), None)
    if first is not None:
        shares = sorted(first.blame.items(), key=lambda pair: -pair[1].share)
        text = ", ".join(f"{operation} {blame.share:.0%}" for operation, blame in shares if blame.share)
        yield styled(("blame", "bold"), f": {text or 'none'} of the wrong answers of train")
    for record in summary.rounds:
        if record.edit is not None:
            yield from _edit_lines(record.edit)


def _edit_lines(edit: AcceptedEdit) -> Iterator[Text]:
    for prompt, diff in edit.diffs.items():
        yield styled(("accepted", "bold"), f": {prompt}")
        lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++", "@@"))]
        for line in lines[:_MOST_DIFF_LINES]:
            yield styled((f"  {line}", DIFF_STYLES.get(line[:1], "dim")))
        if len(lines) > _MOST_DIFF_LINES:
            yield styled((f"  … {len(lines) - _MOST_DIFF_LINES} more lines in the report", "dim"))
    yield styled(
        f"of {edit.compared} questions of the search it fixed {len(edit.fixed)} and broke {len(edit.broken)}:"
        if edit.fixed or edit.broken
        else f"of {edit.compared} questions of the search it changed the judgement of none"
    )
    yield from _case_lines("fixed", "green", edit.fixed)
    yield from _case_lines("broke", "red", edit.broken)


def _case_lines(word: str, style: str, cases: Sequence[ChangedCase]) -> Iterator[Text]:
    for case in cases[:_EXAMPLES]:
        yield styled(f"  {case.asked}")
        yield styled("    ", (word, style), f": {_reply(case.before)} → {_reply(case.after)}")


def _reply(text: str) -> str:
    return f"“{shortened(' '.join(text.split()), _LONGEST_REPLY)}”"
