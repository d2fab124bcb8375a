"""What a request to the embedded model takes beside busy processes, those included that begin while it is answered."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from statistics import median
from typing import Any

from pydantic import BaseModel

from tracing.llm.serving import weights
from tracing.llm.serving.embedded import EmbeddedModel, EmbeddedServer
from tracing.llm.serving.shared_cores import FreeCores

_CONTEXT = 1024
_ALONE = 5
"""Requests before anything else computes."""


class BusyFigures(BaseModel):
    """What was measured of one model, with one way to choose its threads, beside so many busy processes.

    Attributes:
        weights: name of the model.
        threads: "follow" (what other processes leave free), or a fixed number.
        busy: processes that compute without end.
        alone_s: median of a request's seconds before they began.
        median_s, worst_s: of the requests since they began; the first of them was under way then.
        tokens_per_s: written, at the median.
        worst_ratio: `worst_s` by `alone_s`.
    """

    weights: str
    threads: str
    busy: int
    alone_s: float
    median_s: float
    worst_s: float
    tokens_per_s: float
    worst_ratio: float


class _Fixed(FreeCores):
    """A number of threads that stays as it is."""

    def __init__(self, count: int) -> None:
        self.count = count

    def observed(self) -> Any:
        return nullcontext()


def measure_busy(
    name: str, *, threads: str, busy: int, seconds: float, tokens: int, progress: Callable[[str, int, int], None]
) -> BusyFigures:
    """Ask one model alone, then beside busy processes for so many seconds.

    Args:
        name: of weights that were pulled.
        threads: "follow" or a number.
        busy: how many processes to start.
        seconds: how long to ask beside them.
        tokens: of each reply, at most.

    Raises:
        WeightsError: there are no such weights.
    """
    path = weights.locate(name)
    with closing(EmbeddedServer({name: EmbeddedModel(name, lambda: path, _CONTEXT)})) as server:
        if threads != "follow":
            server._cores = _Fixed(int(threads))
        number = 0

        def ask() -> float:
            nonlocal number
            number += 1
            began = time.monotonic()
            server.chat(
                {
                    "model": name,
                    "messages": [{"role": "user", "content": f"Write a long story about fox number {number}."}],
                    "max_tokens": tokens,
                    "temperature": 0,
                }
            )
            took = time.monotonic() - began
            progress(f"{name}, threads: {threads}, beside {busy}", number, 0)
            return took

        ask()
        alone = median(ask() for _ in range(_ALONE))
        taken: list[float] = []
        until = time.monotonic() + seconds
        with _busy_processes(busy, after_s=alone / 3):
            while time.monotonic() < until:
                taken.append(ask())
    return BusyFigures(
        weights=name,
        threads=threads,
        busy=busy,
        alone_s=alone,
        median_s=median(taken),
        worst_s=max(taken),
        tokens_per_s=tokens / median(taken),
        worst_ratio=max(taken) / alone,
    )


@contextmanager
def _busy_processes(number: int, *, after_s: float) -> Iterator[None]:
    program = f"import time; time.sleep({after_s})\nwhile True: pass"
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(number)]  # noqa: S603 (our own interpreter)
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
