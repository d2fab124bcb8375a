"""Any existing Mem0 0.1.x, 1.0.x or 2.x, recorded through hooks on the instance, which change nothing that it does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from inspect import iscoroutinefunction
from typing import Any
from weakref import WeakKeyDictionary

from experiments.systems.building_blocks.structured_replies import LONGEST_SHOWN, read_reply
from experiments.systems.mem0.added_messages import messages_added
from experiments.systems.mem0.decisions import Decided, Decision, decisions_of, facts_of, left_alone, memories_of
from experiments.systems.mem0.library import V2, Generation, recordable
from tracing.errors import MalformedReplyError
from tracing.graph.elements import Variable
from tracing.graph.identities import OWN_CHATS, OWN_USERS
from tracing.instrument.openai_calls import openai
from tracing.instrument.patches import Instrumentation
from tracing.llm.booking import note_malformed
from tracing.recording.operations import ActiveOperation, operation
from tracing.recording.recorder import Recorder, current_recorder
from tracing.recording.redaction import excerpt
from tracing.recording.scope import current
from tracing.recording.trace_context import attributes, variable
from tracing.systems.texts import Text, variables_of
from tracing.temporary_values import context_with

Replace = Callable[[Any, str, Callable[[Any], Any]], None]
"""Replaces a method by a wrapper."""
_WHOSE = {"user_id": {*OWN_USERS}, "agent_id": {"agent_id"}, "run_id": {*OWN_CHATS}}


def mem0(memory: Any) -> Instrumentation:
    """Record what a Mem0 memory does: extraction, decisions, storing and search, with the model calls in them.

    The graph is that of memtune's own system `mem0`: `extract_facts`, `update_memory` with a `decide_update` for each
    decision (Mem0 2 makes none), `store` and `retrieve`, inside `add` or on their own. So attribution works the same.
    The memory's behaviour does not change. Model calls are counted if it uses the openai package.

    Messages that you recorded with `variable(…, kind="message")` are those that are added: by their texts, or by the
    key `id` of a message, which is the id or the name of its variable. `tracing.answered` records what you answered.

    Args:
        memory: a `mem0.Memory` or `mem0.AsyncMemory` of mem0ai 0.1.x, 1.0.x or 2.x.

    Returns:
        A context manager that undoes it, also with the method `undo`.

    Raises:
        ConfigError: another release is installed, or it is no such memory.

    Example:
        >>> with instrument.mem0(memory), trace("run.jsonl") as recorder:  # doctest: +SKIP
        ...     memory.add("I moved to Oslo.", user_id="mara")
    """
    instrumentation = Instrumentation()
    _Observer(memory, recordable(memory)).attach(instrumentation.replace)
    for part in (memory.llm, memory.embedding_model):
        client = getattr(part, "client", None)
        if client is not None and type(client).__module__.partition(".")[0] == "openai":
            instrumentation.callback(openai(client).undo)
    return instrumentation


@dataclass(slots=True)
class _Step:
    """One call of `add`: its input, and its results so far."""

    messages: Sequence[Text]
    facts: list[Text] | None = None
    shown_entries: dict[str, Variable] = field(default_factory=dict)
    decided: list[Decided] = field(default_factory=list)


class _Crossing:
    """Runs a method that Mem0 passes to its own thread in the context of the call that led to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._context: Context | None = None

    @contextmanager
    def led(self) -> Iterator[None]:
        """Around the call; another waits until this one has reached its thread."""
        self._lock.acquire()
        ours = self._context = copy_context()
        try:
            yield
        finally:
            if self._context is ours:
                self._context = None
                self._lock.release()

    def arrived(self) -> Context | None:
        """The context of the call that arrived here; None if there is none."""
        context, self._context = self._context, None
        if context is not None:
            self._lock.release()
        return context


