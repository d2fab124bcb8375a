"""Every store and exporter passes the conformance suite, and the suite notices one that loses something."""

from __future__ import annotations

from pathlib import Path

import pytest
from graph_exchange import GraphExchangeConformance
from msgspec.structs import replace

from tracing import ExecutionGraph, load_trace, save_trace
from tracing.interchange import FORMATS, format_named


class TestTraceFile(GraphExchangeConformance):
    def write(self, graph: ExecutionGraph, path: Path) -> None:
        save_trace(graph, path)

    def read(self, path: Path) -> ExecutionGraph:
        return load_trace(path).graph


class OfFormat(GraphExchangeConformance):
    name: str

    def write(self, graph: ExecutionGraph, path: Path) -> None:
        format_named(self.name).write(graph, path)

    def read(self, path: Path) -> ExecutionGraph:
        return format_named(self.name).load(path)


class TestSmartcomment(OfFormat):
    name = "smartcomment"


class TestOtlp(OfFormat):
    name = "otlp"


class TestMlflow(OfFormat):
    name = "mlflow"


def test_every_format_is_under_the_suite():
    assert {one.name for one in OfFormat.__subclasses__()} == set(FORMATS)


class Forgetful(TestTraceFile):
    """Loses what `lose` takes out of an operation."""

    __test__ = False
    lose: dict[str, object]

    def read(self, path: Path) -> ExecutionGraph:
        graph = super().read(path)
        for one in list(graph.operations.values()):
            graph.operations[one.id] = replace(one, **self.lose)
        return graph


@pytest.mark.parametrize(
    "lose", [{"inputs": ()}, {"error": None}, {"parent": None}, {"session": None}, {"cost": 0.0}, {"started": 0.0}]
)
def test_the_suite_notices_what_is_lost(lose: dict[str, object]):
    forgetful = Forgetful()
    forgetful.lose = lose
    with pytest.raises(AssertionError, match="different"):
        forgetful.test_a_recorded_graph_comes_back_as_it_was()
