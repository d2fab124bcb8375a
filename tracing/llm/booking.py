"""Booking of calls: against the budget, in the meter, in open watches, and in the running operation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tracing.errors import BudgetExceededError, MemtuneError
from tracing.llm.accounting.budget import Budget, Spending
from tracing.llm.accounting.ledger import LedgerEntry
from tracing.llm.accounting.meter import Meter, Watch
from tracing.llm.http.bodies import ChatCompletion, Embeddings
from tracing.llm.settings import ModelSettings
from tracing.recording.recorder import current_operation, current_recorder

Reply = TypeVar("Reply", ChatCompletion, Embeddings)

NO_OPERATION = "(no operation)"
"""The meter's name for calls that no operation made."""

_watches: ContextVar[tuple[Watch, ...]] = ContextVar("memtune_watches", default=())


@dataclass(frozen=True, slots=True)
class Call(Generic[Reply]):
    """A call to a model that is still to be made.

    Attributes:
        settings: of the model.
        most: the most it may cost.
        send: asks the endpoint.
        entries: cache entries of the reply, by key.
    """

    settings: ModelSettings
    most: Spending
    send: Callable[[], Reply]
    entries: Callable[[Reply], Mapping[str, bytes]]


class Booking:
    """The last link before the endpoint: the budget must allow every call, and every call is counted."""

    def __init__(self, budget: Budget, meter: Meter) -> None:
        self.budget, self.meter = budget, meter

    def make(self, call: Call[Reply]) -> Reply:
        """Send the request if the budget allows it, and book what it cost. A failed call is booked too.

        Raises:
            BudgetExceededError: a budget does not allow the call; it was not made.
            CallFailedError: as the endpoint.
        """
        self.budget.reserve(call.most)
        started = self.budget.seconds
        spent = Spending(calls=1)
        read = written = 0
        try:
            reply = call.send()
            read, written = reply.prompt_tokens, reply.completion_tokens
            spent = price(call.settings, read, written)
            return reply
        except BudgetExceededError:
            spent = Spending()
            raise
        finally:
            self.budget.settle(call.most, spent)
            if spent.calls:
                self._book(call.settings.model, read, written, spent.money, self.budget.since(started))

    def again(self, settings: ModelSettings, most: Spending, entry: LedgerEntry) -> None:
        """Book a call that the run paid for before it was resumed, at the time in the run when it was made.

        Raises:
            BudgetExceededError: a budget no longer allows it.
        """
        self.budget.go_to(entry.seconds)
        spent = price(settings, entry.prompt_tokens, entry.completion_tokens)
        self.budget.reserve(most)
        self.budget.settle(most, spent)
        self._book(settings.model, entry.prompt_tokens, entry.completion_tokens, spent.money, entry.took)

    def reuse(self, model: str, prompt_tokens: int, completion_tokens: int) -> None:
        """Book a reply from the cache."""
        self.meter.cached(_operation_name())
        for watch in _watches.get():
            watch.count(calls=0, cached=1, prompt_tokens=0, completion_tokens=0)
        operation = current_operation()
        if operation is not None:
            operation.record_call(
                model=model, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, cached=True
            )

    def note_empty(self) -> None:
        """Count a reply without a text for the running operation."""
        self.meter.empty(_operation_name())

    def _book(self, model: str, read: int, written: int, cost: float, seconds: float) -> None:
        self.meter.count_call(
            _operation_name(), prompt_tokens=read, completion_tokens=written, cost=cost, seconds=seconds
        )
        for watch in _watches.get():
            watch.count(calls=1, cached=0, prompt_tokens=read, completion_tokens=written)
        operation = current_operation()
        if operation is not None:
            operation.record_call(model=model, prompt_tokens=read, completion_tokens=written, cost=cost)


def book_elsewhere(watched: Mapping[str, int], recorded: Mapping[str, Any] | None) -> None:
    """Count calls that another process made and booked: in the watches and the operation that are open here.

    Args:
        watched: `calls`, `cached`, `prompt_tokens` and `completion_tokens`, as a watch counts them.
        recorded: the same as the operation records them, with `model` and `cost`; None without an operation.
    """
    for watch in _watches.get():
        watch.count(**watched)
    running = current_operation()
    if running is None or recorded is None:
        return
    tokens = {key: recorded[key] for key in ("prompt_tokens", "completion_tokens", "cost")}
    for number in range(recorded["calls"] + recorded["cached"]):
        cached = number >= recorded["calls"]
        running.record_call(model=recorded["model"], cached=cached, **(tokens if number == 0 else {}))


def running_operation() -> str | None:
    """The name of the operation that runs here; None outside of any."""
    name = _operation_name()
    return None if name == NO_OPERATION else name


@contextlib.contextmanager
def watching() -> Iterator[Watch]:
    """Count the calls made inside, by this thread or async task and those that inherit its context."""
    watch = Watch()
    token = _watches.set((*_watches.get(), watch))
    try:
        yield watch
    finally:
        _watches.reset(token)


@contextlib.contextmanager
def failures_noted(model: str) -> Iterator[None]:
    """Record in the watches any error that a call to `model` raises, as its caller sees it."""
    try:
        yield
    except MemtuneError as error:
        for watch in _watches.get():
            watch.fail(f"{type(error).__name__}: {error}")
        raise
    except BaseException as error:
        for watch in _watches.get():
            watch.fail(f"{type(error).__name__} during a call to {model}")
        raise


def price(settings: ModelSettings, prompt_tokens: int, completion_tokens: int) -> Spending:
    """What one call with these tokens costs."""
    money = (prompt_tokens * settings.price_in + completion_tokens * settings.price_out) / 1e6
    return Spending(calls=1, tokens=prompt_tokens + completion_tokens, money=money)


def _operation_name() -> str:
    operation, recorder = current_operation(), current_recorder()
    if operation is None or recorder is None:
        return NO_OPERATION
    return recorder.graph.operations[operation.id].name
