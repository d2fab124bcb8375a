"""What LangChain and LangGraph say of their runs, recorded: steps, models, tools and retrievers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers import context as hooks

from tracing.instrument.frameworks.langchain_values import (
    Channels,
    is_message,
    items_of,
    message_key,
    request_links,
    state_links,
    text_of,
    updates_of,
)
from tracing.instrument.frameworks.langchain_vectors import found_document
from tracing.instrument.library_calls import LibraryCall
from tracing.instrument.library_memories import Search, begin_search
from tracing.instrument.patches import Instrumentation, ResultHandler
from tracing.instrument.program_steps import Step, opened_step, registry_of, running, step_here, step_scope
from tracing.recording.recorder import Recorder, open_recorder
from tracing.recording.trace_context import variable


def follow_runs(instrumentation: Instrumentation, answers: Collection[str]) -> None:
    """Let every run be recorded until the instrumentation is undone; does nothing where they are already."""
    if any(isinstance(hook[0].get(), _Runs) for hook in hooks._configure_hooks):
        return
    runs = _Runs(answers)
    # The default is what every thread and task sees that has set nothing, which is all of them.
    hook_variable: ContextVar[Any] = ContextVar("memtune_langchain_runs", default=runs)
    hooks.register_configure_hook(hook_variable, True)

    def forget() -> None:
        hooks._configure_hooks[:] = [hook for hook in hooks._configure_hooks if hook[0] is not hook_variable]

    instrumentation.callback(forget)
    instrumentation.callback(running(runs.here))


class _Run(Step):
    """A step of LangChain's: the node of a graph, a tool, or a chain that is no part of another."""

    def __init__(self, name: str, run: UUID, metadata: Mapping[str, Any], outer: _Run | None) -> None:
        super().__init__(name, outer=outer)
        self.run, self.place = run, metadata.get("langgraph_checkpoint_ns")
        self.thread = str(metadata.get("thread_id") or "")
        self.channels: Channels = {} if outer is None else outer.channels
        self.caller = outer if outer is not None and outer.place is not None else None
        """The node that called this one as a task, and gets what it returns."""


