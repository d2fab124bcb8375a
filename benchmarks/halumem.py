"""A recorded run of Mem0 on a user of HaluMem, scored by the labels that HaluMem's evaluation gave its operations.

The run's own record tells what the labels do not: where a session changed nothing in the memory, nothing was stored.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attribution.cases import Case
from attribution.judging.agreement import Agreement, agreement
from attribution.judging.words import judge_reply
from attribution.survival.survival_method import Survival
from attribution.text.content import Vocabulary
from experiments.data.datasets import conversations_of
from experiments.systems.fact_memory import FactMemory
from optimizer.objectives.extraction import ExtractionObjective
from optimizer.objectives.objective import RecordedInput
from optimizer.objectives.objectives import Golds
from tracing.errors import DataError
from tracing.graph.elements import Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, trace, variable
from tracing.systems.conversations import Conversation
from tracing.systems.layouts import Item
from tracing.systems.protocol import OperationSpec

OPERATIONS = (
    OperationSpec("extract_facts", "extract", "extract"),
    OperationSpec("retrieve", "retrieve", None),
    OperationSpec("answer", "answer", "answer"),
)
KEPT = 0.5
"""Credit of an extraction with one need from which that need was kept: the rest is for statements nobody made."""


@dataclass(frozen=True, slots=True)
class HaluMemRun:
    """A user, the memory after each session of a run, and the labels of its memory points and answers."""

    conversation: Conversation
    memories: Sequence[Sequence[str]]
    integrity: Mapping[str, int]
    """Text of a memory point → 0 (missing), 1 (partly kept) or 2 (wholly kept)."""
    answers: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> HaluMemRun:
        """The run in a folder: the data set's rows, and beside them `*_generation.jsonl` and `*_detailed.json`.

        Raises:
            DataError: one of the three is missing, or is something else.
        """
        files = {name: next(iter(sorted(folder.glob(f"*_{name}"))), None) for name in _SUFFIXES}
        rows = [path for path in sorted(folder.glob("*.jsonl")) if path not in files.values()]
        generation, detailed = files.values()
        if generation is None or detailed is None or not rows:
            raise DataError(
                f"{folder}: a run on HaluMem is its rows (*.jsonl), *_{_SUFFIXES[0]} and *_{_SUFFIXES[1]}; give the "
                "folder of all three"
            )
        try:
            run = json.loads(generation.read_text("utf-8").splitlines()[0])
            labels = json.loads(detailed.read_text("utf-8"))
            integrity = {
                row["memory_content"]: row["memory_integrity_score"] for row in labels["memory_integrity_records"]
            }
            memories = [row["extracted_memories"] for row in run["sessions"]]
            answers = labels["question_answering_records"]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{folder}: not what HaluMem's evaluation writes ({error}); make it again") from None
        conversation = next(talk for talk in conversations_of("halumem", rows[0]) if talk.id == run["uuid"])
        return cls(
            conversation.model_copy(update={"sessions": conversation.sessions[: len(memories)]}),
            memories,
            integrity,
            answers,
        )

    def stored_in(self, session_id: str) -> list[str]:
        """What a session added to the memory."""
        at = _place(session_id)
        before = set(self.memories[at - 1]) if at else set()
        return [text for text in self.memories[at] if text not in before]


_SUFFIXES = ("generation.jsonl", "detailed.json")


@dataclass(frozen=True, slots=True)
class ExtractionFigures:
    """How the local objective of extraction agrees with labels of integrity (0 missing, 1 partly, 2 wholly kept).

    Attributes:
        least: the label from which a memory point counts as kept.
        agreement: with these labels, over `n` memory points; its margin is the share of a point that a memory says.
        unsaid: memory points labelled as kept of whose words no memory has any.
    """

    least: int
    agreement: Agreement | None
    unsaid: int


def extraction_figures(run: HaluMemRun) -> list[ExtractionFigures]:
    """The objective beside the labels "at least partly" and "wholly", without the interferences."""
    vocabulary = Vocabulary(turn.text for turn in run.conversation.turns())
    people = frozenset().union(*map(vocabulary.content_of, run.conversation.speakers))
    objective = ExtractionObjective(Golds(verbatim=False))
    measured = []
    for fact in run.conversation.facts:
        if fact.action == "ignore" or fact.text not in run.integrity:
            continue
        at = _place(fact.id.partition(":")[0])
        alone = run.conversation.model_copy(update={"facts": (fact,), "questions": ()})
        turns = run.conversation.sessions[at].turns
        messages = tuple(Item("messages", turn.id, "message", turn.spoken) for turn in turns)
        execution = RecordedInput(fact.id, FactMemory.prompts["extract"], alone, {"messages": messages})
        memories = [Item("facts", f"m{number}", "fact", text) for number, text in enumerate(run.memories[at])]
        needed = vocabulary.content_of(fact.text) - people
        shares = (vocabulary.coverage(needed, vocabulary.content_of(memory.text)) for memory in memories)
        kept = objective.credit(execution, memories).value >= KEPT
        measured.append((kept, run.integrity[fact.text], max(shares, default=0.0)))
    return [
        ExtractionFigures(
            least,
            agreement([(kept, label >= least, share) for kept, label, share in measured]),
            sum(label >= least and share == 0 for _, label, share in measured),
        )
        for least in (1, 2)
    ]


@dataclass(frozen=True, slots=True)
class AttributionFigures:
    """Error types that survival names where one is due.

    Attributes:
        why: how it is known: `nothing stored` in the sessions of the evidence, `all missing` by the labels of the
            memory points that are the evidence, `never told` for what no session tells.
        due: the right error type.
        named: error type → cases in which it was named; `none` where survival abstained.
    """

    why: str
    due: str
    named: Mapping[str, int]

    @property
    def share(self) -> float:
        """The share of cases in which the right type was named."""
        return self.named.get(self.due, 0) / sum(self.named.values())


def attribution_figures(run: HaluMemRun) -> list[AttributionFigures]:
    """What survival names in the wrong answers of the run; an answer may be among several rows."""
    graph, answers = _recorded(run)
    survival = Survival(graph, run.conversation, OPERATIONS)
    sessions = {turn.id: part.id for part in run.conversation.sessions for turn in part.turns}
    named: dict[tuple[str, str], Counter[str]] = {}
    for case, points in answers:
        attributed = survival.attribute(case)
        error_type = attributed.decisive[0].error_type if attributed.decisive else "none"
        evidence = case.question.evidence
        if case.question.unanswerable:
            rows = [("never told", "ResponseError")]
        else:
            nothing = evidence and not any(run.stored_in(sessions[turn]) for turn in evidence)
            missing = points and not any(run.integrity.get(point, 1) for point in points)
            rows = [("nothing stored", "ExtractionError")] * bool(nothing)
            rows += [("all missing", "ExtractionError")] * bool(missing)
        for row in rows or [("not known", "")]:
            named.setdefault(row, Counter())[error_type] += 1
    return [AttributionFigures(why, due, dict(types)) for (why, due), types in named.items()]


def _recorded(run: HaluMemRun) -> tuple[ExecutionGraph, list[tuple[Case, list[str]]]]:
    """The run as a graph, and its wrong answers with the memory points that they needed."""
    by_text = {(question.question, question.after_session): question for question in run.conversation.questions}
    wrong: list[tuple[Case, list[str]]] = []
    with trace() as recorder:
        entries: dict[str, Variable] = {}
        for at, part in enumerate(run.conversation.sessions):
            with session(part.id, time=part.time):
                messages = [variable(turn.spoken, name=turn.id, kind="message") for turn in part.turns]
                with operation("extract_facts", kind="llm", inputs={"messages": messages}) as op:
                    for text in run.stored_in(part.id):
                        name = f"m{len(entries) + 1}"
                        entries[text] = op.output("entries", text, name=name, kind="memory_entry")
            for row in run.answers:
                if row["ssession_id"] != at or row["result_type"] == "Correct":
                    continue
                question = by_text[row["question"], part.id]
                with session(question.id):
                    query = variable(question.question, name=question.id, kind="query")
                    with operation("retrieve", inputs={"query": query, "entries": [*entries.values()]}) as op:
                        context = [
                            op.output("context", text, name=f"c{rank}", kind="context")
                            for rank, text in enumerate(_context(row["context"]), start=1)
                        ]
                    with operation("answer", kind="llm", inputs={"query": query, "context": context}) as op:
                        prediction = op.output("prediction", row["system_response"], kind="prediction")
                judgement = replace(judge_reply(question, row["system_response"], "contains"), score=0.0)
                case = Case(run.conversation.id, question, row["system_response"], judgement, prediction.id)
                wrong.append((case, [point["memory_content"] for point in row["evidence"]]))
    return recorder.graph, wrong


def _place(session_id: str) -> int:
    """The place of a session among all, from its id."""
    return int(session_id[1:]) - 1


def _context(shown: str) -> list[str]:
    """The memories in what the run's answers were given, without the time before each."""
    return [text.partition(": ")[2] for text in json.loads(shown.partition("\n\n")[2])]
