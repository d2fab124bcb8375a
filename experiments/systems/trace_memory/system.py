"""The trace memory under test: events of a trace, recalled by the filters in a question and by meaning."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.systems.building_blocks.answering import SharedAnswer, answer_again, answer_from_context
from experiments.systems.building_blocks.choices import Settings, check_least
from experiments.systems.building_blocks.fact_store import FactStore
from experiments.systems.building_blocks.facts import FACTS_SCHEMA, Extractor, decision_reply, decision_schema
from experiments.systems.building_blocks.prompt_files import prompts_in
from experiments.systems.building_blocks.recall import as_context, given_entries, nearest, recorded
from experiments.systems.trace_memory.question_filters import FEWEST, TraceVocabulary, filters_of
from experiments.systems.trace_memory.turn_events import events_of_turn, turn_text
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.recording.trace_context import session
from tracing.systems.conversations import Conversation, DialogueSession, Question, moment_of
from tracing.systems.entries import Entry
from tracing.systems.interventions import Step, intervening
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import Text, noted, noted_again
from tracing.trace_memory.event_filters import FilterArguments
from tracing.trace_memory.events import Event, moment
from tracing.trace_memory.memory import TraceMemory


def _as_trace(texts: Sequence[str]) -> str:
    return "\n".join(turn_text(text) for text in texts)


PROMPTS = prompts_in(
    Path(__file__).with_name("prompts.toml"),
    schemas={"summarise": FACTS_SCHEMA, "merge": decision_schema()},
    replies={"merge": decision_reply},
    lists={"turns": _as_trace},
)

_ENTITY = "conversation"
_SECOND_A_TURN = 1.0


@dataclass(frozen=True, slots=True)
class _StoredEvent:
    """A stored event: what it is retrieved as, and the event, by whose fields it is filtered."""

    entry: Entry
    event: Event


class TraceMemorySystem(SharedAnswer):
    """Parse turns into events, summarise them as statements, merge these, recall by filters and meaning, answer.

    Events are stored by a rule, so no model decides what is kept of them. The filters come from the question's words:
    an agent's name, a tool's or decision's, a date. Among what they admit, the nearest in meaning are recalled; if that
    is hardly anything, a few of the others follow.

    Args:
        top_k: events given to the answer.
        statements: statements given to the answer beside the events.
        window: most turns of one summary.
        near: cosine from which a stored statement counts as near a new one.
        compared: most near statements shown to the merge.
        filtered: whether a question's words filter; if not, recall is by meaning alone.
    """

    name = "trace-memory"
    version = "2"
    prompts = PROMPTS
    operations = (
        OperationSpec("parse_trace", "extract", None),
        OperationSpec("summarise", "extract", "summarise"),
        OperationSpec("merge", "update", "merge"),
        OperationSpec("store", "update", None),
        OperationSpec("recall", "retrieve", None),
        OperationSpec("answer", "answer", "answer"),
    )
    settings = Settings("top_k", "statements", "window", "near", "compared", "filtered")
    ranges: Mapping[str, Sequence[int]] = {"top_k": (2, 4, 6, 8)}

    def __init__(
        self,
        *,
        top_k: int = 4,
        statements: int = 2,
        window: int = 6,
        near: float = 0.9,
        compared: int = 2,
        filtered: bool = True,
    ) -> None:
        check_least(1, window=window)
        check_least(0, top_k=top_k, statements=statements, compared=compared)
        self.top_k, self.statements, self.window = top_k, statements, window
        self.near, self.compared, self.filtered = near, compared, filtered

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Read the turns session by session into a new memory; model errors propagate."""
        writer = _Writer(self, candidate, access)
        for dialogue in conversation.sessions:
            with session(dialogue.id, time=dialogue.time):
                messages = [noted(turn.spoken, name=turn.id, kind="message") for turn in dialogue.turns]
                writer.parse(dialogue, messages)
                for start in range(0, len(messages), self.window):
                    facts = writer.summaries.extract(messages[start : start + self.window])
                    writer.statements.store(facts)
        return writer.memory()

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from what its words and its meaning recall."""
        items = [_stored_event(data) for data in memory.state["entries"]]
        query = noted(question.question, name=question.id, kind="query")
        entries = [item.entry for item in items]
        with operation(
            "recall", kind="retrieval", inputs={"query": query.variable, "entries": recorded(entries)}
        ) as op:
            (vector,) = access.embedding.embed([question.question], query=True)
            acts = [item for item in items if item.event.type != "statement"]
            criteria, admitted = self._filtered(question.question, [item.event for item in acts])
            op.annotate(filter=dict(criteria))
            passed = [item.entry for item in acts if item.event.id in admitted]
            others = [item.entry for item in acts if item.event.id not in admitted]
            room = max(min(FEWEST, self.top_k) - len(passed), 0)
            statements = [item.entry for item in items if item.event.type == "statement"]
            best = [*nearest(vector, passed, self.top_k), *nearest(vector, others, room)]
            hits = [entry for entry, _ in (*best, *nearest(vector, statements, self.statements))]
            hits = intervening().retrieved(Step("recall", op.id), query.variable, entries, hits)
            context = as_context(op, hits)
        return answer_from_context(query, context, candidate["answer"], access.task)

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Store these facts as statements, merging as in `build`."""
        writer = _Writer(self, candidate, access)
        writer.statements.store_sessions(sessions)
        return writer.memory()

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A memory of exactly these statements."""
        vectors = access.embedding.embed(texts) if texts else []
        return Memory({"entries": [_statement(entry) for entry in given_entries(texts, vectors, "m")]})

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute the prompt's operation once on recorded inputs."""
        writer = _Writer(self, candidate, access)
        if prompt == "summarise":
            writer.summaries.extract(noted_again(parts["trace"]))
        elif prompt == "merge":
            writer.statements.decide_again(parts)
        else:
            answer_again(parts, candidate["answer"], access.task)

    def _filtered(self, question: str, events: Sequence[Event]) -> tuple[FilterArguments, set[str]]:
        """The strictest filter of a question that admits an event, and the ids of those that it admits."""
        everything = {event.id for event in events}
        if not self.filtered or not events:
            return {}, everything
        filters = filters_of(question, TraceVocabulary.of(events))
        if len(filters) == 1:
            return {}, everything
        with stored(events) as memory:
            for criteria in filters:
                ids = {event.id for event in memory.recall(limit=None, **criteria)}
                if ids:
                    return criteria, ids
        return {}, everything