class _Observer:
    def __init__(self, memory: Any, generation: Generation) -> None:
        self._memory, self._finds_json = memory, generation.finds_json
        # Whether a second request of an `add` decides what happens because of the extracted facts.
        self._decides = generation is not V2
        self._step: ContextVar[_Step | None] = ContextVar("memtune_mem0_step", default=None)
        self._entries: WeakKeyDictionary[Recorder, dict[str, Variable]] = WeakKeyDictionary()
        self._prompts: WeakKeyDictionary[Recorder, dict[str, Variable]] = WeakKeyDictionary()

    def attach(self, replace: Replace) -> None:
        memory, store = self._memory, self._memory.vector_store
        for name, takes, inner, around in (
            ("add", "messages", "_add_to_vector_store", self._adding),
            ("search", "query", "_search_vector_store", self._searching),
        ):
            crossing = _Crossing()
            if not iscoroutinefunction(getattr(memory, name)):
                replace(memory, inner, _arriving(crossing))
            replace(memory, name, self._outer(around, takes, crossing))
        replace(memory.llm, "generate_response", self._hook(self._on_request))
        replace(store, "search", self._hook(self._on_search))
        replace(store, "insert", self._hook(self._on_insert))
        replace(store, "update", self._hook(self._on_update))
        replace(store, "delete", self._hook(self._on_delete))

    def _hook(self, recorded: Callable[..., Any]) -> Callable[[Any], Any]:
        """A wrapper that calls `recorded` with the original first, or the original alone if nothing is recorded."""

        def wrap(original: Any) -> Any:
            call = partial(recorded, original)
            return lambda *args, **kwargs: (original if current_recorder() is None else call)(*args, **kwargs)

        return wrap

    def _outer(self, around: Callable[..., Any], takes: str, crossing: _Crossing) -> Callable[[Any], Any]:
        """A wrapper that opens `around` with the argument `takes`, which is the first one if it has no keyword."""

        def wrap(original: Any) -> Any:
            if iscoroutinefunction(original):

                async def called_async(*args: Any, **kwargs: Any) -> Any:
                    if current_recorder() is None:
                        return await original(*args, **kwargs)
                    with _of_user(kwargs), around(args[0] if args else kwargs.get(takes)) as finish:
                        result = await original(*args, **kwargs)
                        finish(result)
                        return result

                return called_async

            def called(*args: Any, **kwargs: Any) -> Any:
                if current_recorder() is None:
                    # It arrives in the thread like any other, and must not take another's context there.
                    with crossing.led():
                        return original(*args, **kwargs)
                with _of_user(kwargs), around(args[0] if args else kwargs.get(takes)) as finish:
                    with crossing.led():
                        result = original(*args, **kwargs)
                    finish(result)
                    return result

            return called

        return wrap

    # --- add and search --------------------------------------------------------------------------------------------

    @contextmanager
    def _adding(self, payload: Any) -> Iterator[Callable[[Any], None]]:
        messages = messages_added(_recorder(), payload)
        adding = operation("add", kind="memory", inputs={"messages": variables_of(messages)})
        with adding, context_with(self._step, _Step(messages)):
            yield lambda result: None

    @contextmanager
    def _searching(self, query: Any) -> Iterator[Callable[[Any], None]]:
        with operation(
            "retrieve", kind="retrieval", inputs={"query": variable(query, name="query", kind="query")}
        ) as op:

            def finish(result: Any) -> None:
                hits = result["results"] if isinstance(result, Mapping) else result
                for rank, hit in enumerate(hits, start=1):
                    entry = self._entry(hit["id"], hit.get("memory"))
                    op.use("entries", entry)
                    facts = {"entry": entry.id, "rank": rank, "score": hit.get("score")}
                    op.output("context", hit.get("memory"), name=hit["id"], kind="context", **facts)

            yield finish

    # --- the model -------------------------------------------------------------------------------------------------

    def _on_request(self, original: Any, messages: Any, *args: Any, **kwargs: Any) -> Any:
        """Of the requests of an `add` that ask for JSON the first extracts, the second decides where there is one.

        Those that ask for a text describe an image or sum up what an agent did, and are part of the `add`.
        """
        step = self._step.get()
        if step is None or not isinstance(messages, list) or kwargs.get("response_format") is None:
            return original(messages, *args, **kwargs)
        if step.facts is None:
            prompts = [self._prompt("extract", messages[0]["content"])]
            inputs: dict[str, Any] = {"messages": variables_of(step.messages), "prompt": prompts}
            if not self._decides:
                inputs["memories"] = list(step.shown_entries.values())
                own = getattr(self._memory, "custom_instructions", None)
                prompts += [self._prompt("instructions", own)] if own else []
            with operation("extract_facts", kind="llm", inputs=inputs) as op:
                reply = original(messages, *args, **kwargs)
                read = partial(facts_of, finds_json=self._finds_json) if self._decides else memories_of
                step.facts = _facts(op, reply, read)
            return reply
        if not self._decides:
            return original(messages, *args, **kwargs)
        return self._decide(step, lambda: original(messages, *args, **kwargs))

    def _decide(self, step: _Step, ask: Callable[[], Any]) -> Any:
        texts, memories = [fact.text for fact in step.facts or ()], list(step.shown_entries.values())
        facts = variables_of(step.facts or ())
        targets, prompt = list(step.shown_entries), self._prompt("update", _update_prompt(self._memory))
        with operation("update_memory", kind="llm", inputs={"facts": facts, "memories": memories, "prompt": prompt}):
            reply = ask()
            decisions = _decisions(str(reply), texts, len(memories), finds_json=self._finds_json)
            if any(decision.problem is not None for decision in decisions):
                note_malformed(str(reply))
            for decision in decisions:
                about = [facts[number] for number in decision.facts]
                with operation("decide_update", inputs={"fact": about, "memories": memories, "prompt": prompt}) as op:
                    if decision.problem is not None:
                        op.annotate(malformed=decision.problem, reply=excerpt(str(reply), LONGEST_SHOWN))
                    target = None if decision.target is None else targets[decision.target]
                    value = {"event": decision.event, "target": target, "text": decision.text}
                    output = op.output("decision", value, name="decision")
                    step.decided.append(Decided(decision, target, about, output))
        return reply

    def _prompt(self, name: str, text: str) -> Variable:
        prompts = self._prompts.setdefault(_recorder(), {})
        if text not in prompts:
            prompts[text] = variable(text, name=name, kind="prompt")
        return prompts[text]

    # --- the store -------------------------------------------------------------------------------------------------

    def _on_search(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        """What is found for the new facts is what the update request shows, each once."""
        hits, step = original(*args, **kwargs), self._step.get()
        if step is not None:
            for hit in hits:
                step.shown_entries[hit.id] = self._entry(hit.id, (hit.payload or {}).get("data"))
        return hits

    def _on_insert(self, original: Any, vectors: Any, payloads: Any = None, ids: Any = None, **others: Any) -> Any:
        stored = list(zip(ids or (), payloads or (), strict=False))
        if len(stored) == 1:
            with self._stored("ADD", stored[0][1].get("data")) as op:
                result = original(vectors=vectors, payloads=payloads, ids=ids, **others)
                self._entered(op, *stored[0])
            return result
        # Where all together fail, Mem0 inserts them one by one.
        result = original(vectors=vectors, payloads=payloads, ids=ids, **others)
        for key, payload in stored:
            with self._stored("ADD", payload.get("data")) as op:
                self._entered(op, key, payload)
        return result

    def _entered(self, op: ActiveOperation, key: str, payload: Mapping[str, Any]) -> None:
        self._keep(key, op.output("entry", payload.get("data"), name=key, kind="memory_entry"))

    def _on_update(self, original: Any, vector_id: Any, vector: Any = None, payload: Any = None, **others: Any) -> Any:
        text, before = (payload or {}).get("data"), self._entries.get(_recorder(), {}).get(vector_id)
        if text is None or (before is not None and before.value == _recorder().redaction.text(str(text))):
            # Only its metadata.
            return original(vector_id=vector_id, vector=vector, payload=payload, **others)
        with self._stored("UPDATE", text, vector_id) as op:
            result = original(vector_id=vector_id, vector=vector, payload=payload, **others)
            output = op.output("entry", text, name=vector_id, kind="memory_entry", previous=before)
            self._keep(vector_id, output)
        return result

    def _on_delete(self, original: Any, vector_id: Any, **others: Any) -> Any:
        before = self._entries.get(_recorder(), {}).pop(vector_id, None)
        with self._stored("DELETE", None, vector_id) as op:
            result = original(vector_id=vector_id, **others)
            op.output("entry", None, name=vector_id, kind="delete_marker", previous=before)
        return result

    def _stored(self, event: str, text: str | None, target: str | None = None) -> ActiveOperation:
        """The operation that carries out the first matching decision not yet carried out."""
        step = self._step.get()
        for decided in step.decided if step is not None else ():
            same = (decided.decision.event, decided.target) == (event, target)
            if step is not None and same and text in (None, decided.decision.text):
                step.decided.remove(decided)
                return operation("store", inputs={"fact": decided.facts, "decision": decided.variable})
        texts = (*(step.facts or ()), *step.messages) if step is not None else ()
        return operation("store", inputs={"fact": [source.variable for source in texts if source.text == text]})

    def _entry(self, key: str, text: Any) -> Variable:
        """The variable of a stored memory; it may have been stored before anything was recorded."""
        entry = self._entries.get(_recorder(), {}).get(key)
        if entry is None:
            entry = variable(text, name=key, kind="memory_entry")
            self._keep(key, entry)
        return entry

    def _keep(self, key: str, entry: Variable) -> None:
        self._entries.setdefault(_recorder(), {})[key] = entry


def _of_user(arguments: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Whose memory a call is about, and of which chat, as Mem0 is told, unless the program says such a thing itself."""
    about, said = {**(arguments.get("filters") or {}), **arguments}, current.get().inherited.keys()
    told = {
        name: about[name] for name, alike in _WHOSE.items() if isinstance(about.get(name), str) and not said & alike
    }
    return attributes(**told)


def _arriving(crossing: _Crossing) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        def arrive(*args: Any, **kwargs: Any) -> Any:
            context = crossing.arrived()
            return original(*args, **kwargs) if context is None else context.run(original, *args, **kwargs)

        return arrive

    return wrap


def _recorder() -> Recorder:
    recorder = current_recorder()
    assert recorder is not None  # noqa: S101 (hooks run only where something is recorded)
    return recorder


def _facts(op: ActiveOperation, reply: Any, read: Callable[[str], list[str]]) -> list[Text]:
    numbered = enumerate(read_reply(read, str(reply), op) or (), start=1)
    return [Text(text, op.output("facts", text, name=f"fact{n}", kind="fact")) for n, text in numbered]


def _decisions(reply: str, facts: Sequence[str], memory_count: int, *, finds_json: bool) -> Sequence[Decision]:
    try:
        return decisions_of(reply, facts, memory_count, finds_json=finds_json)
    except MalformedReplyError as error:
        return left_alone(facts, str(error))


def _update_prompt(memory: Any) -> str:
    from mem0.configs.prompts import DEFAULT_UPDATE_MEMORY_PROMPT

    return str(getattr(memory.config, "custom_update_memory_prompt", None) or DEFAULT_UPDATE_MEMORY_PROMPT)
