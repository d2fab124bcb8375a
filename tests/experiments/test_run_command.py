"""`memtune run` from configuration to folder, MLflow and export, against a scripted endpoint."""

import io
import json
from collections import Counter
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from html_pages import Page
from judged_cases import table_of
from memtune_command import Command, MemtuneCommand
from scripted_server import Reply, ScriptedServer, prompt_of

from experiments.attributing.attributions import Attributions
from experiments.mlflow_tracking.outbox import Outbox
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.mlflow_tracking.store import TrackingStore
from experiments.runs.cases_file import read_cases
from experiments.runs.config_file import load_config
from experiments.runs.folder import RunFolder
from experiments.systems.rag import Rag

KEY = "sk-test-key-1234567"
LINES = "system: rag\nlimits: {conversations: 9, questions: 1}\nrounds: 1\nproposals: 2\n"


@pytest.fixture
def command(memtune: MemtuneCommand) -> Command:
    """Runs memtune; `rag.yaml` names the scripted server's models."""
    memtune.configure("rag.yaml", LINES, model=f", api_key: {KEY}")
    return memtune


@pytest.mark.slow
@pytest.mark.usefixtures("wordy")
def test_a_local_search_shows_what_each_rewrite_gains_on_recorded_inputs_and_resumes_without_a_call(
    command: Command, scripted_server: ScriptedServer
) -> None:
    code, _, err = command("run", "rag.yaml", "--optimizer", "local-search", "--out", "run")
    assert code == 0, err
    folder = RunFolder(Path("run"))
    found = folder.summary()
    assert (found.champion["test"].score, found.optimizer) == (1, "local-search")
    tried = [json.loads(line) for line in (folder.path / "rewrites.jsonl").read_text().splitlines()]
    assert all(rewrite["local"] is not None for rewrite in tried)
    assert sum("accepted" in (rewrite["gate"] or "") for rewrite in tried) == 1
    # Settings have a round of their own before.
    (alignment,) = found.rounds[1].alignment.values()
    assert alignment.pairs > 0
    report = (folder.path / "report.html").read_text()
    assert "<th>recorded inputs</th>" in report
    assert "Do gains on recorded inputs predict the answers?" in report
    before = scripted_server.asked
    code, _, err = command("run", "rag.yaml", "--resume", "run")
    assert code == 0, err
    assert (folder.summary().champion, scripted_server.asked) == (found.champion, before)


@pytest.mark.usefixtures("wordy")
def test_a_resumed_run_sends_an_endpoint_no_other_key_than_the_one_it_was_given(
    command: Command, scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "another-providers-key")
    code, _, err = command("run", "rag.yaml", "--budget-calls", "5", "--out", "run")
    assert code == 0, err
    for more in ([], ["--dry-run"]):
        code, _, err = command("run", "--resume", "run", "--budget-calls", "10", *more)
        assert code == 2
        assert "its api_key is not kept" in err
    code, _, err = command("run", "rag.yaml", "--resume", "run", "--budget-calls", "10")
    assert code == 0, err
    assert set(scripted_server.keys) == {KEY}


@pytest.mark.slow
@pytest.mark.usefixtures("wordy")
@pytest.mark.parametrize("name", ["simba", "copro", "bootstrap", "reference"])
def test_each_optimizer_from_elsewhere_runs_by_its_name(command: Command, name: str) -> None:
    code, _, err = command("run", "rag.yaml", "--optimizer", name, "--out", "run")
    assert code == 0, err
    found = RunFolder(Path("run")).summary()
    assert (found.optimizer, found.verdict) == (name, "inconclusive")


@pytest.mark.slow
@pytest.mark.usefixtures("wordy")
def test_a_run_of_dspys_prints_nothing_of_dspys_and_resumes_without_a_call(
    command: Command, scripted_server: ScriptedServer
) -> None:
    code, out, err = command("run", "rag.yaml", "--optimizer", "miprov2", "--out", "run")
    assert code == 0, err
    assert "[[ ##" not in out + err
    assert "Trial" not in out + err
    found = RunFolder(Path("run")).summary()
    assert (found.champion["test"].score, found.optimizer) == (1, "miprov2")
    before = scripted_server.asked
    code, _, err = command("run", "rag.yaml", "--optimizer", "miprov2", "--resume", "run")
    assert code == 0, err
    again = RunFolder(Path("run")).summary()
    assert (again.champion, again.rounds, scripted_server.asked) == (found.champion, found.rounds, before)


