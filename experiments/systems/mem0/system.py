"""Mem0 as a memory system: its own `add` builds, its own search recalls, and the shared answer operation replies.

Mem0 1.0.x runs in this process, or as 0.1.x and 2.x do in an environment of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
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
from experiments.systems.building_blocks.facts import MAX_FACTS
from experiments.systems.building_blocks.recall import entries_of, memory_of, memory_of_texts, recorded_retrieval
from experiments.systems.mem0.connection import ConnectedMemory
from experiments.systems.mem0.library import INSTRUCTIONS, V0, V1, V2, WHOLE, Instance
from experiments.systems.mem0.own_config import OWN_OPTIONS, OwnConfig, checked_ids, read_own_config
from experiments.systems.mem0.prompts import CHOICES, PROMPTS, prompts_of, shipped_texts, with_texts
from experiments.systems.mem0.writer import AddingWriter, Mem0Writer
from experiments.systems.own_config import TakesOwn
from experiments.systems.worker import in_worker
from experiments.systems.worker.isolated import environment_of
from tracing.errors import ConfigError
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import session
from tracing.systems.conversations import Conversation, DialogueSession, Question
from tracing.systems.entries import Entry
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate, PromptSpec
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import noted, noted_again


class AnyMem0(SharedAnswer, EnforcesSchemas, TakesOwn):
    """What the generations of Mem0 have in common; for the settings see `Mem0`."""

    name: str
    generation = V1
    prompts: Mapping[str, PromptSpec] = PROMPTS
    operations: Sequence[OperationSpec]
    writer = Mem0Writer
    ranges: Mapping[str, Sequence[int]] = {"top_k": (2, 4, 6, 8)}

    def __init__(
        self,
        *,
        top_k: int = 4,
        window: int = 4,
        max_tokens: int | None = None,
        reply_schema: str = "embedded",
        config: Any = None,
        ids: Any = None,
        without: Sequence[str] = (),
    ) -> None:
        check_choice("reply_schema", reply_schema, REPLY_SCHEMA)
        check_least(0, top_k=top_k)
        self.own = None if config is None else read_own_config(config, self.generation, without=without)
        options = {"max_tokens": 1024} if self.own is None else {**OWN_OPTIONS, **self.own.model_options}
        self.max_tokens = options["max_tokens"] if max_tokens is None else max_tokens
        check_least(1, window=window, max_tokens=self.max_tokens)
        self.top_k, self.window, self.reply_schema = top_k, window, reply_schema
        self.config, self.ids = self.own and self.own.kept(), checked_ids(ids)
        self.without = list(without)
        self.instance = Instance(self.generation, {**options, "max_tokens": self.max_tokens}, ids=self.ids)
        if self.own is not None:
            self._take_over(self.own)
        # Memories built by another release of the library are other memories.
        self.version = f"1 with {self.generation.package} {self._release()}"

    def _release(self) -> str:
        return self.generation.release

    @classmethod
    def _own(cls, settings: Mapping[str, Any], folder: Path) -> OwnConfig:
        return read_own_config(settings["config"], cls.generation, folder, settings.get("without", ()))

    def require_library(self) -> None:
        """Return if the library can be loaded; see `Library.require`."""
        self.generation.require()

    def caveats(self, *, embedded: bool) -> list[str]:
        """Caveats about results with this system, one sentence each."""
        own = [] if self.own is None else self.own.caveats()
        if not self.enforces_schema(embedded=embedded):
            return own
        return [
            *own,
            "Replies to Mem0's extraction and update requests were constrained to a JSON schema (one item a new fact, "
            "its text fixed), where Mem0 alone asks for any JSON object: with Mem0 alone the prompts may do worse.",
        ]

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Read the conversation, a window of turns at a time; a failed call raises, whatever Mem0 makes of it."""
        *_, memory = self.build_stepwise([conversation.sessions], candidate, access)
        return memory

    def build_stepwise(
        self, stretches: Sequence[Sequence[DialogueSession]], candidate: Candidate, access: ModelAccess
    ) -> Iterator[Memory]:
        """The memory after each stretch of sessions. Raises as `build`."""
        with closing(self._writer(candidate, access)) as writer:
            for sessions in stretches:
                for dialogue in sessions:
                    with session(dialogue.id, time=dialogue.time):
                        for start in range(0, len(dialogue.turns), self.window):
                            turns = dialogue.turns[start : start + self.window]
                            messages = [noted(turn.spoken, name=turn.id, kind="message") for turn in turns]
                            writer.read(messages, dialogue.time)
                yield memory_of(writer.entries.values())

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from what Mem0's search finds."""
        entries = entries_of(memory)
        query = noted(question.question, name=question.id, kind="query")
        connected = ConnectedMemory(access, {}, self._instance_for(access))
        with closing(connected):

            def find() -> list[Entry]:
                connected.restore(entries)
                return connected.search(question.question, self.top_k)

            _, context = recorded_retrieval("retrieve", {"query": [query]}, entries, find)
        return answer_from_context(query, context, candidate["answer"], access.task)

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Let Mem0 decide on these facts, as many at a time as an extraction finds, and store them."""
        with closing(self._writer(candidate, access)) as writer:
            for number, texts in enumerate(sessions, start=1):
                with session(f"given{number}"):
                    facts = [noted(text, name="given", kind="fact") for text in texts]
                    for start in range(0, len(facts), MAX_FACTS):
                        writer.take(facts[start : start + MAX_FACTS])
            return memory_of(writer.entries.values())

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A memory of exactly these facts."""
        return memory_of_texts(texts, "m", access.embedding)

    def _writer(self, candidate: Candidate, access: ModelAccess) -> Mem0Writer:
        return self.writer(access, candidate, self._instance_for(access), enforced=self.enforced_with(access))

    def _instance_for(self, access: ModelAccess) -> Instance:
        """With a user's configuration its temperature counts, or that of the library."""
        if self.own is not None:
            return self.instance
        options = {**self.instance.model_options, "temperature": access.task.settings.temperature}
        return replace(self.instance, model_options=options)

    def _take_over(self, own: OwnConfig) -> None:
        """Start from the prompts that a Mem0 of this configuration sends: its user's, or else the library's."""
        keys = {"extract": WHOLE, **self.generation.keys}
        tuned = {keys[name] for name in self.prompts if name in keys}
        texts = own.texts
        if not tuned <= set(texts):
            texts = {**shipped_texts(self.generation, environment_of(self)), **texts}
        self.prompts = with_texts(self.prompts, keys, texts)
        stays = {key: text for key, text in own.texts.items() if key not in tuned}
        self.instance = replace(self.instance, store=own.local_store, store_options=own.store_options, prompts=stays)