@contextmanager
def stored(events: Sequence[Event]) -> Iterator[TraceMemory]:
    """A store of these events in a temporary file, as an onlooker of their entity sees it; each process wrote its own.

    Texts are kept as they are: the models are sent what was said, and the file is gone afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="memtune-trace-memory-") as folder, ExitStack() as stack:
        path = Path(folder) / "events.db"
        for process in sorted({event.process for event in events}):
            with TraceMemory(path, entity=_ENTITY, process=process, shared=True, redaction=None) as writing:
                writing.add(event for event in events if event.process == process)
        yield stack.enter_context(TraceMemory(path, entity=_ENTITY, process="", redaction=None))


class _Writer:
    """The state of one build: the events and statements so far, and the prompts as variables."""

    def __init__(self, system: TraceMemorySystem, candidate: Candidate, access: ModelAccess) -> None:
        self.access = access
        self.stored_events: list[_StoredEvent] = []
        self.summaries = Extractor(PROMPTS["summarise"], candidate["summarise"], access)
        self.statements = FactStore(
            PROMPTS["merge"], candidate["merge"], access, near=system.near, compared=system.compared
        )

    def memory(self) -> Memory:
        events = [_as_json(item) for item in self.stored_events]
        return Memory({"entries": [*events, *(_statement(entry) for entry in self.statements.entries)]})

    def parse(self, dialogue: DialogueSession, messages: Sequence[Text]) -> None:
        """Store the events of a session's turns."""
        begun = moment(moment_of(dialogue.time))
        parsed: list[tuple[str, str, Event]] = []
        for number, (turn, message) in enumerate(zip(dialogue.turns, messages, strict=True)):
            time = begun + number * _SECOND_A_TURN if begun is not None else 0.0
            events = events_of_turn(turn.id, turn.speaker, turn.text, time=time, session=dialogue.id)
            with operation("parse_trace", inputs={"messages": message.variable}) as op:
                step, read = Step("parse_trace", op.id), [message.variable]
                lines = intervening().extracted(step, read, [event.line() for event in events])
                for event, line in zip(events, lines, strict=False):
                    if line:
                        entry = op.output("entries", line, name=f"e-{event.id}", kind="memory_entry")
                        parsed.append((line, entry.id, event))
        vectors = self.access.embedding.embed([line for line, _, _ in parsed]) if parsed else []
        for (line, entry_id, event), vector in zip(parsed, vectors, strict=True):
            self.stored_events.append(_StoredEvent(Entry(f"e-{event.id}", line, tuple(vector), entry_id), event))


def _as_json(item: _StoredEvent) -> dict[str, Any]:
    """An entry as it is stored: its text is that of its event, and so kept only if it was changed."""
    row = {"entry": item.entry.as_json(), "event": asdict(item.event)}
    if item.entry.text == item.event.line():
        del row["entry"]["text"]
    return row


def _statement(entry: Entry) -> dict[str, Any]:
    return {"entry": entry.as_json(), "event": None}


def _stored_event(row: Mapping[str, Any]) -> _StoredEvent:
    entry = row["entry"]
    if row["event"] is None:
        return _StoredEvent(Entry.from_json(entry), Event(entry["id"], "statement", "statement", ""))
    event = Event(**row["event"])
    return _StoredEvent(Entry.from_json({"text": event.line(), **entry}), event)
