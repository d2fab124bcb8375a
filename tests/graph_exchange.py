"""The conformance suite of stores and exporters: subclass it in a test file, and pytest checks yours against it.

    class TestMyFormat(GraphExchangeConformance):
        def write(self, graph, path):
            my_format.write(graph, path)

        def read(self, path):
            return my_format.load(path)

It works with any test framework that runs methods named `test_…`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tracing.conformance import Conformance, require
from tracing.errors import TraceError
from tracing.files.trace_file import records_of
from tracing.graph.elements import Operation, Session, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, trace, variable


def recorded() -> ExecutionGraph:
    """A small memory as recorded: two sessions, an update, a deletion, a failure, a model's calls."""
    ticks = iter(range(1, 1000))
    with trace(prefix="", clock=lambda: 1.7e9 + next(ticks) / 7) as recorder:
        prompt = variable("Extract facts from: {messages}", name="extract", kind="prompt")
        with session("D1", day=1):
            messages = [variable(f"A: tea {n}", name=f"D1:{n}", kind="message", speaker="A") for n in (1, 2)]
            with operation("ingest"), operation("extract_facts", kind="llm", inputs={"m": messages, "p": prompt}) as op:
                fact = op.output("fact", {"text": "likes tea"}, kind="fact")
                op.record_call(model="tiny", prompt_tokens=12, completion_tokens=3, cost=0.25)
                op.record_call(model="tiny", prompt_tokens=12, completion_tokens=3, cached=True)
            with operation("decide_update", inputs={"fact": fact}) as op:
                entry = op.output("entry", "likes tea", kind="memory_entry", name="m1")
        with session("q1"):
            with operation("decide_update", inputs={"entry": entry}, reason="changed") as op:
                newer = op.output("entry", "likes coffee", kind="memory_entry", name="m1", previous=entry)
                op.output("entry", "likes cocoa", kind="memory_entry", name="m1", previous=entry)
            with operation("forget", inputs={"entry": newer}) as op:
                op.output("gone", None, kind="delete_marker", name="m1", previous=newer)
            question = variable("What does A like?", name="q1", kind="query", evidence=["D1:1"])
            try:
                with operation("answer", kind="llm", inputs={"question": question, "context": [newer, newer]}) as op:
                    op.output("reply", "I don't know", kind="prediction")
                    raise ValueError("no reply\nin two lines")
            except ValueError:
                pass
    return recorder.graph


def unusual() -> ExecutionGraph:
    """Elements that a recorder seldom makes but a file may contain."""
    values: Mapping[str, Any] = {
        "nothing": None,
        "truth": [True, False, 1, 0, 1.0],
        "numbers": [0.1, -0.0, 1e22, 1e-300, 10**40, -1],
        "text": "é\u2028\x00\t\"'\\n \ud83d 👋",
        "empty": ["", {}, [], [[]], {"": ""}],
        "like code": "__import__('os')",
        "like a list": "['a', 1]",
        "deep": json.loads("[" * 90 + "]" * 90),
        "long": "tea " * 50_000,
    }
    variables = [Variable(f"v{n}", name, "value", value) for n, (name, value) in enumerate(values.items())]
    variables += [Variable(f"same{n}", "same", "value", "same", session="nowhere") for n in range(3)]
    variables += [
        Variable("@:", "@:", "a kind of one's own", 1, attributes={"memtune": {"id": "v0"}, "smartcomment": "text"}),
        Variable("branch", "nothing", "value", 2, version=2, previous="v0"),
        Variable("renamed", "something", "value", 2, version=2, previous="v0"),
        Variable("late", "nothing", "value", 2, version=9, previous="branch"),
    ]
    operations = [
        Operation("loop", "loop", inputs=(("x", "v1"), ("x", "v1")), outputs=(("x", "v1"),), started=0.1, status="ok"),
        Operation("back", "loop", "llm", (("a", "v2"),), (("a", "v1"), ("b", "v3")), "loop", "s", 2.5, 2.5, "ok"),
        Operation("forth", "loop", inputs=(("", "v1"),), outputs=(("", "v2"),), parent="unknown", started=-1.5),
        Operation("bare", "", status="error", error="", started=1.7e9, ended=1.6e9, model="", calls=2, cost=-0.5),
        Operation("own parent", "x", parent="own parent", attributes={"a": {"b": [None]}}),
        Operation("at no time", "x", started=1e308, ended=-1e308),
        Operation("only in", "x", inputs=(("x", "v1"),)),
        Operation("only out", "x", outputs=(("x", "v4"),), session="nowhere"),
    ]
    sessions = [Session("s", "twice"), Session("t", "twice", {"memtune": 1}), Session("", "", {"x": [1, {"y": None}]})]
    return ExecutionGraph(variables, operations, sessions, {"facts": {"of": ["the", "whole"]}, "": None})


