"""What a search under a budget can still evaluate, so that it tries as much as it can finish."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.tuning.reserve import TimeReserve
    from tracing.graph.elements import Operation
    from tracing.llm.accounting.budget import Budget


class Affordable(NamedTuple):
    """What can be evaluated: so many conversations, or so many single executions of one of the operations instead."""

    conversations: float
    executions: Mapping[str, float]

    def shared(self, rounds: int, least: float) -> Affordable:
        """The share of each of so many rounds, or of fewer if it would be too small for a round to decide anything.

        Args:
            rounds: that are left.
            least: conversations that a round has to evaluate.
        """
        parts = max(1, min(rounds, int(self.conversations / least)))
        return Affordable(self.conversations / parts, {name: count / parts for name, count in self.executions.items()})


def affordable(
    train: Sequence[Outcome],
    operations: Collection[str],
    tested: int,
    budget: Budget,
    reserve: TimeReserve,
    *,
    cached: bool,
) -> Affordable | None:
    """What a search can still evaluate; None if nothing limits it.

    Of a limit of calls for the whole run, what the test will take is left out.

    Args:
        train: outcomes, from which it is known how many calls a conversation takes.
        operations: names of those whose prompts may get another text.
        tested: test conversations; baseline and champion are tested on each.
        budget: of the run.
        reserve: knows for how many conversations there is time besides the test.
        cached: whether calls that such a text does not change, such as the embeddings of turns, are made once only.
    """
    whole, part = budget.remaining_calls()
    limits = []
    if whole is not None or part is not None:
        calls = max(1.0, sum(outcome.calls for outcome in train) / len(train))
        reused = sum(_kept_calls(outcome, operations) for outcome in train) / len(train) if cached else 0.0
        again = max(1.0, calls - reused)
        tests = max(2 * calls * tested, reserve.for_test().spending.calls)
        untested = None if whole is None else max(0.0, whole - tests)
        limits = [
            Affordable(remaining / again, dict.fromkeys(operations, remaining))
            for remaining in (untested, part)
            if remaining is not None
        ]
    in_time = reserve.conversations_left()
    if in_time is not None:
        limits.append(Affordable(in_time, {name: in_time * reserve.executions(name) for name in operations}))
    if not limits:
        return None
    fewest = {name: min(limit.executions[name] for limit in limits) for name in operations}
    return Affordable(min(limit.conversations for limit in limits), fewest)


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
