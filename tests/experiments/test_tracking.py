"""What MLflow is told, in a real sqlite store."""

import json
import shutil
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from judged_cases import ANSWER, seen_case, table_of
from run_shapes import BASELINE, TUNED, facts, loop_result, record, run_folder, score

from attribution.signals import Signal
from experiments.data.loaders import load_dataset
from experiments.mlflow_tracking.logged_datasets import split_data
from experiments.mlflow_tracking.outbox import OUTBOX
from experiments.mlflow_tracking.sqlite_store import store_file, store_uri
from experiments.mlflow_tracking.store import TrackingStore
from experiments.mlflow_tracking.tracking import MlflowRun
from experiments.runs.config_file import load_config
from experiments.runs.folder import MLFLOW_KEY, RunFolder
from experiments.runs.progress import Progress
from experiments.runs.run_settings import params_of
from experiments.runs.seen_cases import SeenCase
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.gating.verdict import Verdict, VerdictName
from optimizer.tuning.round import RewriteRecord, SettingChange
from optimizer.tuning.stopped import Stopped
from tracing.errors import ConfigError
from tracing.formats import stamped
from tracing.recording.credentials import without_credentials

FIRST = "20260102-030401-rag"
REWRITES = (
    RewriteRecord(
        "answer",
        "bank",
        "asks for a short answer",
        TUNED["answer"],
        0.5,
        GateDecision(GateOutcome.ACCEPTED, "+0.5"),
        0.2,
    ),
    RewriteRecord("answer", "structure", "moves the question", "other", 0.1, GateDecision(GateOutcome.INCOMPARABLE)),
)
SIGNALS = [
    Signal("answer", "answer", 0.7, (0.5, 0.9), 7, 0.3, {"ResponseError": 7}, ("q1", "q2"), True),
    Signal("retrieve", None, 0.3, (0.1, 0.5), 3, 0.1, {"RetrievalError": 3}, ("q3",), False),
]


@pytest.fixture(scope="module")
def home(mlflow_home: Path) -> Path:
    return mlflow_home


@pytest.fixture(scope="module")
def client(home: Path) -> Any:
    """A client of the store after one whole experiment was recorded in it."""
    from mlflow.tracking import MlflowClient

    folder = run_folder(home, 1)
    run = start(home, folder, datasets=split_data("sample", load_dataset(load_config(None)).splits))
    for split, value in (("train", 0.4), ("validation", 0.45), ("test", 0.42)):
        run.baseline(split, score(value))  # type: ignore[arg-type]
    for n in (1, 2):
        if n == 1:
            run.blame(n, SIGNALS)
        run.round(replace(record(n, accepted=n == 1, champion=TUNED), rewrites=REWRITES[n - 1 : n]))
    run.verdict(Verdict("improved", 0.1, (0.02, 0.18), 0.031, 0.64))
    folder.write("report.html", "<html></html>")
    result = loop_result()
    run.finish(replace(result, calls=replace(result.calls, money=0.25)))
    assert run.problems == []
    assert not (folder.path / OUTBOX).exists()
    return MlflowClient(tracking_uri=store_uri(home))


def start(home: Path, folder: RunFolder, **given: Any) -> MlflowRun:
    params = {"system": "rag", "long": "x" * 9000}
    settings = {
        "uri": None,
        "experiment": "memtune",
        "home": home,
        "system": "tracked",
        "baseline": BASELINE,
        "params": params,
    }
    return MlflowRun.start(folder=folder, **{**settings, **given})


def runs_of(client: Any) -> dict[str, Any]:
    (experiment,) = [found for found in client.search_experiments() if found.name == "memtune"]
    found = client.search_runs([experiment.experiment_id])
    return {run.data.tags.get("memtune.part") or run.data.tags["memtune.run"]: run for run in found}


def test_each_round_is_a_finished_run_nested_in_the_experiment(client: Any) -> None:
    runs = runs_of(client)
    nested = {"baseline", "champion", "round 1", "round 2"}
    assert set(runs) == {FIRST, *nested}
    for name in nested:
        assert runs[name].data.tags["mlflow.parentRunId"] == runs[FIRST].info.run_id
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    assert runs[FIRST].data.tags["verdict"] == "improved"
    assert runs["round 1"].data.tags["accepted"] == "true"


