"""Where wrong answers come from: a trace that was judged or annotated, or one whose questions a data set knows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from attribution.cases import Case
from attribution.content import text_of
from attribution.failures import case_of, failed_cases
from attribution.judge import METRICS, by_words, judge
from attribution.recordings import Recording, conversation_of, operations_of
from experiments.config import load_config
from experiments.folder import CONFIG, TRACES, RunFolder
from tracing.errors import DataError, MemtuneError, TraceError
from tracing.graph import ExecutionGraph
from tracing.loading import load_trace

if TYPE_CHECKING:
    from tracing.systems.conversations import Conversation
    from tracing.systems.protocol import OperationSpec

_START = 4096


@dataclass(frozen=True, slots=True)
class Found:
    """What a trace holds.

    Attributes:
        recording: to attribute from.
        cases: its judged questions; of a graph that only tells its failures, these.
        problem: what is wrong with the trace; None where nothing is.
        system_known: whether the operations are the system's own account and not read off the graph.
    """

    recording: Recording
    cases: tuple[Case, ...]
    problem: str | None
    system_known: bool = False


@dataclass(frozen=True)
class Judging:
    """The questions that a data set has for conversations, how replies are judged, and the system that was traced."""

    conversations: Mapping[str, Conversation]
    metric: str = METRICS[0]
    operations: tuple[OperationSpec, ...] = ()


@dataclass(frozen=True)
class Source:
    """One trace file, and what knows the questions asked in it."""

    path: Path
    judging: Judging | None = None

    @cached_property
    def digest(self) -> str:
        """Start of the SHA-256 of its content."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()[:16]

    def read(self) -> Found:
        """Its recording and cases.

        Raises:
            TraceError: it cannot be read, or nothing tells which of its answers are wrong.
        """
        graph, problem = read_graph(self.path)
        if self.judging is not None and self.path.stem in self.judging.conversations:
            return self._judged(graph, self.judging, problem)
        name = self.path.stem
        recording = Recording(graph, conversation_of(graph, name), operations_of(graph))
        cases = _annotated(recording) or failed_cases(recording)
        if not cases and not any(one.kind == "judge_score" for one in graph.variables.values()):
            why = problem or f"{self.path}: no judge and no annotation tells which of its answers are wrong"
            raise TraceError(f"{why}; give a run, or --data with the questions of conversation {name}")
        return Found(recording, tuple(cases), problem)

    def _judged(self, graph: ExecutionGraph, judging: Judging, problem: str | None) -> Found:
        conversation = judging.conversations[self.path.stem]
        recording = Recording(graph, conversation, judging.operations or operations_of(graph))
        replies = {}
        for prediction in graph.find_variables(kind="prediction"):
            session = graph.sessions.get(prediction.session or "")
            if session is not None:
                replies[session.name] = prediction
        cases = []
        for question in conversation.questions:
            reply = replies.get(question.id)
            if reply is not None:
                said = text_of(reply.value)
                judgement = judge(said, question.answers, judging.metric)
                cases.append(Case(conversation.id, question, said, judgement, reply.id))
        missing = len(conversation.questions) - len(cases)
        if missing and problem is None:
            problem = f"{self.path}: {missing} of {len(conversation.questions)} questions have no answer in it"
        return Found(recording, tuple(cases), problem, system_known=bool(judging.operations))


def read_graph(path: Path) -> tuple[ExecutionGraph, str | None]:
    """The graph of a trace file, ours or smartcomment's, and what is wrong with the file.

    Raises:
        TraceError: it cannot be read as either.
    """
    try:
        with path.open("rb") as file:
            start = file.read(_START)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read ({error.strerror}); give the path of a trace") from None
    if path.suffix == ".json" or (start.lstrip()[:1] == b"{" and b'"type"' not in start.partition(b"\n")[0]):
        from tracing.interchange import smartcomment

        imported = smartcomment.read(path)
        return imported.graph, None
    loaded = load_trace(path)
    return loaded.graph, loaded.problem


