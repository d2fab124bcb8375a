"""Booking of calls: against the budget, in the ledger, in the meter, in open watches, and in the running operation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tracing.errors import BudgetExceededError, MemtuneError, TraceError
from tracing.llm.accounting.budget import Budget, Spending
from tracing.llm.accounting.ledger import Ledger
from tracing.llm.accounting.meter import UNUSABLE, Meter, Unusable, Usage, Watch
from tracing.llm.accounting.price import price
from tracing.llm.accounting.token_counts import TokenCounts
from tracing.llm.http.bodies import ChatCompletion, Embeddings
from tracing.llm.settings import ModelSettings
from tracing.llm.threads import end_if_given_up
from tracing.recording.recorder import current_operation, current_recorder
from tracing.recording.redaction import LONGEST_THINKING, excerpt
from tracing.temporary_values import context_with

Reply = TypeVar("Reply", ChatCompletion, Embeddings)

NO_OPERATION = "(no operation)"
"""The meter's name for calls that no operation made."""

REQUEST, REPLY = "request", "reply"
"""Attributes of an operation: what its latest call asked and was replied, where `exchanges_recorded`."""

OF_REPLIES = ("unusable", "thinking", "thinking_tokens", REQUEST, REPLY)
"""Attributes of an operation that tell of its replies, beside its outputs."""

_watches: ContextVar[tuple[Watch, ...]] = ContextVar("memtune_watches", default=())
_exchanges: ContextVar[bool] = ContextVar("memtune_exchanges", default=False)


@dataclass(frozen=True, slots=True)
class Call(Generic[Reply]):
    """A call to a model that is still to be made.

    Attributes:
        settings: of the model.
        most: works out the most it may cost.
        send: asks the endpoint.
        entries: cache entries of the reply, by key.
    """

    settings: ModelSettings
    most: Callable[[], Spending]
    send: Callable[[], Reply]
    entries: Callable[[Reply], Mapping[str, bytes]]


class Booking:
    """The links between cache and endpoint: a budget must allow every call, and each is recorded and counted.

    Args:
        budget: allows calls.
        meter: counts them.
        ledger: records paid calls, and has those made before the run was resumed; None for none.
    """

    def __init__(self, budget: Budget, meter: Meter, ledger: Ledger | None) -> None:
        self.ledger = ledger
        self._budget, self._meter = budget, meter

    def require_room(self) -> None:
        """Check that another reply can be stored (`Ledger.require_room`), and that its result is still wanted."""
        end_if_given_up()
        if self.ledger is not None:
            self.ledger.require_room()

    def make(self, call: Call[Reply]) -> Mapping[str, bytes]:
        """Make a call, record it, and return its cache entries. A failed call is booked too.

        Raises:
            BudgetExceededError: a budget does not allow the call; it was not made.
            CallFailedError: as the endpoint.
            RunError: it cannot be recorded.
        """
        began = self._budget.seconds
        reply = self._send(call)
        entries = call.entries(reply)
        if self.ledger is not None:
            now, took = self._budget.seconds, self._budget.since(began)
            self.ledger.record_call(list(entries), reply.tokens, now, took)
        return entries

    def _send(self, call: Call[Reply]) -> Reply:
        most = call.most()
        self._budget.reserve(most)
        started = self._budget.seconds
        spent, tokens = Spending(calls=1), TokenCounts()
        try:
            reply = call.send()
            tokens = reply.tokens
            spent = price(call.settings, tokens)
            return reply
        except BudgetExceededError:
            spent = Spending()
            raise
        finally:
            self._budget.settle(most, spent)
            if spent.calls:
                self._book(call.settings.model, tokens, spent.money, self._budget.since(started))

    def claim(self, settings: ModelSettings, keys: Sequence[str], most: Callable[[TokenCounts], Spending]) -> bool:
        """Book cached replies that the run paid for before it was resumed as if paid now; whether there are any.

        Each is booked at the time in the run when it was made.

        Args:
            settings: of the model.
            keys: of the replies.
            most: maps a call's tokens to the most that it may have cost.

        Raises:
            BudgetExceededError: a budget no longer allows it.
        """
        claimed = [] if self.ledger is None else self.ledger.claim(keys)
        for entry in claimed:
            reserved, spent = most(entry.tokens), price(settings, entry.tokens)
            self._budget.go_to(entry.seconds)
            self._budget.reserve(reserved)
            self._budget.settle(reserved, spent)
            self._book(settings.model, entry.tokens, spent.money, entry.took)
        return bool(claimed)

    def reuse(self, model: str, tokens: TokenCounts) -> None:
        """Book a reply from the cache that another run paid for, with the tokens that it had then."""
        self._count(Usage(calls_cached=1))
        operation = current_operation()
        if operation is not None:
            operation.record_call(
                model=model,
                prompt_tokens=tokens.prompt,
                completion_tokens=tokens.completion,
                cached=True,
                estimated=tokens.estimated,
            )

    def note_prompt(self, settings: ModelSettings, request: Mapping[str, Any], tokens: TokenCounts) -> None:
        """Take in what an endpoint counted of a request, by which a prompt that it has cut is found out."""
        if not settings.embedded:
            self._meter.note_prompt(f"{settings.model} at {settings.base_url}", request, tokens)

    def note_unusable(self, reason: Unusable) -> None:
        """Count a reply that could not be used for the running operation, which records why."""
        self._meter.count(_operation_name(), Usage(**{reason: 1}))
        _annotate(unusable=UNUSABLE[reason])

    @staticmethod
    def note_thinking(completion: ChatCompletion) -> None:
        """Record in the running operation what was thought before a reply."""
        if completion.thinking:
            _annotate(
                thinking=excerpt(completion.thinking, LONGEST_THINKING), thinking_tokens=completion.thinking_tokens
            )

    @staticmethod
    def note_exchange(request: Mapping[str, Any], reply: str) -> None:
        """Record in the running operation what was asked and replied, where that is wanted."""
        if _exchanges.get():
            _annotate(**{REQUEST: request, REPLY: reply})

    def _book(self, model: str, tokens: TokenCounts, cost: float, seconds: float) -> None:
        self._count(Usage(1, 0, tokens.prompt, tokens.completion, cost, seconds, estimated=int(tokens.estimated)))
        operation = current_operation()
        if operation is not None:
            operation.record_call(
                model=model,
                prompt_tokens=tokens.prompt,
                completion_tokens=tokens.completion,
                cost=cost,
                estimated=tokens.estimated,
            )

    def _count(self, usage: Usage) -> None:
        self._meter.count(_operation_name(), usage)
        for watch in _watches.get():
            watch.count(usage)


