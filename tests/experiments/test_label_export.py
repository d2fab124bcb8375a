"""Labels leave as MemTraceBench's annotated graphs, and the benchmarks read them."""

import json
from pathlib import Path

import pytest
from annotated_traces import USUAL, write_trace

from attribution.cases import ErrorType
from benchmarks.calibration.verdicts import on_labelled
from benchmarks.labelled_suites import load_suite
from experiments.annotating.label_export import export
from experiments.annotating.labels import Assessment, CaseId, LabelStore
from experiments.annotating.workspace import Workspace
from experiments.attributing.source import Source
from experiments.command import main
from tracing.files.loading import load_trace
from tracing.files.trace_file import save_trace
from tracing.interchange import smartcomment
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace, variable


@pytest.fixture
def opened(tmp_path: Path) -> Workspace:
    """Two traces of one content but for their fillers, one of them in smartcomment's form."""
    write_trace(tmp_path / "ours.jsonl")
    write_trace(tmp_path / "theirs.jsonl", filler=3)
    smartcomment.write(load_trace(tmp_path / "theirs.jsonl").graph, tmp_path / "theirs.json")
    workspace = Workspace([Source(tmp_path / "ours.jsonl"), Source(tmp_path / "theirs.json")])
    workspace.read()
    return workspace