def test_every_curve_stands_on_the_parent_run_with_its_steps(client: Any) -> None:
    parent = runs_of(client)[FIRST].info.run_id

    def curve(name: str) -> list[tuple[int, float]]:
        return [(metric.step, metric.value) for metric in client.get_metric_history(parent, name)]

    # Level up to a step, and a rise at it: a champion's score holds until the next.
    assert curve("answers/validation_score") == [(0, 0.45), (1, 0.45), (1, 0.51), (2, 0.51), (2, 0.52)]
    assert curve("spending/tokens_so_far") == [(1, 4000), (2, 4000), (2, 8000)]
    assert curve("spending/run_calls_without_reuse") == [(0, 2600)]
    assert curve("spending/run_money") == [(0, 0.25)]
    assert curve("spending/champion_tokens_per_question") == [(0, 322.0)]


def test_what_is_measured_once_is_a_single_point_so_that_no_line_is_drawn(client: Any) -> None:
    runs = runs_of(client)
    metrics = runs[FIRST].data.metrics
    figures = ("test_baseline", "test_champion", "test_difference", "test_difference_low", "test_p_value")
    assert [metrics[f"answers/{name}"] for name in figures] == [0.42, 0.52, 0.1, 0.02, 0.031]
    for name in metrics:
        if name.startswith(("answers/test", "answers/train")):
            assert len(client.get_metric_history(runs[FIRST].info.run_id, name)) == 1


def test_the_test_stands_first_and_what_it_cost_last(client: Any) -> None:
    runs = runs_of(client)
    for name in (FIRST, "baseline", "champion"):
        metrics = sorted(runs[name].data.metrics)
        assert metrics[0].startswith("answers/test_")
        assert metrics[-1].startswith("spending/")


def test_metrics_were_written_in_the_order_in_which_mlflow_lists_them_with_costs_last(client: Any) -> None:
    sections = [name.partition("/")[0] for name in runs_of(client)[FIRST].data.metrics]
    assert sections == sorted(sections)
    assert sections[0] == "answers"


def test_the_blame_of_all_operations_is_one_picture_an_round_and_no_curve(client: Any) -> None:
    run = runs_of(client)[FIRST]
    assert not [name for name in run.data.metrics if name.startswith("blame/")]
    pictures = [file.path for file in client.list_artifacts(run.info.run_id, "images") if file.path.endswith(".png")]
    assert len(pictures) == 1
    assert runs_of(client)["round 1"].data.metrics["blame/answer"] == 0.7


def test_names_tell_runs_apart_by_system_score_and_time(client: Any) -> None:
    names = {part: run.info.run_name for part, run in runs_of(client).items()}
    began = f"{datetime.fromtimestamp(runs_of(client)[FIRST].info.start_time / 1000):%H:%M}"
    assert names[FIRST] == f"tracked 0.42→0.52 · {began}"
    for part in ("baseline", "champion", "round 2"):
        assert names[part] == f"{part} · tracked · {began}"


def test_the_experiment_says_what_its_runs_are(client: Any) -> None:
    about = client.get_experiment_by_name("memtune").tags["mlflow.note.content"]
    assert "`baseline` and `champion`" in about


def test_baseline_and_champion_are_runs_with_the_same_metrics_to_compare(client: Any) -> None:
    baseline, champion = (runs_of(client)[side].data.metrics for side in ("baseline", "champion"))
    assert (baseline["answers/test_score"], champion["answers/test_score"]) == (0.42, 0.52)
    assert (baseline["spending/tokens_per_question"], champion["spending/tokens_per_question"]) == (310.5, 322.0)
    assert set(champion) <= set(baseline)


