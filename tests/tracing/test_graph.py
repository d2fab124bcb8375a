"""The execution graph answers what made what, over operations and versions, and stays well formed."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracing import ExecutionGraph, Operation, Session, TraceError, Variable


def var(vid: str, *, previous: str | None = None, version: int = 1, kind: str = "value", session: str | None = None):
    return Variable(vid, f"name of {vid}", kind, f"value of {vid}", version, previous, session)


def op(oid: str, inputs: list[str], outputs: list[str], **fields) -> Operation:
    return Operation(
        oid,
        fields.pop("name", f"step {oid}"),
        inputs=tuple(("in", vid) for vid in inputs),
        outputs=tuple(("out", vid) for vid in outputs),
        status="ok",
        **fields,
    )


@pytest.fixture
def memory() -> ExecutionGraph:
    """Two messages, a fact of each; the second fact updates the entry of the first; one answer."""
    return ExecutionGraph(
        variables=[
            *(var(vid, session="s1") for vid in ("m1", "m2", "f1", "f2")),
            var("e1", session="s1", kind="memory_entry"),
            var("e1b", previous="e1", version=2, session="s1", kind="memory_entry"),
            *(var(vid, session="s2") for vid in ("q", "c", "p", "unrelated")),
        ],
        operations=[
            op("extract", ["m1", "m2"], ["f1", "f2"], session="s1"),
            op("store1", ["f1"], ["e1"], session="s1", name="store"),
            op("store2", ["f2"], ["e1b"], session="s1", name="store"),
            op("retrieve", ["q", "e1b"], ["c"], session="s2"),
            op("answer", ["q", "c"], ["p"], session="s2"),
        ],
        sessions=[Session("s1", "D1"), Session("s2", "Q1")],
    )


def ids(items) -> list[str]:
    return [item.id for item in items]


def test_an_operation_keeps_the_order_and_repetition_of_its_roles():
    step = Operation("o", "step", inputs=(("a", "1"), ("b", "2"), ("a", "3")), outputs=(("r", "4"),))
    assert step.input_ids() == ["1", "2", "3"]
    assert step.input_ids("a") == ["1", "3"]
    assert step.output_ids("r") == ["4"]
    assert step.output_ids("a") == []


def test_producers_and_consumers_are_the_neighbours(memory: ExecutionGraph):
    assert ids(memory.producers("f1")) == ["extract"]
    assert ids(memory.producers("m1")) == []
    assert ids(memory.consumers("q")) == ["retrieve", "answer"]


def test_a_backward_slice_follows_operations_and_earlier_versions_but_not_siblings(memory: ExecutionGraph):
    graph = memory.backward_slice("f1")
    assert list(graph.variables) == ["m1", "m2", "f1"]
    assert graph.operations["extract"].output_ids() == ["f1"]
    assert "e1" in memory.backward_slice("p").variables
    assert "store1" in memory.backward_slice("p").operations
    assert "unrelated" not in memory.backward_slice("p").variables
    assert list(graph.sessions) == ["s1"]


def test_a_forward_slice_follows_operations_and_later_versions(memory: ExecutionGraph):
    graph = memory.forward_slice("f1")
    assert list(graph.variables) == ["f1", "e1", "e1b", "c", "p"]
    assert list(graph.operations) == ["store1", "retrieve", "answer"]
    assert graph.operations["retrieve"].input_ids() == ["e1b"]


def test_a_slice_leaves_the_graph_it_was_cut_from_as_it_was(memory: ExecutionGraph):
    memory.backward_slice("f1")
    assert memory.operations["extract"].output_ids() == ["f1", "f2"]


def test_slices_of_one_graph_unite_to_whole_operations(memory: ExecutionGraph):
    united = memory.backward_slice("f1").merge(memory.forward_slice("m2"))
    assert sorted(united.operations["extract"].output_ids()) == ["f1", "f2"]
    assert sorted(united.operations["extract"].input_ids()) == ["m1", "m2"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_slices_equal_reachability_in_networkx_on_any_graph(data: st.DataObject):
    count = data.draw(st.integers(1, 9))
    names = [f"v{n}" for n in range(count)]
    variables = [var(names[0])]
    for n in range(1, count):
        variables.append(var(names[n], previous=data.draw(st.none() | st.sampled_from(names[:n]))))
    some = st.lists(st.sampled_from(names), max_size=3)
    operations = [op(f"o{n}", data.draw(some), data.draw(some)) for n in range(data.draw(st.integers(0, 5)))]
    graph = ExecutionGraph(variables, operations)
    start = data.draw(st.sampled_from(names))

    oracle = graph.nx.copy()
    oracle.add_edges_from((one.previous, one.id) for one in variables if one.previous)
    for reached, cut in (
        (networkx.ancestors(oracle, start), graph.backward_slice(start)),
        (networkx.descendants(oracle, start), graph.forward_slice(start)),
    ):
        assert set(cut.variables) | set(cut.operations) == reached | {start}
        assert all(link[1] in cut.variables for one in cut.operations.values() for link in one.inputs + one.outputs)


def test_slices_of_chains_longer_than_the_recursion_limit_are_found():
    length = 20_000
    graph = ExecutionGraph(
        (var(f"v{n}") for n in range(length)), (op(f"o{n}", [f"v{n}"], [f"v{n + 1}"]) for n in range(length - 1))
    )
    assert len(graph.backward_slice(f"v{length - 1}").operations) == length - 1


def test_versions_run_from_the_oldest_over_all_branches_and_latest_stays_on_its_own():
    graph = ExecutionGraph(
        [
            var("a"),
            var("b", previous="a", version=2),
            var("c", previous="b", version=3),
            var("other", previous="a", version=2),
            var("alone"),
        ]
    )
    assert ids(graph.versions("c")) == ["a", "b", "other", "c"]
    assert graph.latest("a").id == "c"
    assert graph.latest("other").id == "other"
    assert graph.latest("alone").id == "alone"


def test_a_version_may_be_recorded_before_the_one_it_follows():
    graph = ExecutionGraph([var("late", previous="a", version=2)])
    assert ids(graph.versions("late")) == ["late"]
    graph.add_variable(var("b", previous="a", version=2))
    graph.add_variable(var("a"))
    assert ids(graph.versions("b")) == ["a", "late", "b"]
    assert list(graph.backward_slice("late").variables) == ["late", "a"]
    assert list(graph.forward_slice("a").variables) == ["late", "b", "a"]


def test_equal_values_stay_two_variables():
    graph = ExecutionGraph(
        [Variable("1", "reply", "prediction", "unknown"), Variable("2", "reply", "prediction", "unknown")]
    )
    assert len(graph.variables) == 2
    assert graph.variables["1"] != graph.variables["2"]


def test_items_are_found_by_name_kind_and_session_name_or_id(memory: ExecutionGraph):
    assert ids(memory.find_operations(name="store")) == ["store1", "store2"]
    assert (
        ids(memory.find_operations(session="Q1")) == ids(memory.find_operations(session="s2")) == ["retrieve", "answer"]
    )
    assert ids(memory.find_variables(kind="memory_entry")) == ["e1", "e1b"]
    assert ids(memory.find_variables(name="name of q", session="Q1")) == ["q"]
    assert memory.find_variables(session="Q2") == []


def test_nx_is_bipartite_carries_roles_and_follows_growth(memory: ExecutionGraph):
    nx = memory.nx
    kinds = networkx.get_node_attributes(nx, "type")
    assert set(kinds.values()) == {"variable", "operation"}
    assert all(kinds[source] != kinds[target] for source, target in nx.edges)
    assert memory.nx is nx
    memory.add_operation(Operation("again", "again", inputs=(("x", "q"), ("y", "q"))))
    assert memory.nx.edges["q", "again"]["roles"] == ("x", "y")


def test_merging_joins_what_is_shared_and_refuses_one_id_for_two_things(memory: ExecutionGraph):
    other = ExecutionGraph([var("q", session="s2"), var("new")], [op("more", ["q"], ["new"])])
    merged = memory.merge(other)
    assert ids(merged.consumers("q")) == ["retrieve", "answer", "more"]
    assert "more" not in memory.operations
    with pytest.raises(TraceError, match=r"'q'.*prefix"):
        memory.merge(ExecutionGraph([Variable("q", "else", "query", "else")]))
    with pytest.raises(TraceError, match="'answer'"):
        memory.merge(ExecutionGraph([], [op("answer", [], [], name="else")]))


def test_an_open_operation_is_completed_by_its_end():
    graph = ExecutionGraph([var("a"), var("b")], [Operation("o", "step", inputs=(("in", "a"),))])
    graph.add_operation(op("o", ["a"], ["b"], name="step"))
    assert graph.operations["o"].status == "ok"
    assert ids(graph.producers("b")) == ["o"]


def test_queries_follow_an_operation_that_grew_or_was_replaced_after_the_first_query():
    graph = ExecutionGraph([var(vid) for vid in "abcd"], [op("o", ["b"], ["d"])])
    assert list(graph.backward_slice("d").variables) == ["b", "d"]
    graph.add_operation(op("o", ["a", "b"], ["c", "d"]))  # its links are the same and others, in another order
    cut = graph.backward_slice("c")
    assert cut.operations["o"].input_ids() == ["a", "b"]
    assert cut.operations["o"].output_ids() == ["c"]
    graph.add_variable(var("e"))
    graph.add_links(graph.operations["o"], inputs=(("in", "e"),), outputs=(("out", "e"),))
    assert graph.backward_slice("c").operations["o"].input_ids() == ["a", "b", "e"]
    assert graph.forward_slice("e").operations["o"].output_ids() == ["c", "d", "e"]
    assert ids(graph.consumers("e")) == ids(graph.producers("e")) == ["o"]


def test_unknown_ids_are_refused_by_name(memory: ExecutionGraph):
    with pytest.raises(TraceError, match="'ghost'"):
        memory.backward_slice("ghost")
    with pytest.raises(TraceError, match=r"broken \(step broken\).*'ghost'"):
        memory.add_operation(op("broken", ["ghost"], []))
    assert "broken" not in memory.operations