def sources_of(
    names: Sequence[str], home: Path, *, prompts: str = "champion", data: Path | None = None
) -> list[Source]:
    """The traces that are meant: files, folders of them, and runs by id, `latest` or folder.

    Args:
        names: as given on the command line.
        home: where runs lie.
        prompts: of a run, the traces of `seed`, `champion` or `all` candidates.
        data: conversations with the questions that were asked, for traces outside of a run.

    Raises:
        DataError, RunError: a name means nothing.
    """
    by_data = None if data is None else _judging_by(data)
    runs: dict[Path, Judging | None] = {}
    found: dict[Path, Source] = {}

    def source(path: Path) -> Source:
        return Source(path, by_data or _judging_around(path.resolve(), runs))

    for name in names:
        path = Path(name)
        if path.is_file():
            chosen = [source(path)]
        elif path.is_dir() and not (path / CONFIG).is_file():
            files = (one for one in sorted(path.rglob("*.json*")) if one.suffix in (".json", ".jsonl"))
            chosen = [source(one) for one in files]
        else:
            chosen = run_sources(RunFolder.find(home, name), prompts)
        if not chosen:
            raise DataError(f"{name}: holds no traces; give trace files, a folder of them, or a run")
        found |= {one.path.resolve(): one for one in chosen}
    return list(found.values())


def run_sources(folder: RunFolder, prompts: str) -> list[Source]:
    """The traces of a run's candidate, `seed` or `champion`, or of `all` it tried.

    Raises:
        RunError, ConfigError, DataError: the run cannot be read.
    """
    paths = sorted((folder.path / TRACES).glob("*/*.jsonl"))
    if prompts != "all":
        candidate = folder.prompts(prompts)
        paths = [path for path in paths if _made_with(path, candidate)]
    if not paths:
        raise DataError(f"{folder.path}: has no traces of its {prompts} prompts; give --prompts seed or all")
    judging = _judging_of(folder)
    return [Source(path, judging) for path in paths]


def _judging_of(folder: RunFolder) -> Judging:
    from experiments.loaders import load_dataset
    from optimizer.evaluation import file_name
    from tracing.systems.registry import open_system

    config = load_config(str(folder.path / CONFIG))
    splits = load_dataset(config).splits.named()
    conversations = {one.id: one for group in splits.values() for one in group}
    metric = by_words(config.metric)
    system = open_system(config.system, config.system_settings)
    return Judging({file_name(one): found for one, found in conversations.items()}, metric, tuple(system.operations))


def _judging_around(path: Path, runs: dict[Path, Judging | None]) -> Judging | None:
    """By the run in whose folder a trace lies; None where it lies in none. `runs` are those seen before."""
    folder = path.parent.parent.parent
    if path.parent.parent.name != TRACES or not (folder / CONFIG).is_file():
        return None
    if folder not in runs:
        try:
            runs[folder] = _judging_of(RunFolder(folder))
        except MemtuneError:
            runs[folder] = None
    return runs[folder]


def _judging_by(data: Path) -> Judging:
    from optimizer.evaluation import file_name
    from tracing.systems.conversations import read_conversations

    return Judging({file_name(one.id): one for one in read_conversations(data)})


def _annotated(recording: Recording) -> list[Case]:
    from tracing.interchange import smartcomment

    found = (case_of(raw, recording) for raw in smartcomment.annotations_of(recording.graph))
    return [case for case in found if case is not None]


def _made_with(path: Path, candidate: Mapping[str, str]) -> bool:
    """Whether every prompt that a trace shows is the candidate's. One that cannot be read is for others to report."""
    try:
        graph, _ = read_graph(path)
    except TraceError:
        return True
    shown = [one for one in graph.find_variables(kind="prompt") if one.name in candidate]
    return bool(shown) and all(one.value == candidate[one.name] for one in shown)
