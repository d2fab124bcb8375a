"""What LlamaIndex says of its runs, recorded: query engines, workflows and agents, models and retrievers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from inspect import BoundArguments
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatStartEvent,
    LLMCompletionEndEvent,
    LLMCompletionStartEvent,
)
from llama_index.core.instrumentation.span import active_span_id
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.workflow import StopEvent, Workflow
from pydantic import PrivateAttr

from tracing.instrument.library_calls import LibraryCall
from tracing.instrument.library_memories import Search, begin_search
from tracing.instrument.patches import Instrumentation, ResultHandler, recorded, with_subclasses
from tracing.instrument.program_steps import (
    Link,
    Step,
    ending,
    recalled,
    registry_of,
    request_link,
    running,
    step_here,
    step_scope,
    within_step,
)
from tracing.recording.recorder import Recorder, open_recorder
from tracing.recording.trace_context import variable

_ENGINES: tuple[tuple[type, tuple[str, ...]], ...] = ((BaseQueryEngine, ("query", "aquery")), (Workflow, ("run",)))


def follow_spans(instrumentation: Instrumentation) -> None:
    """Let every run be recorded until the instrumentation is undone; does nothing where they are already."""
    root = get_dispatcher()
    if any(isinstance(handler, _Spans) for handler in root.span_handlers):
        return
    spans = _Spans()
    events = _Events(spans)
    root.add_span_handler(spans)
    root.add_event_handler(events)
    instrumentation.callback(lambda: root.span_handlers.remove(spans))
    instrumentation.callback(lambda: root.event_handlers.remove(events))
    instrumentation.callback(running(spans.here))
    for engine in with_subclasses(BaseChatEngine):
        for name in ("chat", "achat"):
            if name in vars(engine):
                instrumentation.replace(engine, name, recorded(_chatting))


class _Spans(BaseSpanHandler[Any]):  # type: ignore[misc]
    """Told by LlamaIndex of every span, in the context in which it happens."""

    _steps: dict[str | None, Step] = PrivateAttr(default_factory=dict)
    _roots: dict[str, Step] = PrivateAttr(default_factory=dict)
    _searches: dict[str | None, Search | None] = PrivateAttr(default_factory=dict)
    _calls: dict[str | None, LibraryCall] = PrivateAttr(default_factory=dict)
    _inside: set[str | None] = PrivateAttr(default_factory=set)
    """Spans inside a call to a model, whose own methods may ask it by way of others."""

    def here(self) -> Step | None:
        """The step that runs in the present context."""
        return self._steps.get(active_span_id.get())

    def new_span(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: Any = None,
        parent_span_id: str | None = None,
        tags: Any = None,
        **_: Any,
    ) -> None:
        recorder = open_recorder()
        if recorder is None:
            return
        method = id_.partition(".")[2].partition("-")[0]
        if parent_span_id in self._calls or parent_span_id in self._inside:
            self._inside.add(id_)
        outer = self._steps.get(parent_span_id)
        if outer is not None:
            self._steps[id_] = outer
        elif any(isinstance(instance, kind) and method in names for kind, names in _ENGINES):
            root = Step("query" if isinstance(instance, BaseQueryEngine) else type(instance).__name__)
            root.arguments = _question_links(bound_args)
            self._steps[id_] = self._roots[id_] = root
        if parent_span_id in self._searches:
            self._searches[id_] = None  # part of that search
        elif isinstance(instance, BaseRetriever) and method in ("retrieve", "aretrieve"):
            question = bound_args.arguments.get("str_or_query_bundle")
            query = str(getattr(question, "query_str", question))
            self._searches[id_] = begin_search(recorder, step_here(self._steps.get(id_)), query)

    def prepare_to_exit_span(
        self, id_: str, bound_args: BoundArguments, instance: Any = None, result: Any = None, **_: Any
    ) -> None:
        search = self._searches.pop(id_, None)
        if search is not None and not search.recorder.ended:
            for node in result or []:
                search.add_result(("node", node.node_id), node.node_id, node.get_content(), score=node.score)
            search.end()
        root = self._take_step(id_)
        if root is not None:
            _answered(root, result)

    def prepare_to_drop_span(
        self, id_: str, bound_args: BoundArguments, instance: Any = None, err: BaseException | None = None, **_: Any
    ) -> None:
        error = err or RuntimeError("dropped")
        search = self._searches.pop(id_, None)
        if search is not None:
            search.end(error)
        self.failed(id_, error)
        root = self._take_step(id_)
        if root is not None:
            root.end(error)

    def _take_step(self, span: str) -> Step | None:
        """The step that began with this span."""
        self._steps.pop(span, None)
        self._inside.discard(span)
        return self._roots.pop(span, None)

    # --- models ----------------------------------------------------------------------------------------------------

    def requested(self, span: str, messages: Sequence[ChatMessage], model: str) -> None:
        """A request is sent to a model in this span."""
        recorder = open_recorder()
        if recorder is None or span in self._inside:
            return
        step = step_here(self._steps.get(span))
        links = _request(recorder, messages, step.name if step is not None else "chat")
        self._calls[span] = LibraryCall(step, links, model)

    def replied(self, span: str, text: str, raw: Any, message: ChatMessage | None) -> None:
        """Its reply is complete."""
        call = self._calls.pop(span, None)
        if call is None:
            return
        usage = _part(raw, "usage")
        tools = (message.additional_kwargs.get("tool_calls") if message is not None else None) or []
        tool_requests = [
            {"name": tool_call.function.name, "arguments": tool_call.function.arguments} for tool_call in tools
        ]
        reply = call.answered(
            text,
            {"content": text, "tool_calls": tool_requests} if tool_requests else text,
            model=str(_part(raw, "model") or ""),
            read=int(_part(usage, "prompt_tokens") or _part(usage, "input_tokens") or 0),
            written=int(_part(usage, "completion_tokens") or _part(usage, "output_tokens") or 0),
        )
        if reply is not None and message is not None:
            registry_of(call.recorder).keep(reply, thing=message)

    def failed(self, span: str, error: BaseException) -> None:
        """It failed."""
        call = self._calls.pop(span, None)
        if call is not None:
            call.failed(error)


class _Events(BaseEventHandler):  # type: ignore[misc]
    """Told by LlamaIndex of every request to a model, and of its reply once that is complete."""

    _spans: _Spans = PrivateAttr()

    def __init__(self, spans: _Spans) -> None:
        super().__init__()
        self._spans = spans

    def handle(self, event: Any, **_: Any) -> None:
        span = str(event.span_id)
        if isinstance(event, LLMChatStartEvent):
            self._spans.requested(span, event.messages, str(event.model_dict.get("model") or ""))
        elif isinstance(event, LLMCompletionStartEvent):
            question = ChatMessage(role="user", content=event.prompt)
            self._spans.requested(span, [question], str(event.model_dict.get("model") or ""))
        elif isinstance(event, LLMChatEndEvent):
            message = event.response.message if event.response is not None else None
            raw = event.response.raw if event.response is not None else None
            self._spans.replied(span, text_of(message) if message is not None else "", raw, message)
        elif isinstance(event, LLMCompletionEndEvent):
            self._spans.replied(span, event.response.text, event.response.raw, None)
        elif isinstance(event, ExceptionEvent):
            self._spans.failed(span, event.exception)


def text_of(message: ChatMessage) -> str:
    """The text of a message; where it is one text, the same object."""
    texts = [block.text for block in message.blocks if getattr(block, "text", None)]
    return texts[0] if len(texts) == 1 else "".join(texts)


@contextmanager
def _chatting(recorder: Recorder, engine: Any, message: Any, *args: Any, **kwargs: Any) -> Iterator[ResultHandler]:
    """One step, around the question to a chat engine."""
    step = Step("chat", outer=step_here())
    step.arguments = _question(message)
    with step_scope(step):
        yield lambda result: _answered(step, result)


def _answered(step: Step, result: Any) -> None:
    """A step ends with its answer; where that is streamed, with the last piece of it."""
    if step.recorder.ended:
        return
    if isinstance(result, StreamingResponse | AsyncStreamingResponse):
        step.streams = True
        result.response_gen = (_reading if isinstance(result, StreamingResponse) else _reading_async)(
            step, result.response_gen
        )
        return
    result = result.result if isinstance(result, StopEvent) else result
    response = getattr(result, "response", result)
    text = text_of(response) if isinstance(response, ChatMessage) else response
    if isinstance(text, str) and (step.begun or step.arguments):
        op = step.operation() if step.replies else step.read(step.inputs())
        op.output("prediction", text, name="prediction", kind="prediction")
    step.end()


def _reading(step: Step, pieces: Any) -> Iterator[Any]:
    """The pieces of an answer; the model is asked only when the first is read."""
    with ending(step):
        while True:
            with within_step(step):
                try:
                    piece = next(pieces)
                except StopIteration:
                    return
            yield piece


async def _reading_async(step: Step, pieces: Any) -> AsyncIterator[Any]:
    with ending(step):
        while True:
            with within_step(step):
                try:
                    piece = await anext(pieces)
                except StopAsyncIteration:
                    return
            yield piece


def _request(recorder: Recorder, messages: Sequence[ChatMessage], step: str) -> list[Link]:
    registry, links = registry_of(recorder), []
    for message in messages:
        text = text_of(message)
        earlier = registry.of(message) or recalled(recorder, text)
        if earlier is not None:
            links.append(("messages", earlier))
        else:
            is_prompt = bool(text) and message.role == "system"
            links += request_link(registry, step, text, str(message.role.value), is_prompt=is_prompt)
    return links


def _question_links(bound_arguments: BoundArguments) -> list[Link]:
    """The question that a run was given."""
    names = ("str_or_query_bundle", "user_msg", "message", "query", "input")
    arguments = {**bound_arguments.arguments, **bound_arguments.arguments.get("kwargs", {})}
    return next((_question(arguments[name]) for name in names if arguments.get(name)), [])


def _question(question: Any) -> list[Link]:
    text = text_of(question) if isinstance(question, ChatMessage) else getattr(question, "query_str", question)
    return [("query", variable(text, name="query", kind="query"))] if isinstance(text, str) else []


def _part(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)
