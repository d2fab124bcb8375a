"""Memory systems as pipelines of steps: the operations and prompts of real ones, and one of six steps.

Each has the steps of the real system under the same names of operations and prompts, in the same stages, and records
them as that does. What happens between them is simpler: entries are found by the words that they share with a question,
and no call is made for that. So what any prompt is worth can be computed, and a thousand calls take a second.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from benchmarks.blame.rules import faultless, rules
from experiments.systems.building_blocks.recall import as_context, entries_of, memory_of, recorded, recorded_retrieval
from tracing.graph.execution_graph import Variable
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, variable
from tracing.systems.conversations import Conversation, Question
from tracing.systems.entries import Entry
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate, Contract, PromptSpec, render
from tracing.systems.protocol import Answer, Memory, OperationSpec, Stage
from tracing.systems.texts import Text, noted, noted_again, variables_of

Work = Literal["extract", "decide", "begin", "revise", "rephrase", "check", "ask", "select", "answer"]
"""What a step does: read on; store one fact; begin and revise a profile; word a search; see whether what was found is
enough; ask for more; choose from what was found; answer."""

SHOWN, FOUND = 2, 3
"""Stored entries shown to a decision, and entries that a search finds."""

_STAGES: Mapping[Work, Stage] = {
    "extract": "extract",
    "decide": "update",
    "begin": "update",
    "revise": "update",
    "answer": "answer",
}
_GIVEN, _STORED = "Given:\n", "Stored:\n"
_LABEL = "Step: "
NO_LINE = "(none)"
"""A reply that has nothing to tell; an empty one would count as unusable."""

_COMMON = frozenset(["the", "for", "best", "likes", "like", "keeps", "keep", "in", "what", "where", "does"])
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """A step that a prompt steers."""

    operation: str
    prompt: str
    work: Work

    @property
    def stage(self) -> Stage:
        """What it does with information."""
        return _STAGES.get(self.work, "retrieve")


_FACTS = PipelineStep("extract_facts", "extract", "extract")
_ANSWER = PipelineStep("answer", "answer", "answer")

PIPELINES: Mapping[str, Sequence[PipelineStep]] = {
    "fact-memory": (_FACTS, PipelineStep("decide_update", "decide", "decide"), _ANSWER),
    "mem0": (_FACTS, PipelineStep("decide_update", "update", "decide"), _ANSWER),
    "evermemos": (
        PipelineStep("detect_boundaries", "boundary", "extract"),
        PipelineStep("write_episode", "episode", "extract"),
        PipelineStep("extract_facts", "facts", "extract"),
        PipelineStep("init_profile", "profile_init", "begin"),
        PipelineStep("update_profile", "profile_update", "revise"),
        PipelineStep("check_sufficiency", "sufficiency", "check"),
        PipelineStep("ask_more", "queries", "ask"),
        _ANSWER,
    ),
    "trace-memory": (
        PipelineStep("summarise", "summarise", "extract"),
        PipelineStep("merge", "merge", "decide"),
        _ANSWER,
    ),
    "six-steps": (
        PipelineStep("read", "read", "extract"),
        PipelineStep("condense", "condense", "extract"),
        PipelineStep("keep_current", "keep_current", "decide"),
        PipelineStep("word_search", "word_search", "rephrase"),
        PipelineStep("select", "select", "select"),
        _ANSWER,
    ),
}
"""By system, the steps that prompts steer."""


@dataclass(frozen=True, slots=True)
class StepRequest:
    """What a step asks the model, as the model reads it.

    Attributes:
        operation: the step.
        instruction: the prompt without step and data.
        lines: what to work on.
        stored: the lines that are there already, or were found.
    """

    operation: str
    instruction: str
    lines: Sequence[str]
    stored: Sequence[str]


def read_request(text: str) -> StepRequest:
    """A request as the model reads it; demonstrations before its data are part of the instruction."""
    head, _, data = text.rpartition(f"\n{_GIVEN}")
    lines, _, stored = data.partition(f"\n{_STORED}")
    prompt = head.split("\n")
    name = next(line for line in reversed(prompt) if line.startswith(_LABEL))
    instruction = "\n".join(line for line in prompt if line != name and line.strip())
    return StepRequest(name.removeprefix(_LABEL), instruction, *(part.splitlines() for part in (lines, stored)))


class Pipeline:
    """A memory system whose steps are those of `PIPELINES`.

    Attributes:
        name: of the system.
        steps: those that prompts steer.
    """

    version = "1"

    def __init__(self, name: str) -> None:
        self.name, self.steps = name, PIPELINES[name]
        self.prompts: Mapping[str, PromptSpec] = {step.prompt: _spec(step) for step in self.steps}
        self.operations: Sequence[OperationSpec] = _operations(self.steps)
        self.settings: Mapping[str, str] = {"pipeline": name}

    def work(self, work: Work) -> list[PipelineStep]:
        """The steps that do this."""
        return [step for step in self.steps if step.work == work]

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Read the conversation session by session."""
        entries: list[Entry] = []
        for number, dialogue in enumerate(conversation.sessions):
            with session(dialogue.id, time=dialogue.time):
                texts = [noted(turn.spoken, name=turn.id, kind="message") for turn in dialogue.turns]
                for step in self.work("extract"):
                    texts = self._read(step, texts, candidate, access)
                for step in self.work("revise" if number else "begin"):
                    self._revise(step, entries, texts, candidate, access)
                for step in self.work("decide"):
                    for fact in texts:
                        self._store(step, entries, fact, candidate, access)
        return memory_of(entries)

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from what is found."""
        query, entries = noted(question.question, name=question.id, kind="query"), entries_of(memory)
        queries = [text for step in self.work("rephrase") for text in self._word(step, [query], (), candidate, access)]
        twice = bool(self.work("check"))
        hits, context = _search("retrieve", query, queries, entries, hides=twice)
        for step in self.work("check"):
            enough = self._check(step, query, hits, context, candidate, access)
            if enough is not None:
                context = enough
            else:
                (ask,) = self.work("ask")
                queries = self._word(ask, [query], context, candidate, access)
                hits, context = _search("retrieve_again", query, queries, entries)
        for step in self.work("select"):
            context = self._select(step, query, hits, context, candidate, access)
        return self._answer(query, context, candidate, access)

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute the prompt's operation once on recorded inputs."""
        (step,) = (step for step in self.steps if step.prompt == prompt)
        texts = {name: noted_again(items) for name, items in parts.items()}
        inputs, stored = texts["given"], texts.get("stored", [])
        entries = [Entry(text.variable.name, text.text, (), text.variable.id) for text in stored]
        if step.work == "extract":
            self._read(step, inputs, candidate, access)
        elif step.work in ("begin", "revise"):
            self._revise(step, entries, inputs, candidate, access)
        elif step.work == "decide":
            self._decide(step, entries, inputs[0], candidate, access)
        elif step.work in ("rephrase", "ask"):
            self._word(step, inputs, stored, candidate, access)
        elif step.work == "check":
            self._check(step, inputs[0], entries, stored, candidate, access)
        elif step.work == "select":
            self._select(step, inputs[0], entries, stored, candidate, access)
        else:
            self._answer(inputs[0], stored, candidate, access)

    def _read(self, step: PipelineStep, texts: Sequence[Text], candidate: Candidate, access: ModelAccess) -> list[Text]:
        inputs = {"given": variables_of(texts), "prompt": _prompt(step, candidate)}
        with operation(step.operation, kind="llm", inputs=inputs) as op:
            lines = _reply_lines(step, candidate, access, texts)
            return [
                Text(line, op.output("facts", line, name=f"{step.operation}{number}", kind="fact"))
                for number, line in enumerate(lines, start=1)
            ]

    def _revise(
        self,
        step: PipelineStep,
        entries: list[Entry],
        facts: Sequence[Text],
        candidate: Candidate,
        access: ModelAccess,
    ) -> None:
        profile = recorded(entries) if step.work == "revise" else []
        inputs = {"given": variables_of(facts), "stored": profile, "prompt": _prompt(step, candidate)}
        with operation(step.operation, kind="llm", inputs=inputs) as op:
            shown = [entry.text for entry in entries] if step.work == "revise" else []
            for line in _reply_lines(step, candidate, access, facts, shown):
                same = next((entry for entry in entries if _likeness(line, entry.text) > 1), None)
                name = same.id if same is not None else f"p{len(entries) + 1}"
                previous = same.variable if same is not None else None
                stored = op.output("profile", line, name=name, kind="memory_entry", previous=previous)
                _put(entries, Entry(name, line, (), stored.id))

    def _store(
        self, step: PipelineStep, entries: list[Entry], fact: Text, candidate: Candidate, access: ModelAccess
    ) -> None:
        near = sorted(entries, key=lambda entry: -_likeness(fact.text, entry.text))[:SHOWN]
        event, target, decision = self._decide(step, near, fact, candidate, access)
        with operation("store", inputs={"fact": fact.variable, "decision": decision}) as op:
            same = next((entry for entry in near if entry.id == target), None)
            if event == "ADD" or same is not None:
                name, previous = (same.id, same.variable) if same is not None else (f"m{len(entries) + 1}", None)
                stored = op.output("entry", fact.text, name=name, kind="memory_entry", previous=previous)
                _put(entries, Entry(name, fact.text, (), stored.id))

    def _decide(
        self, step: PipelineStep, near: Sequence[Entry], fact: Text, candidate: Candidate, access: ModelAccess
    ) -> tuple[str, str | None, Variable]:
        """The event, the id of the entry that it is about, and the decision's variable."""
        inputs = {"given": [fact.variable], "stored": recorded(near), "prompt": _prompt(step, candidate)}
        with operation(step.operation, kind="llm", inputs=inputs) as op:
            (reply,) = _reply_lines(step, candidate, access, [fact], [entry.text for entry in near])
            event, _, number = reply.partition(" ")
            target = near[int(number) - 1].id if number else None
            value = {"event": event, "target": target}
            return event, target, op.output("decision", value, name="decision", kind="value")

    def _word(
        self,
        step: PipelineStep,
        query: Sequence[Text],
        passages: Sequence[Text],
        candidate: Candidate,
        access: ModelAccess,
    ) -> list[Text]:
        inputs = {"given": variables_of(query), "stored": variables_of(passages), "prompt": _prompt(step, candidate)}
        with operation(step.operation, kind="llm", inputs=inputs) as op:
            return [
                Text(line, op.output("queries", line, name="query1", kind="query"))
                for line in _reply_lines(step, candidate, access, query, [text.text for text in passages])
            ]

    def _check(
        self,
        step: PipelineStep,
        query: Text,
        hits: Sequence[Entry],
        passages: Sequence[Text],
        candidate: Candidate,
        access: ModelAccess,
    ) -> list[Text] | None:
        """What the answer is given; None if more is to be searched."""
        inputs = {"given": [query.variable], "stored": variables_of(passages), "prompt": _prompt(step, candidate)}
        with operation(step.operation, kind="llm", inputs=inputs) as op:
            (reply,) = _reply_lines(step, candidate, access, [query], [text.text for text in passages])
            op.output("is_sufficient", reply == "yes", name="is_sufficient", kind="value")
            return as_context(op, hits) if reply == "yes" else None

    def _select(
        self,
        step: PipelineStep,
        query: Text,
        hits: Sequence[Entry],
        passages: Sequence[Text],
        candidate: Candidate,
        access: ModelAccess,
    ) -> list[Text]:
        inputs = {"given": [query.variable], "stored": variables_of(passages), "prompt": _prompt(step, candidate)}
        with operation(step.operation, kind="llm", inputs=inputs) as op:
            lines = set(_reply_lines(step, candidate, access, [query], [text.text for text in passages]))
            return as_context(op, [hit for hit in hits if hit.text in lines])

    def _answer(self, query: Text, passages: Sequence[Text], candidate: Candidate, access: ModelAccess) -> Answer:
        step = self.steps[-1]
        inputs = {"given": [query.variable], "stored": variables_of(passages), "prompt": _prompt(step, candidate)}
        with operation(step.operation, kind="llm", inputs=inputs) as op:
            (reply,) = _reply_lines(step, candidate, access, [query], [text.text for text in passages])
            prediction = op.output("prediction", reply, name="prediction", kind="prediction")
        return Answer(reply, prediction.id or None)