@pytest.mark.slow
@pytest.mark.usefixtures("wordy")
@pytest.mark.parametrize(
    ("option", "key", "measured", "blamed"),
    [
        ("--no-local-objectives", "local_objectives", False, True),
        ("--no-blame", "blame", True, True),
        ("--selector=uniform", "selector", True, True),
    ],
)
def test_parts_of_the_search_can_be_switched_off(
    command: Command, option: str, key: str, measured: bool, blamed: bool
) -> None:
    code, _, err = command("run", "rag.yaml", "--optimizer", "local-search", option, "--out", "run")
    assert code == 0, err
    folder = RunFolder(Path("run"))
    assert folder.summary().champion["test"].score == 1
    assert load_config(str(folder.path / "config.yaml")).search.model_dump()[key] in (False, "uniform")
    tried = [json.loads(line) for line in (folder.path / "rewrites.jsonl").read_text().splitlines()]
    assert any(rewrite["local"] is not None for rewrite in tried) == measured
    assert bool(folder.summary().rounds[0].blame) == blamed


@pytest.mark.slow
@pytest.mark.usefixtures("wordy")
def test_an_objective_of_ones_own_is_named_by_prompt_and_a_wrong_name_is_refused(command: Command) -> None:
    Path("mine.py").write_text(
        "from optimizer.objectives.objective import Credit\n\n"
        "class Short:\n"
        "    def __init__(self, means):\n        assert means.operation.prompt == 'answer'\n"
        "    def weight(self, execution):\n        return 1.0\n"
        "    def credit(self, execution, outputs):\n"
        "        return Credit(1 / (1 + len(outputs[0].text.split())) if outputs else 0.0)\n"
    )
    config = Path("rag.yaml").read_text()
    Path("own.yaml").write_text(f"{config}search: {{objectives: {{answer: 'mine:Short'}}}}\noptimizer: local-search\n")
    code, _, err = command("run", "own.yaml", "--out", "run")
    assert code == 0, err
    assert RunFolder(Path("run")).summary().champion["test"].score == 1
    Path("own.yaml").write_text(f"{config}search: {{objectives: {{reply: answer}}}}\n")
    code, _, err = command("run", "own.yaml", "--dry-run")
    assert (code, "search.objectives: no prompt 'reply'; choose from answer" in err) == (2, True)
    Path("own.yaml").write_text(f"{config}search: {{objectives: {{answer: nonsense}}}}\n")
    code, _, err = command("run", "own.yaml", "--dry-run")
    assert code == 2
    assert (
        "search.objectives.answer: unknown: 'nonsense'; choose one of extraction, decision, update, search, answer"
        in err
    )


@pytest.mark.usefixtures("wordy")
def test_a_run_leaves_summary_report_prompts_curves_and_an_export(command: Command, mlflow_home: Path) -> None:
    code, out, err = command("run", "rag.yaml", "--out", "run")
    assert code == 0, err
    folder = RunFolder(Path("run"))
    found = folder.summary()
    assert found.baseline["test"].score == 0
    assert found.champion["test"].score == 1
    assert found.delta == 1
    assert found.verdict == "inconclusive"  # three test conversations can prove nothing
    # Settings first, which gain nothing where each answer is too long; then texts.
    settings, texts = found.rounds[:2]
    assert (bool(settings.settings), settings.accepted, settings.edited) == (True, False, ())
    assert (texts.accepted, texts.edited) == (True, ("answer",))
    assert found.stopped == "all rounds done"
    assert found.calls.without_reuse > found.calls.made
    assert {item.name for item in folder.path.iterdir()} == {
        "rewrites.jsonl",
        "cases.jsonl",
        "config.yaml",
        "fingerprint.json",
        "home",
        "ledger.jsonl",
        "lock",
        "mlflow-key",
        "summary.json",
        "report.html",
        "progress.json",
        "prompts",
        "study.log",
        "traces",
    }
    tried = [json.loads(line) for line in (folder.path / "rewrites.jsonl").read_text().splitlines()]
    assert len(tried) == texts.proposals
    assert any((rewrite["gate"] or "").startswith("accepted") for rewrite in tried)
    assert "0.000" in out
    assert "1.000" in out
    assert "report: run/report.html" in out
    assert f"watch: {store_uri(mlflow_home)}\n" in out
    cases = read_cases(folder)
    assert len(cases) == sum(split.questions for split in found.splits.values())
    assert not any(case.replies["baseline"].passed for case in cases)
    # The champion need not have met every conversation of train.
    by_champion = [case.replies["champion"] for case in cases if "champion" in case.replies]
    assert len(by_champion) >= found.splits["validation"].questions + found.splits["test"].questions
    assert all(reply.passed for reply in by_champion)
    assert all(case.replies["baseline"].blame[0].operation == "answer" for case in cases)
    report = Page((folder.path / "report.html").read_text())
    traces = [link.partition("#")[0] for link in report.links if "#question=" in link]
    fixed = texts.edit
    assert fixed is not None
    assert len(traces) == len(cases) + len(by_champion) + 2 * len(fixed.fixed), (
        "each case under the baseline and the champion"
    )
    assert all((folder.path / trace).is_file() for trace in traces)
    assert "baseline test" in err
    assert "answer 100%" in err

    from mlflow.tracking import MlflowClient

    assert found.mlflow is not None
    assert found.mlflow.tracking_uri == store_uri(mlflow_home)
    tracked = MlflowClient(store_uri(mlflow_home)).get_run(found.mlflow.run_id)
    assert tracked.info.status == "FINISHED"
    assert tracked.data.metrics["answers/test_champion"] == 1
    assert tracked.data.params["system"] == "rag"

    code, _, err = command("export", "run", "--to", "rag", "--out", "tuned")
    assert code == 0, err
    template = json.loads(Path("tuned/rag.json").read_text())["answer_template"]
    assert "$question" in template
    assert folder.prompts("champion") != folder.prompts("baseline")


