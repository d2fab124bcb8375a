"""LlamaIndex's memory, recorded: messages, what the blocks of a memory make of them and give back, and indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.memory.memory import BaseMemoryBlock, Memory

from tracing.graph.elements import Variable
from tracing.instrument.frameworks.llama_index_runs import text_of
from tracing.instrument.library_memories import deleted, entry_of, searching, writing, written
from tracing.instrument.patches import Instrumentation, ResultHandler, recorded
from tracing.instrument.program_steps import Step, executed, recalled, registry_of, step_here, step_scope
from tracing.recording.recorder import Recorder
from tracing.recording.trace_context import variable
from tracing.temporary_values import context_with


def record_memory(instrumentation: Instrumentation) -> None:
    """Record every memory and index until the instrumentation is undone; plain methods call the async ones."""
    for method, around in _MESSAGES:
        instrumentation.replace(Memory, method, recorded(around))
    instrumentation.replace(BaseMemoryBlock, "aput", recorded(partial(_block_put, instrumentation)))
    instrumentation.replace(BaseMemoryBlock, "aget", recorded(partial(_block_get, instrumentation)))
    for name in ("insert", "ainsert"):
        instrumentation.replace(BaseIndex, name, recorded(_document))
    for owner in (BaseIndex, VectorStoreIndex):
        for name in vars(owner).keys() & _INSERTS:
            instrumentation.replace(owner, name, recorded(_insert))
        for name in vars(owner).keys() & _DELETES:
            instrumentation.replace(owner, name, recorded(_delete))


_INSERTS = {"insert_nodes", "ainsert_nodes", "build_index_from_nodes"}
_DELETES = {"delete_nodes", "adelete_nodes", "delete_ref_doc", "adelete_ref_doc"}


@dataclass(slots=True)
class _MemoryState:
    """What is known of the memories and indices of one recording.

    Attributes:
        conversations: by session of a memory, its messages, and how many of them were passed on to its blocks.
        pending: by session and name of a block, the messages it was given since its content was last seen.
        nodes: by document, the ids of its nodes in indices.
    """

    conversations: dict[str, tuple[list[Variable], int]] = field(default_factory=dict)
    pending: dict[tuple[str, str], list[Variable]] = field(default_factory=dict)
    nodes: dict[str, list[str]] = field(default_factory=dict)


_ENTRIES: ContextVar[list[Variable] | None] = ContextVar("memtune_llama_index_entries", default=None)
_ADDED: ContextVar[list[Any] | None] = ContextVar("memtune_llama_index_added", default=None)
_NODES: ContextVar[list[Any] | None] = ContextVar("memtune_llama_index_found", default=None)
_DOCUMENT: ContextVar[Any] = ContextVar("memtune_llama_index_document", default=None)


def _memory_state(recorder: Recorder) -> _MemoryState:
    state: _MemoryState = recorder.beside.setdefault(_MemoryState, _MemoryState())
    return state


# --- messages --------------------------------------------------------------------------------------------------------


@contextmanager
def _put(recorder: Recorder, memory: Memory, *args: Any, **kwargs: Any) -> Iterator[ResultHandler]:
    messages: Any = next(iter((*args, *kwargs.values())), [])
    new_messages = messages if isinstance(messages, list) else [messages]
    conversation, _ = _memory_state(recorder).conversations.setdefault(memory.session_id, ([], 0))
    for message in new_messages:
        conversation.append(_message(recorder, message, conversation))
    yield _nothing


@contextmanager
def _set(recorder: Recorder, memory: Memory, messages: Sequence[ChatMessage]) -> Iterator[ResultHandler]:
    conversation: list[Variable] = []
    for message in messages:
        conversation.append(_message(recorder, message, conversation))
    _memory_state(recorder).conversations[memory.session_id] = (conversation, 0)
    yield _nothing


def _message(recorder: Recorder, message: ChatMessage, before: Sequence[Variable]) -> Variable:
    """The variable of a message that joins those before it; Python keeps equal constants as one object."""
    registry, text = registry_of(recorder), text_of(message)
    message_variable = registry.of(message) or recalled(recorder, text)
    if message_variable is None or any(message_variable is earlier for earlier in before):
        message_variable = variable(text, name=message.role.value, kind="message", role=message.role.value)
    registry.keep(message_variable, thing=text)
    return registry.keep(message_variable, thing=message)


@contextmanager
def _get(recorder: Recorder, memory: Memory, input: Any = None, **others: Any) -> Iterator[ResultHandler]:
    conversation, _ = _memory_state(recorder).conversations.get(memory.session_id, ([], 0))
    query = text_of(input) if isinstance(input, ChatMessage) else input
    registry, step = registry_of(recorder), step_here()
    last_message = [] if query else [("messages", message) for message in conversation[-1:]]
    entries: list[Variable] = []
    with searching(recorder, step, query, last_message) as search, context_with(_ENTRIES, entries):

        def on_result(messages: Sequence[ChatMessage]) -> None:
            for entry in entries:
                search.used(entry)
            remaining = list(conversation)
            for message in reversed(messages):
                if remaining and remaining[-1].value == recorder.redaction.text(text_of(message)):
                    registry.keep(remaining.pop(), thing=message)
                else:
                    # What the blocks hold, alone or in a message of the conversation.
                    registry.keep(search.add_context("memory", text_of(message)), thing=message)

        yield on_result


def _passed_on(recorder: Recorder, messages: Sequence[ChatMessage], session: str) -> list[Variable]:
    """The variables of messages that a memory takes out of its queue, oldest first, and hands to its blocks."""
    state, registry, variables = _memory_state(recorder), registry_of(recorder), []
    conversation, passed = state.conversations.setdefault(session, ([], 0))
    for message in messages:
        message_variable = registry.of(message)
        if message_variable is None:
            text = recorder.redaction.text(text_of(message))
            at = next((at for at in range(passed, len(conversation)) if conversation[at].value == text), None)
            message_variable = (
                _message(recorder, message, conversation)
                if at is None
                else registry.keep(conversation[at], thing=message)
            )
            passed = passed if at is None else at + 1
        variables.append(message_variable)
    state.conversations[session] = (conversation, passed)
    return variables


# --- blocks ----------------------------------------------------------------------------------------------------------


@contextmanager
def _block_put(
    instrumentation: Instrumentation,
    recorder: Recorder,
    block: Any,
    messages: Any,
    from_short_term_memory: bool = False,
    session_id: str | None = None,
) -> Iterator[ResultHandler]:
    session = session_id or ""
    step = Step(_step_name(block), outer=step_here())
    step.messages = [("messages", message) for message in _passed_on(recorder, messages or [], session)]
    facts = list(getattr(block, "facts", ()))
    step.arguments = [("memories", _fact(recorder, session, block, fact)) for fact in facts]
    _follow_vectors(instrumentation, block)
    added: list[Any] = []
    with step_scope(step), context_with(_ADDED, added):

        def on_result(_: Any) -> None:
            if hasattr(block, "facts"):
                _facts_changed(recorder, step, block, session, facts)
            elif hasattr(block, "vector_store"):
                op = step.read(step.messages, "memory")
                for node in added:
                    written(recorder, op, ("node", node.node_id), node.node_id, node.get_content())
            else:
                pending = _memory_state(recorder).pending.setdefault((session, block.name), [])
                pending += step.origins()

        yield on_result


def _step_name(block: Any) -> str:
    return "extract_facts" if hasattr(block, "facts") else "store" if hasattr(block, "vector_store") else block.name


def _facts_changed(recorder: Recorder, step: Step, block: Any, session: str, before: Sequence[str]) -> None:
    """A list of facts has no keys: the block itself takes equal texts for one fact."""
    new = [fact for fact in block.facts if fact not in before]
    removed = [fact for fact in before if fact not in block.facts]
    if new or removed:
        with writing(recorder, step, None) as op:
            for fact in new:
                written(recorder, op, _fact_key(session, block, fact), block.name, fact)
            for fact in removed:
                deleted(recorder, op, _fact_key(session, block, fact), block.name)


def _fact(recorder: Recorder, session: str, block: Any, fact: str) -> Variable:
    return entry_of(recorder, _fact_key(session, block, fact), block.name, fact)


def _fact_key(session: str, block: Any, fact: str) -> tuple[str, ...]:
    return ("fact", session, block.name, fact)


@contextmanager
def _block_get(
    instrumentation: Instrumentation,
    recorder: Recorder,
    block: Any,
    messages: Any = None,
    session_id: str | None = None,
    **others: Any,
) -> Iterator[ResultHandler]:
    entries, session = _ENTRIES.get(), session_id or ""
    _follow_vectors(instrumentation, block)
    nodes: list[Any] = []
    with context_with(_NODES, nodes):

        def on_result(content: Any) -> None:
            if entries is None or not content:
                return
            if hasattr(block, "facts"):
                entries.extend(_fact(recorder, session, block, fact) for fact in block.facts)
            elif hasattr(block, "vector_store"):
                entries.extend(
                    entry_of(recorder, ("node", node.node_id), node.node_id, node.get_content()) for node in nodes
                )
            else:
                entries.append(_content(recorder, block, session, content))

        yield on_result


def _content(recorder: Recorder, block: Any, session: str, content: Any) -> Variable:
    """The content of a block of another kind: what it made of its messages is seen only when it is read."""
    text = content if isinstance(content, str) else "\n".join(str(getattr(part, "text", part)) for part in content)
    key = ("block", session, block.name)
    before, pending = (
        registry_of(recorder).by_key.get(key),
        _memory_state(recorder).pending.pop((session, block.name), []),
    )
    if not pending or (before is not None and before.value == recorder.redaction.text(text)):
        return entry_of(recorder, key, block.name, text)
    with executed("store", "memory", step_here(), [("fact", message) for message in pending]) as op:
        return written(recorder, op, key, block.name, text)


def _follow_vectors(instrumentation: Instrumentation, block: Any) -> None:
    """Note what a block adds to its vector store, and finds there."""
    if hasattr(block, "vector_store"):
        instrumentation.replace(type(block.vector_store), "async_add", recorded(_add))
        instrumentation.replace(type(block.vector_store), "aquery", recorded(_query))


@contextmanager
def _add(recorder: Recorder, store: Any, nodes: Sequence[Any], *args: Any, **others: Any) -> Iterator[ResultHandler]:
    added = _ADDED.get()
    yield lambda _: added.extend(nodes) if added is not None else None


@contextmanager
def _query(recorder: Recorder, store: Any, *args: Any, **others: Any) -> Iterator[ResultHandler]:
    nodes = _NODES.get()
    yield lambda result: nodes.extend(result.nodes or []) if nodes is not None else None


# --- indices ---------------------------------------------------------------------------------------------------------


@contextmanager
def _document(recorder: Recorder, index: Any, document: Any, *args: Any, **others: Any) -> Iterator[ResultHandler]:
    with context_with(_DOCUMENT, document):
        yield _nothing


@contextmanager
def _insert(recorder: Recorder, index: Any, nodes: Any, *args: Any, **others: Any) -> Iterator[ResultHandler]:
    if not nodes:
        yield _nothing
        return
    document = _DOCUMENT.get()
    texts = [getattr(document, "text", None), *(node.get_content() for node in nodes)]
    with writing(recorder, step_here(), texts) as op:

        def on_result(_: Any) -> None:
            for node in nodes:
                written(recorder, op, ("node", node.node_id), node.node_id, node.get_content())
                _memory_state(recorder).nodes.setdefault(str(node.ref_doc_id), []).append(node.node_id)

        yield on_result


@contextmanager
def _delete(recorder: Recorder, index: Any, *args: Any, **kwargs: Any) -> Iterator[ResultHandler]:
    ids = args[0] if args else kwargs.get("ref_doc_id", kwargs.get("node_ids", kwargs.get("doc_id", [])))
    node_ids = _memory_state(recorder).nodes.pop(ids, []) if isinstance(ids, str) else ids
    with writing(recorder, step_here(), None) as op:

        def on_result(_: Any) -> None:
            for node_id in node_ids:
                deleted(recorder, op, ("node", node_id), node_id)

        yield on_result


def _nothing(_: Any) -> None:
    return None


_MESSAGES: tuple[tuple[str, Any], ...] = (("aput", _put), ("aput_messages", _put), ("aset", _set), ("aget", _get))
