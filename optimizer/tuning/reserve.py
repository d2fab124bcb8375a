"""What conversations take: the part of a budget that is kept for those of the test, and the calls of another text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from attribution.judging.metrics import JUDGE
from optimizer.evaluation.evaluator import Outcome
from tracing.errors import ShareSpentError
from tracing.graph.elements import Operation
from tracing.llm.accounting.budget import Budget, Holdback, Spending, kept_back
from tracing.llm.accounting.meter import Meter

MARGIN = 1.1
"""What the test may take beyond its estimate: its conversations may be longer than those before it."""

LATEST_CALLS = 20
"""How many of the last calls tell how fast the machine is now. Of fewer, a few long replies would look like a slow
machine."""

_OUTSIDE = ""
"""Calls that no operation of the memory system made, such as the judge's."""


class _Speed(NamedTuple):
    """What evaluating took: seconds, by operation the calls that were made, and conversations' turns for each."""

    took: float
    calls: Counter[str]
    turns: float


class TimeReserve:
    """Learns how long a conversation takes, and refuses what would leave too little time for the test.

    A conversation is expected to make as many calls of each operation as those before it, and each of them to take as
    long as the calls of that operation that were really made so far. So replies from the cache, of which the test may
    have none, make nothing look faster. How far calls overlap, and what is done between them, is measured over all
    evaluations. Where the last calls took longer than that, as on a machine that slows down, so will the test.

    Args:
        budget: of the run.
        meter: of its calls.
        conversations: of the test split; baseline and champion are tested on each. May change.
        threads: conversations evaluated at the same time.
    """

    def __init__(self, budget: Budget, meter: Meter, conversations: int, threads: int) -> None:
        self._budget, self._meter, self.conversations, self._threads = budget, meter, conversations, threads
        self._calls, self._seen = Counter[str](), 0
        self._took = self._in_calls = 0.0
        self._speeds: list[_Speed] = []
        self._spent = Spending()
        self._kept = Holdback()

    def timed(self, evaluate: Callable[[], list[Outcome]]) -> list[Outcome]:
        """Learn from an evaluation; one that fails is not counted."""
        started, before, calls_before = self._budget.seconds, self._meter.totals()["seconds"], self._calls_made()
        outcomes = evaluate()
        in_calls = self._meter.totals()["seconds"] - before
        if outcomes and in_calls > 0:
            took, turns = self._budget.seconds - started, self._turns(len(outcomes)) / len(outcomes)
            self._took += took
            self._in_calls += in_calls * turns
            self._speeds.append(_Speed(took, self._calls_made() - calls_before, turns))
        for outcome in outcomes:
            if outcome.tainted is None:
                self._calls.update(calls_of(outcome))
                self._seen += 1
                self._spent += Spending(outcome.calls, outcome.tokens)
        self._kept = Holdback(self.seconds_a_conversation() * self._test_turns, self._spent_by_test())
        return outcomes

    def allow(self, count: int) -> None:
        """Make sure that `count` conversations can be evaluated and the test still be finished in time.

        Raises:
            BudgetExceededError: there is a time budget, and the test needs what is left of it.
            ShareSpentError: they would take more than what is left of a share of it.
        """
        remaining, share = self._budget.remaining_time()
        seconds = self.seconds_a_conversation()
        if remaining is not None and remaining < seconds * (self._turns(count) + self._test_turns):
            raise kept_back("time")
        if share is not None and share < seconds * self._turns(count):
            raise ShareSpentError("its share of the time is too short for more conversations")

    def for_test(self) -> Holdback:
        """What is kept for the test, as of the last evaluation; nothing before the first."""
        return self._kept

    def seconds_a_conversation(self) -> float:
        """How long a conversation takes of which nothing is cached; 0 as long as no call was made."""
        if not self._seen:
            return 0.0
        return self._calls_of_one() * self._overhead * self._slowdown()

    def seconds_a_call(self, operation: str) -> float:
        """How long a call of an operation that was made took, or of any, if none of it was made."""
        usage = self._meter.usage_of(operation)
        if usage.calls_made:
            return usage.seconds / usage.calls_made
        totals = self._meter.totals()
        return totals["seconds"] / totals["calls_made"] if totals["calls_made"] else 0.0

    def _calls_of_one(self) -> float:
        """Seconds of all calls of a conversation, one after the other."""
        return sum(count * self.seconds_a_call(name) for name, count in self._calls.items()) / self._seen

    def _spent_by_test(self) -> Spending:
        """What baseline and champion spend on the test conversations if nothing of it is cached."""
        if not self._seen:
            return Spending()
        totals, times = self._meter.totals(), MARGIN * 2 * self.conversations / self._seen
        metered = totals["prompt_tokens"] + totals["completion_tokens"]
        tokens = self._spent.tokens + self._calls[_OUTSIDE] * self._tokens_a_judgement()
        money = totals["cost"] / metered * tokens if metered else 0.0
        return Spending(math.ceil(self._spent.calls * times), math.ceil(tokens * times), money * times)

    def _tokens_a_judgement(self) -> float:
        """Tokens of a call that a model judged by, which no operation of the memory system made."""
        usage = self._meter.usage_of(JUDGE)
        return (usage.prompt_tokens + usage.completion_tokens) / usage.calls_made if usage.calls_made else 0.0

    @property
    def _overhead(self) -> float:
        """Seconds that evaluations take, by seconds of their calls."""
        return self._took / self._in_calls if self._in_calls else 1.0

    def _slowdown(self) -> float:
        """How many times as long as by all calls so far the evaluations with the last of them took; at least 1."""
        took = expected = 0.0
        calls = 0
        for speed in reversed(self._speeds):
            took += speed.took
            in_calls = sum(count * self.seconds_a_call(name) for name, count in speed.calls.items())
            expected += in_calls * speed.turns * self._overhead
            calls += speed.calls.total()
            if calls >= LATEST_CALLS:
                break
        return max(1.0, took / expected) if expected and calls >= LATEST_CALLS else 1.0

    def _calls_made(self) -> Counter[str]:
        return Counter({name: int(usage["calls_made"]) for name, usage in self._meter.snapshot().items()})

    @property
    def _test_turns(self) -> float:
        return MARGIN * 2 * self._turns(self.conversations)

    def _turns(self, count: int) -> int:
        return math.ceil(count / self._threads)


