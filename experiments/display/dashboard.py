"""The state of a run on a terminal while it works, below the lines that tell what has happened."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from attribution.signals import Signal
from experiments.display.literal_console import LiteralConsole, styled
from experiments.display.progress import DescriptionColumn, FailedColumn
from experiments.display.tables import DIFF_STYLES, RunView, run_view
from experiments.display.terminal import one_line, shortened
from experiments.interrupts import interrupts_shown_by
from experiments.runs.intervals import interval_text, money_text
from optimizer.evaluation.scores import SPLITS, Interval, Score, SplitName
from optimizer.gating.verdict import Verdict
from optimizer.tuning.round import RoundRecord
from tracing.llm.accounting.budget import Budget

MOST_OPERATIONS, MOST_DIFF_LINES, BAR, LONGEST_NAME = 6, 8, 16, 24
OTHER_LINES = 19
"""Lines that everything but the difference takes at most, on a terminal of 80 columns."""
REDRAWN_PER_SECOND = 2.0
HINT = "Ctrl-C finishes the calls under way and saves"


class TimeLeft:
    """Expects further rounds to take what those so far took on average, and the test what the baselines took.

    The test scores the baseline first, and then a champion other than that, which is expected to take as long.

    Args:
        rounds: rounds of the run; None if that is open: then nothing is expected before the test.
        clock: in seconds; the run begins now.
    """

    def __init__(self, rounds: int | None, clock: Callable[[], float]) -> None:
        self._rounds, self._clock = rounds, clock
        self._last = clock()
        self._baselines = self._searched = 0.0
        self._done = 0
        self._accepted = False
        self._test: float | None = None
        self._tested = False

    def scored(self, split: SplitName) -> None:
        """The baseline prompts were scored on a split; that of the test comes after the last round."""
        took = self._since()
        self._baselines += took
        if split == "test":
            self._test = took if self._accepted else 0.0

    def tested(self) -> None:
        """The test ended; how long it takes to save the run is not known."""
        self._tested = True

    def round(self, number: int, *, accepted: bool) -> None:
        """A round ended; optimizers side by side make more of them than were asked for."""
        self._searched += self._since()
        self._accepted |= accepted
        self._done = number
        if self._rounds is not None:
            self._rounds = max(self._rounds, number)

    def seconds(self, allowed: float | None) -> float | None:
        """Seconds left, at most `allowed`, the rest of a time budget; None if they are not known."""
        if self._tested:
            return None
        running = self._clock() - self._last
        expected: float | None = None
        if self._test is not None:
            expected = max(0.0, self._test - running)
        elif self._done > 0 and self._rounds is not None:
            round_s = self._searched / self._done
            expected = max(0.0, (self._rounds - self._done) * round_s - running) + self._baselines
        return min((limit for limit in (expected, allowed) if limit is not None), default=None)

    def _since(self) -> float:
        now = self._clock()
        took, self._last = now - self._last, now
        return took


class Dashboard:
    """An observer that remembers what a run has told, and draws it.

    Args:
        rounds: rounds of the run; None if that is open.
        progress: of its phase, drawn below.
        clock: seconds; the run begins when the dashboard does.
    """

    def __init__(self, rounds: int | None, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._rounds, self._progress, self._clock = rounds, progress, clock
        self._begun = clock()
        self._left = TimeLeft(rounds, clock)
        self._budget: Budget | None = None
        self._round = 0
        self._baseline: dict[SplitName, Score] = {}
        self._champion: tuple[float, Interval | None] | None = None
        self._signals: Sequence[Signal] = ()
        self._record: RoundRecord | None = None
        self._accepted: RoundRecord | None = None
        self._note: str | None = None

    def note(self, text: str) -> None:
        """Show a text below all else."""
        self._note = text

    def watch(self, budget: Budget) -> None:
        self._budget = budget

    def baseline(self, split: SplitName, score: Score) -> None:
        self._baseline = {**self._baseline, split: score}
        self._left.scored(split)

    def blame(self, n: int, signals: Sequence[Signal]) -> None:
        self._round, self._signals = n, sorted(signals, key=lambda signal: -signal.share)

    def round(self, record: RoundRecord) -> None:
        self._round, self._record = record.n, record
        self._champion = record.validation_score, record.validation_ci
        if record.edit is not None:
            self._accepted = record
        self._left.round(record.n, accepted=record.accepted)

    def verdict(self, verdict: Verdict) -> None:
        """The end of the run tells which it is."""
        self._left.tested()

    def progress(self, phase: str, completed: int, total: int, failed: int = 0) -> None:
        """The phase is drawn by the bar of progress."""

    def __rich__(self) -> RenderableType:
        parts: list[RenderableType] = [Rule(style="dim"), *self._heading(), *self._scores()]
        if self._signals:
            parts.append(self._blame())
        parts += self._alignment()
        if self._accepted is not None:
            parts += self._edit(
                self._accepted, min(MOST_DIFF_LINES, max(0, self._progress.console.height - OTHER_LINES))
            )
        # The last line is short: on Ctrl-C the terminal writes ^C after it, which must not begin another line.
        note = (f"memtune: {self._note}", "bold yellow") if self._note is not None else (HINT, "dim")
        return Group(*parts, self._progress, styled(note))

    def _heading(self) -> Iterator[Text]:
        budget = self._budget
        seconds_left = self._left.seconds(budget.remaining_time()[0] if budget is not None else None)
        of = "" if self._rounds is None else f" of {max(self._round, self._rounds)}"
        turn = f"round {self._round}{of}" if self._round else "before round 1"
        expected = "–" if seconds_left is None else f"about {_minutes(seconds_left)}"
        yield styled((f"{turn} · {_minutes(self._clock() - self._begun)} · time left: {expected}", "bold"))
        if budget is not None:
            spent, limits = budget.spent, budget.limits
            spending = [
                _of(f"{spent.calls:,}", limits.calls, "calls"),
                _of(f"{spent.tokens:,}", limits.tokens, "tokens"),
            ]
            if spent.money or limits.money is not None:
                spending.append(_of(money_text(spent.money), limits.money, "money"))
            yield styled("spent: ", " · ".join(spending))

    def _scores(self) -> Iterator[Text]:
        baseline = [(split, self._baseline[split]) for split in SPLITS if split in self._baseline]
        parts = [part for split, score in baseline for part in _score(split, score.score, score.ci)]
        yield styled("baseline prompts: ", *(parts or [("being scored", "dim")]))
        if self._champion is not None:
            yield styled("champion:         ", *_score("validation", *self._champion))

    def _blame(self) -> Table:
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
        for signal in [signal for signal in self._signals if signal.failures][:MOST_OPERATIONS]:
            bar = "█" * round(signal.share * BAR)
            interval = f"{signal.share_ci[0]:.0%}–{signal.share_ci[1]:.0%}"
            table.add_row(
                _short(signal.operation),
                styled((bar.ljust(BAR, "·"), "red" if signal.fixable else "dim")),
                styled(f"{signal.share:.0%}".rjust(4), (f" ({interval})", "dim")),
                styled((f"{signal.failures} failures" + ("" if signal.fixable else ", no prompt can fix it"), "dim")),
            )
        return table

    def _alignment(self) -> Iterator[Text]:
        alignments = self._record.alignment if self._record is not None else {}
        correlations = [
            f"{_short(name)} {alignment.correlation:+.2f}"
            + (f" ({alignment.ci[0]:+.2f} to {alignment.ci[1]:+.2f})" if alignment.ci is not None else "")
            + (", misleads" if alignment.misleads else "")
            for name, alignment in alignments.items()
            if alignment.correlation is not None
        ]
        if correlations:
            yield styled("recorded inputs predict the answers: ", "; ".join(correlations))

    def _edit(self, record: RoundRecord, most: int) -> Iterator[Text]:
        edit = record.edit
        if edit is None:
            return
        counts = f"{len(edit.fixed)} fixed, {len(edit.broken)} broken of {edit.compared}"
        yield styled((f"accepted in round {record.n}: {counts}", "green"))
        lines = [
            line
            for name, difference in edit.diffs.items()
            for line in (f"@ {name}", *(row for row in difference.splitlines()[2:] if row[:1] in "+-"))
        ]
        for line in lines[:most]:
            text = styled((f"  {one_line(line)}", DIFF_STYLES.get(line[:1], "")))
            text.no_wrap, text.overflow = True, "ellipsis"
            yield text
        if len(lines) > most:
            yield styled((f"  … and {len(lines) - most} more lines", "dim"))


@contextmanager
def live_run(rounds: int | None, *, quiet: bool = False) -> Iterator[tuple[RunView, tuple[RunView | Dashboard, ...]]]:
    """A view of `memtune run` on stderr, and all observers that it needs.

    On a terminal lines are printed above a dashboard; elsewhere there are lines of progress, as for other commands.
    """
    console = LiteralConsole(stderr=True)
    with ExitStack() as stack:
        if quiet or not console.is_terminal:
            view = stack.enter_context(run_view(quiet=quiet))
            yield view, (view,)
            return
        columns = DescriptionColumn(), BarColumn(), MofNCompleteColumn(), FailedColumn(), TimeElapsedColumn()
        progress = Progress(*columns, console=console)
        dashboard = Dashboard(rounds, progress)
        live = Live(dashboard, console=console, refresh_per_second=REDRAWN_PER_SECOND, transient=True)
        stack.enter_context(live)
        stack.enter_context(interrupts_shown_by(dashboard.note))
        view = RunView(console, progress, live)
        yield view, (view, dashboard)


def _score(title: str, score: float, ci: Interval | None) -> tuple[str | tuple[str, str], ...]:
    return f"{title} ", (f"{score:.3f}", "bold"), (f" ({interval_text(ci)})  ", "dim")


def _of(spent: str, limit: float | None, name: str) -> str:
    return f"{spent} {name}" if limit is None else f"{spent} of {limit:,g} {name}"


def _minutes(seconds: float) -> str:
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    minutes, rest = divmod(rounded, 60)
    return f"{minutes}:{rest:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"


def _short(name: str) -> str:
    return shortened(one_line(name), LONGEST_NAME)
