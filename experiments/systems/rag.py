"""RAG: messages into chunks, chunks into an index, the best chunks into the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from experiments.systems.building_blocks.answering import (
    ANSWER_PROMPT,
    FORMS,
    SharedAnswer,
    answer_again,
    answer_from_context,
)
from experiments.systems.building_blocks.choices import Settings, check_choice, check_least
from experiments.systems.building_blocks.recall import (
    check_retrieval,
    entries_of,
    given_entries,
    memory_of,
    ranked,
    recorded_retrieval,
)
from experiments.systems.building_blocks.rerank import RERANK_PROMPT, rerank, rerank_again
from tracing.errors import ConfigError
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.recording.trace_context import session
from tracing.systems.conversations import Conversation, DialogueSession, Question
from tracing.systems.entries import Entry
from tracing.systems.interventions import Step, intervening
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate, PromptSpec
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import Text, noted, variables_of


class Rag(SharedAnswer):
    """Buffer messages into chunks of about `chunk_tokens` tokens, embed them, answer from the `top_k` best.

    Args:
        chunk_tokens: size at which a chunk ends, in words and punctuation marks (about the BPE tokens of English
            chat); a message is never split, and a chunk never spans two sessions.
        overlap: most tokens of the last messages of a chunk with which the next of the session begins too.
        top_k: chunks given to the answer.
        retrieval: `dense` (by embedding), `sparse` (by words, BM25; nothing is embedded) or `hybrid` (both, by
            reciprocal rank fusion).
        rerank: chunks that the model is shown to choose the `top_k` best of them; 0 for none. With it there is a second
            prompt, `rerank`.
        answer_form: `direct`, or `quoted`: the model copies the line that tells the answer first.
    """

    name = "rag"
    version = "1"
    prompts: Mapping[str, PromptSpec] = {"answer": ANSWER_PROMPT}
    operations: Sequence[OperationSpec] = (
        OperationSpec("chunk", "extract", None),
        OperationSpec("retrieve", "retrieve", None),
        OperationSpec("answer", "answer", "answer"),
    )
    settings = Settings("chunk_tokens", "overlap", "top_k", "retrieval", "rerank", "answer_form")
    ranges: Mapping[str, Sequence[int | str]] = {
        "chunk_tokens": (60, 120, 200),
        "top_k": (2, 3, 4, 6, 8),
        "retrieval": ("dense", "hybrid"),
    }

    def __init__(
        self,
        *,
        chunk_tokens: int = 200,
        overlap: int = 0,
        top_k: int = 2,
        retrieval: str = "dense",
        rerank: int = 0,
        answer_form: str = "direct",
    ) -> None:
        if not 0 <= overlap < chunk_tokens:
            raise ConfigError(
                f"system_settings.overlap: {overlap} does not fit chunks of {chunk_tokens} tokens; "
                f"give 0 to {chunk_tokens - 1}"
            )
        check_least(0, top_k=top_k, rerank=rerank)
        self.chunk_tokens, self.overlap, self.top_k, self.rerank = chunk_tokens, overlap, top_k, rerank
        self.retrieval = check_retrieval(retrieval)
        check_choice("answer_form", answer_form, FORMS)
        self.answer_form = answer_form
        if rerank:
            self.prompts = {"rerank": RERANK_PROMPT, **Rag.prompts}
            chunk, retrieve, answer = Rag.operations
            self.operations = (chunk, retrieve, OperationSpec("rerank", "retrieve", "rerank"), answer)

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Chunk and embed the conversation."""
        *_, memory = self.build_stepwise([conversation.sessions], candidate, access)
        return memory

    def build_stepwise(
        self, stretches: Sequence[Sequence[DialogueSession]], candidate: Candidate, access: ModelAccess
    ) -> Iterator[Memory]:
        """The memory after each stretch of sessions."""
        entries: list[Entry] = []
        for sessions in stretches:
            for dialogue in sessions:
                with session(dialogue.id, time=dialogue.time):
                    messages = [noted(turn.spoken, name=turn.id, kind="message") for turn in dialogue.turns]
                    for group in self._chunks(messages):
                        entries.append(self._entry(dialogue.time, group, f"c{len(entries) + 1}", access))
            yield memory_of(entries)

    def _entry(self, time: str, group: Sequence[Text], name: str, access: ModelAccess) -> Entry:
        """A chunk of messages, recorded and embedded."""
        read = variables_of(group)
        with operation("chunk", inputs={"messages": read}) as op:
            lines = intervening().extracted(Step("chunk", op.id), read, [time, *(message.text for message in group)])
            text = "\n".join(lines).strip()
            (vector,) = self._embedded([text], access)
            chunk = op.output("chunks", text, name=name, kind="memory_entry")
            return Entry(name, text, tuple(vector), chunk.id)

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from the best chunks."""
        entries = entries_of(memory)
        query = noted(question.question, name=question.id, kind="query")
        count = max(self.rerank, self.top_k)

        def find() -> list[Entry]:
            return ranked(self.retrieval, question.question, entries, access.embedding)[:count]

        hits, context = recorded_retrieval("retrieve", {"query": [query]}, entries, find)
        if self.rerank and hits:
            _, context = rerank(query, hits, context, candidate["rerank"], access.task, self.top_k)
        return answer_from_context(query, context, candidate["answer"], access.task, self.answer_form)

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Chunk and embed facts instead of messages."""
        chunks: list[str] = []
        for facts in sessions:
            lines = [noted(fact, name="given", kind="fact") for fact in facts]
            chunks += ["\n".join(line.text for line in group) for group in self._chunks(lines)]
        return self.with_entries(chunks, access)

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A memory of exactly these chunks."""
        vectors = self._embedded(texts, access) if texts else []
        return memory_of(given_entries(texts, vectors, "c"))

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute the prompt's operation once on recorded inputs."""
        if prompt == "rerank":
            rerank_again(parts, candidate[prompt], access.task, self.top_k)
        else:
            answer_again(parts, candidate[prompt], access.task, self.answer_form)

    def _embedded(self, texts: Sequence[str], access: ModelAccess) -> list[list[float]]:
        """A vector for each text; an empty one where retrieval goes by words."""
        return [[] for _ in texts] if self.retrieval == "sparse" else access.embedding.embed(texts)

    def _chunks(self, messages: Sequence[Text]) -> list[list[Text]]:
        groups: list[list[Text]] = []
        size = self.chunk_tokens
        for message in messages:
            length = _length(message)
            if size + length > self.chunk_tokens:
                room = min(self.overlap, self.chunk_tokens - length)
                groups.append(_last(groups[-1], room) if groups else [])
                size = sum(map(_length, groups[-1]))
            groups[-1].append(message)
            size += length
        return groups


def _length(message: Text) -> int:
    """Words and punctuation marks."""
    return len(re.findall(r"\w+|[^\w\s]", message.text))


def _last(messages: Sequence[Text], room: int) -> list[Text]:
    """As many of the last messages as have room."""
    tail: list[Text] = []
    for message in reversed(messages):
        room -= _length(message)
        if room < 0:
            break
        tail.insert(0, message)
    return tail
