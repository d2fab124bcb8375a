"""Feeds damaged files to the importers until something other than a graph or a TraceError comes out.

    python tests/tracing/interchange/fuzz.py --seconds 60 --seed 7

`test_fuzz.py` runs a short part of it. An input that fails is written beside, to be looked at.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tracing import TraceError, load_trace, records_of, save_trace
from tracing.interchange import FORMATS, format_named, mlflow_traces, otlp, smartcomment
from tracing.interchange.exchange_suite import recorded, unusual

SLOWEST = 5.0
"""Seconds that no file of this size may take."""

ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0,
        1,
        2**63,
        -(2**70),
        0.5,
        float("nan"),
        float("inf"),
        -0.0,
        "",
        "a@1",
        "\ud83d",
        "\x00",
        "__none__",
    ),
    *("COMMENT:NONE@1", "__none_op__", "9" * 400, "[" * 3000, "-" * 3000, "1e999", "'\\", "x" * 100_000, [], {}, [[]]),
    *({"memtune": {}}, {"memtune": {"id": "a", "name": 1}}, {"key": "memtune.record", "value": {"stringValue": "{}"}}),
)


def seeds() -> dict[str, list[Any]]:
    """Sound documents of each format."""
    rows = [{"name": name, "value": "[1, 'x']", "version": version} for name in "abc" for version in (1, 2)]
    ends = [("a@1", "b@1"), ("b@1", "b@1"), ("b@1", "a@2"), ("c@2", "c@1")]
    edges = [
        {"op_id": f"o{n % 2}", "source_full_node_id": s, "target_full_node_id": t} for n, (s, t) in enumerate(ends)
    ]
    plain = {"graph_id": "g", "data": {"nodes": rows, "edges": edges, "operations": [{"op_id": "o0"}], "sessions": []}}
    span = {"traceId": "t", "spanId": "s", "name": "n", "startTimeUnixNano": "5", "endTimeUnixNano": 6}
    said = [{"key": "gen_ai.input.messages", "value": {"stringValue": '[{"role": "user", "content": "x"}]'}}]
    foreign = {"resourceSpans": [{"scopeSpans": [{"spans": [span, {**span, "spanId": "u", "attributes": said}]}]}]}
    other = {"info": {}, "data": {"spans": [{"span_id": "a", "name": "n", "attributes": {"mlflow.spanInputs": "{}"}}]}}
    graphs = (recorded(), unusual())
    return {
        "smartcomment": [plain, *(smartcomment.document_of(graph) for graph in graphs)],
        "otlp": [foreign, *(otlp.document_of(graph) for graph in graphs)],
        "mlflow": [other, *(mlflow_traces.document_of(graph) for graph in graphs)],
    }


def damaged(document: Any, draw: random.Random) -> bytes:
    """The document with a few of its parts changed, moved, doubled or lost, and at times cut or with bytes changed."""
    document = copy.deepcopy(document)
    for _ in range(draw.randint(1, 6)):
        places = list(_places(document))
        if not places:
            break
        holder, key = draw.choice(places)
        action = draw.randrange(5)
        if action == 0:
            del holder[key]
        elif action == 1 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        elif action == 2:
            source, other = draw.choice(places)
            holder[key] = copy.deepcopy(source[other])
        elif action == 3 and isinstance(holder[key], str):
            text = holder[key]
            at = draw.randint(0, len(text))
            holder[key] = text[:at] + str(draw.choice(ODD))[:50] + text[at + draw.randint(0, 3) :]
        else:
            holder[key] = copy.deepcopy(draw.choice(ODD))
    content = bytearray(json.dumps(document).encode())
    if draw.random() < 0.2:
        del content[draw.randint(0, len(content)) :]
    if draw.random() < 0.2:
        for _ in range(draw.randint(1, 4)):
            if content:
                content[draw.randrange(len(content))] = draw.randrange(256)
    return bytes(content)


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [document]
    while waiting:
        holder = waiting.pop()
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            yield holder, key
            if isinstance(value, dict | list) and value:
                waiting.append(value)


def check(name: str, content: bytes, folder: Path) -> bool:
    """Whether the file could be read; then it can be kept as a trace and written in every format."""
    path = folder / "input"
    path.write_bytes(content)
    begun = time.perf_counter()
    try:
        imported = format_named(name).read(path)
    except TraceError as error:
        if str(path) not in str(error):
            raise AssertionError("the error does not name the file") from error
        return False
    finally:
        assert time.perf_counter() - begun < SLOWEST
    (folder / "kept").unlink(missing_ok=True)
    save_trace(imported.graph, folder / "kept")
    loaded = load_trace(folder / "kept")
    assert loaded.problem is None, loaded.problem
    for target in FORMATS:
        (folder / "out").unlink(missing_ok=True)
        format_named(target).write(imported.graph, folder / "out")
        again = format_named(target).read(folder / "out")
        assert len(again.graph.variables) == len(imported.graph.variables)
        assert len(again.graph.operations) == len(imported.graph.operations)
        if target != "smartcomment":
            assert len(records_of(again.graph)) == len(records_of(imported.graph))
    return True


def fuzz(seed: int, going_on: Callable[[int], bool]) -> tuple[int, int]:
    """Damage and read files while `going_on(number so far)`; how many there were, and how many could be read."""
    draw, documents = random.Random(seed), seeds()  # noqa: S311
    tried = readable = 0
    with tempfile.TemporaryDirectory() as folder:
        while going_on(tried):
            name = draw.choice(tuple(FORMATS))
            content = damaged(draw.choice(documents[name]), draw)
            try:
                readable += check(name, content, Path(folder))
            except BaseException:
                Path(f"fuzz-{name}-{seed}-{tried}.json").write_bytes(content)
                raise
            tried += 1
    return tried, readable


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Feed damaged files to the importers.")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    print("{} files, {} of them readable".format(*fuzz(given.seed, lambda _: time.monotonic() < until)))
