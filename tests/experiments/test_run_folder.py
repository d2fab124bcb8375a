"""A run's folder tells what happened, at every moment and to every reader."""

import errno
import json
import os
import shlex
import shutil
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from run_shapes import BASELINE, FILES, TUNED, facts, loop_result, record, run_folder, score, summary

import memtune
from experiments.command import main
from experiments.running.observers import RunJournal
from experiments.runs.cases_file import RunCase, read_cases, write_cases
from experiments.runs.comparison import compare, list_runs
from experiments.runs.export_manifest import manifest_of
from experiments.runs.folder import CASES, CONFIG, LOCK, SUMMARY, RunFolder, read_prompts
from experiments.runs.lock import locked
from optimizer.gating.verdict import Verdict
from optimizer.tuning.results import CallCounts
from optimizer.tuning.stopped import Stopped
from tracing.errors import ConfigError, RunError

KEYS = {
    *(
        "format",
        "prices",
        "run_id",
        "system",
        "dataset",
        "model",
        "seed",
        "metric",
        "attribution",
        "optimizer",
        "splits",
        "baseline",
        "champion",
        "verdict",
        "delta",
    ),
    *(
        "delta_ci",
        "p_value",
        "rounds",
        "calls",
        "stopped",
        "prompts_dir",
        "report",
        "mlflow",
        "judge",
        "search",
        "endpoints",
        "noise",
        "samples",
        "settings",
        "prompts_alone",
        "settings_alone",
    ),
    *("margin", "bound", "tokens_per_question", "tried"),
}
ROUND_KEYS = {
    *("n", "blame", "edited", "proposals", "accepted", "validation_score", "calls_made", "calls_cached", "tokens"),
    *("alignment", "edit", "settings", "changed", "search_calls", "optimizer", "asked_again"),
    *("retrieved", "last"),
}


def test_the_summary_file_has_exactly_the_documented_keys_and_reads_back(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, system="rag", now=datetime(2026, 1, 2), files=FILES)
    path = folder.write_summary(summary())
    found = json.loads(path.read_text())
    assert set(found) == KEYS
    assert set(found["baseline"]) == {"train", "validation", "test"}
    assert set(found["baseline"]["test"]) == {"score", "em", "f1", "contains", "n", "ci"}
    assert set(found["rounds"][0]) == ROUND_KEYS
    assert found["rounds"][0]["blame"]["answer"] == {"share": 0.7, "ci": [0.5, 0.9]}
    usual = {"made", "cached", "without_reuse", "money", "empty", "unusable", "replies"}
    assert set(found["calls"]) == {*usual, "estimated", "cut_prompts"}
    assert folder.summary() == summary()
    assert {item.name for item in folder.path.iterdir()} == {SUMMARY, *FILES}


def test_a_summary_of_an_earlier_version_reads_and_is_written_with_rounds_for_iterations(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, system="rag", now=datetime(2026, 1, 2), files=FILES)
    earlier = Path(__file__).with_name("earlier_summary.json")
    (folder.path / SUMMARY).write_bytes(earlier.read_bytes())
    found = folder.summary()
    assert found.rounds[0].alignment["answer"].misleads
    assert found.search is not None
    assert list(found.search.by_optimizer) == ["local-search", "random"]
    expected = json.loads(earlier.read_text().replace('"iterations"', '"rounds"'))
    written = json.loads(folder.write_summary(found).read_text())
    # Figures that are counted since then are added.
    splits = {name: split | {"generated": 0} for name, split in expected["splits"].items()}
    rounds = [
        {"asked_again": {}, "retrieved": None, "last": False} | earlier_round for earlier_round in expected["rounds"]
    ]
    added = {"calls": written["calls"] | expected["calls"], "splits": splits, "rounds": rounds}
    assert written == written | expected | added


