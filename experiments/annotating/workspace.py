"""The traces that are annotated, read in the background: their graphs, their cases, and survival's verdict on each."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from attribution.attributor import Attributor, survival_in
from attribution.cases import PASS_SCORE, Attribution, Case
from attribution.failures import answers_in, complaint, judge_score
from attribution.recordings import Recording, recording_of
from attribution.text.content import text_of
from experiments.annotating.labels import CaseId
from experiments.attributing.source import Source, TraceContent
from experiments.data.own.histories import Histories
from tracing.errors import DataError, MemtuneError, TraceError, in_one_line
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import read_memory

State = Literal["wrong", "right", "not judged"]

_MOST_GRAPHS = 4
"""Graphs kept in memory, the latest used ones; others are read again when somebody looks at them."""


class NotReadYetError(MemtuneError):
    """A trace is still being read."""


@dataclass(frozen=True, slots=True)
class ListedCase:
    """A question of a trace, as a list shows it: its accepted answers, as far as they are known, and its state.

    People may label it unless it is right. The verdict is survival's, of a wrong answer.
    """

    id: CaseId
    question: str
    reply: str
    kind: str
    answers: tuple[str, ...]
    state: State
    verdict: Attribution | None = None

    @property
    def confidence(self) -> float:
        """Of survival's verdict; 0 if it abstains."""
        return self.verdict.main.confidence if self.verdict is not None and self.verdict.main is not None else 0.0


@dataclass(slots=True)
class OpenedTrace:
    """A trace in the list: the start of the SHA-256 of its file, its name as short as it is clear, and what it has.

    Its questions are all there once it `is_read`.
    """

    id: str
    name: str
    source: Source
    problem: str | None = None
    operations: int = 0
    variables: int = 0
    entries: tuple[ListedCase, ...] = ()
    is_read: bool = False


