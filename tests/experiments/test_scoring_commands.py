"""`memtune eval` and `memtune data audit` against a scripted endpoint, through every real part."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import traced_runs
from data_files import traces
from scripted_server import Reply, ScriptedServer, prompt_of

from benchmarks.gate_simulation import by_prompts, read_recorded
from experiments.command import main
from experiments.data.loaders import load_dataset, load_sealed
from experiments.runs.config_file import load_config
from experiments.runs.folder import CONFIG, RunFolder
from experiments.systems.rag import Rag
from tracing.systems.conversations import write_conversations
from tracing.systems.prompts import baseline_candidate

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    tmp_path: Path, scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Runs memtune with a RAG configuration whose models are the scripted server's."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0, api_key: sk-test-key-1234567"
    Path("rag.yaml").write_text(
        f"system: rag\nlimits: {{conversations: 3, questions: 2}}\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
    )

    def run(name: str, *arguments: str) -> tuple[int, str, str]:
        words = name.split()
        with pytest.raises(SystemExit) as caught:
            main([*words, "rag.yaml", *arguments])
        said = capsys.readouterr()
        assert isinstance(caught.value.code, int)
        return caught.value.code, said.out, said.err

    return run


@pytest.fixture
def half_right(scripted_server: ScriptedServer) -> None:
    """Answers the first question of every conversation, and no other."""
    known: dict[str, str] = {}
    for group in load_dataset(load_config(None)).splits.named().values():
        for conversation in group:
            known[conversation.questions[0].question] = conversation.questions[0].answers[0]

    def answer(body: dict[str, object]) -> str:
        prompt = prompt_of(body)
        return next((reply for question, reply in known.items() if question in prompt), "no idea")

    scripted_server.script = answer


@pytest.mark.usefixtures("half_right")
def test_eval_scores_the_prompts_of_a_folder_and_its_exit_code_is_the_threshold(command: Command) -> None:
    code, out, err = command("eval", "--prompts", "baseline", "--min-score", "0.5")
    assert (code, err) == (0, "")
    assert "0.500" in out
    assert "test" in out
    code, _, err = command("eval", "--prompts", "baseline", "--min-score", "0.6")
    assert code == 1
    assert err == "0.500 is below --min-score 0.6\n"


@pytest.mark.usefixtures("half_right")
def test_a_gain_is_compared_with_the_baseline_on_another_model(
    command: Command, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    once, tuned = scripted_server.script, tmp_path / "tuned"
    tuned.mkdir()
    (tuned / "answer.txt").write_text("Memories:\n{context}\n\nQuestion: {question}\nMUTE:")
    scripted_server.script = lambda body: "no idea" if "MUTE" in prompt_of(body) else once(body)
    code, out, err = command("eval", "--prompts", "baseline", "--against", str(tuned), "--model", "other")
    assert (code, err) == (0, "")
    assert {str(body["model"]) for body in scripted_server.requests} == {"other"}
    assert [line.split()[2] for line in out.splitlines() if " test " in line] == ["0.500", "0.000"]
    assert "inconclusive: +0.500 (p 1.000, 1 conversation)" in out
    code, _, err = command("eval", "--prompts", "baseline", "--against", "no-such-run")
    assert code == 2
    assert "no-such-run" in err


@pytest.mark.usefixtures("half_right")
def test_what_regressed_fails_a_build_and_is_written_for_other_programs(
    command: Command, scripted_server: ScriptedServer
) -> None:
    once = scripted_server.script
    Path("worse").mkdir()
    Path("worse/answer.txt").write_text("Memories:\n{context}\n\nQuestion: {question}\nMUTE:")
    scripted_server.script = lambda body: "no idea" if "MUTE" in prompt_of(body) else once(body)
    pair = (
        "eval",
        "--prompts",
        "worse",
        "--against",
        "baseline",
        "--limit-conversations",
        "18",
        "--json",
        "result.json",
    )
    code, out, err = command(*pair, "--fail-on", "regressed")
    assert code == 1
    # On a busy machine a line about progress comes before it.
    assert err.splitlines()[-1] == "--fail-on regressed: worse against baseline is regressed"
    assert "regressed: -0.500" in out
    written = json.loads(Path("result.json").read_text())
    assert [(side["prompts"], side["mean"]) for side in written["evaluated"]] == [("worse", 0.0), ("baseline", 0.5)]
    difference = written["difference"]
    assert (difference["verdict"], difference["delta"], difference["conversations"]) == ("regressed", -0.5, 6)
    assert difference["p_value"] == pytest.approx(1 / 32)
    same = ("eval", "--prompts", "baseline", "--against", "baseline-copy", "--limit-conversations", "18")
    Path("baseline-copy").mkdir()
    Path("baseline-copy/answer.txt").write_text(baseline_candidate(Rag.prompts)["answer"])
    assert command(*same, "--fail-on", "regressed")[0] == 0
    assert command(*same, "--fail-on", "not-improved")[0] == 1
    code, _, err = command("eval", "--prompts", "baseline", "--fail-on", "regressed")
    assert code == 2
    assert "add --against" in err


@pytest.mark.usefixtures("half_right")
def test_the_file_has_the_answers_that_the_benchmark_of_the_gate_draws_from(command: Command, tmp_path: Path) -> None:
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "answer.txt").write_text("Memories:\n{context}\n\nQuestion: {question}\nShort:")
    for split in ("train", "validation"):
        compared = "eval", "--prompts", "tuned", "--against", "baseline", "--split", split
        code, _, err = command(*compared, "--json", f"{split}.json")
        assert (code, err) == (0, "")
    recorded = read_recorded(Path("train.json"), Path("validation.json"))
    assert set(recorded) == {"tuned", "baseline"}
    assert recorded["baseline"] == recorded["tuned"]
    assert list(recorded["baseline"].values()) == ["+-", "+-"]
    assert list(by_prompts(recorded)) == ["tuned"]


def test_prompts_of_a_run_are_scored_on_what_the_run_was_about(
    tmp_path: Path, scripted_server: ScriptedServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = RunFolder(tmp_path / "home" / "runs" / "r1")
    splits = ("train", "validation", "test")
    told = [traced_runs.conversation(split).model_copy(update={"split": split}) for split in splits]
    write_conversations(tmp_path / "mine.jsonl", told)
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"
    run.write(
        CONFIG,
        "system: rag\ndataset: jsonl\ndata: ../../../mine.jsonl\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n",
    )
    run.write_prompts("champion", baseline_candidate(Rag.prompts))
    with pytest.raises(SystemExit) as ended:
        main(["eval", "--prompts", "latest", "--home", "home"])
    said = capsys.readouterr()
    assert ended.value.code == 0, said.err
    assert said.out.startswith("rag on jsonl ")
    assert "mine.jsonl, m\n" in said.out
    assert any(told[2].questions[0].question in prompt_of(body) for body in scripted_server.requests)


@pytest.mark.usefixtures("half_right")
def test_repetitions_ask_the_model_again_and_tell_the_noise_floor(
    command: Command, scripted_server: ScriptedServer
) -> None:
    command("eval", "--prompts", "baseline")
    once, steady = scripted_server.asked, scripted_server.script
    assert once == 2
    # The first repetition is what was asked already; the later ones fail throughout.
    scripted_server.script = lambda body: "no idea"
    code, out, _ = command("eval", "--prompts", "baseline", "--repeat", "3", "--min-score", "0.2")
    assert code == 1
    assert scripted_server.asked == 3 * once
    assert "mean of 3: 0.167, standard deviation 0.289; 1 of 2 questions" in out
    assert "noise floor: a difference of up to 0.800" in out
    scripted_server.script = steady
    _, again, _ = command("eval", "--prompts", "baseline", "--repeat", "3")
    assert again == out


@pytest.mark.slow
@pytest.mark.usefixtures("half_right")
def test_eval_scores_another_split_or_the_sealed_conversations_only_when_told(
    command: Command, scripted_server: ScriptedServer
) -> None:
    asked = [question.question for found in load_sealed(load_config(None)) for question in found.questions]

    def sealed_seen() -> bool:
        return any(question in prompt_of(body) for body in scripted_server.requests for question in asked)

    for split in ("train", "validation", "test"):
        command("eval", "--prompts", "baseline", "--split", split)
    assert not sealed_seen()
    _, out, _ = command("eval", "--prompts", "baseline", "--sealed")
    assert sealed_seen()
    assert "sealed" in out


@pytest.mark.usefixtures("command", "half_right")
def test_eval_takes_the_settings_of_the_run_that_prompts_are_compared_with(capsys: pytest.CaptureFixture[str]) -> None:
    run = RunFolder(Path("run").absolute())
    run.write_prompts("champion", baseline_candidate(Rag.prompts))
    Path("rag.yaml").rename(run.path / CONFIG)
    with pytest.raises(SystemExit) as caught:
        main(["eval", "--prompts", "baseline", "--against", "run"])
    assert caught.value.code == 0
    assert "rag on sample, m" in capsys.readouterr().out


def test_eval_says_that_sealed_conversations_are_scored_whole(command: Command) -> None:
    code, _, err = command("eval", "--prompts", "baseline", "--sealed", "--limit-questions", "3")
    assert code == 2
    assert "--sealed scores all of the sealed conversations; leave out --limit-questions" in err


def test_eval_refuses_prompts_that_break_their_contract_before_any_call(
    command: Command, scripted_server: ScriptedServer
) -> None:
    Path("mine").mkdir()
    Path("mine/answer.txt").write_text("Answer {question}")
    code, _, err = command("eval", "--prompts", "mine")
    assert code == 2
    assert "the placeholder {context} is missing" in err
    assert scripted_server.asked == 0


def test_a_failing_endpoint_is_told_in_one_line_and_gives_no_score(
    command: Command, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: Reply("broken", status=500)
    code, out, err = command("eval", "--prompts", "baseline")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "sk-test-key" not in err


@pytest.mark.usefixtures("half_right")
def test_audit_prints_the_ladder_from_the_baseline_pipeline_to_the_gold_context(command: Command) -> None:
    code, out, _ = command("data audit")
    assert code == 0
    assert out.index("baseline pipeline") < out.index("gold facts in the store") < out.index("gold context")


@pytest.mark.usefixtures("half_right")
def test_audit_takes_all_splits_together(command: Command) -> None:
    counts = []
    for split in ("train", "validation", "test", "all"):
        _, out, _ = command("data audit", "--split", split)
        counts.append(int(out[out.index("gold context") :].split("│")[3]))
    assert counts[3] == sum(counts[:3])


def test_prompts_are_scored_on_production_traces_by_what_users_said(
    command: Command, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = traces(tmp_path / "production")
    scripted_server.script = lambda body: "Oslo" if "Where did Mara move to?" in prompt_of(body) else "papaya"
    for split in ("train", "validation", "test"):
        code, out, err = command(
            "eval", "--prompts", "baseline", "--split", split, "--dataset", "traces", "--data", str(folder)
        )
        assert (code, err) == (0, "")
        assert "1.000" in out
    scripted_server.script = lambda body: "Bergen"
    (tmp_path / "again").mkdir()
    code, out, _ = command(
        "eval", "--prompts", "baseline", "--dataset", "traces", "--data", str(folder), "--home", str(tmp_path / "again")
    )
    assert code == 0
    assert "0.000" in out
    code, out, _ = command("run", "--dry-run", "--dataset", "traces", "--data", str(folder))
    assert code == 0
    assert "note: 1 wrong answers without a correction left out" in out