class DecidingMem0(AnyMem0):
    """Mem0 before 2.0: a second request of an `add` decides what happens because of the extracted facts."""

    operations = (
        OperationSpec("extract_facts", "extract", "extract"),
        # `update_memory`, the request for the decisions on all new facts, is split into these.
        OperationSpec("decide_update", "update", "update"),
        OperationSpec("store", "update", None),
        OperationSpec("retrieve", "retrieve", None),
        OperationSpec("answer", "answer", "answer"),
    )
    settings = Settings("top_k", "window", "max_tokens", "reply_schema", "config", "ids", "without")

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute the prompt's operation once on recorded inputs; a decision is asked for alone, not with others."""
        if prompt == "answer":
            return answer_again(parts, candidate["answer"], access.task)
        with closing(self._writer(candidate, access)) as writer:
            if prompt == "extract":
                return writer.extract_again(noted_again(parts["conversation"]))
            memories = noted_again(parts.get("memories", ()))
            vectors = [access.embedding.embed([memory.text])[0] for memory in memories]
            entries = [
                Entry(memory.variable.name, memory.text, tuple(vector), memory.variable.id)
                for memory, vector in zip(memories, vectors, strict=True)
            ]
            return writer.decide_again(noted_again(parts["fact"]), entries)


class Mem0(DecidingMem0):
    """The real Mem0 1.0.x, unmodified: extract, decide, store, search, answer.

    Args:
        top_k: memories given to the answer.
        window: turns given to one `Memory.add`.
        max_tokens: maximum length of a reply of extraction and update; 1,024, or with `config` what that says.
        reply_schema: when the prompts' reply schemas replace the `json_object` that Mem0 asks for: "embedded" with an
            embedded model, which stores almost nothing otherwise, "always" or "never".
        config: a user's own configuration, as for `Memory.from_config`: the path of its JSON or YAML, or its keys.
            Tuning starts from its prompts, and from the library's where it has none (so all of them with `{}`);
            without one, from short ones.
        ids: whose memories they are, by `user_id`, `agent_id` and `run_id`; by default `{user_id: memtune}`.
        without: parts of `config` that a run does not have, `graph_store` and `reranker`, if it may go without them.

    Raises:
        ConfigError: `reply_schema` is none of these; or the library's prompts are wanted, and it is missing.
    """

    name = "mem0"

    def _release(self) -> str:
        return self.generation.here() or "missing"

    def caveats(self, *, embedded: bool) -> list[str]:
        """Caveats about results with this system, one sentence each."""
        caveats = super().caveats(embedded=embedded)
        if self.enforces_schema(embedded=embedded):
            caveats.append("An export's mem0_replies.py constrains the replies of your Mem0 in the same way.")
        return caveats


