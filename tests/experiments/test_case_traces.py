"""Cases in MLflow, in a real sqlite store: traces with the blame on its span, and tables."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from judged_cases import ANSWER, seen_case, table_of
from run_shapes import FILES

from experiments.mlflow_tracking.case_traces import CaseTrace, case_traces, question_set
from experiments.mlflow_tracking.logged_datasets import SplitData, evaluation_data
from experiments.mlflow_tracking.outbox import Outbox
from experiments.mlflow_tracking.prompt_versions import RegisterPrompt, text_digest
from experiments.mlflow_tracking.run_artifacts import case_tables
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.mlflow_tracking.store import TrackingStore
from experiments.mlflow_tracking.trace_writes import LogTraces, trace_writes
from experiments.mlflow_tracking.writes import StartRun, Write
from experiments.runs.folder import RunFolder
from tracing.systems.conversations import Question


@pytest.fixture(scope="module")
def outbox(mlflow_home: Path) -> Outbox:
    store = TrackingStore(store_uri(mlflow_home), "cases", "k1")
    box = Outbox(store, RunFolder.create(mlflow_home, system="rag", now=datetime(2026, 1, 3), files=FILES))
    sent(box, *(StartRun(run=name, title="r", moment=1, tags={}) for name in ("", "baseline", "champion")))
    return box


def sent(box: Outbox, *writes: Write) -> None:
    box.send(*writes)
    box.flush(seconds=600)
    assert (box.refused, box.trouble, box.waiting) == ([], None, 0)


def traces_of(box: Outbox, title: str) -> list[Any]:
    found = box.store.client.search_traces(locations=[box.store.experiment_id], run_id=box.store.run_id("baseline"))
    return [trace for trace in found if trace.info.tags["mlflow.traceName"] == title]


def traces(*seen: Any, side: str = "baseline", prompts: Mapping[str, str] | None = None) -> Sequence[CaseTrace]:
    questions = question_set(seen, seen, most=1000)
    made = case_traces(side, seen, questions, metric="short_contains", method="survival", prompts=prompts or {})
    return list(made)


def written(*seen: Any, prompts: Mapping[str, str] | None = None) -> list[Write]:
    return [LogTraces(run="baseline", traces=tuple(traces(*seen, prompts=prompts)))]


def test_a_trace_has_a_span_an_operation_as_long_as_it_took_inside_the_right_parent(outbox: Outbox) -> None:
    seen = seen_case(1, "unknown", lost_at="answer")
    sent(outbox, *written(seen))
    (trace,) = traces_of(outbox, "baseline conv1 q1")
    root, *spans = sorted(trace.data.spans, key=lambda span: span.parent_id is not None)
    asked = {"question": "Where does Mara live?", "conversation": "conv1"}
    assert (root.inputs, root.outputs) == (asked, {"reply": "unknown"})
    recorded = {each.name: each for each in seen.graph.operations.values()}
    assert {span.name for span in spans} == {"extract_facts", "answer"}
    for span in spans:
        operation = recorded[span.name]
        took = (operation.ended or 0) - operation.started
        assert span.end_time_ns - span.start_time_ns == pytest.approx(took * 1e9, abs=1e4)
        assert span.parent_id == root.span_id
    answer = next(span for span in spans if span.name == "answer")
    assert answer.span_type == "LLM"
    assert answer.inputs == {
        "query": "Where does Mara live?",
        "context": [{"fact": "Mara moved."}, {"D1:1": "Mara: I moved to Oslo."}],
    }
    assert trace.info.token_usage == {"input_tokens": 30, "output_tokens": 2, "total_tokens": 32}
    assert {trace.info.tags[f"memtune.{name}"] for name in ("side", "split", "passed")} == {"baseline", "test", "false"}


def test_blame_score_and_gold_answer_are_assessments_and_the_blame_is_on_its_span(outbox: Outbox) -> None:
    sent(outbox, *written(seen_case(2, "unknown", lost_at="extract_facts"), seen_case(3, "unknown", lost_at="update")))
    (trace,) = traces_of(outbox, "baseline conv2 q2")
    said = {each.name: each for each in trace.info.assessments}
    assert set(said) == {"blame", "short_contains", "expected_answer"}
    spans = {span.span_id: span.name for span in trace.data.spans}
    assert spans[said["blame"].span_id] == "extract_facts"
    assert said["blame"].value == "extract_facts"
    assert said["blame"].rationale == "ExtractionError: extract_facts lost 'Oslo'"
    assert said["blame"].metadata["confidence"] == "0.8"
    assert said["short_contains"].value == 0.0
    assert said["expected_answer"].value == ANSWER
    # The step that was due never ran: there is no span to put it on.
    (other,) = traces_of(outbox, "baseline conv3 q3")
    (blame,) = [each for each in other.info.assessments if each.name == "blame"]
    assert (blame.span_id, blame.value) == (None, "update")


def test_a_question_its_reply_and_its_answers_are_plain_text_in_the_session_of_their_conversation(
    outbox: Outbox,
) -> None:
    seen = seen_case(20, "in Oslo", question="Where does she live?", conversation="conv-26", answers=(ANSWER, "Norway"))
    sent(outbox, *written(seen))
    (trace,) = traces_of(outbox, "baseline conv-26 q20")
    info = trace.info
    assert (info.request_preview, info.response_preview) == ("Where does she live?", "in Oslo")
    assert info.trace_metadata["mlflow.trace.session"] == "conv-26"
    expected = {each.name: each.value for each in info.assessments if each.expectation is not None}
    assert expected == {"expected_answer": "Oslo | Norway"}


def test_the_wait_between_build_and_question_is_no_part_of_a_traces_time_and_spans_say_when_they_began(
    outbox: Outbox,
) -> None:
    moments = count()
    wait = 400.0

    def clock() -> float:
        moment = next(moments)
        return 100.0 + moment if moment < 2 else 100.0 + moment + wait

    seen = seen_case(21, "unknown", lost_at="answer", clock=clock)
    recorded = {operation.name: operation for operation in seen.graph.operations.values()}
    built, answer = recorded["extract_facts"], recorded["answer"]
    assert built.ended is not None
    assert answer.ended is not None
    assert answer.started - built.ended > wait
    work = built.ended - built.started + answer.ended - answer.started
    sent(outbox, *written(seen))
    (trace,) = traces_of(outbox, "baseline conv21 q21")
    assert trace.info.execution_duration == pytest.approx(work * 1000, abs=2)
    root = next(span for span in trace.data.spans if span.parent_id is None)
    assert root.end_time_ns - root.start_time_ns == pytest.approx(work * 1e9, abs=2e6)
    spans = {span.name: span for span in trace.data.spans}
    assert spans["extract_facts"].end_time_ns == spans["answer"].start_time_ns
    assert spans["answer"].start_time_ns == pytest.approx(answer.started * 1e9, abs=1e4)
    assert spans["extract_facts"].attributes["memtune.began"].startswith("1970-01-01T00:01:4")


def test_a_long_text_is_cut_in_the_trace_and_says_how_much_is_missing() -> None:
    (trace,) = traces(seen_case(23, "y" * 30_000))
    answer = next(span for span in trace.spans if span.name == "answer")
    assert answer.outputs["prediction"] == "y" * 20_000 + "… [10000 more characters]"


def test_a_trace_is_linked_to_the_versions_of_the_prompts_that_made_it(outbox: Outbox) -> None:
    name = "memtune.linked.answer"
    for text in ("first", "second"):
        sent(outbox, RegisterPrompt(name=name, text=text, message="m", tags={}))
    sent(outbox, *written(seen_case(22, ANSWER), prompts={name: text_digest("second"), "memtune.unknown": "0"}))
    store = outbox.store
    linked = f'prompt = "{name}/2"'
    (found,) = store.client.search_traces(locations=[store.experiment_id], filter_string=linked)
    assert found.info.tags["mlflow.traceName"] == "baseline conv22 q22"
    assert json.loads(found.info.tags["mlflow.linkedPrompts"]) == [{"name": name, "version": "2"}]


def test_traces_that_are_there_are_not_written_again_and_what_was_cut_short_is_completed(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.tracing.client import TracingClient

    def killed(*_: Any) -> None:
        raise OSError("killed")

    writes = written(seen_case(4, "unknown", lost_at="answer"), seen_case(5, ANSWER))
    with monkeypatch.context() as broken:
        broken.setattr(TracingClient, "log_spans", killed)
        outbox.send(*writes)
        assert outbox.waiting == 1
    outbox.flush(seconds=600)
    sent(outbox)
    for title, spans, assessments in (("baseline conv4 q4", 3, 3), ("baseline conv5 q5", 3, 2)):
        (trace,) = traces_of(outbox, title)
        assert (len(trace.data.spans), len(trace.info.assessments)) == (spans, assessments)
    with monkeypatch.context() as broken:
        broken.setattr(TracingClient, "start_trace", killed)
        sent(outbox, *writes)


def test_the_same_case_at_another_time_keeps_its_trace_and_another_reply_or_blame_replaces_it(outbox: Outbox) -> None:
    shown = []
    for reply, lost_at in (("unknown", "answer"), ("unknown", "answer"), ("unknown", "extract_facts"), (ANSWER, None)):
        made = traces(seen_case(9, reply, lost_at=lost_at), side="champion")
        sent(outbox, *trace_writes("champion", made, final=True))
        store = outbox.store
        found = store.client.search_traces(locations=[store.experiment_id], run_id=store.run_id("champion"))
        (trace,) = [each for each in found if each.info.tags["mlflow.traceName"] == "champion conv9 q9"]
        shown.append(trace)
    first, again, elsewhere, right = (trace.info.trace_id for trace in shown)
    assert first == again
    assert len({again, elsewhere, right}) == 3
    root = next(span for span in shown[-1].data.spans if span.parent_id is None)
    assert (root.outputs, shown[-1].info.tags["memtune.passed"]) == ({"reply": ANSWER}, "true")
    assert {each.name: each.value for each in shown[-1].info.assessments}["short_contains"] == 1.0
    assert "blame" not in {each.name for each in shown[-1].info.assessments}


def test_a_run_keeps_the_named_traces_alone(outbox: Outbox) -> None:
    both = traces(seen_case(10, ANSWER), seen_case(11, ANSWER))
    store = outbox.store

    def shown_by_the_parent() -> set[str]:
        found = store.client.search_traces(locations=[store.experiment_id], run_id=store.run_id())
        return {trace.info.tags["mlflow.traceName"] for trace in found}

    sent(outbox, *trace_writes("champion", both, final=True))
    assert shown_by_the_parent() >= {"baseline conv10 q10", "baseline conv11 q11"}
    sent(outbox, *written(seen_case(10, ANSWER)))
    sent(outbox, *trace_writes("champion", both[1:], final=False), *trace_writes("never started", [], final=True))
    assert not shown_by_the_parent()
    left = store.client.search_traces(locations=[store.experiment_id], run_id=store.run_id("champion"))
    assert [trace.info.tags["mlflow.traceName"] for trace in left] == ["baseline conv11 q11"]
    assert len(traces_of(outbox, "baseline conv10 q10")) == 1


def test_the_questions_of_the_test_are_an_evaluation_data_set_which_is_not_doubled(outbox: Outbox) -> None:
    split = SplitData(name="sample test", use="test", source="sample", digest="d1", conversations=2, questions=250)
    questions = [
        ("c1", Question(id=f"q{n}", question=f"Why {n}?", answers=("a", "b") if n else ("a",))) for n in range(250)
    ]
    writes = list(evaluation_data(split, questions))
    sent(outbox, *writes)
    sent(outbox, *writes)
    with outbox.store.as_default():
        (data,) = outbox.store.client.search_datasets(experiment_ids=[outbox.store.experiment_id])
        records = {record.inputs["question"]: record for record in data.records}
    assert (data.name, len(records)) == ("sample test", 250)
    assert records["Why 0?"].inputs == {"question": "Why 0?", "conversation": "c1"}
    assert records["Why 0?"].expectations == {"expected_answer": "a"}
    assert records["Why 1?"].expectations == {"expected_answer": ["a", "b"]}


def test_tables_show_baseline_and_champion_side_by_side_and_are_not_doubled(outbox: Outbox) -> None:
    baseline = [seen_case(5, "unknown", lost_at="answer"), seen_case(6, ANSWER, split="train")]
    tables = case_tables(baseline, [seen_case(5, ANSWER)])
    sent(outbox, *tables, *tables)
    client, run = outbox.store.client, outbox.store.run_id()
    (row,) = table_of(outbox.store, run, "cases/test.json").to_dict("records")
    assert (row["conversation"], row["question_id"], row["answers"]) == ("conv5", "q5", ANSWER)
    assert (row["baseline reply"], row["baseline score"], row["champion reply"], row["champion score"]) == (
        "unknown",
        0.0,
        ANSWER,
        1.0,
    )
    assert (row["baseline blamed"], row["baseline error_type"]) == ("answer", "ExtractionError")
    assert [each.path for each in client.list_artifacts(run, "cases")] == ["cases/test.json", "cases/train.json"]
    assert client.get_run(run).data.tags["mlflow.loggedArtifacts"].count("cases/test.json") == 1