def wide() -> ExecutionGraph:
    """An operation with many inputs and outputs in three roles, in a certain order."""
    variables = [Variable(f"v{n}", f"n{n % 7}", "value", n) for n in range(60)]
    links = tuple((f"r{n % 3}", f"v{n}") for n in range(60))
    return ExecutionGraph(variables, [Operation("o", "wide", inputs=links[::-2], outputs=links[::2], status="ok")])


HOSTILE: Mapping[str, bytes] = {
    "empty": b"",
    "blank": b" \n\n",
    "binary": bytes(range(256)) * 40,
    "nested": b"[" * 1_000_000,
    "nested objects": b'{"a":' * 300_000,
    "number": b"9" * 100_000,
    "null": b"null",
    "text": b'"text"',
    "list of lists": b"[[],[[]]]",
    "not a number": b'{"data": NaN}',
    "marked": b"\xef\xbb\xbf{}",
    "wide characters": "{}".encode("utf-16"),
    "broken text": b'{"data": "\xff\xfe"}',
    "half a pair": b'{"\\ud83d": "\\udc4b\\ud83d"}',
}
"""Files without a trace."""


class GraphExchangeConformance(Conformance):
    """What is written is read back, and everything else is refused in one way. Override `write` and `read`."""

    def write(self, graph: ExecutionGraph, path: Path) -> None:
        """Write a graph as a new file."""
        raise NotImplementedError("override write()")

    def read(self, path: Path) -> ExecutionGraph:
        """The graph in a file."""
        raise NotImplementedError("override read()")

    def test_a_recorded_graph_comes_back_as_it_was(self) -> None:
        self._comes_back(recorded())

    def test_a_graph_with_cycles_and_odd_values_comes_back_as_it_was(self) -> None:
        """Also names, kinds, times, sessions and parents that a recorder would not make."""
        self._comes_back(unusual())

    def test_roles_and_their_order_are_kept(self) -> None:
        self._comes_back(wide())

    def test_an_empty_graph_comes_back_empty(self) -> None:
        self._comes_back(ExecutionGraph())

    def test_a_graph_read_is_written_alike_again(self) -> None:
        """The second file equals the first: repeated export adds nothing."""
        with _folder() as folder:
            self.write(recorded(), folder / "first")
            self.write(self.read(folder / "first"), folder / "second")
            same = (folder / "first").read_bytes() == (folder / "second").read_bytes()
            require(same, "a graph that was read is written differently")

    def test_a_slice_can_be_written(self) -> None:
        """A part of a graph is a graph: its operations may have lost their parents, sessions or other ends."""
        whole = recorded()
        last = list(whole.variables)[-1]
        self._comes_back(whole.backward_slice(last))

    def test_nothing_is_overwritten(self) -> None:
        with _folder() as folder:
            (folder / "taken").write_bytes(b"mine")
            require(_refused(lambda: self.write(recorded(), folder / "taken")), "a file was overwritten")
            require((folder / "taken").read_bytes() == b"mine", "the content of a file was changed")

    def test_what_is_no_trace_is_refused_with_the_path(self) -> None:
        """One TraceError that names the file; nothing else is raised, whatever the file contains."""
        with _folder() as folder:
            hostile = folder / "hostile"
            for name, content in HOSTILE.items():
                hostile.write_bytes(content)
                refused = _refused(lambda: self.read(hostile), hostile)
                require(refused or self._is_empty(hostile), f"{name}: was read as a trace")
            for path in (folder, folder / "none"):
                require(_refused(lambda at=path: self.read(at), path), f"{path} is not a file, but was read")

    def test_a_file_cut_short_gives_a_graph_or_an_error_that_names_it(self) -> None:
        with _folder() as folder:
            self.write(recorded(), folder / "whole")
            content = (folder / "whole").read_bytes()
            for length in range(1, len(content), max(1, len(content) // 60)):
                (folder / "cut").write_bytes(content[:length])
                try:
                    self.read(folder / "cut")
                except TraceError as error:
                    require(str(folder / "cut") in str(error), f"the error does not name the file: {error}")

    def _comes_back(self, graph: ExecutionGraph) -> None:
        with _folder() as folder:
            self.write(graph, folder / "trace")
            there, here = records_of(graph), records_of(self.read(folder / "trace"))
        for before, after in zip(there, here, strict=False):
            require(repr(before) == repr(after), f"came back different:\n{_cut(before)}\n{_cut(after)}")
        require(len(there) == len(here), f"{len(there)} records were written and {len(here)} read back")

    def _is_empty(self, path: Path) -> bool:
        """A reader may read a file as an empty trace."""
        return len(records_of(self.read(path))) <= 1


def _refused(action: Any, path: Path | None = None) -> bool:
    try:
        action()
    except TraceError as error:
        require(path is None or str(path) in str(error), f"the error does not name the file: {error}")
        return True
    return False


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _cut(record: Mapping[str, Any]) -> str:
    text = repr(record)
    return text if len(text) <= 1000 else f"{text[:1000]}…"