def calls_of(outcome: Outcome) -> Counter[str]:
    """By operation, the calls that an outcome takes of which nothing is cached."""
    calls = Counter[str]()
    for operation in outcome.graph.operations.values():
        calls[operation.name] += operation.calls
    calls[_OUTSIDE] = max(0, outcome.calls - calls.total())
    return calls


def calls_with(train: Sequence[Outcome], operations: Collection[str], *, cached: bool) -> float:
    """How many calls a conversation takes with another text of these operations' prompts.

    Args:
        train: outcomes, from which it is known how many it takes at all.
        operations: names of them.
        cached: whether calls that such a text does not change, such as the embeddings of turns, are made once only.
    """
    calls = sum(outcome.calls - (_kept_calls(outcome, operations) if cached else 0) for outcome in train)
    return max(1.0, calls / len(train))


def _kept_calls(outcome: Outcome, operations: Collection[str]) -> int:
    """Calls of an outcome that another text of these operations' prompts does not change.

    They are those of operations that are neither steered by such a prompt nor behind one that is. A search behind it
    finds other entries, but embeds the same query.
    """
    graph = outcome.graph
    steered = {oid: operation for oid, operation in graph.operations.items() if operation.name in operations}
    outputs = dict.fromkeys(vid for operation in steered.values() for vid in operation.output_ids())
    behind = graph.forward_slice(*outputs)

    def is_kept(oid: str, operation: Operation) -> bool:
        if oid in steered:
            return False
        queries = operation.input_ids("query") if operation.kind == "retrieval" else []
        return oid not in behind.operations or (bool(queries) and behind.variables.keys().isdisjoint(queries))

    return sum(operation.calls for oid, operation in graph.operations.items() if is_kept(oid, operation))