@pytest.mark.slow
@pytest.mark.usefixtures("wordy")
def test_both_sides_have_a_trace_for_the_same_questions_with_the_blame_on_its_span(
    memtune: MemtuneCommand, command: Command, mlflow_home: Path, tmp_path: Path
) -> None:
    memtune.configure("rag.yaml", LINES, traces=100)
    assert command("run", "rag.yaml", "--out", "run")[0] == 0
    from mlflow.tracking import MlflowClient

    found = RunFolder(Path("run")).summary()
    assert found.mlflow is not None
    client = MlflowClient(store_uri(mlflow_home))
    experiment, parent = found.mlflow.experiment_id, found.mlflow.run_id
    nested = client.search_runs([experiment], f"tags.mlflow.parentRunId = '{parent}'")
    sides = {run.data.tags["memtune.part"]: run.info.run_id for run in nested}
    kept = {side: client.search_traces(locations=[experiment], run_id=sides[side]) for side in ("baseline", "champion")}
    assert all(trace.info.tags["memtune.side"] == side for side, traces in kept.items() for trace in traces)
    traces = [trace for side in kept.values() for trace in side]
    asked = {side: {trace.info.request_preview for trace in traces} for side, traces in kept.items()}
    assert asked["baseline"] == asked["champion"]
    for side, scores in (("baseline", found.baseline), ("champion", found.champion)):
        values = [
            each.value for trace in kept[side] for each in trace.info.assessments if each.name == "short_contains"
        ]
        assert (len(values), fmean(values)) == (scores["test"].n, scores["test"].score)
    for trace in traces:
        spans = {span.span_id: span.name for span in trace.data.spans}
        assert {"retrieve", "answer"} <= set(spans.values())
        blames = [each for each in trace.info.assessments if each.name == "blame"]
        assert [spans[blame.span_id] for blame in blames] == (
            ["answer"] if trace.info.tags["memtune.passed"] == "false" else []
        )
    store = TrackingStore(store_uri(mlflow_home), tmp_path.name, "")
    table = table_of(store, found.mlflow.run_id, "cases/test.json")
    assert set(table["baseline error_type"]) == {"ResponseError"}
    assert set(table["champion score"]) == {1}
    champion = client.load_prompt("prompts:/memtune.rag.answer@champion")
    assert (
        champion.tags["memtune.sha256"]
        == sha256(RunFolder(Path("run")).prompts("champion")["answer"].encode()).hexdigest()
    )