def _spec(step: PipelineStep) -> PromptSpec:
    roles = ("given",) if step.work in ("extract", "begin", "rephrase") else ("given", "stored")
    labels = {"given": f"{_GIVEN}{{given}}", "stored": f"{_STORED}{{stored}}"}
    label = f"{_LABEL}{step.operation}"
    return PromptSpec(
        name=step.prompt,
        text="\n".join([faultless(), label, "", *(labels[role] for role in roles)]),
        operation=step.operation,
        contract=Contract(placeholders=frozenset(roles), markers=(label,)),
        purpose=f"Steer the step {step.operation} of a memory.",
        builds=step.stage in ("extract", "update"),
    )


def _operations(steps: Sequence[PipelineStep]) -> list[OperationSpec]:
    """The operations in pipeline order, with those that no prompt steers."""
    specs: list[OperationSpec] = []
    searching = next(step.work for step in steps if step.work in ("check", "select", "answer"))
    for step in steps:
        if step.work == searching:
            specs.append(OperationSpec("retrieve", "retrieve", None))
        specs.append(OperationSpec(step.operation, step.stage, step.prompt))
        if step.work == "decide":
            specs.append(OperationSpec("store", "update", None))
        if step.work == "ask":
            specs.append(OperationSpec("retrieve_again", "retrieve", None))
    return specs