def test_a_run_that_stopped_early_has_a_summary_without_a_verdict(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, system="rag", now=datetime(2026, 1, 2), files=FILES)
    folder.write_summary(summary(loop_result(verdict=None, stopped="budget: 10 calls")))
    read = folder.summary()
    assert read.verdict is read.delta is read.p_value is None
    assert read.stopped == "budget: 10 calls"


def test_prompts_keep_every_character(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, system="rag", now=datetime(2026, 1, 2), files=FILES)
    texts = {"a": "one\r\ntwo\n\n", "b": " é {x} ", "c": "no end"}
    folder.write_prompts("baseline", texts)
    assert folder.prompts("baseline") == texts


def test_the_folder_is_true_after_every_step_of_a_run(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, system="rag", now=datetime(2026, 1, 2), files=FILES)
    journal = RunJournal(folder, facts, BASELINE, lambda: CallCounts(5, 6, 11))
    assert folder.summary().stopped == "running"
    journal.baseline("train", score(0.4))
    assert folder.summary().baseline["train"].score == 0.4
    journal.round(record(1, accepted=True, champion=TUNED))
    assert folder.summary().rounds[0].accepted
    assert folder.prompts("champion") == TUNED
    assert folder.prompts("baseline") == BASELINE
    tokens = {"baseline": 300.0, "champion": 200.0}
    journal.verdict(Verdict("inconclusive", 0.01, (-0.1, 0.1), 0.5, 0.1, score=score(0.5), tokens=tokens))
    journal.save(journal.result(Stopped("interrupted")))
    assert (folder.summary().champion["test"].score, folder.summary().tokens_per_question) == (0.5, tokens)
    assert (folder.summary().stopped, folder.summary().verdict) == ("interrupted", "inconclusive")
    assert folder.summary().calls.made == 5


def test_a_run_for_fewer_tokens_is_one_before_its_verdict(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, system="rag", now=datetime(2026, 1, 2), files=FILES)
    journal = RunJournal(folder, facts, BASELINE, lambda: CallCounts(5, 6, 11), margin=0.05)
    journal.save(journal.result(Stopped("interrupted")))
    assert (folder.summary().verdict, folder.summary().margin) == (None, 0.05)


