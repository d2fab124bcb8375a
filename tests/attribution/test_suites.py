from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from attribution.cases import Attribution, Blame, Case
from attribution.failures import NOT_KNOWN, complaint, failed_cases
from attribution.recordings import Recording, recording_of
from attribution.survival.survival_method import Survival
from benchmarks.attribution_scores import Prediction, score
from benchmarks.controls import Constant, Random
from benchmarks.labelled_cases import LabelledCase, Suite
from benchmarks.labelled_suites import load_suite, run
from experiments.bench.attribution import measure_attribution
from tracing.errors import TraceError
from tracing.interchange import smartcomment

CONV_26 = Path(__file__).parents[3] / "shared" / "data" / "memeval" / "conv-26.json"


def node(name: str, value: str, category: str, owner: str | None = None, **metadata: Any) -> dict[str, Any]:
    common = {"graph_id": "g", "session_id": "s", "filename": "f", "lineno": 1}
    return {**common, "name": name, "value": value, "category": category, "class_name": owner, "metadata": metadata}


def operation(oid: str, name: str, read: list[str], made: list[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    common = {"graph_id": "g", "session_id": "s", "filename": "f", "lineno": 1}
    edges = [
        {**common, "op_id": oid, "source_full_node_id": source, "target_full_node_id": target}
        for source in read
        for target in made
    ]
    return {**common, "op_id": oid, "op_name": name}, edges


@pytest.fixture
def annotated(tmp_path: Path) -> Path:
    """A graph of another tool: two messages, one fact, two wrong answers, labelled; a third label is unreadable."""
    stamp = "Timestamp: 1:56 pm on 8 May, 2023"
    nodes = [
        node("D1:1", f"Ann: My parrot is called Kiwi.\n{stamp}", "message"),
        node("D1:2", f"Ben: I moved to Lisbon yesterday.\n{stamp}", "message"),
        node("m1", "Ann's parrot is called Kiwi.", "memory_entry"),
    ]
    operations, edges = [], []
    for oid, name, read, made in (("x1", "mem.extract", ["D1:1@1"], ["m1@1"]), ("x2", "mem.extract", ["D1:2@1"], [])):
        one, its = operation(oid, name, read, made)
        operations.append(one)
        edges += its
    # An extraction that made nothing shows only in an edge to a fact that nobody stored.
    nodes.append(node("m2", "Ben says hello.", "memory_entry"))
    edges += operation("x2", "mem.extract", ["D1:2@1"], ["m2@1"])[1]
    asked = [
        ("What is Ann's parrot called?", "Kiwi", "Rio", "D1:1"),
        ("When did Ben move?", "7 May 2023", "June", "D1:2"),
    ]
    for at, (question, gold, reply, turn) in enumerate(asked):
        nodes += [
            node(f"q{at}", question, "message & query", "query", evidence=[turn]),
            node(f"c{at}", "1:56 pm on 8 May, 2023: Ann's parrot is called Kiwi.", "memory_context"),
            node(f"p{at}", reply, "prediction", "prediction"),
            node(f"g{at}", gold, "golden_answers", "golden_answers"),
            node(f"j{at}", "0.0", "judge_score", "judge_score"),
        ]
        for oid, name, read, made in (
            (f"r{at}", "mem.search", ["m1@1", f"query:q{at}@1"], [f"c{at}@1"]),
            (f"a{at}", "qa", [f"c{at}@1", f"query:q{at}@1"], [f"prediction:p{at}@1"]),
            (
                f"j{at}",
                "llm-judge",
                [f"query:q{at}@1", f"prediction:p{at}@1", f"golden_answers:g{at}@1"],
                [f"judge_score:j{at}@1"],
            ),
        ):
            one, its = operation(oid, name, read, made)
            operations.append(one)
            edges += its
    annotations = [
        {
            "query_id": f"query:q{at}@1",
            "query": asked[at][0],
            "golden_answers": asked[at][1],
            "prediction_id": f"prediction:p{at}@1",
            "source_evidence_ids": [f"{asked[at][3]}@1"],
            "final_error_type": error_type,
            "final_op_id": final,
            "acceptable_op_ids": acceptable,
        }
        for at, (error_type, final, acceptable) in enumerate(
            [("ResponseError", "a0", ["a0"]), ("ExtractionError", None, ["x2", "a1", "gone"])]
        )
    ]
    annotations.append({**annotations[0], "final_error_type": "BadLuck"})
    sessions = [{"graph_id": "g", "session_id": "s", "filename": "f", "lineno": 1}]
    data = {
        "nodes": nodes,
        "edges": edges,
        "operations": operations,
        "sessions": sessions,
        "annotations": annotations,
    }
    path = tmp_path / "annotated.json"
    path.write_text(json.dumps({"graph_id": "g", "driver_type": "in_memory", "data": data}))
    return path


def test_dialogue_and_stages_are_read_off_a_foreign_graph(annotated: Path) -> None:
    recording = recording_of(smartcomment.load(annotated), "g")
    ((session,), speakers) = recording.conversation.sessions, recording.conversation.speakers
    assert [(turn.id, turn.speaker, turn.text) for turn in session.turns] == [
        ("D1:1", "Ann", "My parrot is called Kiwi."),
        ("D1:2", "Ben", "I moved to Lisbon yesterday."),
    ]
    assert session.time == "1:56 pm on 8 May, 2023"
    assert speakers == ("Ann", "Ben")
    stages = {spec.name: spec.stage for spec in recording.operations}
    assert stages == {"mem.extract": "extract", "mem.search": "retrieve", "qa": "answer"}


def test_a_suite_holds_what_the_labels_say_and_reports_the_label_it_cannot_read(annotated: Path) -> None:
    suite = load_suite(annotated)
    assert [one.error_type for one in suite.cases] == ["ResponseError", "ExtractionError"]
    assert [one.operation_ids for one in suite.cases] == [("a0",), ("x2", "a1")]
    assert suite.cases[0].case.question.evidence == ("D1:1",)
    assert suite.cases[0].recording is suite.cases[1].recording
    assert len(suite.skipped) == 1
    assert "BadLuck" in suite.skipped[0]


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("source_evidence_ids", ["D1:1@1", "D9:9"], "'D9:9' names no message of the graph; correct it"),
        (
            "source_evidence_ids",
            "D1:1@1",
            """is 'D1:1@1', not a list; give a list of ids, such as ["D1:1@1"]""",
        ),
        ("source_evidence_ids", ["D1:1@1", 7], "7 names no message of the graph"),
        ("source_evidence_ids", ["D1:1@1", "m1@1"], "'m1@1' names no message of the graph"),
        ("acceptable_op_ids", "a0", "is 'a0', not a list; give a list of operation ids"),
        ("final_op_id", "gone", "'gone' names no operation of the graph; correct it"),
    ],
)
def test_what_a_label_says_of_no_part_of_the_graph_is_told_with_file_and_key(
    annotated: Path, key: str, value: Any, told: str
) -> None:
    document = json.loads(annotated.read_text())
    document["data"]["annotations"][0][key] = value
    annotated.write_text(json.dumps(document))
    suite = load_suite(annotated)
    assert suite.cases[0].case.question.evidence == ("D1:1",)
    assert len(suite.cases) == 2
    (line, *_) = suite.doubts
    assert line.startswith(f"{annotated}: data.annotations[0].{key}: ")
    assert told in line