@dataclass(slots=True)
class GraphInUse:
    """A graph in memory: its recording, its judged answers, and the methods that were set up for it."""

    recording: Recording
    cases: dict[str, Case]
    problem: str | None
    methods: dict[str, Attributor] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Workspace:
    """The traces to annotate. Safe to use from several threads."""

    def __init__(self, sources: Sequence[Source]) -> None:
        """List the traces without reading them; of equal files the first counts.

        Raises:
            DataError: one cannot be read at all.
        """
        # Each answer is listed with its own trace.
        sources = [replace(source, histories=Histories(())) for source in sources]
        names = _names(sources)
        self.traces: dict[str, OpenedTrace] = {}
        for source, name in zip(sources, names, strict=True):
            try:
                digest = source.digest
            except OSError as error:
                raise DataError(f"{source.path}: cannot be read ({error.strerror}); give the path of a trace") from None
            self.traces.setdefault(digest, OpenedTrace(digest, name, source))
        self._graphs: OrderedDict[str, GraphInUse] = OrderedDict()
        self._lock = threading.Lock()
        self.entries: dict[CaseId, ListedCase] = {}
        self.done = 0
        self._stopped = threading.Event()

    def start(self) -> None:
        """Read all traces in a background thread."""
        threading.Thread(target=self.read, name="memtune-annotate", daemon=True).start()

    def stop(self) -> None:
        """Read no further trace."""
        self._stopped.set()

    def read(self) -> None:
        """Read all traces; a problem of one is kept with it."""
        for trace in self.traces.values():
            if self._stopped.is_set():
                return
            try:
                graph = self.graph(trace.id)
                self._list(trace, graph)
            except Exception as error:  # whatever a damaged file brings about
                trace.problem = in_one_line(error)
            trace.is_read = True
            self.done += 1

    def queue(self) -> list[ListedCase]:
        """The wrong answers, those first of which survival is least sure."""
        wrong = [entry for entry in list(self.entries.values()) if entry.state == "wrong"]
        return sorted(wrong, key=lambda entry: entry.confidence)

    def entry(self, case: CaseId) -> ListedCase:
        """A case in the list.

        Raises:
            NotReadYetError: its trace is still being read.
            TraceError: there is none.
        """
        trace = self.traces.get(case.trace)
        unread = trace if trace is not None and not trace.is_read else None  # first: the reader may end in between
        if case in self.entries:
            return self.entries[case]
        if unread is not None:
            raise NotReadYetError(f"{unread.name} is still being read; try again in a moment")
        raise TraceError(f"case {case.case!r}: is in none of the traces that are open")

    def graph(self, trace: str) -> GraphInUse:
        """A trace's graph, read if it is not in memory."""
        if trace not in self.traces:
            raise TraceError(f"trace {trace!r}: is not open")
        with self._lock:
            if trace not in self._graphs:
                self._graphs[trace] = _read(self.traces[trace])
                while len(self._graphs) > _MOST_GRAPHS:
                    self._graphs.popitem(last=False)
            self._graphs.move_to_end(trace)
            return self._graphs[trace]

    def case(self, case: CaseId) -> Case:
        """The case as methods of attribution take it; one that was not judged counts as wrong."""
        used, entry = self.graph(case.trace), self.entry(case)
        if case.case in used.cases:
            return used.cases[case.case]
        case_at_fault = complaint(used.recording, entry.question, entry.reply)
        return replace(case_at_fault, prediction=case.case)

    def _list(self, trace: OpenedTrace, used: GraphInUse) -> None:
        graph = used.recording.graph
        trace.operations, trace.variables = len(graph.operations), len(graph.variables)
        trace.problem = used.problem
        entries: dict[CaseId, ListedCase] = {}
        for key, case in used.cases.items():
            state: State = "right" if case.passed else "wrong"
            answers = tuple(answer for answer in case.question.answers if answer.strip())
            cid, question = CaseId(trace.id, key), case.question
            entries[cid] = ListedCase(cid, question.asked, case.reply, question.kind, answers, state)
        for query, prediction in answers_in(graph):
            if prediction.id not in used.cases:
                cid, texts = CaseId(trace.id, prediction.id), (text_of(query.value), text_of(prediction.value))
                entries[cid] = ListedCase(cid, *texts, "", (), _state_by_judge(graph, prediction.id))
        self._publish(trace, entries)
        method = survival_in(used.recording)
        for cid, entry in entries.items():
            if entry.state == "wrong" and not self._stopped.is_set():
                entries[cid] = replace(entry, verdict=method.attribute(self.case(cid)))
        self._publish(trace, entries)

    def _publish(self, trace: OpenedTrace, entries: dict[CaseId, ListedCase]) -> None:
        trace.entries = tuple(entries.values())
        self.entries.update(entries)


def _read(trace: OpenedTrace) -> GraphInUse:
    source = trace.source
    if Source(source.path).digest != trace.id:
        raise TraceError(f"{source.path}: has changed since it was opened; start memtune annotate again")
    try:
        content = source.read()
    except TraceError as error:
        # Nothing tells which of its answers are wrong; people may.
        graph, problem = read_memory(source.path)
        content = TraceContent(recording_of(graph, source.path.stem), (), problem or in_one_line(error))
    # Of an annotated graph, some may not be annotated.
    return GraphInUse(content.recording, content.judged(), content.problem)


def _state_by_judge(graph: ExecutionGraph, prediction: str) -> State:
    """What the graph's own judge said about a reply, the right answer to which is not known."""
    scores = [
        score for operation in graph.consumers(prediction) if (score := judge_score(graph, operation)) is not None
    ]
    if not scores:
        return "not judged"
    return "right" if min(scores) >= PASS_SCORE else "wrong"


def _names(sources: Sequence[Source]) -> list[str]:
    """The files' names, with as many folders as tell them apart."""
    paths = [source.path.resolve() for source in sources]
    depth = 1
    while depth < 8 and len({path.parts[-depth:] for path in paths}) < len(set(paths)):
        depth += 1
    return ["/".join(path.parts[-depth:]) for path in paths]
