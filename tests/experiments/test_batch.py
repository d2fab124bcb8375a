"""A batch of attributions goes on where it was stopped, at whatever byte, and nothing in it stops the rest."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from asking_method import ASKING
from data_files import SOUND
from scripted_server import Reply, ScriptedServer
from traced_runs import CONVERSATIONS, conversation, record, traced_run

from attribution.attributor import bound
from attribution.cases import Attribution, Case
from attribution.methods import survival
from attribution.recordings import Recording
from experiments.api.attributing import cases_of_run
from experiments.attributing.attributions import Attributions, AttributionsFile, CaseLine, Header
from experiments.attributing.batch import Batch, Tally
from experiments.attributing.case_sources import run_sources, sources_of
from experiments.attributing.source import Complaint
from experiments.runs.cases_file import CaseReply, RunCase, Side, write_cases, write_verdicts
from experiments.runs.folder import RunFolder
from tracing.errors import DataError, ModelError, RunError, TraceError
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits
from tracing.recording.trace_context import trace, variable

SURVIVAL = Header(method="survival")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return traced_run(tmp_path / "home")


class Counted:
    """Survival that counts whom it was asked about, and fails where it is told to."""

    def __init__(self, failing: str = "") -> None:
        self.asked: list[str] = []
        self.failing = failing
        self._lock = threading.Lock()

    def __call__(self, recording: Recording) -> "Counted._Of":
        return self._Of(self, recording)

    class _Of:
        def __init__(self, counted: "Counted", recording: Recording) -> None:
            self._counted = counted
            self._method = survival(recording)

        def attribute(self, case: Case) -> Attribution:
            with self._counted._lock:
                self._counted.asked.append(case.question.id)
            if self._counted.failing and case.question.id.endswith(self._counted.failing):
                raise ZeroDivisionError("it is broken")
            return self._method.attribute(case)


def work(folder: RunFolder, out: Path, make: Callable[..., object] | None = None, threads: int = 1) -> Tally:
    with AttributionsFile.open(out, SURVIVAL) as file:
        batch = Batch(make or Counted(), file.attributions, file.append, folder=out.parent, threads=threads)  # type: ignore[arg-type]
        return batch.run(run_sources(folder, "champion"))


def verdicts(path: Path) -> dict[str, tuple[str | None, str | None]]:
    said = Attributions.read(path)
    return {case.id: (main.operation if (main := case.main) else None, case.failed) for case in said.cases.values()}


def test_wrong_answers_are_attributed_once_and_found_again(folder: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    tally = work(folder, out, threads=3)
    assert (tally.traces, tally.fresh, tally.failed, tally.complete) == (3, 6, 0, True)
    expected = {f"{name}-food": ("extract_facts", None) for name in CONVERSATIONS}
    expected |= {f"{name}-city": ("answer", None) for name in CONVERSATIONS}
    assert verdicts(out) == expected
    before, again = out.read_bytes(), Counted()
    assert work(folder, out, again).reused == 6
    assert (again.asked, out.read_bytes()) == ([], before)
    traces = Attributions.read(out).traces.values()
    assert [(one.cases, one.failed, one.problem) for one in traces] == [(3, 2, None)] * 3
    assert {one.name: one.prompt for one in next(iter(traces)).operations}["extract_facts"] == "extract"


def test_a_file_cut_at_any_byte_is_gone_on_with(folder: RunFolder, tmp_path: Path) -> None:
    out, cut = tmp_path / "a.jsonl", tmp_path / "cut.jsonl"
    work(folder, out)
    whole, expected = out.read_bytes(), verdicts(out)
    header_end = whole.index(b"\n")
    for at in {*range(0, header_end + 3, 7), *range(header_end, len(whole), 611), len(whole) - 1}:
        cut.write_bytes(whole[:at])
        missing = Counted()
        tally = work(folder, cut, missing)
        assert verdicts(cut) == expected
        kept = whole[: whole.rfind(b"\n", 0, at) + 1].count(b'"type":"case"')
        assert (tally.reused, len(missing.asked)) == (kept, 6 - kept)
        assert all(json.loads(line) for line in cut.read_bytes().splitlines())


def test_damaged_traces_and_failing_cases_are_told_and_the_rest_is_done(folder: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    one, two, three = (folder.path / "traces" / f"key-{name}" / f"{name}.jsonl" for name in CONVERSATIONS)
    one.write_bytes(b"\x00garbage")
    sound = two.read_bytes()
    two.write_bytes(sound[: len(sound) // 2])
    tally = work(folder, out, Counted(failing="city"))
    assert (tally.malformed, tally.complete) == (2, False)
    said = verdicts(out)
    assert said["three-food"] == ("extract_facts", None)
    assert said["three-city"] == (None, "ZeroDivisionError: it is broken")
    problems = [line.problem for line in Attributions.read(out).traces.values() if line.problem]
    assert len(problems) == 2
    assert any("is not a trace" in problem for problem in problems)

    two.write_bytes(sound)
    again = Counted()
    tally = work(folder, out, again)
    assert sorted(again.asked) == ["three-city", "two-city", "two-food"], "what failed, and the trace that changed"
    assert verdicts(out)["three-city"] == ("answer", None)
    assert tally.malformed == 1
    assert three.exists()


def test_a_method_that_cannot_be_set_up_fails_the_cases_of_that_trace_alone(folder: RunFolder, tmp_path: Path) -> None:
    def make(recording: Recording) -> object:
        if recording.conversation.id == "two":
            raise TraceError("a circle of operations")
        return survival(recording)

    tally = work(folder, tmp_path / "a.jsonl", make)
    assert tally.failed == 2
    assert verdicts(tmp_path / "a.jsonl")["two-food"] == (None, "a circle of operations")
    assert verdicts(tmp_path / "a.jsonl")["three-food"] == ("extract_facts", None)


def test_a_spent_budget_stops_the_batch_and_the_next_one_goes_on(
    folder: RunFolder, tmp_path: Path, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = lambda body: "ExtractionError"
    header = Header(method="asking", model="scripted")

    def go(limits: Limits) -> Tally:
        access = open_access(limits, retries=0, cache=False)
        with AttributionsFile.open(tmp_path / "a.jsonl", header) as file:
            batch = Batch(bound(ASKING, access), file.attributions, file.append, folder=tmp_path, access=access)
            return batch.run(run_sources(folder, "baseline"))

    tally = go(Limits(calls=2))
    assert (tally.fresh, tally.complete) == (2, False)
    assert "calls" in (tally.stopped or "")
    tally = go(Limits())
    assert (tally.reused, tally.fresh, tally.tokens > 0, tally.complete) == (2, 4, True, True)


def test_a_verdict_found_without_the_model_is_counted_and_completed_later(
    folder: RunFolder, tmp_path: Path, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    out = tmp_path / "a.jsonl"
    header = Header(method="asking or survival", model="scripted")
    scripted_server.script = lambda body: Reply("out of order", status=500)

    class AskingOrSurvival:
        def __init__(self, recording: Recording, access: ModelAccess) -> None:
            self._asking, self._otherwise = ASKING(recording, access), survival(recording)

        def attribute(self, case: Case) -> Attribution:
            try:
                return self._asking.attribute(case)
            except ModelError:
                return self._otherwise.attribute(case)

    def go() -> Tally:
        access = open_access(retries=0, cache=False)
        make = bound(AskingOrSurvival, access)
        with AttributionsFile.open(out, header) as file:
            batch = Batch(make, file.attributions, file.append, folder=tmp_path, access=access)
            return batch.run(run_sources(folder, "baseline"))

    tally = go()
    assert (tally.fresh, tally.failed, tally.incomplete, tally.complete) == (6, 0, 6, False)
    case = next(iter(Attributions.read(out).cases.values()))
    assert case.decisive
    assert "out of order" in (case.incomplete or "")
    scripted_server.script = lambda body: "ResponseError"
    tally = go()
    assert (tally.reused, tally.fresh, tally.incomplete, tally.complete) == (0, 6, 0, True)


def test_a_file_belongs_to_one_method_and_one_process(folder: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    work(folder, out)
    with pytest.raises(DataError, match="was made by survival"), AttributionsFile.open(out, Header(method="agent")):
        pass
    with (
        AttributionsFile.open(out, SURVIVAL),
        pytest.raises(DataError, match="another process"),
        AttributionsFile.open(out, SURVIVAL),
    ):
        pass
    (tmp_path / "other").write_text("my notes\nof today")
    with pytest.raises(DataError, match="other"), AttributionsFile.open(tmp_path / "other", SURVIVAL):
        pass
    assert (tmp_path / "other").read_text() == "my notes\nof today"


def test_a_line_says_what_the_attribution_said(folder: RunFolder, tmp_path: Path) -> None:
    work(folder, tmp_path / "a.jsonl")
    for case in Attributions.read(tmp_path / "a.jsonl").cases.values():
        again = CaseLine.model_validate_json(case.model_dump_json()).attribution()
        assert [blame.reason for blame in again.decisive] == [blame.reason for blame in case.decisive]
        assert not again.case.passed


def test_one_answer_complained_of_is_the_only_one_looked_at(folder: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    work(folder, out)
    before = Attributions.read(out)
    trace = str(folder.path / "traces" / "key-one" / "one.jsonl")

    def complain(**said: object) -> Batch:
        sources = sources_of([trace], tmp_path / "home", complaint=Complaint(**said))  # type: ignore[arg-type]
        with AttributionsFile.open(out, SURVIVAL) as file:
            batch = Batch(survival, file.attributions, file.append, folder=out.parent)
            batch.run(sources)
        return batch

    right = complain(question="what does Ilya's gecko  eat?", right=("hay",))
    (key,) = right.wrong
    after = Attributions.read(out)
    assert (after.cases[key].question_id, after.cases[key].answers) == ("one-gecko", ("hay",))
    assert after.traces == before.traces, "what the trace has of other wrong answers still counts"
    assert len(after.cases) == len(before.cases) + 1
    # The data set knows the question, so its accepted answers stand in for what the user does not know.
    unsaid = complain(question="What does Ilya's gecko eat?")
    assert unsaid.tally.fresh == 1, "another right answer is another case"
    assert Attributions.read(out).cases[key].answers == ("papaya",)
    with pytest.raises(TraceError, match="it was answered with: 'Bergen'"):
        complain(question="Where did Mara move to?", reply="Trondheim")
    with pytest.raises(DataError, match=r"3 of 3 traces .*; a complaint is of one"):
        sources_of(["latest"], tmp_path / "home", complaint=Complaint("Where did Mara move to?"))


def test_an_answer_that_is_wrong_no_longer_is_no_case_of_the_file(folder: RunFolder, tmp_path: Path) -> None:
    out, data = tmp_path / "a.jsonl", tmp_path / "data.jsonl"
    traces = str(folder.path / "traces" / "key-one" / "one.jsonl")

    def go(gold: str, complaint: Complaint | None = None) -> int:
        told = json.loads((folder.path / "data.jsonl").read_text().splitlines()[0])
        told["questions"][1]["answers"] = [gold]
        data.write_text(json.dumps(told) + "\n")
        with AttributionsFile.open(out, SURVIVAL) as file:
            batch = Batch(survival, file.attributions, file.append, folder=out.parent)
            batch.run(sources_of([traces], tmp_path / "home", data=data, complaint=complaint))
        return batch.tally.fresh

    assert go("Oslo") == 2
    assert go("Oslo", Complaint("What does Ilya's gecko eat?")) == 1
    assert go("Oslo") == 0
    assert set(verdicts(out)) == {"one-food", "one-city", "one-gecko"}, "a complaint adds to what the data set says"
    go("Bergen")
    assert set(verdicts(out)) == {"one-food"}, "its gold answer was corrected"
    assert go("Oslo") == 1


def test_the_model_that_judged_a_run_decides_which_answers_were_wrong(folder: RunFolder, tmp_path: Path) -> None:
    found = run_sources(folder, "champion")[0].read()
    asked = {one.question.id: one for one in found.cases}
    forgiven = replace(asked["one-city"], judgement=replace(asked["one-city"].judgement, score=1.0))
    write_verdicts(folder, [forgiven, forgiven])
    again = {one.question.id: one for one in run_sources(folder, "champion")[0].read().cases}
    assert again["one-city"].passed
    assert not again["one-food"].passed, "words decide what the model was not asked about"
    (folder.path / "verdicts.jsonl").write_text("{}\n")
    with pytest.raises(RunError, match=r"verdicts\.jsonl:1: .*remove it"):
        run_sources(folder, "champion")


def test_traces_are_found_by_file_folder_and_run(folder: RunFolder, tmp_path: Path) -> None:
    home = tmp_path / "home"
    trace = folder.path / "traces" / "key-one" / "one.jsonl"
    for names in (["latest"], [str(folder.path)], [str(folder.path / "traces")], [str(trace), "latest"]):
        found = sources_of(names, home)
        assert {source.path.stem for source in found} == set(CONVERSATIONS)
        assert all(sum(not case.passed for case in source.read().cases) == 2 for source in found)
    folder.write_prompts("champion", {"extract": "Another.", "decide": "Another.", "answer": "Another."})
    with pytest.raises(DataError, match="no traces of its champion"):
        sources_of(["latest"], home)
    assert len(sources_of(["latest"], home, traces_of="baseline")) == 3
    alone = tmp_path / "one.jsonl"
    alone.write_bytes(trace.read_bytes())
    with pytest.raises(TraceError, match="no judge and no annotation"):
        sources_of([str(alone)], home)[0].read()
    (source,) = sources_of([str(alone)], home, data=folder.path / "data.jsonl")
    assert len(source.read().cases) == 3


def test_a_graph_whose_evidence_names_no_message_has_that_as_its_problem(tmp_path: Path) -> None:
    SOUND["memeval"](tmp_path)
    path = tmp_path / "g0.json"
    (sound,) = sources_of([str(path)], tmp_path)
    assert sound.read().problem is None
    path.write_text(path.read_text().replace('"source_evidence_ids": ["', '"source_evidence_ids": ["gone", "'))
    (source,) = sources_of([str(path)], tmp_path)
    found = source.read()
    assert found.cases[0].question.evidence == ("D1:1",)
    assert found.problem is not None
    assert found.problem.startswith(f"{path}: data.annotations[0].source_evidence_ids: 'gone' names no message")


@pytest.mark.parametrize("before", ["prompt", "message"])
def test_a_long_prompt_that_stands_in_its_trace_once_is_known_each_time(folder: RunFolder, before: str) -> None:
    long = "Answer from the memories. " * 100
    (folder.path / "prompts" / "champion" / "answer.txt").write_text(long, encoding="utf-8")
    for path in (folder.path / "traces").rglob("*.jsonl"):
        path.unlink()
        with trace(path):
            variable(long, name="answer", kind=before)
            variable(long, name="answer", kind="prompt")
        assert b"value_of" in path.read_bytes()
    assert len(run_sources(folder, "champion")) == len(CONVERSATIONS)
    with pytest.raises(DataError, match="no traces of its baseline prompts; give --traces-of baseline or all"):
        run_sources(folder, "baseline")
    for path in (folder.path / "traces").rglob("*.jsonl"):
        path.unlink()
    with pytest.raises(DataError, match="no traces of its champion prompts; go on with it: memtune run --resume"):
        run_sources(folder, "champion")


@pytest.mark.parametrize("tuned", [False, True], ids=["asked again", "under other settings"])
def test_of_a_run_each_question_is_one_case_a_side_whatever_else_its_prompts_were_asked(
    folder: RunFolder, tuned: bool
) -> None:
    for name in CONVERSATIONS:
        record(folder.path / "traces" / f"again-{name}" / f"{name}.jsonl", conversation(name))
    keys: dict[Side, str] = {"baseline": "key", "champion": "again" if tuned else "key"}
    asked = [(name, question) for name in CONVERSATIONS for question in conversation(name).questions]
    write_cases(
        folder,
        [
            RunCase(
                split="train",
                conversation=name,
                question_id=question.id,
                question=question.question,
                answers=question.answers,
                replies={
                    side: CaseReply(reply="", score=0.0, passed=False, page=f"traces/{key}-{name}/{name}.html")
                    for side, key in keys.items()
                },
            )
            for name, question in asked
        ],
    )
    for side, key in keys.items():
        traces = [source.path.parent.name for source in run_sources(folder, side)]
        assert sorted(traces) == sorted(f"{key}-{name}" for name in CONVERSATIONS)
    found = [(side, case.conversation, case.question.id) for side, _, case in cases_of_run(folder)]
    sides = ("baseline", "champion") if tuned else ("baseline",)
    assert sorted(found) == sorted((side, name, question.id) for side in sides for name, question in asked)
