"""Each story told to the real Mem0, its truth checked against the plan, its wrong answer attributed."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attribution.attributor import survival_in
from attribution.cases import Attribution, Case
from attribution.confidence_intervals import wilson_interval
from attribution.judging.words import judge
from attribution.recordings import recording_of
from benchmarks.mem0_failures.drive import converse
from benchmarks.mem0_failures.model import PlannedModel
from benchmarks.mem0_failures.story import FAILURES, TRUTH, Failure, Story
from benchmarks.mem0_failures.truth import true_error
from benchmarks.scripted_server import ScriptedServer
from experiments.systems.worker.isolated import environment_of
from tracing.errors import MemtuneError
from tracing.files.loading import load_trace
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Question
from tracing.systems.registry import open_system

SYSTEMS = ("mem0", "mem0@0.1", "mem0@1.0", "mem0@2")
"""The Mem0 that is installed here, and those with an environment of their own."""

ALONE, ECHOED = "of one speaker alone", "of the other speaker too"
"""Whether the answer is true of the other speaker as well, who says so."""

_ROOT = Path(__file__).parents[2]

Tell = Callable[[Sequence[Sequence[str]], str, str, Path], Mapping[str, Any]]


@dataclass(frozen=True)
class Verdict:
    """What attribution says of a story.

    Attributes:
        told: whether the turn that says the answer was named to it.
        said: the error type that it names, or `abstained`.
        type_right, right: whether that is the true one; and the operation is, in the session in which it failed.
        reason: why, in its words.
    """

    story: Story
    told: bool
    said: str
    type_right: bool
    right: bool
    reason: str


def failures_of(system: str) -> tuple[Failure, ...]:
    """What can fail in this Mem0: no decisions in one that makes none (2.x)."""
    made = {spec.name for spec in open_system(system).operations}
    return tuple(failure for failure in FAILURES if (planned := TRUTH[failure]) is None or planned[1] in made)


def verdicts(stories: Sequence[Story], system: str, progress: Callable[[int, int], None]) -> Iterator[Verdict]:
    """Two verdicts for each story that ends wrong: with the turn that says the answer named, and without.

    Args:
        system: one of `SYSTEMS`.

    Raises:
        ConfigError: it is not installed.
        MemtuneError: what happened is not what was planned, or a right answer was judged wrong.
    """
    adds = "overwritten" not in failures_of(system)
    with telling(system) as tell:
        for number, story in enumerate(stories):
            progress(number, len(stories))
            graph = recorded(story, tell, adds=adds)
            for told in (True, False):
                case = _case(story, graph, told=told)
                if story.failure == "none":
                    if not case.passed:
                        raise MemtuneError(f"{story.question}: the right reply {story.reply!r} was judged wrong")
                    continue
                yield _verdict(story, told, graph, survival_in(recording_of(graph, "story")).attribute(case))


@contextmanager
def telling(system: str) -> Iterator[Tell]:
    """What tells one story after the other to this Mem0, as `converse` does.

    Raises:
        ConfigError: its environment is not installed.
        MemtuneError: it failed there.
    """
    environment = environment_of(open_system(system))
    if environment is None:
        yield converse
        return
    environment.require()
    command = [str(environment.interpreter), "-m", "benchmarks.mem0_failures.drive"]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(command, cwd=_ROOT, stdin=-1, stdout=-1, stderr=errors, encoding="utf-8") as process,  # noqa: S603
    ):
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are piped
        requests, replies = process.stdin, process.stdout

        def tell(sessions: Sequence[Sequence[str]], question: str, base_url: str, path: Path) -> dict[str, Any]:
            story = {"sessions": sessions, "question": question, "base_url": base_url, "path": str(path)}
            requests.write(f"{json.dumps(story)}\n")
            requests.flush()
            reply = replies.readline()
            if not reply:
                errors.seek(0)
                raise MemtuneError(f"{system} failed in {environment.interpreter}: {errors.read()[-3000:]}")
            store: dict[str, Any] = json.loads(reply)
            return store

        yield tell


def recorded(story: Story, tell: Tell, *, adds: bool) -> ExecutionGraph:
    """The trace of a story told to Mem0, once its truth is seen to be the planned one; `adds` as for `PlannedModel`.

    Raises:
        MemtuneError: it is another one, or Mem0 failed.
    """
    model = PlannedModel(story, adds=adds)
    server = ScriptedServer(model)
    server.embed = model.embed
    sessions = [[turn.spoken for turn in turns] for turns in story.sessions]
    with tempfile.TemporaryDirectory(prefix="memtune-mem0-failures-") as folder:
        path = Path(folder) / "trace.jsonl"
        try:
            store = tell(sessions, story.question, server.base_url, path)
        finally:
            server.close()
        graph = load_trace(path).graph
    planned, true = TRUTH[story.failure], true_error(story, model.exchanges, store)
    if true != (planned and planned[0]):
        raise MemtuneError(f"{story.failure}: {story.question}: Mem0 shows {true} in its store and requests")
    return graph


def _case(story: Story, graph: ExecutionGraph, *, told: bool) -> Case:
    session, place = story.needed
    names = (f"D{session + 1}:{place + 1}",) if told else ()
    question = Question(id="q", question=story.question, answers=(story.answer,), evidence=names)
    (answer,) = graph.find_operations(name="answer")
    (prediction,) = answer.output_ids()
    return Case("story", question, story.reply, judge(story.reply, question.answers), prediction)


def _verdict(story: Story, told: bool, graph: ExecutionGraph, attribution: Attribution) -> Verdict:
    main, planned = attribution.main, TRUTH[story.failure]
    if main is None or planned is None:
        return Verdict(story, told, "abstained", False, False, attribution.abstained or "")
    type_right = main.error_type == planned[0]
    step = graph.operations.get(main.operation_id or "")
    session = graph.sessions.get(step.session or "") if step is not None else None
    in_place = story.fault == len(story.sessions) or (session is not None and session.name == f"D{story.fault + 1}")
    right = type_right and main.operation == planned[1] and in_place
    return Verdict(story, told, main.error_type, type_right, right, f"{main.operation}: {main.reason}")


def figures(every: Iterable[Verdict]) -> dict[str, Any]:
    """Shares by what was known and by failure, with 95 % intervals, and how often each type was named; plain JSON."""
    groups: dict[str, dict[str, list[Verdict]]] = defaultdict(lambda: defaultdict(list))
    for verdict in every:
        echoed = ECHOED if verdict.story.echoed else ALONE
        for name in (verdict.story.failure, echoed, "all"):
            groups["turn named" if verdict.told else "answer only"][name].append(verdict)
    return {
        known: {name: _shares(verdicts) for name, verdicts in by_failure.items()}
        for known, by_failure in groups.items()
    }


def _shares(verdicts: Sequence[Verdict]) -> Mapping[str, Any]:
    n = len(verdicts)

    def share(hits: int) -> dict[str, Any]:
        return {"share": hits / n, "ci": list(wilson_interval(hits / n, n))}

    return {
        "n": n,
        "type": share(sum(verdict.type_right for verdict in verdicts)),
        "operation": share(sum(verdict.right for verdict in verdicts)),
        "named": dict(Counter(verdict.said for verdict in verdicts).most_common()),
    }
