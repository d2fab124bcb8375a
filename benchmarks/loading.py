"""The cost of loading and walking large traces, in processor time: other programs may use the machine meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from math import log
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from benchmarks.figures import REPETITIONS, NativeFigures, medians
from benchmarks.recording_cost import CALLS, in_memory
from tracing.files.trace_lines import HEADER, Lines
from tracing.graph.elements import Operation, Session, Variable

SIZES = (10_000, 100_000, 1_000_000)
MADE_BY_ONE, READ_BY_ONE, STEPS = 4, 3, 2_500
"""Variables an operation makes and reads, and operations in a row: a slice through a row has 10,000 nodes."""

NODES = 40_000


def measure_native(
    folder: Path, progress: Callable[[str], None], *, sizes: Sequence[int] = SIZES, repetitions: int = REPETITIONS
) -> tuple[NativeFigures, float, float]:
    """The figures of the largest size, each measured in a process of its own, and the growth exponent of loading.

    The third is the median seconds of `json.loads` for the lines of the largest.
    """
    seconds = []
    for size in sizes:
        progress(f"writing a trace of {size:,} variables")
        path = folder / f"native-{size}.jsonl"
        last = write_native(path, size)
        measured = []
        for number in range(repetitions):
            progress(f"loading {size:,} variables, repetition {number + 1} of {repetitions}")
            measured.append(in_own_process(path, last))
        found = medians(measured)
        seconds.append(found["load_s"])
        path.unlink()
    return NativeFigures.model_validate(found), growth_exponent(sizes, seconds), found["json_loads_s"]


def write_native(path: Path, variables: int) -> str:
    """Write a trace of so many variables in rows of operations; the id of a variable at the end of a whole row."""
    lines = Lines()
    end = ""
    with path.open("wb") as file:
        file.write(lines.line(HEADER))
        file.write(lines.line(Session("s1", "D1")))
        before: list[str] = []
        for step in range(variables // MADE_BY_ONE):
            if step % STEPS == 0:
                before = []
            made = [f"v{step * MADE_BY_ONE + number}" for number in range(1, MADE_BY_ONE + 1)]
            for vid in made:
                file.write(lines.line(Variable(vid, f"fact {vid}", "fact", f"The ferry {vid} leaves.", session="s1")))
            inputs = tuple(("facts", vid) for vid in before[:READ_BY_ONE])
            outputs = tuple(("facts", vid) for vid in made)
            done = Operation(f"o{step}", "derive", "llm", inputs, outputs, None, "s1", 1.0, 2.0, "ok")
            file.write(lines.line(done))
            before = made
            if step % STEPS == STEPS - 1 or not end:
                end = made[0]
    return end


def in_own_process(path: Path, last: str) -> dict[str, float]:
    """Load the trace in a fresh interpreter, whose memory is its own."""
    ran = subprocess.run(  # noqa: S603 (this very interpreter and module)
        [sys.executable, "-m", "benchmarks.loading", str(path.absolute()), last],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def load_here(path: Path, last: str) -> dict[str, float]:
    """Seconds to load the trace, and of `json.loads` for its lines; MiB held at most; ms for the slice of `last`.

    And the microseconds that recording one operation takes here.
    """
    from tracing import TraceError, graph_of, load_trace

    graph_of([])  # what loading imports on its first use is not the cost of a large trace
    with path.open("rb") as lines:
        begun = process_time()
        for line in lines:
            json.loads(line)
        json_loads_s = process_time() - begun
    begun = process_time()
    loaded = load_trace(path)
    load_s = process_time() - begun
    if loaded.problem is not None:
        raise TraceError(loaded.problem)
    held = _most_held_mib()
    loaded.graph.backward_slice("v1")  # the first query of a graph may index it
    slices, records = [], []
    for _ in range(REPETITIONS):
        # By turns, so that what else the machine does hits both alike.
        slices.append(timed(lambda: loaded.graph.backward_slice(last))[0] * 1e3)
        records.append(in_memory(CALLS))
    return {
        "load_s": load_s,
        "rss_mib": held,
        "slice_10k_ms": median(slices),
        "record_us": median(records),
        "json_loads_s": json_loads_s,
    }


def _most_held_mib() -> float:
    """The most memory that this program has held."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not `ru_maxrss`, which a program takes over from the one that started it.
        held = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(held.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that it takes of a processor, and its result, which is not freed meanwhile."""
    begun = process_time()
    result = work()
    return process_time() - begun, result


def growth_exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of log time over log size by least squares."""
    points = [(log(size), log(took)) for size, took in zip(sizes, seconds, strict=True)]
    x_mean, y_mean = (sum(values) / len(points) for values in zip(*points, strict=True))
    spread: float = sum((x - x_mean) ** 2 for x, _ in points)
    return float(sum((x - x_mean) * (y - y_mean) for x, y in points)) / spread


def measure_smartcomment(
    folder: Path, progress: Callable[[str], None], *, nodes: int = NODES, repetitions: int = REPETITIONS
) -> tuple[float, float]:
    """Median seconds to load a smartcomment file, and of `json.loads` for the same bytes, by turns."""
    from tracing.interchange import smartcomment

    path = folder / "smartcomment.json"
    path.write_text(json.dumps(smartcomment_graph(nodes)))
    content = path.read_bytes()
    took: list[tuple[float, float]] = []
    for number in range(repetitions):
        progress(f"loading a smartcomment file of {nodes:,} nodes, repetition {number + 1} of {repetitions}")
        load_s, graph = timed(lambda: smartcomment.load(path))
        del graph  # before the next is made; neither is freed while the clock runs
        parse_s, document = timed(lambda: json.loads(content))
        del document
        took.append((load_s, parse_s))
    loads_s, parses_s = zip(*took, strict=True)
    return median(loads_s), median(parses_s)


def smartcomment_graph(nodes: int) -> dict[str, Any]:
    """A graph as smartcomment exports it: of every ten nodes the first nine lead, by one operation, to the tenth."""
    place = {"graph_id": "bench", "filename": "memory.py", "lineno": 10, "trigger_point": "memory.py:10"}
    shared = {"user_id": "u", "project_id": "p", "comment": "", "created_at": "2026-01-01 10:00:00.000", "metadata": {}}
    sessions = [{**place, **shared, "session_id": "s1", "session_name": "D1", "category": "session"}]
    made: dict[str, list[dict[str, Any]]] = {"nodes": [], "edges": [], "operations": [], "sessions": sessions}
    for first in range(0, nodes, 10):
        names = [f"D{first}:{number}" for number in range(1, 11)]
        oid = f"op-{first}"
        inside = {**place, **shared, "session_id": "s1"}
        made["nodes"] += (_node(name, inside) for name in names)
        operation = {**inside, "op_id": oid, "op_name": "memory_system.extract_facts", "category": "operation"}
        made["operations"].append(operation)
        made["edges"] += _edges(names, {**inside, "op_id": oid, "category": "operation"})
    return {
        "graph_id": "bench",
        "user_id": "u",
        "project_id": "p",
        "storage_path": None,
        "strict": False,
        "driver_type": "in_memory",
        "created_at": "2026-01-01 10:00:00.000",
        "metadata": {},
        "data": made,
    }


def _node(name: str, inside: dict[str, Any]) -> dict[str, Any]:
    full = f"{name}@1"
    said = repr(f"Mara: my ferry {name} leaves at nine, and it's the last one of the day.\n")
    identity = {"full_name": name, "node_id": full, "full_node_id": full}
    return {**inside, **identity, "name": name, "value": said, "version": 1, "category": "message", "class_name": None}


def _edges(names: Sequence[str], inside: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in names[:-1]:
        ends = {"source_full_node_id": f"{name}@1", "target_full_node_id": f"{names[-1]}@1"}
        yield {**inside, **ends, "edge_id": f"{inside['op_id']}-{name}"}


if __name__ == "__main__":
    print(json.dumps(load_here(Path(sys.argv[1]), sys.argv[2])))  # noqa: T201
