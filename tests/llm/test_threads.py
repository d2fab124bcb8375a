"""Work at the same time: results in their order, never more threads than allowed, and an end that is no hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from tracing.llm.threads import GivenUp, Threads, end_if_given_up


class Counted:
    """Work that waits until `wanted` of it run at once, at most for a few seconds, and counts how many did."""

    def __init__(self, wanted: int = 1) -> None:
        self.most = self.now = 0
        self._wanted, self._reached = wanted, threading.Event()
        self._lock = threading.Lock()

    def __call__(self, item: int) -> int:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.most >= self._wanted:
                self._reached.set()
        self._reached.wait(5)
        with self._lock:
            self.now -= 1
        return item


def test_results_come_in_order_and_all_threads_work_at_every_depth() -> None:
    counted, threads = Counted(6), Threads(6)
    nested = list(threads.map(lambda n: list(threads.map(counted, range(n, n + 20))), range(2)))
    assert nested == [list(range(20)), list(range(1, 21))]
    assert counted.most == 6


def test_a_machine_that_has_no_more_threads_gets_by_with_fewer_and_says_so_if_it_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, left = threading.Thread.start, 0

    def limited(thread: threading.Thread) -> None:
        nonlocal left
        if not left:
            raise RuntimeError("can't start new thread")
        left -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    threads = Threads(4)
    with pytest.raises(RuntimeError, match="can't start"):
        list(threads.map(abs, range(8)))
    left = 1
    assert list(threads.map(abs, range(8))) == list(range(8))
    left = 3
    counted = Counted(4)
    assert list(threads.map(counted, range(8))) == list(range(8))
    assert counted.most == 4


def test_one_worker_does_everything_in_order() -> None:
    done: list[int] = []
    threads = Threads(1)
    list(threads.map(lambda n: list(threads.map(lambda m: done.append(10 * n + m), range(3))), range(2)))
    assert done == [0, 1, 2, 10, 11, 12]


def test_the_first_error_in_order_is_raised_and_nothing_further_begins() -> None:
    begun: list[int] = []

    def work(n: int) -> int:
        begun.append(n)
        time.sleep(0.1 if n == 1 else 0.01)
        if n in (1, 2):
            raise ValueError(n)
        return n

    results: list[int] = []
    with pytest.raises(ValueError, match="1"):
        results.extend(Threads(3).map(work, range(50)))
    assert results in ([], [0])
    assert len(begun) < 10


def test_who_leaves_early_gives_up_what_is_under_way_at_every_depth() -> None:
    threads = Threads(4)
    ended: list[type[BaseException]] = []

    def endless(n: int) -> None:
        try:
            while True:
                end_if_given_up()
                time.sleep(0.005)
        except BaseException as error:
            ended.append(type(error))
            raise

    def slow(n: int) -> int:
        if n:
            list(threads.map(endless, range(3)))
        return n

    results: Iterator[int] = threads.map(slow, range(3))
    assert next(results) == 0
    started = time.monotonic()
    results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 2
    assert set(ended) == {GivenUp}
    assert list(threads.map(lambda n: n, range(5))) == [0, 1, 2, 3, 4]


def test_work_runs_in_the_context_of_its_caller() -> None:
    said = ContextVar("said", default="nothing")
    said.set("this")
    assert list(Threads(3).map(lambda n: said.get(), range(4))) == ["this"] * 4