def memtune(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert isinstance(caught.value.code, int)
    return caught.value.code


def ids(workspace: Workspace) -> list[CaseId]:
    return [entry.id for entry in workspace.queue()]


def decisive(workspace: Workspace, case: CaseId) -> tuple[ErrorType, str]:
    entry = workspace.entry(case)
    assert entry.verdict is not None
    assert entry.verdict.main is not None
    assert entry.verdict.main.operation_id is not None
    return entry.verdict.main.error_type, entry.verdict.main.operation_id


def test_the_queue_begins_with_what_survival_is_least_sure_of(opened: Workspace) -> None:
    queue = opened.queue()
    assert len(queue) == 4
    assert [one.confidence for one in queue] == sorted(one.confidence for one in queue)
    assert {one.state for one in opened.entries.values()} == {"wrong", "right"}


def test_labels_of_the_page_are_read_by_both_benchmarks(
    opened: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMTUNE_HOME", str(tmp_path / "home"))
    store = LabelStore(tmp_path / "labels.sqlite")
    for place, case in enumerate(ids(opened)):
        error_type, operation = decisive(opened, case)
        store.add("ann", case, Assessment("accepted", error_type, (operation,)), request=str(place))
    assert memtune("annotate", "ours.jsonl", "theirs.json", "--export", "annotated") == 0
    assert "4 labelled cases in 2 files; see annotated" in capsys.readouterr().out
    suite = load_suite(tmp_path / "annotated")
    assert (suite.skipped, suite.doubts) == ((), ())
    assert len(suite.cases) == 4
    assert all(len(one.case.question.evidence) == 1 for one in suite.cases)
    bench = ("bench", "attribution", "--suite", "annotated", "--method", "survival", "--json", "figures.json")
    assert memtune(*bench) == 0
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert (figures["n"], figures["eta"], figures["oia"]) == (4, 1.0, 1.0)  # what survival said was accepted
    known = on_labelled(tmp_path / "annotated")  # what bench calibration --labelled reads
    assert [one.right for one in known[:4]] == [True] * 4


def test_ids_of_annotations_are_ids_of_nodes(opened: Workspace, tmp_path: Path) -> None:
    case = next(one for one in ids(opened) if opened.traces[one.trace].name == "ours.jsonl")
    error_type, operation = decisive(opened, case)
    store = LabelStore(tmp_path / "labels.sqlite")
    store.add("ann", case, Assessment("labelled", error_type, (operation,)), request="1")
    (path,) = export(opened, store.in_force(), tmp_path / "out").files
    data = json.loads(path.read_text())["data"]
    nodes = {node["full_node_id"] for node in data["nodes"]}
    (row,) = data["annotations"]
    assert {row["query_id"], row["prediction_id"], *row["source_evidence_ids"]} <= nodes
    assert row["final_op_id"] in {one["op_id"] for one in data["operations"]}
    assert row["annotators"]["ann"]["error_type"] == error_type


def test_several_operations_share_the_fault_and_annotators_who_differ_are_told(
    opened: Workspace, tmp_path: Path
) -> None:
    first, second, third, *_ = ids(opened)
    store = LabelStore(tmp_path / "labels.sqlite")

    def say(annotator: str, case: CaseId, error_type: ErrorType | None, *operations: str) -> None:
        action = "rejected" if error_type is None else "labelled"
        store.add(annotator, case, Assessment(action, error_type, operations), request=f"{annotator} {case}")

    operations = [list(opened.graph(one.trace).recording.graph.operations) for one in (first, second)]
    say("ann", first, "UpdateError", *operations[0][:2])
    say("ann", second, "ResponseError", operations[1][0])
    say("ben", second, "RetrievalError", operations[1][1])
    say("ann", third, "JudgeError")
    say("ben", third, None)
    say("ann", CaseId("elsewhere", "x"), "UpdateError")
    done = export(opened, store.in_force(), tmp_path / "out")
    assert (done.cases, done.divided, done.elsewhere) == (2, 1, 1)
    assert "1 left out, since annotators are divided" in done.line()
    cases = {one.error_type: one for one in load_suite(tmp_path / "out").cases}
    assert set(cases) == {"UpdateError", "JudgeError"}
    assert cases["UpdateError"].operation_ids == tuple(operations[0][:2])
    assert cases["JudgeError"].operation_ids == ()


def test_of_an_annotated_graph_the_other_wrong_answers_stay_wrong(opened: Workspace, tmp_path: Path) -> None:
    case = next(one for one in ids(opened) if opened.traces[one.trace].name == "ours.jsonl")
    store = LabelStore(tmp_path / "labels.sqlite")
    store.add("ann", case, Assessment("labelled", *decisive(opened, case)[:1]), request="1")
    (path,) = export(opened, store.in_force(), tmp_path / "out").files
    again = Workspace([Source(path)])
    again.read()
    assert sorted(one.state for one in again.entries.values()) == ["right", "wrong", "wrong"]
    assert all(one.verdict is not None for one in again.queue())


@pytest.mark.parametrize(("score", "state"), [(1.0, "right"), (0.0, "wrong"), ("unclear", "not judged")])
def test_a_judge_without_the_right_answer_is_believed_if_its_score_is_a_number(
    score: float | str, state: str, tmp_path: Path
) -> None:
    with trace(tmp_path / "a.jsonl"):
        query = variable("Where does Mara live?", name="q1", kind="query")
        with operation("answer", inputs={"query": query}) as answer:
            prediction = answer.output("prediction", "Bergen", kind="prediction")
        with operation("judge", inputs={"prediction": prediction}) as judge:
            judge.output("score", score, kind="judge_score")
    workspace = Workspace([Source(tmp_path / "a.jsonl")])
    workspace.read()
    assert [one.state for one in workspace.entries.values()] == [state]


def test_a_trace_that_nothing_judged_can_be_labelled_too(tmp_path: Path) -> None:
    write_trace(tmp_path / "judged.jsonl", USUAL)
    graph = load_trace(tmp_path / "judged.jsonl").graph
    operations = [one for one in graph.operations.values() if one.name != "judge"]
    kept = {vid for one in operations for _, vid in (*one.inputs, *one.outputs)}
    variables = [one for one in graph.variables.values() if one.id in kept]
    save_trace(type(graph)(variables, operations, graph.sessions.values()), tmp_path / "plain.jsonl")
    workspace = Workspace([Source(tmp_path / "plain.jsonl")])
    workspace.read()
    assert [one.state for one in workspace.entries.values()] == ["not judged"] * 3
    case = next(iter(workspace.entries))
    store = LabelStore(tmp_path / "labels.sqlite")
    store.add("ann", case, Assessment("labelled", "UpdateError", (operations[0].id,)), request="1")
    export(workspace, store.in_force(), tmp_path / "out")
    (labelled,) = load_suite(tmp_path / "out").cases
    assert (labelled.error_type, labelled.operation_ids) == ("UpdateError", (operations[0].id,))
