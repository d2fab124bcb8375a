"""A run that ended, as an object: its verdict, prompts, cases and blame."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.api.attributed import BLAMED, Attributed, Page, blamed
from experiments.api.starting import Model
from experiments.display.pages import template
from experiments.runs.earlier_names import current_side
from experiments.runs.folder import BASELINE, CHAMPION, REPORT, RunFolder
from experiments.runs.summary import Summary
from optimizer.evaluation.scores import SPLITS
from tracing.files.opening import read_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from attribution.attributor import AttributorFactory
    from attribution.survival.matching.matcher import MatcherFactory
    from experiments.api.tuned_memory import TunedMemory

_CASE = ("prompts", "split", "conversation", "question_id", "kind", "question", "answers", "reply", "score", "passed")


@dataclass(frozen=True)
class Result:
    """A run: everything is read from its folder when it is first used.

    Attributes:
        path: the run's folder.
        home: folder of the caches that the run used.

    Example:
        >>> import memtune
        >>> result = memtune.load("latest")  # doctest: +SKIP
        >>> result.verdict  # doctest: +SKIP
        'improved'
    """

    path: Path
    home: Path

    @property
    def id(self) -> str:
        """The run's id."""
        return self._folder.id

    @cached_property
    def summary(self) -> Summary:
        """Settings, scores by split, rounds, and counts of calls: what `summary.json` holds.

        Raises:
            RunError: the run ended before writing it, or its file is damaged.
        """
        return self._folder.summary()

    @property
    def verdict(self) -> str | None:
        """`improved`, `inconclusive` or `regressed`; with `goal: cheaper` it is `cheaper`, `inconclusive` or `worse`.

        None if the run stopped before the test conversations.
        """
        return self.summary.verdict

    @cached_property
    def prompts(self) -> dict[str, str]:
        """The champion's prompts, text by name; the baseline's if no rewrite was better.

        Raises:
            RunError: they are missing.
        """
        return self._folder.prompts(CHAMPION)

    @cached_property
    def cases(self) -> pd.DataFrame:
        """Every judged question with the baseline prompts and with the champion's, one per row, with the blame for a
        wrong answer. If the champion is the baseline, under the same settings, only the baseline has rows.

        Raises:
            DataError, RunError, TraceError: the run's data or traces no longer exist.
        """
        import pandas as pd

        from experiments.api.attributing import cases_of_run

        split_of = {name: split for split, size in self.summary.splits.items() for name in size.conversations}
        judged = cases_of_run(self._folder)
        lines_of_side = {
            side: {(line.conversation, line.question_id): line for line in self._of(side).attributions.cases.values()}
            for side in dict.fromkeys(side for side, _, _ in judged)
        }
        rows = [
            (
                side,
                split_of.get(case.conversation),
                case.conversation,
                case.question.id,
                case.question.kind,
                case.question.question,
                case.question.answers,
                case.reply,
                case.judgement.score,
                case.passed,
                *blamed(lines_of_side[side].get((case.conversation, case.question.id))).values(),
            )
            for side, _, case in judged
        ]
        return pd.DataFrame(rows, columns=[*_CASE, *BLAMED])

    @property
    def blame(self) -> pd.DataFrame:
        """Each operation's share of what the champion's prompts still get wrong (`Attributed.blame`)."""
        return self._of("champion").blame

    def attribute(
        self,
        *,
        method: str | AttributorFactory = "survival",
        matcher: str | MatcherFactory = "words",
        model: Model | None = None,
        traces_of: str = "champion",
    ) -> Attributed:
        """Attribute the run's wrong answers.

        Args:
            method: `survival`, which asks no model, or your own, as `module:Object` or itself.
            matcher: what decides whether a text carries what an answer needs: `words` or `llm`.
            model: the model to ask.
            traces_of: whose answers, `baseline` or `champion`.

        Raises:
            ConfigError, DataError, RunError: an argument is invalid, or the run cannot be read.
        """
        from experiments.api.attributing import attributed

        result = attributed(self.path, self.home, method=method, matcher=matcher, model=model, traces_of=traces_of)
        return replace(result, title=f"{self.id}: the {current_side(traces_of, 'all')} prompts")

    def memory(self, prompts: str = CHAMPION) -> TunedMemory:
        """The run's memory system with its champion's prompts and settings, or with the baseline's.

        Programs that measure memories tell it turns and ask it; Bench'd takes it as an adapter (docs/data-format.md).

        Args:
            prompts: `champion` or `baseline`.

        Raises:
            ConfigError, RunError: the system or its prompts cannot be opened.

        Example:
            >>> BenchmarkRunner(memtune.load("latest").memory(), get_benchmark("locomo-v1")).run()  # doctest: +SKIP
        """
        from experiments.api.tuned_memory import TunedMemory

        return TunedMemory(self._folder, self.home, current_side(prompts))

    def plot_loss(self, ax: Axes | None = None) -> Axes:
        """Draw where information was lost, operation by operation, under the baseline prompts and the champion's.

        Args:
            ax: matplotlib axes to draw on; new ones by default.

        Raises:
            ConfigError: matplotlib is missing.
            DataError, RunError, TraceError: the run's data or traces no longer exist.

        Example:
            >>> axes = result.plot_loss()  # doctest: +SKIP
            >>> axes.figure.savefig("loss.svg")  # doctest: +SKIP
        """
        from experiments.api.plots import loss_plot

        sides: tuple[str, ...] = (BASELINE, CHAMPION) if self.summary.rewritten else (BASELINE,)
        return loss_plot([(side, self._of(side).lost) for side in sides], ax)

    def plot_scores(self, ax: Axes | None = None) -> Axes:
        """Draw gain against cost of all attempts on whole conversations, and what the test says of the champion.

        Args:
            ax: matplotlib axes to draw on; new ones by default.

        Raises:
            ConfigError: matplotlib is missing.
            RunError: nothing was tried on whole conversations.

        Example:
            >>> axes = result.plot_scores()  # doctest: +SKIP
            >>> axes.figure.savefig("scores.svg")  # doctest: +SKIP
        """
        from experiments.api.plots import scores_plot

        return scores_plot(self.summary, ax)

    @property
    def report(self) -> Page:
        """The run's report, `report.html` in its folder.

        Raises:
            RunError: the run ended before writing it.
        """
        path = self.path / REPORT
        return Page(read_text(path, "the run ended before writing it"), path)

    @property
    def _folder(self) -> RunFolder:
        return RunFolder(self.path)

    @cached_property
    def _attributions_by_side(self) -> dict[str, Attributed]:
        return {}

    def _of(self, prompts: str) -> Attributed:
        if prompts not in self._attributions_by_side:
            self._attributions_by_side[prompts] = self.attribute(traces_of=prompts)
        return self._attributions_by_side[prompts]

    def __repr__(self) -> str:
        delta = "" if self.summary.delta is None else f" by {self.summary.delta:+.3f}"
        return f"Result({self.id!r}: {self.verdict or 'no verdict'}{delta})"

    def _repr_html_(self) -> str:
        baseline = self._folder.prompts(BASELINE)
        changed = [name for name, text in self.prompts.items() if baseline.get(name) != text]
        here = Path.cwd()
        path = self.path.relative_to(here) if self.path.is_relative_to(here) else self.path
        return template("result.html").render(run=self.summary, splits=SPLITS, changed=changed, path=path)
