"""Work that ran at the same time is recorded as if one piece came after the other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tracing import Redaction, Variable, load_trace, operation, trace
from tracing.recording.processes import Branch


def answer(asked: Variable, said: str) -> Variable:
    with operation("answer", inputs={"query": asked}) as op:
        return op.output("prediction", said)


def test_what_a_branch_recorded_is_redacted_once_and_its_variables_are_those_of_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with trace(path, redaction=Redaction(function=lambda text: f"<{text}>")) as recorder:
        with operation("ask") as op:
            asked = op.output("query", "Who?")
        branches = [Branch(recorder, [asked]) for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            made = list(pool.map(lambda branch, at: branch.run(answer, asked, f"Ann {at}"), branches, range(3)))
        for branch in branches:
            branch.join()
        assert all(recorder.graph.variables[one.id] is one for one in made)
    graph = load_trace(path).graph
    assert [graph.variable(one.id).value for one in made] == ["<Ann 0>", "<Ann 1>", "<Ann 2>"]
    assert (graph.variables, graph.operations) == (recorder.graph.variables, recorder.graph.operations)
