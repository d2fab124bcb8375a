"""Memori as a memory system: its own SDK reads, stores and recalls, and the shared answer operation replies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from experiments.systems.building_blocks.answering import SharedAnswer, answer_again, answer_from_context
from experiments.systems.building_blocks.choices import Settings, check_least
from experiments.systems.building_blocks.facts import Extractor
from experiments.systems.building_blocks.recall import given_entries, recorded_retrieval
from experiments.systems.libraries import NeedsLibrary
from experiments.systems.memori.ingestion import PROMPTS, MemoriIngestion
from experiments.systems.memori.library import LIBRARY, ConnectedMemori, StoredFact
from experiments.systems.memori.own_config import DEFAULTS, OwnMemori, read_own_memori
from experiments.systems.own_config import TakesOwn
from experiments.systems.worker import in_worker
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import session
from tracing.systems.conversations import Conversation, Question
from tracing.systems.entries import Entry
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import noted, noted_again, variables_of

_FACTS_ENTITY = "given"


@in_worker(requirements=[LIBRARY.requirement, "openai>=2.20,<4"])
class Memori(SharedAnswer, TakesOwn, NeedsLibrary):
    """The real Memori 3.3.x on sqlite: recall for each exchange, extract from it, store, recall, answer.

    What Memori recalls for an exchange, it puts into it, so that the extraction reads it too.

    Args:
        top_k: facts given to the answer; by default 5, or with `config` its `recall_facts_limit`.
        window: turns of one exchange.
        max_tokens: maximum length of a reply of the extraction.
        config: a user's own configuration: the path of a file of variables, or attributes of `memori.config` and
            variables by their names.

    Raises:
        ConfigError: `window` or `top_k` is too small, or `config` cannot be read.
    """

    name = "memori"
    # Memories built by another release of the library are other memories.
    version = f"2 with memori {LIBRARY.release}"
    prompts = PROMPTS
    operations = (
        OperationSpec("extract_facts", "extract", "extract"),
        OperationSpec("store", "update", None),
        # Also what Memori recalls for an exchange while it reads.
        OperationSpec("recall", "retrieve", None),
        OperationSpec("answer", "answer", "answer"),
    )
    library = LIBRARY
    settings = Settings("top_k", "window", "max_tokens", "config")
    ranges: Mapping[str, Sequence[int]] = {"top_k": (3, 5, 8)}

    def __init__(self, *, top_k: int | None = None, window: int = 4, max_tokens: int = 512, config: Any = None) -> None:
        self.own = DEFAULTS if config is None else read_own_memori(config)
        self.config = None if config is None else self.own.kept()
        self.top_k = self.own.recall_facts_limit if top_k is None else top_k
        check_least(1, window=window)
        check_least(0, top_k=self.top_k)
        self.window, self.max_tokens = window, max_tokens

    @classmethod
    def _own(cls, settings: Mapping[str, Any], folder: Path) -> OwnMemori:
        return read_own_memori(settings["config"], folder)

    def caveats(self, *, embedded: bool) -> list[str]:
        """Caveats about results with this system, one sentence each."""
        return [
            "Memori's facts were extracted with a prompt of ours: by itself it has its cloud extract them, with a "
            "prompt that is not public.",
            *([] if self.config is None else self.own.caveats()),
        ]

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Read the conversation as one entity's; a failed call raises, whatever Memori makes of it."""
        with closing(
            MemoriIngestion(access, conversation.id, self.own, candidate["extract"], max_tokens=self.max_tokens)
        ) as reader:
            for dialogue in conversation.sessions:
                with session(dialogue.id, time=dialogue.time):
                    reader.read(dialogue, self.window)
            return _memory(conversation.id, reader.stored.values())

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from what Memori recalls."""
        facts = [StoredFact.from_json(data) for data in memory.state["entries"]]
        entries = [fact.entry for fact in facts]
        query = noted(question.question, name=question.id, kind="query")
        texts = {fact.entry: fact.shown_text for fact in facts}
        with closing(ConnectedMemori(access, memory.state["entity"], self.own)) as connected:

            def find() -> list[Entry]:
                connected.restore(facts)
                return [fact.entry for fact in connected.search(question.question, self.top_k)]

            _, context = recorded_retrieval("recall", {"query": [query]}, entries, find, texts)
        return answer_from_context(query, context, candidate["answer"], access.task)

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Let Memori store these facts."""
        with closing(ConnectedMemori(access, _FACTS_ENTITY, self.own)) as memori:
            for number, texts in enumerate(sessions, start=1):
                with session(f"given{number}"):
                    facts = [noted(text, name="given", kind="fact") for text in texts]
                    if facts:
                        memori.keep(variables_of(facts), texts, access.embedding.embed(texts))
            return _memory(_FACTS_ENTITY, memori.stored.values())

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A memory of exactly these facts."""
        vectors = access.embedding.embed(texts) if texts else []
        return _memory(_FACTS_ENTITY, [StoredFact(entry) for entry in given_entries(texts, vectors, "m")])

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute the prompt's operation once on recorded inputs."""
        if prompt == "extract":
            extractor = Extractor(PROMPTS["extract"], candidate["extract"], access, max_tokens=self.max_tokens)
            extractor.extract(noted_again(parts["conversation"]))
        else:
            answer_again(parts, candidate["answer"], access.task)


def _memory(entity: str, facts: Iterable[StoredFact]) -> Memory:
    return Memory({"entity": entity, "entries": [fact.as_json() for fact in facts]})
