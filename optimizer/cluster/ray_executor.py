"""The executor that runs a memory system on Ray: each step of a conversation is a task, in a process of its own.

Workers hold no keys and pay for nothing. Their calls to models come to this process by a mailbox, and pass through the
same cache, ledger, budget and endpoints as in a run without a cluster. So all of these stay exact, and a worker that
dies loses no reply.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

from optimizer.cluster.mailbox import Desk, Mailbox
from optimizer.cluster.steps import StepExecutor, result_of
from optimizer.cluster.worker import WorkerSetup, work
from tracing.errors import ConfigError, RunError, WorkerDiedError, in_one_line
from tracing.llm.access import ModelAccess
from tracing.llm.forwarding import forwarded_calls
from tracing.llm.forwarding.forwarded_calls import DEATHS, RepeatableStep
from tracing.llm.threads import GivenUp, end_if_given_up
from tracing.recording.redaction import excerpt

_log = logging.getLogger(__name__)

PROCESSORS = 0.25
"""What a step takes of a machine: it waits for replies most of the time."""

OWN_RAY = "local"
"""Ray's address for a Ray of this machine that is started now."""

_POLL_S = 0.5
_CONNECT_S = 10.0
_MOST_ASKING = 100_000
"""Calls that may wait in the mailbox: more than there will be, or the run could not answer the first of them."""

_LONGEST = 300


def require_ray() -> None:
    """Raise a `ConfigError` where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("executor: ray is not installed; pip install 'memtune[ray]', or leave out --executor")


class RayExecutor(StepExecutor):
    """Runs the steps of a system on Ray (`Executor`). A context manager."""

    def __init__(self, setup: WorkerSetup, address: str | None, *, threads: int) -> None:
        """Connect.

        Args:
            setup: how a worker opens the system.
            address: of the cluster, as `ray.init` takes it. By default that of `$RAY_ADDRESS`; without one, a Ray is
                started on this machine, which listens on loopback only and ends with the run.
            threads: how many calls to models are made at a time at most.

        Raises:
            ConfigError: Ray is not installed, or no cluster answers at the address.
        """
        require_ray()
        self._setup = setup.model_dump_json()
        with contextlib.ExitStack() as resources:
            self._ray = resources.enter_context(_ray_connection(address or os.environ.get("RAY_ADDRESS") or OWN_RAY))
            mailbox = self._ray.remote(num_cpus=0, max_concurrency=_MOST_ASKING, scheduling_strategy=self._own_node())
            self._mailbox = mailbox(Mailbox).remote()
            resources.callback(self._ray.kill, self._mailbox)
            # A step is tried again by `result`, which knows what it is about.
            self._task = self._ray.remote(num_cpus=PROCESSORS, max_retries=0)(work)
            self._desk = Desk(lambda: self._ray.get(self._mailbox.take.remote()), self._mailbox.answer.remote, threads)
            resources.callback(self._desk.close)
            self._resources = resources.pop_all()

    def of(self, setup: WorkerSetup) -> RayExecutor:
        """An executor of the system under another setup, with the same connection; this one closes it."""
        other = copy.copy(self)
        other._setup = setup.model_dump_json()
        return other

    def __enter__(self) -> RayExecutor:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect, which ends all tasks of the run. A Ray that was started for the run ends; another one goes on."""
        self._resources.close()

    def result(self, access: ModelAccess, about: str, step: str) -> dict[str, Any]:
        """The result of a step.

        Raises:
            WorkerDiedError: so did several workers; the message names what the step is `about`.
            RunError: the step cannot be done on the cluster at all.
        """
        errors, died, calls = self._ray.exceptions, "", RepeatableStep(partial(forwarded_calls.answered, access))
        for _ in range(DEATHS):
            with self._desk.attempt(calls) as name:
                try:
                    return result_of(self._task_result(self._task.remote(self._setup, step, name, self._mailbox)))
                except GivenUp as error:
                    end_if_given_up()
                    raise RunError(f"{about}: given up on the cluster: {error}; see whether Ray is well") from None
                except errors.RayTaskError as error:
                    message = excerpt(in_one_line(error.cause), _LONGEST)
                    raise RunError(
                        f"{about}: cannot be run on a worker: {message}; install the same memtune on each machine"
                    ) from error
                except errors.RayError as error:
                    died = excerpt(in_one_line(error), _LONGEST)
                    _log.warning("%s: a worker died, and the step begins again on another one (%s)", about, died)
        raise WorkerDiedError(
            f"{about}: {DEATHS} workers in turn died over it, the last one like this: {died}; see whether it needs "
            "more memory than a worker has"
        )

    def _task_result(self, task: Any) -> str:
        """The result of a task; it is cancelled once nobody wants it any more."""
        try:
            while not self._ray.wait([task], timeout=_POLL_S)[0]:
                end_if_given_up()
        except BaseException:
            self._ray.cancel(task, force=True)
            raise
        result: str = self._ray.get(task)
        return result

    def _own_node(self) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)


@contextlib.contextmanager
def _ray_connection(address: str) -> Iterator[Any]:
    """Ray, connected; the connection of a program that has one already is used and left open."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    own: dict[str, Any] = {}
    if address == OWN_RAY:
        # Ray reads it when it is imported: without clusters it listens on loopback only, on any system.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        own = {"include_dashboard": False}
    import ray

    if ray.is_initialized():
        yield ray
        return
    with _own_signal_handlers():
        try:
            _require_listener(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
        except (OSError, RuntimeError, ValueError) as error:
            message = excerpt(in_one_line(error), _LONGEST)
            raise ConfigError(
                f"executor.address: {address}: no Ray answers there ({message}); start one with: ray start --head, or "
                "leave out --address for one on this machine"
            ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _require_listener(address: str) -> None:
    """Raise an `OSError` at once where nothing listens at `host:port`: Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()


@contextlib.contextmanager
def _own_signal_handlers() -> Iterator[None]:
    """Ray sets handlers of its own, which would end the process where a run is to end in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