def test_the_splits_are_data_sets_of_the_run_and_of_both_sides(client: Any) -> None:
    runs = runs_of(client)
    for name in (FIRST, "baseline", "champion"):
        inputs = runs[name].inputs.dataset_inputs
        assert sorted((each.dataset.name, each.tags[0].value) for each in inputs) == [
            ("sample test", "test"),
            ("sample training", "training"),
            ("sample validation", "validation"),
        ]
        assert len({each.dataset.digest for each in inputs}) == 3


def test_every_rewrite_is_in_a_table_with_its_text_source_local_score_gate_and_reason(home: Path, client: Any) -> None:
    run = runs_of(client)[FIRST].info.run_id
    table = table_of(TrackingStore(store_uri(home), "memtune", ""), run, "rewrites.json")
    first, second = table.to_dict("records")
    assert first == {
        "round": 1,
        "prompt": "answer",
        "source": "bank",
        "reason": "asks for a short answer",
        "gain on recorded inputs": 0.2,
        "gain on conversations": 0.5,
        "gate": "accepted: +0.5",
        "champion": True,
        "text": TUNED["answer"],
    }
    assert (second["round"], second["champion"]) == (2, False)


def test_the_description_says_verdict_difference_scores_and_what_changed(client: Any) -> None:
    note = runs_of(client)[FIRST].data.tags["mlflow.note.content"]
    assert note.startswith("## Improved: +0.100 (+0.020 to +0.180), from 0.420 to 0.520\n")
    validation = "baseline 0.450 (0.350 to 0.550) → champion 0.550 (0.450 to 0.650)"
    assert f"\n- **Validation**, 20 questions: {validation}\n" in note
    assert "\n|" not in note, "MLflow shows a table as one line"
    assert "-Be short." in note
    assert "+Answer in one to four words & no sentence." in note


def test_prompts_report_and_blame_are_artifacts_under_the_home(client: Any, home: Path) -> None:
    runs = runs_of(client)
    assert {item.path for item in client.list_artifacts(runs[FIRST].info.run_id)} == {
        "rewrites.json",
        "images",
        "prompts",
        "report.html",
        "summary.json",
    }
    kept = home / "artifacts" / runs[FIRST].info.run_id / "artifacts" / "prompts" / "champion" / "answer.txt"
    assert kept.read_text() == TUNED["answer"]
    nested = {item.path for item in client.list_artifacts(runs["round 1"].info.run_id)}
    assert nested == {"blame.json", "prompts"}


def test_artifacts_stay_beside_a_store_that_was_named_and_not_in_the_current_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    shutil.copy(store_file(home), tmp_path / "named.db")
    folder = run_folder(tmp_path, 1)
    start(home, folder, uri="sqlite:///../named.db", experiment="named").finish(loop_result())
    assert [each.name for each in tmp_path.glob("artifacts/*/artifacts/summary.json")] == ["summary.json"]
    assert list(Path.cwd().iterdir()) == []


def test_a_second_experiment_goes_into_the_same_store(client: Any, home: Path) -> None:
    folder = run_folder(home, 30)
    start(home, folder).finish(loop_result(), status="KILLED")
    runs = runs_of(client)
    assert runs[folder.id].info.experiment_id == runs[FIRST].info.experiment_id
    assert runs[folder.id].info.status == "KILLED"


def test_a_run_that_goes_on_is_shown_as_running_until_it_ends_again(client: Any, home: Path) -> None:
    folder = run_folder(home, 38)
    start(home, folder).finish(loop_result(verdict=None), status="KILLED")
    resumed = start(home, folder, resumed=True)
    assert runs_of(client)[folder.id].info.status == "RUNNING"
    resumed.finish(loop_result())
    assert runs_of(client)[folder.id].info.status == "FINISHED"


