"""A Ray cluster of two nodes on loopback, whose workers and nodes a test may kill."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import psutil


class RayCluster:
    """Two nodes; a driver connects to `address` on the first, which stays.

    Attributes:
        address: for `--address`.
    """

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._here = {"node_ip_address": "127.0.0.1", "num_cpus": 1, "object_store_memory": 100 << 20}
        self._cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **self._here})
        self._second = self._cluster.add_node(**self._here)
        self.address = str(self._cluster.address)

    def close(self) -> None:
        self._cluster.shutdown()

    def workers(self) -> list[psutil.Process]:
        """The processes that run a step of memtune's now."""
        found = []
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if process.cmdline()[:1] == ["ray::work"]:
                    found.append(process)
        return found

    def kill_worker(self) -> None:
        """Kill a process that runs a step."""
        self.workers()[0].kill()

    def lose_node(self) -> None:
        """Take the second node away with all that runs there."""
        self._cluster.remove_node(self._second, allow_graceful=False)

    def replace_node(self) -> None:
        """A new second node in place of a lost one."""
        self._second = self._cluster.add_node(**self._here)


class Once:
    """Does something at a request of this number, and lets a model reply."""

    def __init__(self, model: Callable[[dict[str, Any]], Any], number: int, do: Callable[[], None]) -> None:
        self._model, self._left, self._do = model, number, do

    def __call__(self, body: dict[str, Any]) -> Any:
        self._left -= 1
        if self._left == 0:
            self._do()
        return self._model(body)
