"""What a trace memory saves against keeping the conversation, and what filters find against search alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import mean

from benchmarks.trace_memory.figures import QualityFigures, RecallFigures
from benchmarks.trace_memory.projects import TracedProject, TracedQuestion
from experiments.systems.trace_memory.question_filters import FEWEST, TraceVocabulary, filters_of
from tracing.trace_memory import Event, TraceMemory
from tracing.trace_memory.semantic import Embedding

RECALLED = 6
"""Most events recalled for a question, whichever the way."""

Progress = Callable[[str], None]
Way = Callable[[TraceMemory, TracedQuestion], Sequence[Event]]


def measure_quality(
    projects: Sequence[TracedProject],
    store: str,
    embedding: Embedding,
    tokens: Callable[[str], int],
    progress: Progress = lambda said: None,
) -> QualityFigures:
    """The figures of these projects.

    Args:
        projects: each is an entity of its own; its agents share what they record.
        store: where their events are kept.
        embedding: for search by meaning.
        tokens: counts those of a text.
        progress: called with what is being done.
    """
    kept = {project.id: [tokens(f"{turn.by}: {turn.text()}") for _, turn in project.turns()] for project in projects}
    lines: list[int] = []
    scored: dict[str, list[RecallFigures]] = {name: [] for name in _WAYS}
    for number, project in enumerate(projects, start=1):
        progress(f"questions of project {number} of {len(projects)}")
        with stored_project(project, store, embedding) as memory:
            lines += [tokens(event.line()) for event in memory.recall(limit=None)]
            for question in project.questions:
                for name, way in _WAYS.items():
                    found = way(memory, question)
                    scored[name].append(_scored(found, question, tokens, sum(kept[project.id])))
    every = [count for counts in kept.values() for count in counts]
    return QualityFigures(
        events=len(lines),
        questions=sum(len(project.questions) for project in projects),
        conversation_tokens=mean(sum(counts) for counts in kept.values()),
        tokens_an_event=mean(lines),
        kept_tokens_an_event=mean(every),
        stored_fewer=1 - sum(lines) / sum(every),
        **{name: _mean(each) for name, each in scored.items()},
    )


@contextmanager
def stored_project(project: TracedProject, store: str, embedding: Embedding | None) -> Iterator[TraceMemory]:
    """The memory of a project's onlooker, with what each of its agents recorded and shared."""
    events = project.events()
    with ExitStack() as stack:
        for process in sorted({event.process for event in events}):
            with TraceMemory(
                store, entity=project.entity, process=process, project=project.project, shared=True
            ) as writing:
                writing.add(event for event in events if event.process == process)
        yield stack.enter_context(TraceMemory(store, entity=project.entity, process="onlooker", embedding=embedding))


def _filtered(memory: TraceMemory, question: TracedQuestion) -> Sequence[Event]:
    return memory.recall(limit=RECALLED, **question.filter)


def _worded(memory: TraceMemory, question: TracedQuestion) -> Sequence[Event]:
    """As `TraceMemorySystem` recalls events."""
    found: list[Event] = []
    for wanted in filters_of(question.question, TraceVocabulary.of(memory.recall(limit=None))):
        found = memory.search(question.question, limit=RECALLED, **wanted)
        if found:
            break
    others = [event for event in _semantic(memory, question) if event not in found]
    return [*found, *others[: max(FEWEST - len(found), 0)]]


def _semantic(memory: TraceMemory, question: TracedQuestion) -> Sequence[Event]:
    return memory.search(question.question, limit=RECALLED)


def _semantic_as_many(memory: TraceMemory, question: TracedQuestion) -> Sequence[Event]:
    return memory.search(question.question, limit=max(len(_filtered(memory, question)), 1))


_WAYS: dict[str, Way] = {
    "filtered": _filtered,
    "worded": _worded,
    "semantic": _semantic,
    "semantic_as_many": _semantic_as_many,
}


def _scored(
    found: Sequence[Event], question: TracedQuestion, tokens: Callable[[str], int], conversation: int
) -> RecallFigures:
    evidence = set(question.evidence)
    right = sum(event.id in evidence for event in found)
    shown = sum(tokens(event.line()) for event in found)
    return RecallFigures(
        precision=right / len(found) if found else 0.0,
        recall=right / len(evidence),
        tokens=shown,
        fewer=1 - shown / conversation,
    )


def _mean(figures: Sequence[RecallFigures]) -> RecallFigures:
    rows = [each.model_dump() for each in figures]
    return RecallFigures(**{name: mean(row[name] for row in rows) for name in rows[0]})