def test_a_resumed_run_keeps_what_it_had_found_until_it_has_found_as_much_again(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    before = folder.summary()
    tried = RunCase(split="test", conversation="c", question_id="q", question="?", answers=("a",), replies={})
    write_cases(folder, [tried])
    journal = RunJournal(folder, lambda: facts(folder.id), BASELINE, lambda: CallCounts(5, 6, 11), before)
    steps = [
        lambda: None,
        lambda: [journal.baseline(split, score(0.4)) for split in ("train", "validation", "test")],
        lambda: journal.round(record(1, accepted=True, champion={"answer": "Another."})),
        lambda: journal.round(record(2, accepted=False, champion={"answer": "Another."})),
    ]
    for step in steps:
        step()
        assert folder.summary() == replace(before, stopped="running")
        assert (folder.prompts("champion"), read_cases(folder)) == (TUNED, [tried])
    assert journal.leave(Stopped("interrupted"))
    assert folder.summary() == replace(before, stopped="interrupted")
    journal.round(record(3, accepted=False, champion=BASELINE))
    assert not journal.leave(Stopped("interrupted"))
    assert (len(folder.summary().rounds), folder.prompts("champion")) == (3, BASELINE)
    assert not (folder.path / CASES).exists(), "they are not of this champion"


def test_two_runs_of_one_second_get_two_folders(tmp_path: Path) -> None:
    files = {CONFIG: "rounds: 1\n"}
    made = [RunFolder.create(tmp_path, system="rag", now=datetime(2026, 1, 2), files=files) for _ in range(3)]
    assert len({folder.id for folder in made}) == 3
    assert RunFolder.all(tmp_path) == made


@pytest.mark.parametrize("out", [None, Path("mine"), Path("empty"), Path("link"), Path("runs/mine")])
def test_a_run_that_could_not_be_begun_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: Path | None
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("link").symlink_to("empty")
    home = tmp_path / "home"
    home.mkdir()
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(RunError, match="No space left on device"):
            RunFolder.create(home, system="rag", now=datetime(2026, 1, 2), files={CONFIG: ""}, out=out)
    assert {str(path) for path in Path().rglob("*")} <= {"home", "home/runs", "empty", "link", "runs"}
    made = RunFolder.create(home, system="rag", now=datetime(2026, 1, 2), files={CONFIG: ""}, out=out)
    assert made.home == home
    assert (made.path / CONFIG).is_file()


def test_a_command_line_names_a_run_in_its_home_by_its_id_and_any_other_by_its_folder(tmp_path: Path) -> None:
    given = {"system": "rag", "now": datetime(2026, 1, 2), "files": {CONFIG: ""}}
    inside = RunFolder.create(tmp_path, **given)
    assert inside.named == inside.id
    for out in ("apart", "runs/apart", "two words"):
        made = RunFolder.create(tmp_path, out=tmp_path / out, **given)
        (named,) = shlex.split(made.named)
        assert RunFolder.find(tmp_path / "other", named) == made


def test_a_run_put_elsewhere_is_listed_and_found_in_its_home_while_its_folder_is_there(tmp_path: Path) -> None:
    home, second = tmp_path / "home", datetime(2026, 1, 2)
    inside = RunFolder.create(home, system="rag", now=second, files={CONFIG: ""})
    outs = [tmp_path / "before" / "run", tmp_path / "after" / "run", home / "runs" / "named"]
    apart = [RunFolder.create(home, system="rag", now=second, files={CONFIG: ""}, out=out) for out in outs]
    assert [folder for folder, _ in reversed(list_runs(home))] == [inside, *apart]
    assert RunFolder.find(home, "latest") == RunFolder.find(home, "named") == apart[-1]
    with pytest.raises(RunError, match=r"2 runs start like this \(.*/before/run, .*/after/run, …\).* or the folder"):
        RunFolder.find(home, "run")
    shutil.rmtree(outs[0])
    assert RunFolder.find(home, "run") == apart[1]
    assert (RunFolder.all(home), apart[1].home) == ([inside, *apart[1:]], home)


def test_a_run_in_a_folder_that_cannot_be_written_to_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / LOCK).mkdir()
    with pytest.raises(RunError, match="lock: cannot be written "), locked(tmp_path / LOCK):
        pass


def test_the_latest_run_is_one_that_can_be_gone_on_with(tmp_path: Path) -> None:
    began = RunFolder.create(tmp_path, system="rag", now=datetime(2026, 1, 2), files={CONFIG: ""})
    left = tmp_path / "runs" / "20260103-000000-rag"
    left.mkdir()
    (left / "lock").touch()
    (tmp_path / "runs" / ".abc.part").mkdir()
    assert RunFolder.find(tmp_path, "latest") == began
    with pytest.raises(RunError, match="no such run"):
        RunFolder.find(tmp_path, left.name)


UNFINISHED = ("running", "interrupted", "error: no such model", "fault: ValueError")


@pytest.mark.parametrize("stopped", UNFINISHED)
def test_what_reads_results_takes_the_latest_finished_run_and_resume_the_latest(tmp_path: Path, stopped: str) -> None:
    done = run_folder(tmp_path, 1, result=loop_result(verdict=None, stopped="budget: 10 calls"))
    begun = run_folder(tmp_path, 2, result=loop_result(verdict=None, stopped=stopped))
    assert RunFolder.find(tmp_path, "latest", finished=True) == done
    assert memtune.load(home=tmp_path).path == done.path
    assert RunFolder.find(tmp_path, "latest") == begun
    assert RunFolder.find(tmp_path, begun.id, finished=True) == begun
    shutil.rmtree(done.path)
    assert RunFolder.find(tmp_path, "latest", finished=True) == begun