def test_sound_labels_raise_no_doubt_but_of_the_operation_that_is_gone(annotated: Path) -> None:
    assert load_suite(annotated).doubts == (
        f"{annotated}: data.annotations[1].acceptable_op_ids: 'gone' names no operation of the graph; correct it, or "
        "leave it out",
    )


def test_evidence_that_a_query_names_wrongly_is_told(annotated: Path) -> None:
    document = json.loads(annotated.read_text())
    next(one for one in document["data"]["nodes"] if one["name"] == "q0")["metadata"]["evidence"] = "D1:1"
    annotated.write_text(json.dumps(document))
    told: list[str] = []
    cases = failed_cases(recording_of(smartcomment.load(annotated), "g"), told.append)
    assert cases[0].question.evidence == ("D1:1",)
    assert told == ["""query q0: evidence: is 'D1:1', not a list; give a list of ids, such as ["D1:1"]"""]


def test_a_folder_is_read_whole_and_a_broken_file_in_it_is_reported(annotated: Path) -> None:
    (annotated.parent / "broken.json").write_text("{")
    suite = load_suite(annotated.parent)
    assert len(suite.cases) == 2
    assert any("broken.json" in line for line in suite.skipped)


def test_a_file_without_labels_is_refused(annotated: Path) -> None:
    document = json.loads(annotated.read_text())
    del document["data"]["annotations"]
    annotated.write_text(json.dumps(document))
    with pytest.raises(TraceError, match=r"data\.annotations"):
        load_suite(annotated)


