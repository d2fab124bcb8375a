"""A budget refuses what would exceed it, and nothing else."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tracing.errors import BudgetExceededError
from tracing.llm.accounting.budget import Budget, Spending
from tracing.llm.settings import Limits


def test_a_call_waits_for_room_that_others_only_reserve() -> None:
    """Eight calls that may cost 300 tokens and cost 10 were refused within a budget of 1,000."""
    budget, met = Budget(Limits(tokens=1000)), threading.Barrier(3)

    def call(number: int) -> None:
        most = Spending(calls=1, tokens=300)
        budget.reserve(most)
        if number < met.parties:
            met.wait(30)
            time.sleep(0.2)  # The others ask for room meanwhile.
        budget.settle(most, Spending(calls=1, tokens=10))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(8)))
    assert budget.spent == Spending(calls=8, tokens=80)


def test_what_would_not_fit_alone_is_refused_at_once() -> None:
    budget = Budget(Limits(tokens=1000))
    budget.reserve(Spending(calls=1, tokens=300))
    with pytest.raises(BudgetExceededError, match="1000 tokens does not allow"):
        budget.reserve(Spending(calls=1, tokens=1001))


def test_one_that_waits_is_refused_when_the_others_took_what_was_left() -> None:
    budget, refused = Budget(Limits(tokens=1000)), []
    first = Spending(calls=1, tokens=900)
    budget.reserve(first)

    def second() -> None:
        try:
            budget.reserve(Spending(calls=1, tokens=300))
        except BudgetExceededError as error:
            refused.append(str(error))

    waiting = threading.Thread(target=second)
    waiting.start()
    budget.settle(first, first)
    waiting.join(30)
    assert len(refused) == 1
