"""Memories whose every step a test dictates, recorded with the real recorder as the built-in systems record theirs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress

from attribution.cases import Attribution, Blame, Case
from attribution.judging.words import judge
from attribution.survival.survival_method import attribute
from tracing.errors import MalformedReplyError
from tracing.graph.elements import Variable
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, trace, variable
from tracing.systems.conversations import Conversation, Question
from tracing.systems.protocol import OperationSpec

FACT_MEMORY = (
    OperationSpec("extract_facts", "extract", "extract"),
    OperationSpec("decide_update", "update", "decide"),
    OperationSpec("store", "update", None),
    OperationSpec("retrieve", "retrieve", None),
    OperationSpec("answer", "answer", "answer"),
)
RAG = (
    OperationSpec("chunk", "extract", None),
    OperationSpec("retrieve", "retrieve", None),
    OperationSpec("answer", "answer", "answer"),
)


class ScriptedMemory:
    """One conversation's memory; a context manager inside which steps are recorded."""

    def __init__(self, conversation: Conversation, operations: Sequence[OperationSpec] = FACT_MEMORY) -> None:
        self.conversation, self.operations = conversation, operations
        self.entries: dict[str, Variable] = {}
        self._stack = ExitStack()
        self._named = 0

    def __enter__(self) -> ScriptedMemory:
        self.recorder = self._stack.enter_context(trace())
        self._prompt = variable("Do it.", name="prompt", kind="prompt")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def extract(
        self, turns: Sequence[str], facts: Sequence[str], *, raises: bool = False, **notes: str
    ) -> list[Variable]:
        """One extraction of `facts` from `turns`; with `raises` it fails, having made none."""
        spoken = {turn.id: f"{turn.speaker}: {turn.text}" for turn in self.conversation.turns()}
        with session(turns[0].partition(":")[0]), suppress(MalformedReplyError):
            messages = [variable(spoken[turn], name=turn, kind="message") for turn in turns]
            with operation("extract_facts", kind="llm", inputs={"messages": messages, "prompt": self._prompt}) as op:
                op.annotate(**notes)
                if raises:
                    raise MalformedReplyError("the reply is no JSON object")
                return [op.output("facts", fact, name=f"fact{at}", kind="fact") for at, fact in enumerate(facts)]
        return []

    def store(
        self,
        fact: Variable,
        event: str | None = None,
        target: str | None = None,
        *,
        near: Sequence[str] = (),
        do: str = "",
        write: str = "",
    ) -> None:
        """Store a fact: with `event` after that decision, which was shown the entries `near`.

        `do` disobeys it, and `write` stores another text.
        """
        inputs: dict[str, Variable] = {"fact": fact}
        if event is not None:
            shown = [self.entries[name] for name in near]
            asked = {"fact": fact, "memories": shown, "prompt": self._prompt}
            with operation("decide_update", kind="llm", inputs=asked) as op:
                inputs["decision"] = op.output("decision", {"event": event, "target": target}, kind="value")
        with operation("store", inputs=inputs) as op:
            event = do or event or "ADD"
            if event == "ADD":
                name = self._next_name()
                self.entries[name] = op.output("entry", write or fact.value, name=name, kind="memory_entry")
            elif event == "UPDATE" and target:
                old = self.entries[target]
                text = write or fact.value
                self.entries[target] = op.output("entry", text, name=target, kind="memory_entry", previous=old)
            elif event == "DELETE" and target:
                op.output("entry", None, name=target, kind="delete_marker", previous=self.entries.pop(target))

    def remember(self, turns: Sequence[str], *facts: str) -> None:
        """Extract facts and add each one."""
        for fact in self.extract(turns, facts):
            self.store(fact)

    def chunk(self, turns: Sequence[str], text: str = "") -> None:
        """Cut turns into one chunk, as RAG does; with `text` it becomes that."""
        spoken = {turn.id: f"{turn.speaker}: {turn.text}" for turn in self.conversation.turns()}
        messages = [variable(spoken[turn], name=turn, kind="message") for turn in turns]
        name = self._next_name()
        with operation("chunk", inputs={"messages": messages}) as op:
            text = text or "\n".join(str(message.value) for message in messages)
            self.entries[name] = op.output("chunks", text, name=name, kind="memory_entry")

    def _next_name(self) -> str:
        self._named += 1
        return f"m{self._named}"

    def answer(
        self,
        question: Question,
        hits: Sequence[str],
        reply: str,
        metric: str = "short_contains",
        *,
        stamp: str = "",
        **notes: str,
    ) -> Case:
        """Answer a question with `reply`, given the entries `hits`, each with the time `stamp` before it."""
        with session(question.id):
            query = variable(question.question, name=question.id, kind="query")
            with operation("retrieve", inputs={"query": query, "entries": list(self.entries.values())}) as op:
                context = [
                    op.output("context", f"{stamp}{entry.value}", name=entry.name, kind="context", entry=entry.id)
                    for entry in (self.entries[hit] for hit in hits)
                ]
            inputs = {"query": query, "context": context, "prompt": self._prompt}
            with operation("answer", kind="llm", inputs=inputs) as op:
                op.annotate(**notes)
                prediction = op.output("prediction", reply, kind="prediction")
        return Case(self.conversation.id, question, reply, judge(reply, question.answers, metric), prediction.id)

    def attribute(self, case: Case) -> Attribution:
        """Attribute a case of this memory."""
        return attribute(case, self.recorder.graph, self.conversation, self.operations)

    def blame(self, case: Case) -> Blame:
        """The only blame of a case."""
        attribution = self.attribute(case)
        assert attribution.abstained is None
        (blame,) = attribution.decisive
        return blame

    def executed(self, blame: Blame) -> str:
        """Name of the operation that a blame's id stands for in the graph."""
        assert blame.operation_id is not None
        return self.recorder.graph.operations[blame.operation_id].name
