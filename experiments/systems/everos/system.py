"""EverOS 1.5 as a memory system: its own server reads, stores and searches, and the shared answer operation replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.systems.building_blocks.answering import SharedAnswer, answer_again, answer_from_context
from experiments.systems.building_blocks.choices import (
    REPLY_SCHEMA,
    EnforcesSchemas,
    Settings,
    check_choice,
    check_least,
)
from experiments.systems.building_blocks.recall import recorded_retrieval
from experiments.systems.everos.ingestion import EverOsIngestion
from experiments.systems.everos.operations import Asker
from experiments.systems.everos.own_config import OwnEverOs, read_own_everos
from experiments.systems.everos.prompts import PROMPTS
from experiments.systems.everos.search import EPISODE, StoredEpisode, as_state, from_state, matching_ids
from experiments.systems.everos.server import LIBRARY
from experiments.systems.libraries import NeedsLibrary
from experiments.systems.own_config import TakesOwn
from experiments.systems.worker import in_worker
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, variable
from tracing.systems.conversations import Conversation, Question
from tracing.systems.entries import Entry, check_lengths
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate, render
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import noted, noted_again, recalled

METHODS = ("hybrid", "keyword", "vector")


@in_worker(requirements=[LIBRARY.requirement], python=("3.12", "3.13"))
class EverOs(SharedAnswer, EnforcesSchemas, TakesOwn, NeedsLibrary):
    """The real EverOS 1.5: split into episodes, extract each, store it, extract its facts, search, answer.

    Args:
        top_k: most episodes or facts that EverOS's search gives to the answer.
        method: of EverOS's search: "hybrid", "keyword" or "vector".
        max_tokens: maximum length of a reply of the extraction; EverOS sets none.
        reply_schema: when reply schemas are enforced, which EverOS alone does not do: "embedded" with an embedded
            model, "always" or "never".
        config: a user's own configuration: the path of its `everos.toml`, or its keys.

    Raises:
        ConfigError: `method` or `reply_schema` is none of these, `top_k` is below 0, or `config` cannot be read.
    """

    name = "everos"
    # Memories built by another release of the library are other memories.
    version = f"2 with everos {LIBRARY.release}"
    prompts = PROMPTS
    operations = (
        OperationSpec("detect_boundaries", "extract", "boundary_detection"),
        OperationSpec("extract_episode", "extract", "episode_extract"),
        OperationSpec("store", "update", None),
        OperationSpec("extract_facts", "extract", None),
        OperationSpec("search", "retrieve", None),
        OperationSpec("answer", "answer", "answer"),
    )
    library = LIBRARY
    settings = Settings("top_k", "method", "max_tokens", "reply_schema", "config")
    ranges: Mapping[str, Sequence[int]] = {"top_k": (3, 5, 8)}

    def __init__(
        self,
        *,
        top_k: int = 5,
        method: str = "hybrid",
        max_tokens: int = 1024,
        reply_schema: str = "embedded",
        config: Any = None,
    ) -> None:
        check_choice("method", method, METHODS)
        check_choice("reply_schema", reply_schema, REPLY_SCHEMA)
        check_least(0, top_k=top_k)
        self.top_k, self.method, self.max_tokens, self.reply_schema = top_k, method, max_tokens, reply_schema
        self.own = None if config is None else read_own_everos(config)
        self.config = self.own and self.own.kept()

    @classmethod
    def _own(cls, settings: Mapping[str, Any], folder: Path) -> OwnEverOs:
        return read_own_everos(settings["config"], folder)

    def caveats(self, *, embedded: bool) -> list[str]:
        """Caveats about results with this system, one sentence each."""
        caveats = [
            "EverOS counted a token for four bytes, since its table of tokens would be downloaded: where a session is "
            "longer than its limit of 65,536 tokens, it is split elsewhere than by EverOS alone."
        ]
        if self.own is not None:
            caveats += self.own.caveats()
        if self.enforces_schema(embedded=embedded):
            caveats.append(
                "Replies to EverOS's requests were constrained to a JSON schema, where EverOS alone asks for JSON in "
                "words; with EverOS alone the prompts may do worse."
            )
        return caveats

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Read the conversation into a new EverOS; a failed call raises, whatever EverOS makes of it."""
        with EverOsIngestion(
            access, candidate, max_tokens=self.max_tokens, enforced=self.enforced_with(access), own=self.own
        ) as reader:
            vectors: dict[str, list[float]] = {}
            for dialogue in conversation.sessions:
                first = len(reader.entries)
                with session(dialogue.id, time=dialogue.time):
                    reader.read(dialogue)
                    # Here, so that equal sessions are recorded alike, however many follow.
                    vectors |= _embedded(reader.entries[first:], vectors, access)
        return Memory(as_state(reader.entries, vectors))

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from what EverOS's search finds."""
        stored, vectors = from_state(memory.state)
        entries = [Entry(item.id, item.text, (), item.variable) for item in stored]
        query = noted(question.question, name=question.id, kind="query")
        by_id = {entry.id: entry for entry in entries}

        def find() -> list[Entry]:
            if not stored:
                return []
            text = question.question
            ids = matching_ids(stored, vectors, text, access, method=self.method, top_k=self.top_k)
            return [by_id[entry_id] for entry_id in ids]

        _, context = recorded_retrieval("search", {"query": [query]}, entries, find)
        return answer_from_context(query, context, candidate["answer"], access.task)

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Store these facts as episodes."""
        entries: list[StoredEpisode] = []
        for number, texts in enumerate(sessions, start=1):
            with session(f"given{number}"):
                for text in texts:
                    fact = noted(text, name="given", kind="fact")
                    with operation("store", inputs={"fact": fact.variable}) as op:
                        name = f"e{len(entries) + 1}"
                        output = op.output("entry", text, name=name, kind="memory_entry")
                    entries.append(_episode(name, text, output.id))
        return _memory(entries, access)

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A memory of exactly these episodes."""
        outputs = [variable(text, name=f"e{number}", kind="memory_entry") for number, text in enumerate(texts, start=1)]
        return _memory(
            [_episode(output.name, text, output.id) for output, text in zip(outputs, texts, strict=True)], access
        )

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute the prompt's operation once on recorded inputs."""
        if prompt == "answer":
            answer_again(parts, candidate[prompt], access.task)
            return
        asker = Asker(access, candidate, max_tokens=self.max_tokens, enforced=self.enforced_with(access))
        values = {name: parts[name][0].text for name in PROMPTS[prompt].contract.placeholders}
        request = render(candidate[prompt], values)
        if prompt == "boundary_detection":
            asker.boundaries(request, values, noted_again(parts["turns"]))
        else:
            segment = noted_again(parts.get("segment", ()))
            asker.episode(request, values, segment, [message.variable for message in segment])


def _memory(entries: Sequence[StoredEpisode], access: ModelAccess) -> Memory:
    """A memory of these entries, with the vectors of all that EverOS indexes."""
    return Memory(as_state(entries, _embedded(entries, {}, access)))


def _embedded(
    entries: Sequence[StoredEpisode], earlier: Mapping[str, Sequence[float]], access: ModelAccess
) -> dict[str, list[float]]:
    """The vectors of what EverOS indexes of these entries, by text, of those that have none from earlier."""
    texts = list(dict.fromkeys(text for entry in entries for text in entry.indexed if text not in earlier))
    if not texts:
        return {}
    with operation("embed", kind="embedding", inputs={"entries": recalled(entry.variable for entry in entries)}):
        vectors = access.embedding.embed(texts)
    for vector in vectors:
        check_lengths(vector, next(iter(earlier.values()), vectors[0]))
    return dict(zip(texts, vectors, strict=True))


def _episode(name: str, text: str, variable_id: str) -> StoredEpisode:
    return StoredEpisode(name, text, variable_id, EPISODE, "2000-01-01T00:00:00+00:00", "given", {"Content": text})
