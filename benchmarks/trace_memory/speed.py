"""How fast a trace memory is: what a write adds to the agent, events a second, and recall as the store grows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter, sleep

from benchmarks.trace_memory.figures import Latency, SizeFigures, SpeedFigures
from tracing.errors import ConfigError
from tracing.trace_memory import Event, TraceMemory

ENTITIES, KEYS, SESSION, BLOCK = 10, 50, 100, 250
"""Tenants of the store, names of tools, events of a session, and events that an entity writes in a row."""

RECALLS, RECALLED, SYNC_WRITES = 200, 20, 100
PACED_WRITES, PAUSE_S = 1000, 0.002
"""Writes of an agent that does something else in between, and how long that takes."""

_FIRST_SIZE = 1000

Progress = Callable[[str], None]


def measure_speed(store: str, events: int, progress: Progress = lambda said: None) -> SpeedFigures:
    """Grow a new store to `events` in steps of ten times, and measure at each.

    Args:
        store: path of a new file, or address of a database that holds no events of these entities.
        events: the largest size; at least 1,000.
        progress: called with what is being done.

    Raises:
        ConfigError: the store was measured before.
    """
    memories = [TraceMemory(store, entity=f"bench {number}", process="agent") for number in range(ENTITIES)]
    try:
        if any(memory.recall(limit=1) for memory in memories):
            raise ConfigError("--store: holds the events of an earlier measurement; give an empty database")
        waits: list[float] = []
        sizes: list[SizeFigures] = []
        done = 0
        for size in _sizes(events):
            progress(f"growing to {size:,} events")
            begun = perf_counter()
            waits += _filled(memories, done, size)
            spent = perf_counter() - begun
            progress(f"recalling from {size:,} events")
            took = _recalls(memories[0], size)
            sizes.append(
                SizeFigures(
                    events=size,
                    events_s=(size - done) / spent,
                    recall_ms=took,
                    bytes_an_event=_bytes(store) / size if "://" not in store else None,
                )
            )
            done = size
        return SpeedFigures(
            write_ms=latency(_paced_writes(memories[0])),
            burst_write_ms=latency(waits),
            sync_write_ms=latency(_sync_writes(memories[0])),
            sizes=sizes,
            recall_growth_exponent=_exponent(sizes),
        )
    finally:
        for memory in memories:
            memory.close()


def latency(seconds: Sequence[float]) -> Latency:
    """Percentiles of times."""
    ordered = sorted(seconds)
    return Latency(
        p50_ms=ordered[len(ordered) // 2] * 1e3,
        p99_ms=ordered[min(len(ordered) - 1, math.ceil(len(ordered) * 0.99))] * 1e3,
        worst_ms=ordered[-1] * 1e3,
    )


def _sizes(events: int) -> list[int]:
    sizes = [_FIRST_SIZE]
    while sizes[-1] * 10 <= events:
        sizes.append(sizes[-1] * 10)
    return sizes if sizes[-1] == events or events < _FIRST_SIZE else [*sizes, events]


def _events(start: int, end: int) -> Iterator[Event]:
    """Tool calls of the size of those in the data set."""
    for number in range(start, end):
        chosen = (number * 7919) % KEYS
        facts = {"arguments": {"part": f"HX-{number % 997}", "quantity": number % 40}, "status": "ok"}
        value = {"unit_price": number % 1000, "currency": "NOK", "lead_days": number % 30, "supplier": "Brekke Maskin"}
        session = f"run {number // SESSION}"
        yield Event(str(number), "tool_call", f"tool {chosen}", value, facts, float(number), session=session)


def _filled(memories: Sequence[TraceMemory], start: int, end: int) -> list[float]:
    """Write events to one entity after the other, a block each; the seconds that each write took."""
    waits = []
    for at in range(start, end, BLOCK):
        memory = memories[at // BLOCK % len(memories)]
        for event in _events(at, min(at + BLOCK, end)):
            begun = perf_counter()
            memory.add((event,))
            waits.append(perf_counter() - begun)
        # Ten entities that write at once would compete for the file, which is not what an agent meets.
        memory.flush()
    return waits


def _recalls(memory: TraceMemory, size: int) -> Latency:
    chosen = random.Random(size)  # noqa: S311
    took = []
    for _ in range(RECALLS):
        key = f"tool {chosen.randrange(KEYS)}"
        begun = perf_counter()
        memory.recall(type="tool_call", key=key, limit=RECALLED, until=float(chosen.randrange(1, size + 1)))
        took.append(perf_counter() - begun)
    return latency(took)


def _paced_writes(memory: TraceMemory) -> list[float]:
    took = []
    for event in _events(0, PACED_WRITES):
        begun = perf_counter()
        memory.tool_call(event.key, event.metadata["arguments"], event.value, id=f"paced {event.id}")
        took.append(perf_counter() - begun)
        sleep(PAUSE_S)
    memory.flush()
    return took


def _sync_writes(memory: TraceMemory) -> list[float]:
    took = []
    for event in _events(0, SYNC_WRITES):
        begun = perf_counter()
        memory.tool_call(event.key, event.metadata["arguments"], event.value, id=f"sync {event.id}", sync=True)
        took.append(perf_counter() - begun)
    return took


def _bytes(store: str) -> int:
    return sum(path.stat().st_size for path in Path(store).parent.glob(f"{Path(store).name}*"))


def _exponent(sizes: Sequence[SizeFigures]) -> float:
    first, last = sizes[0], sizes[-1]
    if first.events == last.events:
        return 0.0
    return math.log(last.recall_ms.p50_ms / first.recall_ms.p50_ms) / math.log(last.events / first.events)
