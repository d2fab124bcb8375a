"""Cases in MLflow, in a real sqlite store: traces with the blame on its span, and tables."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from judged_cases import ANSWER, seen_case, table_of
from run_shapes import FILES

from experiments.mlflow_tracking.case_tables import case_tables
from experiments.mlflow_tracking.case_traces import CONTENT, KeepCases, LogCase, case_traces
from experiments.mlflow_tracking.outbox import Outbox
from experiments.mlflow_tracking.store import TrackingStore
from experiments.mlflow_tracking.tracking import store_uri
from experiments.mlflow_tracking.writes import StartRun, Write
from experiments.runs.folder import RunFolder
from experiments.runs.seen_cases import worst_first


@pytest.fixture(scope="module")
def outbox(mlflow_home: Path) -> Outbox:
    store = TrackingStore(store_uri(mlflow_home), "cases", "k1")
    box = Outbox(store, RunFolder.create(mlflow_home, system="rag", now=datetime(2026, 1, 3), files=FILES))
    sent(box, *(StartRun(run=name, title="r", moment=1, tags={}) for name in ("", "seed", "champion")))
    return box


def sent(box: Outbox, *writes: Write) -> None:
    box.send(*writes)
    box.flush(seconds=600)
    assert (box.refused, box.trouble, box.waiting) == ([], None, 0)


def traces_of(box: Outbox, title: str) -> list[Any]:
    found = box.store.client.search_traces(locations=[box.store.experiment_id], run_id=box.store.run_id("seed"))
    return [trace for trace in found if trace.info.tags["mlflow.traceName"] == title]


def written(*seen: Any) -> Sequence[LogCase]:
    return list(case_traces("seed", seen, "short_contains", "survival"))


def test_a_trace_has_a_span_an_operation_at_its_own_time_inside_the_right_parent(outbox: Outbox) -> None:
    seen = seen_case(1, "unknown", lost_at="answer")
    sent(outbox, *written(seen))
    (trace,) = traces_of(outbox, "seed conv1 q1")
    root, *spans = sorted(trace.data.spans, key=lambda span: span.parent_id is not None)
    asked = {"question": "Where does Mara live?", "conversation": "conv1"}
    assert (root.inputs, root.outputs) == (asked, {"reply": "unknown"})
    recorded = {each.name: each for each in seen.graph.operations.values()}
    assert {span.name for span in spans} == {"extract_facts", "answer"}
    for span in spans:
        operation = recorded[span.name]
        assert span.start_time_ns == pytest.approx(operation.started * 1e9, abs=1e4)
        assert span.end_time_ns == pytest.approx((operation.ended or 0) * 1e9, abs=1e4)
        assert span.parent_id == root.span_id
    answer = next(span for span in spans if span.name == "answer")
    assert answer.span_type == "LLM"
    assert answer.inputs == {
        "query": "Where does Mara live?",
        "context": [{"fact": "Mara moved."}, {"D1:1": "Mara: I moved to Oslo."}],
    }
    assert trace.info.token_usage == {"input_tokens": 30, "output_tokens": 2, "total_tokens": 32}
    assert {trace.info.tags[f"memtune.{name}"] for name in ("side", "split", "passed")} == {"seed", "test", "false"}


def test_blame_score_and_gold_answer_are_assessments_and_the_blame_is_on_its_span(outbox: Outbox) -> None:
    sent(outbox, *written(seen_case(2, "unknown", lost_at="extract_facts"), seen_case(3, "unknown", lost_at="update")))
    (trace,) = traces_of(outbox, "seed conv2 q2")
    said = {each.name: each for each in trace.info.assessments}
    assert set(said) == {"blame", "short_contains", "expected_answer"}
    spans = {span.span_id: span.name for span in trace.data.spans}
    assert spans[said["blame"].span_id] == "extract_facts"
    assert said["blame"].value == "extract_facts"
    assert said["blame"].rationale == "ExtractionError: extract_facts lost 'Oslo'"
    assert said["blame"].metadata["confidence"] == "0.8"
    assert said["short_contains"].value == 0.0
    assert said["expected_answer"].value == [ANSWER]
    # The step that was due never ran: there is no span to put it on.
    (other,) = traces_of(outbox, "seed conv3 q3")
    (blame,) = [each for each in other.info.assessments if each.name == "blame"]
    assert (blame.span_id, blame.value) == (None, "update")


def test_a_trace_that_is_there_is_not_written_again_and_a_partial_one_is_replaced(outbox: Outbox) -> None:
    (whole,) = written(seen_case(4, "unknown", lost_at="answer"))
    partial = whole.model_copy(update={"spans": whole.spans[:1], "feedback": ()})
    sent(outbox, partial)
    (cut,) = traces_of(outbox, "seed conv4 q4")
    outbox.store.client.set_trace_tag(cut.info.trace_id, CONTENT, whole.content)
    sent(outbox, whole)
    (trace,) = traces_of(outbox, "seed conv4 q4")
    assert len(trace.data.spans) == 3
    sent(outbox, whole)
    (again,) = traces_of(outbox, "seed conv4 q4")
    assert again.info.trace_id == trace.info.trace_id
    assert len(again.info.assessments) == 3


def test_the_same_case_at_another_time_keeps_its_trace_and_another_reply_or_blame_replaces_it(outbox: Outbox) -> None:
    shown = []
    for reply, lost_at in (("unknown", "answer"), ("unknown", "answer"), ("unknown", "extract_facts"), (ANSWER, None)):
        sent(outbox, *written(seen_case(9, reply, lost_at=lost_at)))
        (trace,) = traces_of(outbox, "seed conv9 q9")
        shown.append(trace)
    first, again, elsewhere, right = (trace.info.trace_id for trace in shown)
    assert first == again
    assert len({again, elsewhere, right}) == 3
    root = next(span for span in shown[-1].data.spans if span.parent_id is None)
    assert (root.outputs, shown[-1].info.tags["memtune.passed"]) == ({"reply": ANSWER}, "true")
    assert {each.name: each.value for each in shown[-1].info.assessments}["short_contains"] == 1.0
    assert "blame" not in {each.name for each in shown[-1].info.assessments}


def test_a_run_keeps_the_traces_of_the_named_cases_alone(outbox: Outbox) -> None:
    cases = [seen_case(number, ANSWER) for number in (10, 11)]
    for side in ("seed", "champion"):
        sent(outbox, *case_traces(side, cases, "short_contains", "survival"))
    sent(outbox, KeepCases(run="champion", titles=("champion conv11 q11",)), KeepCases(run="never started", titles=()))
    store = outbox.store
    left = store.client.search_traces(locations=[store.experiment_id], run_id=store.run_id("champion"))
    assert [trace.info.tags["mlflow.traceName"] for trace in left] == ["champion conv11 q11"]
    assert len(traces_of(outbox, "seed conv10 q10")) == 1


def test_tables_show_seed_and_champion_side_by_side_and_are_not_doubled(outbox: Outbox) -> None:
    seed = [seen_case(5, "unknown", lost_at="answer"), seen_case(6, ANSWER, split="train")]
    tables = case_tables(seed, [seen_case(5, ANSWER)])
    sent(outbox, *tables, *tables)
    client, run = outbox.store.client, outbox.store.run_id()
    (row,) = table_of(outbox.store, run, "cases/test.json").to_dict("records")
    assert (row["conversation"], row["question_id"], row["answers"]) == ("conv5", "q5", ANSWER)
    assert (row["seed reply"], row["seed score"], row["champion reply"], row["champion score"]) == (
        "unknown",
        0.0,
        ANSWER,
        1.0,
    )
    assert (row["seed blamed"], row["seed error_type"]) == ("answer", "ExtractionError")
    assert [each.path for each in client.list_artifacts(run, "cases")] == ["cases/test.json", "cases/train.json"]
    assert client.get_run(run).data.tags["mlflow.loggedArtifacts"].count("cases/test.json") == 1


def test_where_not_all_can_be_traced_the_wrong_answers_are() -> None:
    right, wrong = seen_case(7, ANSWER), seen_case(8, "unknown", lost_at="answer")
    assert worst_first([right, wrong]) == [wrong, right]
