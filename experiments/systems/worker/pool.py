"""The workers of an environment: started when they are needed, kept for the next step, ended with this process."""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Iterator

from experiments.systems.worker.environment import Environment
from experiments.systems.worker.handle import Worker
from tracing.llm.threads import end_if_given_up
from tracing.systems.protocol import Memory

_POLL_S = 0.5


class Pool:
    """Workers of one environment."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._changed = threading.Condition()
        self._idle: list[Worker] = []
        self._count = 0

    @contextlib.contextmanager
    def worker(self, most: int, memory: Memory | None = None) -> Iterator[Worker]:
        """A worker for one step: one that holds `memory` if there is one, or a new one while there are fewer than
        `most`; otherwise the first that becomes free.

        Raises:
            ConfigError: the environment is not installed, or belongs to another memtune.
            WorkerDiedError: a new one was killed while it started.
            GivenUp: nobody wants the result any more.
        """
        lent = self._free_worker(most, memory)
        try:
            if lent is None:
                self._environment.require()
                lent = Worker(self._environment.name, self._environment.interpreter, self._environment.command)
            yield lent
        finally:
            with self._changed:
                if lent is not None and lent.alive:
                    self._idle.append(lent)
                else:
                    self._count -= 1
                self._changed.notify()

    def close(self) -> None:
        """End the workers that are free."""
        with self._changed:
            ended, self._idle = self._idle, []
            self._count -= len(ended)
        for worker in ended:
            worker.close()

    def _free_worker(self, most: int, memory: Memory | None) -> Worker | None:
        """A free worker; None where a new one may be started."""
        with self._changed:
            while True:
                for worker in [idle for idle in self._idle if not idle.alive]:
                    self._idle.remove(worker)
                    self._count -= 1
                if self._idle:
                    choice = next((idle for idle in self._idle if idle.holds is memory), self._idle[-1])
                    self._idle.remove(choice)
                    return choice
                if self._count < max(most, 1):
                    self._count += 1
                    return None
                self._changed.wait(_POLL_S)
                end_if_given_up()


_pools: dict[tuple[str, str], Pool] = {}
_guard = threading.Lock()


def pool_of(environment: Environment) -> Pool:
    """The pool of an environment in this process."""
    key = (str(environment.folder), environment.name)
    with _guard:
        if key not in _pools:
            _pools[key] = Pool(environment)
        return _pools[key]


@atexit.register
def close_pools() -> None:
    """End all workers of this process that are free."""
    with _guard:
        for pool in _pools.values():
            pool.close()