def _prompt(step: PipelineStep, candidate: Candidate) -> Variable:
    return variable(candidate[step.prompt], name=step.prompt, kind="prompt")


def _reply_lines(
    step: PipelineStep,
    candidate: Candidate,
    access: ModelAccess,
    inputs: Sequence[Text],
    stored: Sequence[str] = (),
) -> list[str]:
    """The lines of the model's reply."""
    values = {"given": "\n".join(text.text for text in inputs), "stored": "\n".join(stored)}
    request = render(candidate[step.prompt], values)
    lines = access.task.chat([{"role": "user", "content": request}], max_tokens=256).text.splitlines()
    return [line for line in lines if line != NO_LINE]


def _put(entries: list[Entry], entry: Entry) -> None:
    """Store an entry in the place of the one with its id, or as the last."""
    for at, before in enumerate(entries):
        if before.id == entry.id:
            entries[at] = entry
            return
    entries.append(entry)


def _search(
    name: str, query: Text, queries: Sequence[Text], entries: Sequence[Entry], *, hides: bool = False
) -> tuple[list[Entry], list[Text]]:
    """The entries that share most words with the query, or with those in its place; none that shares no word.

    Args:
        hides: whether for some questions what shares most is not found.
    """
    wanted = " ".join(text.text for text in queries) or query.text
    share = zlib.crc32(query.text.encode()) / 2**32
    hidden = hides and share >= rules().model.found_first

    def find() -> list[Entry]:
        scores = {entry.id: _likeness(wanted, entry.text) for entry in entries}
        ranked = sorted(entries, key=lambda entry: -scores[entry.id])
        return [entry for entry in ranked if 0 < scores[entry.id] < (2 if hidden else math.inf)][:FOUND]

    return recorded_retrieval(name, {"query": [query], "queries": queries}, entries, find)


def _likeness(text: str, other: str) -> int:
    """How many words two texts share, common ones aside."""
    return len(_words(text) & _words(other))


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _COMMON
