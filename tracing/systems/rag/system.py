"""RAG: messages into chunks, chunks into embeddings, the nearest chunks into the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tracing.llm.access import ModelAccess
from tracing.recording.recorder import operation, session, variable
from tracing.systems.building_blocks.answering import ANSWER_PROMPT, answer_again, answer_from_context
from tracing.systems.building_blocks.recall import given_context, retrieve
from tracing.systems.conversations import Conversation, Question
from tracing.systems.entries import Entry
from tracing.systems.interventions import Step, intervening
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import Text, noted, variables_of


class Rag:
    """Buffer messages into chunks of about `chunk_tokens` tokens, embed them, answer from the `top_k` nearest.

    Args:
        chunk_tokens: size at which a chunk ends, in words and punctuation marks (about the BPE tokens of English
            chat); a message is never split, and a chunk never spans two sessions.
        top_k: chunks given to the answer.
    """

    name = "rag"
    version = "1"
    prompts = {"answer": ANSWER_PROMPT}  # noqa: RUF012 (the protocol's attribute, never changed)
    operations = (
        OperationSpec("chunk", "extract", None),
        OperationSpec("retrieve", "retrieve", None),
        OperationSpec("answer", "answer", "answer"),
    )

    def __init__(self, *, chunk_tokens: int = 200, top_k: int = 2) -> None:
        self.chunk_tokens, self.top_k = chunk_tokens, top_k

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything besides prompts and models that shapes the result."""
        return {"chunk_tokens": self.chunk_tokens, "top_k": self.top_k}

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Chunk and embed the conversation."""
        entries: list[Entry] = []
        for dialogue in conversation.sessions:
            with session(dialogue.id, time=dialogue.time):
                messages = [noted(turn.spoken, name=turn.id, kind="message") for turn in dialogue.turns]
                for group in self._chunks(messages):
                    lines = [dialogue.time, *(message.text for message in group)]
                    read = variables_of(group)
                    with operation("chunk", inputs={"messages": read}) as op:
                        lines = intervening().extracted(Step("chunk", op.id), read, lines)
                        text = "\n".join(lines).strip()
                        (vector,) = access.embedding.embed([text])
                        name = f"c{len(entries) + 1}"
                        chunk = op.output("chunks", text, name=name, kind="memory_entry")
                        entries.append(Entry(name, text, tuple(vector), chunk.id))
        return Memory({"entries": [entry.as_json() for entry in entries]})

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from the nearest chunks."""
        entries = [Entry.from_json(data) for data in memory.state["entries"]]
        query, context = retrieve(question, entries, access.embedding, self.top_k)
        return answer_from_context(query, context, candidate["answer"], access.task)

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Chunk and embed facts instead of messages."""
        chunks: list[str] = []
        for facts in sessions:
            lines = [noted(fact, name="given", kind="fact") for fact in facts]
            chunks += ["\n".join(line.text for line in group) for group in self._chunks(lines)]
        return self.with_entries(chunks, access)

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A memory of exactly these chunks."""
        vectors = access.embedding.embed(texts) if texts else []
        entries = []
        for number, (text, vector) in enumerate(zip(texts, vectors, strict=True), start=1):
            stored = variable(text, name=f"c{number}", kind="memory_entry")
            entries.append(Entry(f"c{number}", text, tuple(vector), stored.id))
        return Memory({"entries": [entry.as_json() for entry in entries]})

    def answer_from(
        self, context: Sequence[str], question: Question, candidate: Candidate, access: ModelAccess
    ) -> Answer:
        """Answer from a given context instead of retrieval."""
        query, given = given_context(question, context)
        return answer_from_context(query, given, candidate["answer"], access.task)

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute the prompt's operation once on recorded inputs."""
        answer_again(parts, candidate[prompt], access.task)

    def _chunks(self, messages: Sequence[Text]) -> list[list[Text]]:
        groups: list[list[Text]] = []
        size = self.chunk_tokens
        for message in messages:
            length = len(re.findall(r"\w+|[^\w\s]", message.text))
            if size + length > self.chunk_tokens:
                groups.append([])
                size = 0
            groups[-1].append(message)
            size += length
        return groups
