"""What a worker of the cluster does: one step after another, with the memory system opened once for each process."""

from __future__ import annotations

import functools
import json
from typing import Any

from optimizer.cluster.steps import perform
from optimizer.cluster.worker_setup import WorkerSetup
from tracing.errors import ConfigError
from tracing.llm.forwarding.forwarded_errors import written
from tracing.llm.threads import GivenUp
from tracing.systems.protocol import MemorySystem


def work(setup: str, step: str, name: str, mailbox: Any) -> str:
    """Do a step; its calls go to the mailbox under `name`. All texts are JSON."""
    import ray

    def ask(request: str) -> str:
        try:
            answer: str = ray.get(mailbox.ask.remote(name, request))
        except ray.exceptions.RayError as error:
            raise GivenUp(f"the run cannot be reached ({type(error).__name__})") from None
        return answer

    try:
        system = _system(setup)
    except ConfigError as error:
        return json.dumps({"error": written(error)})
    return perform(system, step, ask)


@functools.lru_cache(maxsize=1)
def _system(setup: str) -> MemorySystem:
    return WorkerSetup.model_validate_json(setup).open()
