"""Checking the blames of a run's wrong answers by replay: its own system, prompts, models and judge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attribution.replay.replay_method import Checked, Replay
from attribution.survival.matching.matcher import WORDS, open_matcher
from attribution.text.content import text_of
from experiments.data.loaders import load_dataset
from experiments.running.judging import calibrate_judge
from experiments.running.parts import open_evaluator
from experiments.runs.config_file import load_config
from experiments.runs.folder import CONFIG, RunFolder

if TYPE_CHECKING:
    from attribution.recordings import Recording
    from experiments.attributing.batch import Make
    from tracing.graph.execution_graph import ExecutionGraph
    from tracing.llm.access import ModelAccess
    from tracing.systems.prompts import Candidate


@contextmanager
def checked_by_replay(
    make: Make, name: str, home: Path, prompts: str, *, calls: int | None
) -> Iterator[tuple[Make, ModelAccess]]:
    """An attribution method whose blames are replayed, and the models it uses, which are closed at the end.

    The run's own calls are answered from the home's cache, so a check costs only the calls downstream of a repair. The
    run is named by its id, `latest` (finished), its folder, or a trace in it. A trace is run with the prompts that it
    was made with; `prompts` (`baseline` or `champion`) is for what it does not show.

    Raises:
        RunError: no such run.
        ConfigError, DataError, WeightsError: its data or models are not available.
        ModelError: the judge's model fails.
    """
    path = Path(name)
    folder = RunFolder.find(home, str(path.resolve().parent.parent.parent) if path.is_file() else name, finished=True)
    config = load_config(str(folder.path / CONFIG), overrides={"budget.calls": calls})
    with open_evaluator(config, home) as evaluator:
        # The threshold is fitted on what it was fitted on in the run.
        calibrate_judge(evaluator, folder.prompts("baseline"), load_dataset(config).splits.train)
        candidate = folder.prompts(prompts)

        matcher = None if config.matcher == WORDS else open_matcher(config.matcher)

        def checked(recording: Recording) -> Checked:
            replay = Replay(
                evaluator.system,
                {**candidate, **_recorded_prompts(recording.graph, candidate)},
                evaluator.access,
                recording.conversation,
                evaluator.judged,
                graph=recording.graph,
                matcher=matcher,
            )
            return Checked(make(recording), replay)

        yield checked, evaluator.access


def _recorded_prompts(graph: ExecutionGraph, candidate: Candidate) -> Candidate:
    """The prompts that a trace was made with, as far as it shows them."""
    prompts = graph.find_variables(kind="prompt")
    return {prompt.name: text_of(prompt.value) for prompt in prompts if prompt.name in candidate}