def test_the_latest_run_is_not_passed_over_because_its_summary_is_damaged(tmp_path: Path) -> None:
    run_folder(tmp_path, 1)
    (run_folder(tmp_path, 2).path / SUMMARY).write_text("{")
    with pytest.raises(RunError, match=r"030402-rag/summary\.json"):
        RunFolder.find(tmp_path, "latest", finished=True)


@pytest.mark.parametrize(
    "command",
    [
        ["export", "latest", "--to", "text", "--out", "tuned"],
        ["diagnose", "latest"],
        ["compare", "latest", "latest"],
        ["attribute", "latest"],
        ["attribute", "latest", "--replay"],
    ],
)
def test_commands_that_read_results_pass_over_a_run_that_still_works(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_folder(tmp_path, 1)
    working = run_folder(tmp_path, 2, result=loop_result(verdict=None, stopped="running"))
    for folder in (done, working):
        (folder.path / CONFIG).write_text("rounds: many")
    with pytest.raises(SystemExit):
        main([*command, "--home", str(tmp_path)])
    said = "".join(capsys.readouterr())
    assert done.id in said
    assert working.id not in said


def exported(home: Path, capsys: pytest.CaptureFixture[str], run: str = "latest") -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        main(["export", run, "--to", "text", "--out", str(home / "tuned"), "--home", str(home)])
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().err


def test_an_export_says_which_run_is_the_latest_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = run_folder(tmp_path, 1)
    run_folder(tmp_path, 2, result=loop_result(verdict=None, stopped="error: no such model"))
    code, said = exported(tmp_path, capsys)
    assert code == 0
    assert f"latest finished run: {done.id}\n" in said


@pytest.mark.parametrize("stopped", UNFINISHED)
def test_prompts_of_an_unfinished_run_are_exported_only_if_it_is_named(
    tmp_path: Path, stopped: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = run_folder(tmp_path, 1, result=loop_result(verdict=None, stopped=stopped))
    code, said = exported(tmp_path, capsys)
    assert (code, said.count("\n")) == (2, 1)
    assert f"no run has finished ({begun.id}: {stopped}); go on with it: memtune run --resume {begun.id}" in said
    assert not (tmp_path / "tuned").exists()
    assert exported(tmp_path, capsys, begun.id)[0] == 0


@pytest.mark.parametrize("damage", [b"seed: !!int x", b"system: [", b"\xff", b"started: 2026-99-99", b"- a"])
@pytest.mark.parametrize("command", [["export", "RUN", "--to", "text", "--out", "tuned"], ["run", "--resume", "RUN"]])
def test_a_run_whose_configuration_cannot_be_read_is_told_in_one_line(
    tmp_path: Path, command: list[str], damage: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_folder(tmp_path)
    (folder.path / CONFIG).write_bytes(damage)
    with pytest.raises(SystemExit) as caught:
        main([str(folder.path) if part == "RUN" else part for part in command])
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"memtune: {folder.path / CONFIG}")


def test_a_folder_with_something_in_it_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(RunError, match="not empty"):
        RunFolder.create(tmp_path, system="rag", now=datetime(2026, 1, 2), files=FILES, out=tmp_path)


def test_a_run_is_found_by_id_start_latest_or_path_and_never_guessed(tmp_path: Path) -> None:
    first, second = run_folder(tmp_path, 1), run_folder(tmp_path, 2)
    assert RunFolder.find(tmp_path, first.id) == first
    assert RunFolder.find(tmp_path, "20260102-030402") == second
    assert RunFolder.find(tmp_path, "latest") == second
    assert RunFolder.find(tmp_path / "elsewhere", str(first.path)) == first
    with pytest.raises(RunError, match="2 runs start like this"):
        RunFolder.find(tmp_path, "20260102")
    with pytest.raises(RunError, match="no such run"):
        RunFolder.find(tmp_path, "1999")


def test_runs_are_listed_latest_first_and_a_broken_one_does_not_hide_the_others(tmp_path: Path) -> None:
    first, second, third = (run_folder(tmp_path, n) for n in range(3))
    (second.path / "summary.json").write_text("{")
    found = list_runs(tmp_path)
    assert [folder for folder, _ in found] == [third, second, first]
    assert [isinstance(read, RunError) for _, read in found] == [False, True, False]


def test_a_comparison_says_where_two_runs_cannot_be_compared(tmp_path: Path) -> None:
    first = run_folder(tmp_path, 1)
    second = run_folder(tmp_path, 2, seed=5, result=loop_result(verdict=None))
    alike = compare(first, run_folder(tmp_path, 3, seed=1))
    assert alike.differences == ()
    assert alike.prompts == {"answer": True}
    assert compare(first, second).prompts == {"answer": False}
    other = replace(second.summary(), dataset="locomo", model="m2")
    second.write_summary(other)
    assert compare(first, second).differences == ("dataset", "model")
    rows = {name: (ours, theirs) for name, ours, theirs in compare(first, second).rows}
    assert rows["delta"] == ("+0.100", "–")


def test_runs_whose_folders_have_the_same_name_are_told_apart_by_where_they_are(tmp_path: Path) -> None:
    first, second = run_folder(tmp_path, 1), run_folder(tmp_path, 2)
    there, same, other = (tmp_path / name / "run" for name in ("before", "before", "after"))
    shutil.copytree(first.path, there)
    shutil.copytree(second.path, other)
    names = compare(RunFolder(there), RunFolder(same), RunFolder(other)).names
    assert names == ("before/run", "before/run", "after/run")
    assert compare(first, second).names == (first.id, second.id)


def test_a_comparison_lists_the_methods_of_both_runs_and_a_summary_from_before_they_were_kept_still_reads(
    tmp_path: Path,
) -> None:
    first, second = run_folder(tmp_path, 1), run_folder(tmp_path, 2)
    second.write_summary(replace(second.summary(), attribution="agent", optimizer="random"))
    rows = {name: (ours, theirs) for name, ours, theirs in compare(first, second).rows}
    assert (rows["attribution"], rows["optimizer"]) == (("survival", "agent"), ("closed-loop", "random"))
    assert compare(first, second).differences == ()
    kept = json.loads((first.path / SUMMARY).read_text())
    del kept["attribution"], kept["optimizer"]
    (first.path / SUMMARY).write_text(json.dumps(kept))
    rows = {name: (ours, theirs) for name, ours, theirs in compare(first, second).rows}
    assert (rows["attribution"], rows["optimizer"]) == (("–", "agent"), ("–", "random"))


def test_a_missing_prompt_is_named(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text("x")
    with pytest.raises(RunError, match=r"extract\.txt is missing"):
        read_prompts(tmp_path, ["answer", "extract"])


def test_a_damaged_file_of_a_run_is_told_by_its_name(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    prompt = folder.path / "prompts" / "champion" / "answer.txt"
    summary_file = folder.path / SUMMARY
    prompt.write_bytes(b"\xff" + prompt.read_bytes())
    with pytest.raises(RunError, match=rf"{prompt}: cannot be read \(not UTF-8 at byte 0\)"):
        folder.prompts("champion")
    summary_file.write_bytes(summary_file.read_bytes().replace(b"rag", b"r\xffg"))
    with pytest.raises(RunError, match=f"{summary_file}: "):
        folder.summary()
    ((_, unread),) = list_runs(tmp_path)
    assert isinstance(unread, RunError)


def test_a_run_is_exported_with_its_caveats_where_its_data_is_gone_and_not_where_its_settings_are_damaged(
    tmp_path: Path,
) -> None:
    folder = run_folder(tmp_path)
    folder.write(CONFIG, "system: rag\ndataset: jsonl\ndata: gone.jsonl\n")
    assert manifest_of(folder, folder.summary())["caveats"] == []
    for damaged in (b"system: \xff", b"}: {", b"systm: rag", b"[" * 5000):
        (folder.path / CONFIG).write_bytes(damaged)
        with pytest.raises(ConfigError, match=f"{folder.path / CONFIG}"):
            manifest_of(folder, folder.summary())