@pytest.mark.slow
def test_a_model_that_judges_forgives_form_and_its_agreement_with_the_words_is_reported(
    command: Command, wordy: None, scripted_server: ScriptedServer
) -> None:
    memory = scripted_server.script

    def script(body: dict[str, Any]) -> Reply | str:
        if "You grade an answer" not in prompt_of(body):
            # The small request before a run finds out whether log-probabilities are told.
            return Reply(str(memory(body)), first_token={"I": -0.1}) if "logprobs" in body else memory(body)
        right = "no idea" not in prompt_of(body)
        return Reply("yes" if right else "no", first_token={"yes": -0.1 if right else -4.0, "no": -1.0})

    scripted_server.script = script
    with Path("rag.yaml").open("a") as file:
        file.write("metric: llm_judge\n")
    code, out, err = command("run", "rag.yaml", "--out", "run")
    assert code == 0, err
    found = RunFolder(Path("run")).summary()
    # Long sentences are right in what they say; judged by words they are too long.
    assert found.baseline["test"].score == 1
    assert found.stopped == "no wrong answer is left on the train conversations"
    assert found.judge is not None
    assert (found.judge.model, found.judge.mode, found.judge.abstained) == ("m", "margin", 0)
    assert found.judge.agreement["held_out"].accuracy == 0
    assert "The score is the verdict of" in (Path("run") / "report.html").read_text()
    assert "judge" in out
    assert json.loads((Path("run") / "summary.json").read_text())["judge"]["compared_with"] == "short_contains"
    # A budget that is spent on the judge's calibration ends a run as it does anywhere else.
    code, out, err = command("run", "rag.yaml", "--out", "short", "--home", "another", "--budget-calls", "2")
    assert code == 0, err
    assert RunFolder(Path("short")).summary().stopped.startswith("budget: the budget of 2 calls")
    # Whoever looks at the run's failures later counts by the same judge.
    code, out, err = command("attribute", "run", "--traces-of", "baseline")
    assert (code, out.startswith("0 wrong answers"), err) == (0, True, "")
    (Path("run") / "verdicts.jsonl").unlink()
    code, out, _ = command("attribute", "run", "--traces-of", "baseline", "--out", "by-words.jsonl")
    assert not out.startswith("0 wrong answers")


@pytest.mark.slow
@pytest.mark.usefixtures("wordy")
@pytest.mark.parametrize(("said", "kept"), [("y", True), ("n", False)])
def test_a_prompt_of_mine_races_and_becomes_the_champion_only_where_i_say_so(
    command: Command, monkeypatch: pytest.MonkeyPatch, said: str, kept: bool
) -> None:
    mine = f"Be brief.\n{Rag.prompts['answer'].text}"
    Path("answer.mine.txt").write_text(mine)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{said}\n" * 9))
    code, _, err = command("run", "rag.yaml", "--out", "run", "--rewrites", "answer.mine.txt", "--approve")
    assert code == 0, err
    assert "+Be brief." in err
    folder = RunFolder(Path("run"))
    assert (folder.prompts("champion")["answer"] == mine) == kept
    assert any(record.accepted for record in folder.summary().rounds) == kept
    first = json.loads((folder.path / "rewrites.jsonl").read_text().splitlines()[0])
    assert (first["source"], first["reason"]) == ("hand", "written by hand: answer.mine.txt")


