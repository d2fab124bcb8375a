"""Slices with filters, paths, surroundings, search and sets give what a reader of the definitions expects."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.tracing.recordings import record_memory
from tracing import ExecutionGraph, Filter, Operation, Session, TraceError, Variable, search, version_diff
from tracing.graph import search as graph_search
from tracing.graph.search import LONGEST_EXPRESSION, PIECE


@pytest.fixture
def memory() -> ExecutionGraph:
    return record_memory().graph


def names(graph: ExecutionGraph) -> list[str]:
    return [one.name for one in graph.operations.values()]


def by_kind(graph: ExecutionGraph, kind: str) -> str:
    return graph.find_variables(kind=kind)[-1].id


def test_a_filter_stops_a_slice_at_what_it_does_not_admit(memory: ExecutionGraph):
    reply = by_kind(memory, "prediction")
    assert names(memory.backward_slice(reply)) == ["extract_facts", "store", "retrieve", "answer"]
    assert names(memory.backward_slice(reply, only=Filter(kind="llm"))) == ["answer"]
    assert names(memory.backward_slice(reply, only=Filter(session="Q1"))) == ["retrieve", "answer"]
    assert names(memory.backward_slice(reply, only=Filter(where=lambda one: one.name != "store"))) == [
        "retrieve",
        "answer",
    ]
    message = memory.find_variables(kind="message")[0].id
    assert names(memory.forward_slice(message, only=Filter(name="extract_facts"))) == ["extract_facts"]


def test_a_depth_counts_operations_and_versions_as_steps(memory: ExecutionGraph):
    reply = by_kind(memory, "prediction")
    assert names(memory.backward_slice(reply, depth=0)) == []
    assert names(memory.backward_slice(reply, depth=2)) == ["retrieve", "answer"]
    entry = memory.versions(by_kind(memory, "memory_entry"))[0].id
    assert list(memory.forward_slice(entry, depth=1).variables) == [entry, memory.latest(entry).id]


def test_a_time_filter_admits_what_overlaps_it_and_what_is_still_open():
    steps = [Operation("a", "a", started=1, ended=5, status="ok"), Operation("b", "b", started=4)]
    graph = ExecutionGraph([], steps)

    def admitted(**times: float) -> list[str]:
        return [one.id for one in steps if Filter(**times).admits(one, graph.sessions)]

    assert admitted(since=5) == ["a", "b"]
    assert admitted(since=6) == ["b"]
    assert admitted(until=3.9) == ["a"]
    assert admitted(since=0, until=0.5) == []


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_shortest_path_is_as_long_as_networkx_says(data: st.DataObject):
    count = data.draw(st.integers(2, 8))
    vids = [f"v{n}" for n in range(count)]
    previous = [None] + [data.draw(st.none() | st.sampled_from(vids[:n])) for n in range(1, count)]
    variables = [Variable(vid, vid, "value", 1, previous=before) for vid, before in zip(vids, previous, strict=True)]
    some = st.lists(st.sampled_from(vids), max_size=3).map(lambda ids: tuple(("r", vid) for vid in ids))
    operations = [Operation(f"o{n}", "o", inputs=data.draw(some), outputs=data.draw(some)) for n in range(4)]
    graph = ExecutionGraph(variables, operations)
    source, target = data.draw(st.sampled_from(vids)), data.draw(st.sampled_from(vids))
    # One step is one edge: through an operation, or from a version to the next.
    oracle = networkx.DiGraph([(one.previous, one.id) for one in variables if one.previous])
    oracle.add_nodes_from(vids)
    oracle.add_edges_from((a, b) for one in operations for a in one.input_ids() for b in one.output_ids())
    path = graph.shortest_path(source, target)
    if not networkx.has_path(oracle, source, target):
        assert path == []
        return
    passed = [one.id for one in path if isinstance(one, Variable)]
    assert (passed[0], passed[-1]) == (source, target)
    assert len(passed) - 1 == networkx.shortest_path_length(oracle, source, target)
    for at, one in enumerate(path):
        if isinstance(one, Operation):
            assert path[at - 1].id in one.input_ids()
            assert path[at + 1].id in one.output_ids()


def test_surroundings_hold_what_is_nested_and_the_next_operations_on_either_side(memory: ExecutionGraph):
    outer = memory.find_operations(name="update_memory")[0]
    part = memory.surroundings(outer.id)
    assert names(part) == ["update_memory", "extract_facts", "store", "retrieve"]
    assert part.find_operations(name="retrieve")[0].outputs == ()
    with pytest.raises(TraceError, match="'ghost'"):
        memory.surroundings("ghost")


def test_operations_nested_in_a_circle_are_no_endless_walk():
    graph = ExecutionGraph([], [Operation("a", "a", parent="b"), Operation("b", "b", parent="a")])
    assert set(graph.surroundings("a").operations) == {"a", "b"}


def test_a_version_diff_shows_the_lines_that_changed(memory: ExecutionGraph):
    first, second = memory.versions(by_kind(memory, "memory_entry"))
    assert version_diff(memory, first.id, second.id).splitlines()[3:] == [" - Mara lives in Oslo", "+- since May"]
    assert "home@2" in version_diff(memory, first.id, second.id)
    assert version_diff(memory, first.id, first.id) == ""
    structured = ExecutionGraph([Variable("a", "a", "k", {"x": 1}), Variable("b", "a", "k", {"x": 2})])
    assert '-  "x": 1\n+  "x": 2' in version_diff(structured, "a", "b")


def found(graph: ExecutionGraph, *args, **conditions) -> list[str]:
    return [match.item.name for match in search(graph, *args, **conditions)]


def test_a_search_looks_at_names_values_errors_and_attributes(memory: ExecutionGraph):
    assert found(memory, "OSLO", session="D1") == ["D1:2", "facts", "home", "home"]
    assert found(memory, "retr") == ["retrieve"]
    assert found(record_memory(fails=True).graph, "no reply") == ["answer"]
    assert found(memory, "", kind="query") == found(memory, None, kind="query") == ["Q1"]
    noted = ExecutionGraph([Variable("v", "n", "k", {"text": "süß"}, attributes={"speaker": "Mara"})])
    assert [match.place for match in search(noted, "mara")] == ["speaker"]
    assert found(noted, "SÜSS") == []
    assert found(noted, "süß") == ["n"]


def test_a_search_by_time_takes_a_variable_for_there_when_it_was_made_or_came_from_outside_and_was_read(
    memory: ExecutionGraph,
):
    answer = memory.find_operations(name="answer")[0]
    assert found(memory, since=answer.started) == ["Q1", "reply", "answer"]
    retrieve = memory.find_operations(name="retrieve")[0]
    assert found(memory, since=retrieve.started, until=retrieve.ended) == ["Q1", "context", "retrieve"]


def test_an_expression_is_tried_line_by_line_and_finds_what_lies_across_pieces():
    text = "x" * (PIECE - 3) + "needle" + "y" * PIECE + "\nlast line"
    graph = ExecutionGraph([Variable("v", "n", "k", text)])
    assert found(graph, "needle", regex=True) == ["n"]
    assert found(graph, "^last", regex=True) == ["n"]
    assert found(graph, r"y\slast", regex=True) == []
    (match,) = search(graph, "needle", regex=True)
    assert "xneedley" in match.excerpt


@pytest.mark.parametrize(
    "expression", [r"(x+x+)+y", r"(a*)*[^a]b", r"((a{1,9}){2,9}){2,9}b", r"(a|aa)+$", r"(a?){40}a{40}!"]
)
def test_no_expression_takes_long_on_one_text(expression: str):
    text = ("x" if "x" in expression else "a") * (PIECE - 1) + "!"
    graph = ExecutionGraph([Variable("v", "n", "k", text)])
    begun = time.process_time()
    with contextlib.suppress(TraceError):  # some the package is clever enough for
        found(graph, expression, regex=True)
    assert time.process_time() - begun < 5 * graph_search.SECONDS_A_TEXT


def test_the_error_of_an_endless_expression_says_which_it_is_and_what_to_do():
    graph = ExecutionGraph([Variable("v", "n", "k", "x" * PIECE)])
    with pytest.raises(TraceError, match=r"'\(x\+x\+\)\+y' takes more than 1 s on one text; .*a\+ for \(a\+\)\+"):
        found(graph, "(x+x+)+y", regex=True)


def test_an_expression_that_is_slow_on_every_text_is_ended_as_a_whole(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(graph_search, "SECONDS", 0.5)
    text = "moved to Lisbon " * (PIECE // 16)
    graph = ExecutionGraph([Variable(f"v{at}", "n", "k", text) for at in range(200)])
    with pytest.raises(TraceError, match=r"takes more than 0\.5 s;"):
        found(graph, r"(\w+ )+zzz", regex=True)


def test_an_expression_longer_than_the_limit_is_refused():
    with pytest.raises(TraceError, match="shorten it to 500"):
        list(search(ExecutionGraph(), "a" * (LONGEST_EXPRESSION + 1), regex=True))


def test_without_the_package_for_expressions_the_error_names_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(TraceError, match="pip install regex"):
        list(search(ExecutionGraph(), "a+", regex=True))


def test_what_is_no_expression_is_refused_with_the_reason(memory: ExecutionGraph):
    with pytest.raises(TraceError, match=r"'\(open'.*--regex"):
        list(search(memory, "(open", regex=True))


def test_ordinary_expressions_are_admitted(memory: ExecutionGraph):
    for expression in (
        r"\b(Oslo|Rome)\b",
        r"moved \w+ (to|from) [A-Z]\w*",
        r"(?i)MARA.*oslo",
        r"\d{4}-\d\d?",
        "(ab){2,3}",
        r"(\w+ )+in",
        r"(?:Mara|Ilya|\s)+",
        r"\w+ \w+ \w+ \w+ \w+",
    ):
        list(search(memory, expression, regex=True))
    assert LONGEST_EXPRESSION >= 200


def test_every_match_of_a_long_line_is_found_once():
    text = "y" * 900 + "needle" + "x" * 1500 + "needle\nneedle"
    assert graph_search.Expression("needle").spans(text, 9) == [(900, 906), (2406, 2412), (2413, 2419)]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_a_slow_search_is_ended_by_an_interrupt():
    text = "moved to Lisbon " * (PIECE // 16)
    graph = ExecutionGraph([Variable(f"v{at}", "n", "k", text) for at in range(200)])

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            found(graph, r"(\w+ )+zzz", regex=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_sets_of_graphs_go_by_id(memory: ExecutionGraph):
    building = ExecutionGraph(memory.variables.values(), memory.find_operations(session="D1"), memory.sessions.values())
    asking = memory.difference(building)
    assert names(asking) == ["retrieve", "answer"]
    assert by_kind(memory, "memory_entry") in asking.variables
    assert by_kind(memory, "fact") not in asking.variables
    assert names(memory.intersection(building)) == names(building)
    whole = building.merge(asking)
    assert whole.operations == memory.operations
    assert whole.variables == memory.variables
    empty = memory.difference(memory)
    assert not empty.variables
    assert not empty.operations


def test_an_intersection_of_different_things_with_one_id_is_refused():
    left = ExecutionGraph([Variable("v", "n", "k", 1)], [], [Session("s", "one")])
    with pytest.raises(TraceError, match="'v'"):
        left.intersection(ExecutionGraph([Variable("v", "n", "k", 2)]))
    with pytest.raises(TraceError, match="'s'"):
        left.intersection(ExecutionGraph([], [], [Session("s", "two")]))


def test_queries_while_another_thread_records_lose_nothing():
    graph = ExecutionGraph([Variable("v0", "n", "k", 0)])
    done = threading.Event()

    def grow() -> None:
        for n in range(1, 3000):
            graph.add_variable(Variable(f"v{n}", "n", "k", n))
            graph.add_operation(Operation(f"o{n}", "o", inputs=(("i", f"v{n - 1}"),)))
            graph.add_links(graph.operations[f"o{n}"], outputs=(("o", f"v{n}"),))
        done.set()

    threads = [threading.Thread(target=grow)]
    threads += [
        threading.Thread(target=lambda: [graph.consumers("v0") for _ in iter(done.is_set, True)]) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(graph.backward_slice("v2999").operations) == 2999
    assert len(graph.forward_slice("v0").operations) == 2999


@pytest.mark.parametrize("asked", [False, True])
def test_what_an_operation_makes_after_a_slice_was_begun_is_not_in_it(asked: bool):
    graph = ExecutionGraph([Variable("a", "n", "k", 0)], [Operation("o", "o", outputs=(("o", "a"),), status="ok")])

    def grow(operation: Operation) -> bool:
        graph.add_variable(Variable("b", "n", "k", 1))
        graph.add_links(graph.operations["o"], outputs=(("o", "b"),))
        return not asked or graph.producers("b") == [operation]

    cut = graph.backward_slice("a", only=Filter(where=grow))
    assert cut.operations["o"].output_ids() == list(cut.variables) == ["a"]
    assert graph.backward_slice("a", "b").operations["o"].output_ids() == ["a", "b"]


def test_a_slice_taken_while_another_thread_records_has_all_that_its_links_lead_to():
    graph = ExecutionGraph([Variable("v0", "n", "k", 0)])

    def grow() -> None:
        for n in range(1, 600):
            graph.add_variable(Variable(f"v{n}", "n", "k", n))
            graph.add_variable(Variable(f"w{n}", "n", "k", n))
            graph.add_operation(Operation(f"o{n}", "o", inputs=(("i", f"v{n - 1}"),)))
            graph.add_links(graph.operations[f"o{n}"], outputs=(("o", f"w{n}"), ("o", f"v{n}")))
            done = replace(graph.operations[f"o{n}"], status="ok", outputs=(("o", f"v{n}"), ("o", f"w{n}")))
            graph.add_operation(done)

    growing = threading.Thread(target=grow)
    taken = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        growing.start()
        while growing.is_alive():
            newest = list(graph.variables)[-1]
            taken += [graph.backward_slice(newest), graph.forward_slice("v0"), graph.difference(ExecutionGraph())]
    finally:
        growing.join()
        sys.setswitchinterval(interval)
    assert len(graph.operations) == 599
    for cut in taken:
        links = [link for one in cut.operations.values() for link in one.inputs + one.outputs]
        assert {vid for _, vid in links} <= set(cut.variables)
        assert all(len(one.outputs) <= 2 for one in cut.operations.values())