def test_a_run_in_progress_says_how_far_it_is_until_it_ends(client: Any, home: Path) -> None:
    folder = run_folder(home, 39, result=loop_result(verdict=None, stopped="running"))
    seconds = [1_000.0]
    run = start(home, folder, clock=lambda: seconds[0])

    def told(phase: str, done: int, at: float) -> str:
        seconds[0] = at
        reached = Progress(phase, done, 13, 0, 100 * done, 0.0, False)
        folder.write("progress.json", json.dumps(stamped("progress.json", asdict(reached))))
        run.progress(phase, done, 13)
        return str(runs_of(client)[folder.id].data.tags["mlflow.note.content"])

    first = told("baseline train", 3, 1_000)
    assert first.startswith("## In progress: baseline train, 3 of 13\n\n300 model calls were made by ")
    assert f"memtune watch {folder.id}" in first
    assert "**Train**, 20 questions: baseline 0.400 (0.300 to 0.500)" in first
    assert told("baseline train", 4, 1_010) == first
    assert "train, 5 of 13" in told("baseline train", 5, 1_016)
    assert "validation, 0 of 13" in told("baseline validation", 0, 1_017)
    run.leave(Stopped("interrupted"), status="KILLED")
    ended = runs_of(client)[folder.id].data.tags["mlflow.note.content"]
    assert ended.startswith("## Not finished")
    assert "In progress" not in ended


def test_progress_is_not_kept_for_a_store_that_is_away(client: Any, home: Path) -> None:
    run = start(home, run_folder(home, 40))
    run._outbox.keep_off(OSError("away"))
    run.blame(1, SIGNALS)
    waiting = run._outbox.waiting
    run.progress("round 1", 0, 1)
    assert run._outbox.waiting == waiting > 0


def test_an_round_that_did_not_end_is_closed_with_the_experiment(client: Any, home: Path) -> None:
    run = start(home, run_folder(home, 31))
    run.blame(7, SIGNALS)
    run.finish(loop_result(verdict=None), status="KILLED")
    assert runs_of(client)["round 7"].info.status == "KILLED"


def test_trouble_with_the_store_does_not_end_an_experiment(client: Any, home: Path) -> None:
    run = start(home, run_folder(home, 32))
    assert run.link is not None
    client.delete_run(run.link.run_id)
    run.baseline("validation", score(0.4))
    assert len(run.problems) == 1


def test_a_store_that_cannot_be_used_is_refused_at_the_start_without_its_password(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"^tracking\.uri: ") as caught:
        start(home, run_folder(home, 33), uri="nosuch://user:hunter2@host/db")
    assert "hunter2" not in str(caught.value)


def test_credentials_stay_out_of_the_summary() -> None:
    assert without_credentials("postgresql://user:pass@host:5432/db") == "postgresql://host:5432/db"
    assert without_credentials("sqlite:////home/u@x/mlflow.db") == "sqlite:////home/u@x/mlflow.db"
    assert facts().mlflow is None


def test_each_text_of_a_prompt_is_one_version_with_its_reason_and_champion_names_the_best(
    client: Any, home: Path
) -> None:
    versions = {each.version: each for each in client.search_prompt_versions("memtune.tracked.answer")}
    assert sorted(versions) == [1, 2]
    assert versions[1].commit_message == "baseline of tracked"
    assert versions[2].commit_message == "round 1, bank: asks for a short answer (accepted: +0.5)"
    assert versions[2].tags["memtune.run"] == FIRST
    champion = client.load_prompt("prompts:/memtune.tracked.answer@champion")
    assert champion.version == 2
    assert champion.format(context="M1", question="Q?") == TUNED["answer"].format(context="M1", question="Q?")
    linked = runs_of(client)[FIRST].data.tags["mlflow.linkedPrompts"]
    assert {each["version"] for each in json.loads(linked)} == {"1", "2"}


@pytest.mark.parametrize("verdict", ["inconclusive", "regressed"])
def test_a_run_that_found_nothing_better_moves_no_alias_and_makes_no_version(
    client: Any, home: Path, verdict: VerdictName
) -> None:
    run = start(home, run_folder(home, 34))
    run.verdict(Verdict(verdict, 0.0, (0.0, 0.0), 1.0, 0.0))
    run.finish(loop_result(verdict=None))
    assert run.problems == []
    assert client.load_prompt("prompts:/memtune.tracked.answer@champion").version == 2
    assert len(client.search_prompt_versions("memtune.tracked.answer")) == 2