def test_the_failures_are_those_its_judge_called_wrong(annotated: Path) -> None:
    document = json.loads(annotated.read_text())
    next(one for one in document["data"]["nodes"] if one["name"] == "j1")["value"] = "1.0"
    annotated.write_text(json.dumps(document))
    (case,) = failed_cases(recording_of(smartcomment.load(annotated), "g"))
    assert (case.question.question, case.question.answers, case.reply) == (
        "What is Ann's parrot called?",
        ("Kiwi",),
        "Rio",
    )
    assert case.question.evidence == ("D1:1",)
    assert not case.passed


def test_a_complaint_needs_no_right_answer_and_is_attributed_unsurely(annotated: Path) -> None:
    recording = recording_of(smartcomment.load(annotated), "g")
    case = complaint(recording, "what is Ann's  parrot called?", "rio")
    assert case.question.answers == (NOT_KNOWN,)
    assert not case.knows_answer
    main = Survival(recording.graph, recording.conversation, recording.operations).attribute(case).main
    assert main is not None
    assert main.operation_id == "a0"
    assert complaint(recording, "What is Ann's parrot called?").prediction == case.prediction
    known = complaint(recording, "What is Ann's parrot called?", "Rio", ("Kiwi",))
    assert (known.question.answers, known.passed) == (("Kiwi",), False)
    with pytest.raises(TraceError, match=r"no answer to 'Where is Ann.*questions in it are: .*Ben move"):
        complaint(recording, "Where is Ann?", "rio")
    with pytest.raises(TraceError, match="it was answered with: 'Rio'"):
        complaint(recording, "What is Ann's parrot called?", "Polly")


def test_survival_names_types_and_operations_of_the_foreign_graph(annotated: Path) -> None:
    suite = load_suite(annotated)
    predictions = run(suite, survival)
    report = score(predictions, suite)
    assert (report["n"], report["eta"], report["oia"], report["oia_n"]) == (2, 1.0, 1.0, 2)
    assert report["confusion"] == {
        "ResponseError": {"ResponseError": 1},
        "ExtractionError": {"ExtractionError": 1},
    }


def test_a_users_own_measurement_has_the_figures_of_the_benchmark(annotated: Path) -> None:
    class Fragile(Survival):
        def attribute(self, case: Case) -> Attribution:
            if case.reply == "Rio":
                raise RuntimeError("out of luck")
            return super().attribute(case)

    suite = load_suite(annotated)
    for method in (survival, lambda one: Fragile(one.graph, one.conversation, one.operations)):
        scored = score(run(suite, method), suite)
        figures, remarks = measure_attribution(annotated, method, None, lambda phase, done, total: None)
        assert remarks == [
            *(f"skipped: {line}" for line in suite.skipped),
            *(f"doubtful: {line}" for line in suite.doubts),
        ]
        shared = ("n", "oia_n", "eta", "oia", "eta_ci", "oia_ci", "majority_eta", "failed", "by_type")
        assert {key: figures[key] for key in shared} == {key: scored[key] for key in shared}
        same = figures["cases"][0].keys() - {"reason"}
        assert [{key: row[key] for key in same} for row in figures["cases"]] == [
            {key: row[key] for key in same} for row in scored["cases"]
        ]
    (annotated.parent / "empty").mkdir()
    with pytest.raises(TraceError, match="holds no case with a label"):
        measure_attribution(annotated.parent / "empty", survival, None, lambda phase, done, total: None)