@pytest.mark.slow
@pytest.mark.usefixtures("wordy")
def test_whoever_leaves_instead_of_answering_has_interrupted_a_run_that_can_go_on(
    command: Command, mlflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.tracking import MlflowClient

    Path("answer.mine.txt").write_text(f"Be brief.\n{Rag.prompts['answer'].text}")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, _, err = command("run", "rag.yaml", "--out", "run", "--rewrites", "answer.mine.txt", "--approve")
    assert (code, err.splitlines()[-1]) == (
        130,
        "memtune: interrupted; saved in run; go on with: memtune run --resume run",
    )
    found = RunFolder(Path("run")).summary()
    assert found.stopped == "interrupted"
    assert found.mlflow is not None
    assert MlflowClient(store_uri(mlflow_home)).get_run(found.mlflow.run_id).info.status == "KILLED"
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
    assert command("run", "rag.yaml", "--resume", "run", "--approve")[0] == 0
    assert any(record.accepted for record in RunFolder(Path("run")).summary().rounds)


@pytest.mark.usefixtures("wordy")
def test_a_key_reaches_neither_folder_nor_home_nor_store(command: Command, mlflow_home: Path, tmp_path: Path) -> None:
    assert command("run", "rag.yaml", "--out", "run")[0] == 0
    places = [*tmp_path.rglob("*"), *mlflow_home.rglob("*")]
    leaks = [p for p in places if p.is_file() and p.name != "rag.yaml" and KEY.encode() in p.read_bytes()]
    assert leaks == []


@pytest.mark.usefixtures("wordy")
def test_a_spent_budget_ends_a_run_cleanly_with_the_best_so_far(command: Command) -> None:
    code, out, err = command("run", "rag.yaml", "--out", "run", "--budget-calls", "12")
    assert code == 0, err
    found = RunFolder(Path("run")).summary()
    assert found.stopped.startswith("budget: ")
    assert found.verdict is None
    assert found.calls.made <= 12
    assert "no verdict" in out
    assert (Path("run") / "report.html").is_file()


def test_an_interrupted_run_is_saved_and_says_where(command: Command, scripted_server: ScriptedServer) -> None:
    import _thread

    def interrupt(body: dict[str, Any]) -> Reply:
        if scripted_server.count == 6:
            _thread.interrupt_main()
        return Reply("no idea", delay=0.05)

    scripted_server.script = interrupt
    code, _, err = command("run", "rag.yaml", "--out", "run")
    assert code == 130
    assert err.splitlines()[-1] == "memtune: interrupted; saved in run; go on with: memtune run --resume run"
    folder = RunFolder(Path("run"))
    assert folder.summary().stopped == "interrupted"
    assert "train" in folder.summary().baseline
    assert folder.prompts("champion") == folder.prompts("baseline")
    assert (folder.path / "report.html").is_file()


def test_a_failing_endpoint_ends_a_run_in_one_line_and_its_folder_says_why(
    command: Command, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: Reply("out of order", status=500)
    code, out, err = command("run", "rag.yaml", "--out", "run")
    assert (code, out) == (2, "")
    assert err.count("memtune: ") == 1
    assert RunFolder(Path("run")).summary().stopped.startswith("error: ")
    report = Page(Path("run/report.html").read_text()).text
    assert "The run failed" in report
    assert "from replies that are paid for: memtune run --resume run" in report
    assert "Known so far: no score; 0 rounds done" in report


@pytest.mark.usefixtures("wordy")
def test_the_blames_of_a_run_are_checked_by_running_its_system_again_from_the_cache(
    command: Command, scripted_server: ScriptedServer
) -> None:
    assert command("run", "rag.yaml", "--rounds", "0", "--out", "run")[0] == 0
    made = scripted_server.count
    code, _, err = command("attribute", "run", "--replay")
    assert (code, err) == (0, "")
    said = Attributions.read(Path("attributions.jsonl"))
    verdicts = Counter(blame.verdict for case in said.cases.values() for blame in case.decisive)
    assert verdicts["confirmed"] > 0
    assert None not in verdicts
    assert scripted_server.count == made, "nothing that was asked before is asked again"
    assert command("diagnose", "attributions.jsonl")[0] == 0
    assert "confirmed by replay" in Path("diagnosis.html").read_text()

    code, _, err = command("attribute", "run", "--out", "attributions.jsonl")
    assert (code, "was made by survival, checked by replay" in err) == (2, True)
    code, _, err = command("attribute", "run", "--replay", "--traces-of", "all")
    assert (code, "--replay: runs one system" in err) == (2, True)
    code, _, err = command("attribute", "run", "--reply", "Bergen")
    assert (code, "give its --question too" in err) == (2, True)

    folder = RunFolder(Path("run"))
    folder.write_prompts("champion", {name: f"{text}\nBe brief." for name, text in folder.prompts("baseline").items()})
    trace = min(folder.path.glob("traces/*/*.jsonl"))
    code, _, err = command("attribute", str(trace), "--replay", "--out", "one.jsonl")
    assert (code, err) == (0, "")
    assert scripted_server.count == made, "a trace is run again with the prompts it was made with"


@pytest.mark.parametrize(
    "command_line", [("run", "rag.yaml", "--out", "run"), ("eval", "rag.yaml", "--prompts", "baseline")]
)
def test_an_endpoint_that_refuses_the_key_is_told_before_a_run_begins(
    command: Command, scripted_server: ScriptedServer, command_line: tuple[str, ...]
) -> None:
    scripted_server.script = lambda body: Reply("wrong key", status=401)
    code, _, err = command(*command_line)
    assert code == 2
    assert "check the key" in err
    assert [line for line in err.splitlines() if line.startswith("memtune: ")] == err.splitlines()[-1:]
    assert not Path("run").exists()
    assert scripted_server.count == 1


@pytest.mark.slow
@pytest.mark.usefixtures("wordy")
def test_the_result_and_the_report_are_told_before_mlflow_is_written_and_ctrl_c_then_ends_only_that(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(Outbox, "flush", interrupted)
        code, out, err = command("run", "rag.yaml", "--out", "run")
    assert code == 0
    assert "report: run/report.html" in out
    folder = RunFolder(Path("run"))
    assert folder.summary().finished
    waiting = Outbox.load(folder).waiting
    assert f"warning: MLflow did not record everything: {waiting} writes wait in the run's folder" in err
    code, out, _ = command("mlflow", "send", "run")
    assert (code, out) == (0, f"sent {waiting} of {waiting} writes to MLflow\n")