@in_worker(requirements=[V0.requirement])
class Mem0First(DecidingMem0):
    """The real Mem0 0.1.x in its own environment."""

    name = "mem0@0.1"
    generation = V0


@in_worker(requirements=[V1.requirement])
class Mem0One(DecidingMem0):
    """The real Mem0 1.0.x in its own environment."""

    name = "mem0@1.0"
    generation = replace(V1, remedy="memtune system install mem0@1.0")


@in_worker(requirements=[V2.requirement])
class Mem0Two(AnyMem0):
    """The real Mem0 2.x in its own environment: extract, store, search, answer.

    Without the models of fastembed and spaCy, which it would download, its search is semantic only.

    Args:
        top_k: memories given to the answer.
        window: turns given to one `Memory.add`.
        max_tokens, reply_schema, config, ids, without: see `Mem0`.
        tuned: what is tuned of the extraction: its whole "system" prompt, which is a constant of the library, or the
            "instructions" that it appends, which are a key of its configuration. By default "instructions" if a
            user's own configuration has them, else "system".

    Raises:
        ConfigError: `reply_schema` or `tuned` is none of these, or `config` has no instructions that are to be tuned.
    """

    name = "mem0@2"
    generation = V2
    writer = AddingWriter
    operations = (
        OperationSpec("extract_facts", "extract", "extract"),
        OperationSpec("store", "update", None),
        OperationSpec("retrieve", "retrieve", None),
        OperationSpec("answer", "answer", "answer"),
    )
    settings = Settings("top_k", "window", "max_tokens", "reply_schema", "config", "ids", "without", "tuned")

    def __init__(
        self,
        *,
        top_k: int = 4,
        window: int = 4,
        max_tokens: int | None = None,
        reply_schema: str = "embedded",
        config: Any = None,
        ids: Any = None,
        without: Sequence[str] = (),
        tuned: str | None = None,
    ) -> None:
        has_instructions = config is not None and INSTRUCTIONS in read_own_config(config, V2, without=without).texts
        tuned = tuned or ("instructions" if has_instructions else "system")
        check_choice("tuned", tuned, tuple(CHOICES))
        if tuned == "instructions" and config is not None and not has_instructions:
            raise ConfigError(
                f"system_settings.tuned: config has no {INSTRUCTIONS} to be tuned; add them there, or leave it out"
            )
        self.tuned, self.prompts = tuned, prompts_of(tuned)
        super().__init__(
            top_k=top_k,
            window=window,
            max_tokens=max_tokens,
            reply_schema=reply_schema,
            config=config,
            ids=ids,
            without=without,
        )
        self.operations = (OperationSpec("extract_facts", "extract", CHOICES[tuned].name), *type(self).operations[1:])

    def caveats(self, *, embedded: bool) -> list[str]:
        """Caveats about results with this system, one sentence each."""
        return [
            *super().caveats(embedded=embedded),
            "Mem0 searched by meaning alone: its keyword search and its entities need models that it downloads.",
        ]