class _Runs(BaseCallbackHandler):  # type: ignore[misc]
    """Told by LangChain of every run, in the context in which it happens."""

    run_inline = True

    def __init__(self, answers: Collection[str]) -> None:
        self._answers = frozenset((*answers, "output"))
        self._runs: dict[UUID | None, _Run] = {}
        self._calls: dict[UUID, tuple[LibraryCall, str]] = {}
        self._searches: dict[UUID, Search] = {}

    def here(self) -> _Run | None:
        """The step that runs in the present context."""
        callbacks = (var_child_runnable_config.get() or {}).get("callbacks")
        return self._runs.get(getattr(callbacks, "parent_run_id", None))

    # --- steps -----------------------------------------------------------------------------------------------------

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **facts: Any
    ) -> None:
        if open_recorder() is None or opened_step() is not None:
            return
        outer, metadata = self._runs.get(parent_run_id), facts.get("metadata") or {}
        name = facts.get("name") or "chain"
        is_node = name == metadata.get("langgraph_node")
        if outer is not None and not (is_node and metadata.get("langgraph_checkpoint_ns") != outer.place):
            self._runs[run_id] = outer
            return
        run = self._runs[run_id] = _Run(name, run_id, metadata, outer)
        run.messages, run.arguments = state_links(registry_of(run.recorder), inputs, run.channels, run.thread)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **facts: Any) -> None:
        run = self._take_step(run_id)
        if run is None:
            return
        for key, value in updates_of(outputs):
            answer = self._answer(run, key, value)
            if answer is not None:
                op = run.operation() if run.replies else run.read([*run.messages, *run.inputs()])
                op.output("prediction", answer, name="prediction", kind="prediction")
            elif run.place is not None and value is not None and not any(map(is_message, items_of(value))):
                self._write(run, key, value)
        run.end()

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **facts: Any) -> None:
        run = self._take_step(run_id)
        if run is not None:
            failed = all(kind.__name__ != "GraphBubbleUp" for kind in type(error).__mro__)  # which is an interrupt
            if failed and run.place is not None:
                run.operation()
            run.end(error if failed else None)

    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: UUID, parent_run_id: UUID | None = None, **facts: Any
    ) -> None:
        if open_recorder() is None or opened_step() is not None:
            return
        name = facts.get("name") or (serialized or {}).get("name") or "tool"
        run = _Run(name, run_id, facts.get("metadata") or {}, self._runs.get(parent_run_id))
        self._runs[run_id] = run
        request = registry_of(run.recorder).by_key.get(("call", facts.get("tool_call_id")))
        arguments = facts.get("inputs") or input_str
        run.arguments = [("call", request or variable(arguments, name=name, kind="request"))]
        run.read(run.arguments, "tool")

    def on_tool_end(self, output: Any, *, run_id: UUID, **facts: Any) -> None:
        run = self._take_step(run_id)
        if run is None:
            return
        registry, call = registry_of(run.recorder), getattr(output, "tool_call_id", None)
        result = text_of(output) if isinstance(output, ToolMessage) else output
        kind = "context" if run.contexts else "value"
        result_variable = run.read(run.inputs(), "tool").output("result", result, name=run.name, kind=kind)
        if call:
            registry.keep(result_variable, key=("result", call))
        if run.contexts:
            registry.shows[id(result_variable)] = list(run.contexts)
        run.end()

    on_tool_error = on_chain_error

    def _take_step(self, run_id: UUID) -> _Run | None:
        """The step that began with this run, if it did and can still be recorded."""
        run = self._runs.pop(run_id, None)
        return run if run is not None and run.run == run_id and not run.recorder.ended else None

    def _answer(self, run: _Run, key: str, value: Any) -> str | None:
        """The answer to the user in what a step returned; None if there is none."""
        if (run.place is None and not run.begun) or key not in self._answers or not items_of(value):
            return None
        if key == "output" and run.caller is not None:
            return None
        last = items_of(value)[-1]
        if isinstance(last, AIMessage):
            message = registry_of(run.recorder).by_key.get(message_key(last, run.thread))
            old = message is not None and all(message is not reply for _, reply in run.replies)
            return None if old or last.tool_calls else text_of(last) or None
        if isinstance(last, Mapping) and last.get("role") in ("assistant", "ai"):
            return str(last.get("content"))
        replied = [text for text, _ in run.replies]
        if key == "output":  # or what a task has made of a reply, which the entrypoint returns
            replied += [made.value for _, made in run.arguments if made.kind == "fact"]
        return last if isinstance(last, str) and last in replied else None

    def _write(self, run: _Run, key: str, value: Any) -> None:
        """A node gives a value to the nodes after it."""
        if not run.replies and not run.inputs():
            return  # made of nothing that is known
        kind = "fact" if run.replies else "context" if run.contexts else "value"
        op = run.operation() if run.replies else run.read(run.inputs())
        output = op.output(key, value, name=key, kind=kind)
        if run.caller is not None and key == "output":
            run.caller.arguments.append((run.name, output))
        else:
            run.channels.setdefault(key, []).append((value, output))

    # --- models ----------------------------------------------------------------------------------------------------

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **facts: Any
    ) -> None:
        recorder = open_recorder()
        if recorder is None:
            return
        run = self._runs.get(parent_run_id)
        step, thread = step_here(run), run.thread if run is not None else ""
        links = request_links(registry_of(recorder), messages[0], step.name if step is not None else "chat", thread)
        model = (facts.get("invocation_params") or {}).get("model") or (facts.get("metadata") or {}).get(
            "ls_model_name"
        )
        self._calls[run_id] = LibraryCall(step, links, str(model or "")), thread

    def on_llm_start(self, serialized: Any, prompts: list[str], *, run_id: UUID, **facts: Any) -> None:
        self.on_chat_model_start(serialized, [[HumanMessage(prompts[0])]], run_id=run_id, **facts)

    def on_llm_end(self, response: Any, *, run_id: UUID, **facts: Any) -> None:
        call, thread = self._calls.pop(run_id, (None, ""))
        if call is None:
            return
        generation = response.generations[0][0]
        message = getattr(generation, "message", None)
        usage, metadata = (
            getattr(message, "usage_metadata", None) or {},
            getattr(message, "response_metadata", None) or {},
        )
        tools = getattr(message, "tool_calls", None) or []
        text = text_of(message) if message is not None else generation.text
        tool_requests = [{"name": tool_call["name"], "arguments": tool_call["args"]} for tool_call in tools]
        reply = call.answered(
            text,
            {"content": text, "tool_calls": tool_requests} if tools else text,
            model=str(metadata.get("model_name") or ""),
            read=int(usage.get("input_tokens") or 0),
            written=int(usage.get("output_tokens") or 0),
        )
        if reply is not None and message is not None:
            registry = registry_of(call.recorder)
            registry.keep(reply, key=message_key(message, thread), thing=message)
            for tool_call in tools:
                registry.keep(reply, key=("call", tool_call["id"]))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **facts: Any) -> None:
        call, _ = self._calls.pop(run_id, (None, ""))
        if call is not None:
            call.failed(error)

    # --- retrievers ------------------------------------------------------------------------------------------------

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **facts: Any
    ) -> None:
        recorder = open_recorder()
        if recorder is None:
            return
        self._searches[run_id] = begin_search(recorder, step_here(self._runs.get(parent_run_id)), query)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **facts: Any) -> None:
        search = self._searches.pop(run_id, None)
        if search is None or search.recorder.ended:
            return
        for document in documents:
            found_document(search, document)
        search.end()

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **facts: Any) -> None:
        search = self._searches.pop(run_id, None)
        if search is not None:
            search.end(error)


@contextmanager
def managing(recorder: Recorder, state: Any, *args: Any, **kwargs: Any) -> Iterator[ResultHandler]:
    """One step, around a call of a LangMem manager."""
    step = Step("manage_memory", outer=step_here())
    step.messages, step.arguments = state_links(registry_of(recorder), state, {}, "")
    with step_scope(step):
        yield lambda _: None
