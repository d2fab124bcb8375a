"""Each story told to the real Mem0, its truth checked against the plan, its wrong answer attributed."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from benchmarks.mem0_failures.story import TRUTH, Failure, Story
from benchmarks.mem0_failures.truth import true_error
from benchmarks.scripted_server import ScriptedServer
from experiments.systems.worker.isolated import environment_of
from tracing.errors import MemtuneError
from tracing.files.loading import load_trace
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Question
from tracing.systems.registry import open_system

ADDING: tuple[Failure, ...] = ("never extracted", "extracted otherwise", "others found", "ignored", "none")
"""What can fail in a Mem0 that makes no decisions (2.x)."""

ALONE, ECHOED = "of one speaker alone", "of the other speaker too"
"""Whether the answer is true of the other speaker as well, who says so."""

_ROOT = Path(__file__).parents[2]


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


def verdicts(stories: Sequence[Story], *, isolated: bool, progress: Callable[[int, int], None]) -> Iterator[Verdict]:
    """Two verdicts for each story that ends wrong: with the turn that says the answer named, and without.

    Args:
        isolated: run Mem0 2 in its own environment, in place of the one that is installed here.

    Raises:
        MemtuneError: what happened is not what was planned, or a right answer was judged wrong.
    """
    for number, story in enumerate(stories):
        progress(number, len(stories))
        graph = recorded(story, isolated=isolated)
        for told in (True, False):
            case = _case(story, graph, told=told)
            if story.failure == "none":
                if not case.passed:
                    raise MemtuneError(f"{story.question}: the right reply {story.reply!r} was judged wrong")
                continue
            yield _verdict(story, told, graph, survival_in(recording_of(graph, "story")).attribute(case))


def recorded(story: Story, *, isolated: bool) -> ExecutionGraph:
    """The trace of a story told to Mem0, once its truth is seen to be the planned one.

    Raises:
        MemtuneError: it is another one.
    """
    model = PlannedModel(story, adds=isolated)
    server = ScriptedServer(model)
    server.embed = model.embed
    sessions = [[turn.spoken for turn in turns] for turns in story.sessions]
    with tempfile.TemporaryDirectory(prefix="memtune-mem0-failures-") as folder:
        path = Path(folder) / "trace.jsonl"
        try:
            drive = _elsewhere if isolated else converse
            store = drive(sessions, story.question, server.base_url, path)
        finally:
            server.close()
        graph = load_trace(path).graph
    planned, true = TRUTH[story.failure], true_error(story, model.exchanges, store)
    if true != (planned and planned[0]):
        raise MemtuneError(f"{story.failure}: {story.question}: Mem0 shows {true} in its store and requests")
    return graph


def _elsewhere(sessions: Sequence[Sequence[str]], question: str, base_url: str, path: Path) -> dict[str, Any]:
    environment = environment_of(open_system("mem0@2"))
    if environment is None:
        raise MemtuneError("mem0@2 has no environment of its own; memtune system install mem0@2")
    story = path.with_name("story.json")
    story.write_text(json.dumps({"sessions": sessions, "question": question}), encoding="utf-8")
    command = [str(environment.interpreter), "-m", "benchmarks.mem0_failures.drive", base_url, str(story), str(path)]
    done = subprocess.run(command, capture_output=True, check=False, text=True, cwd=_ROOT)  # noqa: S603
    if done.returncode != 0:
        raise MemtuneError(f"Mem0 2 failed in {environment.interpreter}: {done.stderr[-600:]}")
    store: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return store


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
