"""A real memory store manager of LangMem, which asks by way of the gateway; what it decides and stores is recorded.

Only a process that has the library imports this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_openai import ChatOpenAI
from langgraph.store.base import PutOp, SearchOp, get_text_at_path
from langgraph.store.memory import InMemoryStore
from langmem import create_memory_store_manager
from langmem.knowledge.extraction import ExtractedMemory
from langmem.knowledge.extraction import Memory as MemoryForm
from pydantic import BaseModel

from experiments.systems.building_blocks.recall import given_entries, recorded
from experiments.systems.building_blocks.structured_replies import LONGEST_SHOWN
from tracing.errors import MemorySystemError, MemtuneError, in_one_line, raise_first
from tracing.graph.elements import Variable
from tracing.llm.access import ModelAccess
from tracing.llm.booking import note_malformed
from tracing.recording.operations import ActiveOperation, operation
from tracing.recording.redaction import excerpt
from tracing.recording.trace_context import variable
from tracing.systems.entries import Entry, check_lengths
from tracing.systems.interventions import Change, Step, intervening
from tracing.systems.prompts import render
from tracing.systems.texts import Text, variables_of

_NAMESPACE = ("memories",)
_KIND = MemoryForm.__name__
_ONE_BY_ONE = {"max_concurrency": 1}
"""LangMem asks in threads, in any order."""

_SESSION_ID = re.compile(r"(?<=session)_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}>")


class RemoveDoc(BaseModel):  # type: ignore[misc, unused-ignore]
    """A removal, which LangMem knows by this name."""

    json_doc_id: str


class _Model(ChatOpenAI):  # type: ignore[misc]
    """Sends each request as part of the operation that runs; after a failure none, since LangMem tries on and on."""

    attached: Any = None

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        raise_first(self.attached.failures)
        return super()._generate(messages, stop, run_manager, extra_headers=dict(self.attached.headers), **options)


class _Vectors(Embeddings):  # type: ignore[misc]
    """The embedding model of an access, and the vectors that are known already."""

    def __init__(self, access: ModelAccess, failures: list[MemtuneError]) -> None:
        self._access, self._failures = access, failures
        self.known: dict[str, Sequence[float]] = {}
        self._queries: dict[str, Sequence[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Those of what is searched."""
        self._add(self.known, texts, query=False)
        return [list(self.known[text]) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """That of what is searched for; asked for beforehand, since the store does so in a thread without context."""
        self._add(self._queries, [text], query=True)
        vector = self._queries[text]
        for stored in self.known.values():
            check_lengths(stored, vector)
        return list(vector)

    def _add(self, vectors: dict[str, Sequence[float]], texts: Iterable[str], *, query: bool) -> None:
        missing = [text for text in texts if text not in vectors]
        try:
            if missing:
                vectors |= zip(missing, self._access.embedding.embed(missing, query=query), strict=True)
        except MemtuneError as error:
            self._failures.append(error)  # LangMem does not look whether its writes fail
            raise


class _Store(InMemoryStore):  # type: ignore[misc]
    """LangGraph's store in memory. While `held` is there, writes are kept in it by key: LangMem writes in threads, in
    any order, and does not look whether a write fails."""

    def __init__(self, vectors: _Vectors) -> None:
        super().__init__(index={"dims": 0, "embed": vectors})
        self._known = vectors
        self.held: set[str] | None = None

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """All that the store does comes by here."""
        todo = list(ops)
        for op in todo:
            if isinstance(op, SearchOp) and op.query:
                self._known.embed_query(op.query)
        if self.held is None or not isinstance(todo[0], PutOp):
            return list(super().batch(todo))
        self.held |= {op.key for op in todo}
        return [None for _ in todo]


class RecordedManager:
    """LangMem's memory store manager on a store of its own, in memory.

    Attributes:
        entries: what is stored, by key, in the order stored.
    """

    def __init__(
        self, access: ModelAccess, instructions: str, *, query_limit: int, deletes: bool, max_tokens: int
    ) -> None:
        self._failures: list[MemtuneError] = []
        self._gateway = access.gateway()
        self._model = _Model(
            model=access.task.settings.model,
            base_url=self._gateway.base_url,
            api_key=self._gateway.key,
            max_tokens=max_tokens,
            max_retries=0,
        )
        self._vectors = _Vectors(access, self._failures)
        self._store = _Store(self._vectors)
        self._manager = create_memory_store_manager(
            self._model,
            instructions=render(instructions, {}),
            query_limit=query_limit,
            enable_deletes=deletes,
            namespace=_NAMESPACE,
            store=self._store,
        )
        self._asking, self._manager.memory_manager = self._manager.memory_manager, self
        prepare = self._asking._prepare_messages
        self._asking._prepare_messages = lambda *arguments: _with_equal_ids(prepare(*arguments))
        self._prompt = variable(instructions, name="instructions", kind="prompt")
        self.entries: dict[str, Entry] = {}
        self._messages: Sequence[Text] = ()
        self._decisions: dict[str, tuple[Change, dict[str, Variable]]] = {}
        self._facts = self._added = 0

    def read(self, messages: Sequence[Text]) -> None:
        """Let it read messages, and record what it extracts, decides and stores.

        Raises:
            ModelError, BudgetExceededError: a call failed, even if LangMem swallowed the error.
        """
        self._messages, self._decisions, self._store.held = messages, {}, set()
        try:
            self._manager.invoke({"messages": _as_said(messages)}, config=_ONE_BY_ONE)
        finally:
            raise_first(self._failures)
            held, self._store.held = self._store.held, None
        for key, (change, inputs) in self._decisions.items():
            if key in held:
                self._write(key, change, inputs)
            elif change.event == "ADD":
                raise MemorySystemError(f"langmem should have stored {change.text!r} but did not; its log says why")

    def read_again(self, messages: Sequence[Text], memories: Sequence[Text]) -> None:
        """Let it read recorded messages and the memories that it was shown, and do nothing of what it decides.

        Raises as `read`.
        """
        self._messages = messages
        for memory in memories:
            name = memory.variable.name
            self.entries[name] = Entry(name, memory.text, (), memory.variable.id)
        shown = [(self._shown_id(key), _KIND, {"content": entry.text}) for key, entry in self.entries.items()]
        self.invoke({"messages": _as_said(messages), "existing": shown}, config=_ONE_BY_ONE)

    def keep(self, facts: Sequence[Text]) -> None:
        """Put facts into its store."""
        for fact in facts:
            self._write(self._next_key(), Change("ADD", text=fact.text), {"fact": fact.variable})

    def given(self, texts: Sequence[str]) -> list[Entry]:
        """Entries that were given instead of built, with the vectors that the store would have."""
        return given_entries(texts, self._vectors.embed_documents([_document(text) for text in texts]), "m")

    def restore(self, entries: Sequence[Entry]) -> None:
        """Put the entries of a built memory back into its store."""
        for entry in entries:
            self._vectors.known[_document(entry.text)] = entry.vector
            self.entries[entry.id] = entry
            self._store.put(_NAMESPACE, entry.id, _value(entry.text))

    def search(self, query: str, count: int) -> list[Entry]:
        """The `count` entries that its own search finds, best first."""
        return [self.entries[item.key] for item in self._manager.search(query=query, limit=count)]

    def invoke(self, request: dict[str, Any], config: Any = None) -> list[ExtractedMemory]:
        """Hook: what the store manager has its inner manager do with messages and the memories found for them."""
        keys = {self._shown_id(key): key for key in self.entries}
        shown = {shown_id: self.entries[keys[shown_id]] for shown_id, _, _ in request["existing"]}
        given = {"memories": recorded(list(shown.values())), "prompt": self._prompt}
        read = variables_of(self._messages)
        with operation("manage_memory", kind="llm", inputs={"messages": read, **given}) as op:
            replies = self._ask(op, request, config)
            changes = [change for reply in replies if (change := _change(reply, shown)) is not None]
            texts = [change.text for change in changes if change.event != "DELETE"]
            told = intervening().extracted(Step("manage_memory", op.id), read, texts)
            facts = [(change, self._fact(op, change)) for change in _retold(changes, texts, told)]
        for change, about in facts:
            with operation("decide_update", inputs={**(about or {"messages": read}), **given}) as op:
                change = intervening().decided(Step("decide_update", op.id), change.text, list(shown.values()), change)
                value = {"event": change.event, "target": change.target}
                decision = op.output("decision", value, name="decision", kind="value")
            if change.event != "NONE":
                self._decisions[change.target or self._next_key()] = change, {**about, "decision": decision}
        return [_reply(self._shown_id(key), key, change) for key, (change, _) in self._decisions.items()]

    def _ask(self, op: ActiveOperation, request: dict[str, Any], config: Any) -> list[ExtractedMemory]:
        with self._gateway.attached() as attached:
            self._model.attached = attached
            try:
                replies: list[ExtractedMemory] = self._asking.invoke(request, config=config)
            except Exception as error:
                if not attached.failures:  # LangMem gives up on calls that it cannot mend
                    note_malformed(attached.replies[-1].text)
                    op.annotate(malformed=in_one_line(error), reply=excerpt(str(attached.replies[-1]), LONGEST_SHOWN))
                return []
            finally:
                self._failures += attached.failures
                raise_first(attached.failures)
        if not any(reply.tool_calls for reply in attached.replies):
            op.annotate(no_tool_called=excerpt(attached.replies[-1].text, LONGEST_SHOWN))
        return replies

    def _fact(self, op: ActiveOperation, change: Change) -> dict[str, Variable]:
        if change.event == "DELETE":
            return {}
        self._facts += 1
        return {"fact": op.output("facts", change.text, name=f"fact{self._facts}", kind="fact")}

    def _write(self, key: str, decision: Change, inputs: dict[str, Variable]) -> None:
        with operation("store", inputs=inputs) as op:
            change = intervening().stored(Step("store", op.id), decision, decision)
            old = self.entries.get(key)
            previous = old.variable or None if old is not None else None
            if change.event == "DELETE":
                self._store.delete(_NAMESPACE, key)
                op.output("entry", None, name=key, kind="delete_marker", previous=previous)
                self.entries.pop(key, None)
            elif change.event != "NONE":
                self._store.put(_NAMESPACE, key, _value(change.text))
                stored = op.output("entry", change.text, name=key, kind="memory_entry", previous=previous)
                vector = tuple(self._vectors.known[_document(change.text)])
                self.entries[key] = Entry(key, change.text, vector, stored.id)

    def _next_key(self) -> str:
        self._added += 1
        return f"m{self._added}"

    def _shown_id(self, key: str) -> str:
        """What LangMem calls a stored memory before its model."""
        return str(self._manager._stable_id(SimpleNamespace(namespace=_NAMESPACE, key=key)))


def _as_said(messages: Sequence[Text]) -> list[dict[str, str]]:
    return [{"role": "user", "content": message.text} for message in messages]


def _value(text: str) -> dict[str, Any]:
    """A memory as LangMem stores it."""
    return {"kind": _KIND, "content": {"content": text}}


def _document(text: str) -> str:
    """A memory as the store embeds it."""
    (document,) = get_text_at_path(_value(text), "$")
    return str(document)


def _with_equal_ids(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """LangMem's request without the random id of its session, so that equal requests are equal."""
    return [{**message, "content": _SESSION_ID.sub("_1>", message["content"])} for message in messages]


def _change(reply: ExtractedMemory, shown: Mapping[str, Entry]) -> Change | None:
    """What a reply does to the memory; None for a stored one that it leaves as it is."""
    entry, content = shown.get(reply.id), reply.content
    if not isinstance(content, BaseModel):
        return None
    if type(content).__name__ == RemoveDoc.__name__:
        return Change("DELETE", entry.id) if entry is not None else None
    text = str(content.model_dump(mode="json")["content"])
    if entry is None:
        return Change("ADD", text=text)
    return Change("UPDATE", entry.id, text) if text != entry.text else None


def _retold(changes: Sequence[Change], texts: Sequence[str], told: Sequence[str]) -> list[Change]:
    """Changes with other texts than the model gave them; without such that are not told, and with new ones."""
    if len(texts) == len(told):
        again = iter(told)
        return [change if change.event == "DELETE" else replace(change, text=next(again)) for change in changes]
    kept = [change for change in changes if change.event == "DELETE" or change.text in told]
    return [*kept, *(Change("ADD", text=text) for text in told if text not in texts)]


def _reply(shown_id: str, key: str, change: Change) -> ExtractedMemory:
    """A change in the form in which LangMem carries it out."""
    if change.event == "ADD":
        return ExtractedMemory(key, MemoryForm(content=change.text))
    content = RemoveDoc(json_doc_id=shown_id) if change.event == "DELETE" else MemoryForm(content=change.text)
    return ExtractedMemory(shown_id, content)