@pytest.mark.slow
def test_a_champion_is_named_by_its_test_and_until_then_the_baseline_is(client: Any, home: Path) -> None:
    folder = run_folder(home, 37)

    def named_after(verdict: VerdictName | None, *, resumed: bool) -> str:
        run = start(home, folder, system="stopped", resumed=resumed)
        run.round(replace(record(1, accepted=True, champion=TUNED), rewrites=REWRITES[:1]))
        if verdict is not None:
            run.verdict(Verdict(verdict, 0.0, (0.0, 0.0), 1.0, 0.0))
        run.finish(loop_result())
        assert run.problems == []
        commit = client.load_prompt("prompts:/memtune.stopped.answer@champion").commit_message
        return str(commit).partition(",")[0]

    assert named_after(None, resumed=False) == "baseline of stopped"
    assert named_after("regressed", resumed=True) == "baseline of stopped"
    assert named_after("inconclusive", resumed=True) == "round 1"
    assert named_after(None, resumed=True) == "round 1"


def test_texts_that_lose_without_the_settings_they_were_tuned_with_become_no_champion(client: Any, home: Path) -> None:
    folder = run_folder(home, 35)
    run = start(home, folder)
    alone = Verdict("regressed", -0.1, (-0.2, -0.02), 0.03, 0.6)
    run.verdict(Verdict("improved", 0.1, (0.02, 0.18), 0.031, 0.64, prompts_alone=alone))
    changed = {"top_k": SettingChange(4, 8)}
    run.finish(replace(loop_result(), champion_candidate={"answer": f"{BASELINE['answer']}\n"}, settings=changed))
    assert run.problems == []
    assert client.load_prompt("prompts:/memtune.tracked.answer@champion").version == 2
    data = runs_of(client)[folder.id].data
    assert (data.tags["settings.top_k"], data.metrics["answers/test_prompts_alone_difference"]) == ("4 → 8", -0.1)


def test_a_resumed_run_has_the_traces_of_the_champion_that_it_ended_with(client: Any, home: Path) -> None:
    folder = run_folder(home, 36)
    baseline = [seen_case(1, "unknown", lost_at="answer")]

    def champion_after(champion: list[SeenCase], *, resumed: bool) -> dict[str, str]:
        run = start(home, folder, resumed=resumed)
        run.cases(baseline, champion, TUNED, metric="short_contains", method="survival", most=5)
        run.finish(loop_result())
        assert run.problems == []
        assert run.link is not None
        wanted = "tags.`memtune.side` = 'champion'"
        found = client.search_traces(locations=[run.link.experiment_id], filter_string=wanted)
        return {trace.info.tags["mlflow.traceName"]: trace.info.tags["memtune.passed"] for trace in found}

    former = [seen_case(1, "unknown", lost_at="extract_facts")]
    assert set(champion_after(former, resumed=False).values()) == {"false"}
    assert champion_after([seen_case(1, ANSWER)], resumed=True) == {"champion conv1 q1": "true"}
    assert champion_after(baseline, resumed=True) == {}


def test_settings_become_flat_parameters_without_keys() -> None:
    given = {"models.task.model": "m", "models.task.api_key": "sk-hidden123456"}
    params = params_of(load_config(None, overrides={**given, "tracking.uri": "postgresql://user:pass@host/db"}))
    assert params["models.task.model"] == "m"
    assert params["proposals"] == 4
    assert not [value for key, value in params.items() if "api_key" in key and "env" not in key]
    assert params["tracking.uri"] == "postgresql://host/db"


@pytest.mark.parametrize("damaged", [b"", b"\xff\xfe", b"' OR name LIKE '%", b"0" * 31])
def test_a_resumed_run_whose_key_is_damaged_goes_on_in_a_run_of_its_own(
    home: Path, tmp_path: Path, damaged: bytes
) -> None:
    folder = run_folder(tmp_path)
    (folder.path / MLFLOW_KEY).write_bytes(damaged)
    first = start(home, folder, resumed=True)
    second = start(home, folder, resumed=True)
    assert first.link is not None
    assert first.link == second.link
    assert first.problems == []