def test_a_case_that_cannot_be_attributed_does_not_stop_the_rest(annotated: Path) -> None:
    class Fragile(Survival):
        def attribute(self, case: Case) -> Attribution:
            if case.reply == "Rio":
                raise RuntimeError("out of luck")
            return super().attribute(case)

    suite = load_suite(annotated)
    first, second = run(suite, lambda one: Fragile(one.graph, one.conversation, one.operations))
    assert "out of luck" in (first.attribution.abstained or "")
    assert second.attribution.decisive
    scored = score([first, second], suite)
    assert (scored["abstention"], scored["failed"]) == (0.5, 1)


def test_scores_count_what_they_say(annotated: Path) -> None:
    suite = load_suite(annotated)

    def blame(oid: str | None, error_type: Any, confidence: float) -> Blame:
        return Blame("op", oid, error_type, confidence, "because")

    right = Prediction(Attribution(suite.cases[0].case, (blame("a0", "ResponseError", 0.9),)), tokens=10, ms=4.0)
    second_best = (blame("x2", "ExtractionError", 0.2),)
    wrong = Prediction(Attribution(suite.cases[1].case, (blame("a1", "ResponseError", 0.5),), alternatives=second_best))
    report = score([right, wrong], suite)
    assert (report["eta"], report["oia"], report["joint"], report["top2"]) == (0.5, 1.0, 0.5, 1.0)
    assert (report["tokens_per_case"], report["ms_per_case"]) == (5.0, 2.0)
    assert report["ece"] == pytest.approx((0.1 + 0.5) / 2)
    assert report["macro_f1"] == pytest.approx((2 / 3 + 0) / 2)
    assert report["majority_eta"] == 0.5
    assert report["distance"] == 0
    assert report["by_type"]["ExtractionError"]["eta"] == 0.0
    low, high = report["eta_ci"]
    assert 0 <= low <= 0.5 <= high <= 1
    assert json.loads(json.dumps(report)) == report
    with pytest.raises(ValueError, match="zip"):
        score([right], suite)


def test_an_operation_a_step_away_is_two_operations_apart(annotated: Path) -> None:
    suite = load_suite(annotated)
    far = Prediction(Attribution(suite.cases[0].case, (Blame("x", "x1", "ExtractionError", 0.5, "because"),)))
    one = Suite("one", suite.cases[:1])
    assert score([far], one)["distance"] == 2


def test_faults_are_told_apart(annotated: Path) -> None:
    first, second = load_suite(annotated).cases
    labelled = LabelledCase(first.case, first.recording, "ResponseError", ("a0",), ("a0",), fault="ignored_context")
    suite = Suite("injected", (labelled, second))
    by_fault = score(run(suite, survival), suite)["by_fault"]
    assert by_fault == {"ignored_context": {"n": 1, "eta": 1.0, "oia": 1.0, "oia_n": 1}}


def test_baselines_name_operations_that_the_case_passed(annotated: Path) -> None:
    suite = load_suite(annotated)
    constant = score(run(suite, lambda one: Constant(one, "ExtractionError")), suite)
    assert constant["eta"] == constant["majority_eta"] == 0.5
    assert [row["operation_id"] for row in constant["cases"]] == ["x1", "x2"]
    drawn = [run(suite, lambda one: Random(one, seed=7)) for _ in range(2)]
    assert [one.attribution for one in drawn[0]] == [one.attribution for one in drawn[1]]
    types = {run(suite, lambda one, seed=seed: Random(one, seed))[0].attribution.main.error_type for seed in range(40)}  # type: ignore[misc, union-attr]
    assert types == {"ExtractionError", "UpdateError", "DeletionError", "RetrievalError", "ResponseError"}


@pytest.mark.slow
@pytest.mark.skipif(not CONV_26.is_file(), reason="needs ../shared/data/memeval/conv-26.json")
def test_people_agree_with_survival_on_a_real_run() -> None:
    suite = load_suite(CONV_26)
    report = score(run(suite, survival), suite)
    assert (report["n"], suite.skipped) == (81, ())
    assert report["tokens_per_case"] == 0
    assert report["eta"] >= 0.80
    assert report["oia"] >= 0.75
    assert report["majority_eta"] == pytest.approx(46 / 81)
    assert report["ece"] <= 0.1


def survival(recording: Recording) -> Survival:
    return Survival(recording.graph, recording.conversation, recording.operations)