def book_elsewhere(watched: Usage, recorded: Mapping[str, Any] | None) -> None:
    """Count calls that another process made and booked: in the watches and the operation that are open here.

    Args:
        watched: the calls, as a watch counts them.
        recorded: what the operation records of them: `model`, `prompt_tokens`, `completion_tokens`, `cost`,
            `estimated` and `attributes`; None without an operation.
    """
    for watch in _watches.get():
        watch.count(watched)
    running = current_operation()
    if running is None or recorded is None:
        return
    tokens = dict(recorded)
    model, attributes = tokens.pop("model"), tokens.pop("attributes")
    _annotate(**attributes)
    for number in range(watched.calls_made + watched.calls_cached):
        cached = number >= watched.calls_made
        running.record_call(model=model, cached=cached, **(tokens if number == 0 else {}))


def note_malformed(reply: str) -> None:
    """Count a reply to the running operation as one that could not be read; one without a text was counted before."""
    watches = _watches.get()
    if watches and reply.strip():
        watches[-1].count_malformed()


def running_operation() -> str | None:
    """The name of the operation that runs here; None outside of any."""
    operation, recorder = current_operation(), current_recorder()
    return None if operation is None or recorder is None else recorder.graph.operations[operation.id].name


@contextlib.contextmanager
def watching(count_malformed: Callable[[], None]) -> Iterator[Watch]:
    """Count the calls made inside, by this thread or async task and those that inherit its context."""
    watch = Watch(count_malformed)
    with context_with(_watches, (*_watches.get(), watch)):
        yield watch


def exchanges_recorded() -> contextlib.AbstractContextManager[None]:
    """Record the request and the reply of each chat call inside in its operation, so that it can be asked again."""
    return context_with(_exchanges, True)


@contextlib.contextmanager
def failures_noted(model: str) -> Iterator[None]:
    """Record in the watches any error that a call to `model` raises, as its caller sees it."""
    try:
        yield
    except BaseException as error:
        kind = type(error).__name__
        for watch in _watches.get():
            watch.fail(f"{kind}: {error}" if isinstance(error, MemtuneError) else f"{kind} during a call to {model}")
        raise


def _annotate(**attributes: Any) -> None:
    operation = current_operation()
    if operation is not None:
        # The reply may come after the operation has ended.
        with contextlib.suppress(TraceError):
            operation.annotate(**attributes)


def _operation_name() -> str:
    return running_operation() or NO_OPERATION
