"""`python -m benchmarks attribution`: the injected suite knows its own truth, and methods are measured against it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fallible_model import let_answer
from scripted_server import ScriptedServer

from attribution.judging.words import judge
from attribution.replay.replay_method import Replay
from benchmarks.__main__ import main
from benchmarks.attribution_suites import HARD, replay_of
from benchmarks.injected_faults.hard import CONDITIONS
from benchmarks.injected_faults.injector import Injected, Injector
from benchmarks.injected_faults.kinds import KINDS
from benchmarks.injected_faults.wordings import STYLES
from benchmarks.scripted_model import ScriptedModel, serve
from experiments.data.loaders import load_dataset
from experiments.runs.config_file import load_config
from experiments.systems.fact_memory import FactMemory
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import baseline_candidate

pytestmark = pytest.mark.slow

KEYS = {"n", "eta", "eta_ci", "oia", "oia_n", "majority_eta", "macro_f1", "ece"}
KEYS |= {"tokens_per_case", "ms_per_case", "by_type", "by_fault", "cases"}

Bench = Callable[..., tuple[int, dict[str, Any], str, str]]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    """Runs the benchmark on a few conversations; gives exit code, figures, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, dict[str, Any], str, str]:
        target = tmp_path / "figures.json"
        few = ["--limit-conversations", "3", "--cases", "18"]
        with pytest.raises(SystemExit) as caught:
            main(["attribution", "--suite", "injected", *few, "--json", str(target), *arguments])
        said = capsys.readouterr()
        assert isinstance(caught.value.code, int)
        figures = json.loads(target.read_text()) if target.exists() else {}
        # On a busy machine it takes long enough for lines of progress.
        problems = [line for line in said.err.splitlines() if not line.startswith("working, ")]
        return caught.value.code, figures, said.out, "\n".join(problems)

    return run


def test_replay_names_most_faulty_operations_of_every_system_in_process(bench: Bench) -> None:
    limits = ["--limit-questions", "6", "--cases", "10"]
    code, figures, out, _ = bench("--method", "replay", *limits)
    assert code == 0
    assert set(figures) >= KEYS
    assert figures["n"] == figures["oia_n"] == len(figures["cases"]) == 50
    # Its repairs know the gold facts by attribution's matching, which the faults do not share.
    assert figures["oia"] >= 0.75
    assert set(figures["by_system"]) == {"rag", "long-context", "fact-memory", "evermemos", "trace-memory"}
    assert set(figures["by_fault"]) <= set(KINDS)
    assert set(figures["by_nature"]) <= {"removed", "altered", "misled", "several"}
    assert set(figures["by_condition"]) <= set(STYLES)
    assert "fact-memory, all" in out
    assert "model calls" in out


def test_the_hard_split_has_the_same_faults_under_conditions_of_its_own(bench: Bench) -> None:
    code, figures, out, _ = bench("--method", "survival", "--suite", HARD, "--system", "fact-memory", "--cases", "24")
    assert code == 0
    assert set(figures["by_condition"]) == set(CONDITIONS)
    assert figures["n"] == sum(row["n"] for row in figures["by_condition"].values()) == 24
    assert "foreign trace" in out
    code, _, _, err = bench("--method", "replay", "--suite", HARD, "--system", "fact-memory", "--cases", "4")
    assert code == 2
    assert "cannot be run again" in err


def test_precision_stands_beside_recall(bench: Bench) -> None:
    _, figures, out, _ = bench("--method", "majority", "--system", "rag", "--cases", "8")
    (named,) = [name for name, row in figures["by_type"].items() if row["named"]]
    assert figures["by_type"][named]["eta"] == 1.0
    assert figures["by_type"][named]["precision"] == figures["eta"] < 1.0
    assert all(row["precision"] is None for name, row in figures["by_type"].items() if name != named)
    assert "precision" in out


def test_survival_costs_no_call_and_beats_the_baselines(bench: Bench) -> None:
    survival = bench("--method", "survival", "--system", "fact-memory")[1]
    majority = bench("--method", "majority", "--system", "fact-memory")[1]
    assert survival["oia"] >= 0.75
    assert survival["calls_per_case"] == survival["tokens_per_case"] == 0
    assert survival["oia"] > majority["oia"]
    assert survival["eta"] > survival["random_eta"]
    assert majority["eta"] == majority["majority_eta"] == survival["majority_eta"]


def test_the_seed_decides_which_cases_there_are(bench: Bench) -> None:
    def cases(seed: str) -> list[tuple[str, str, list[str]]]:
        rows = bench("--method", "random", "--system", "rag", "--cases", "8", "--seed", seed)[1]["cases"]
        return [(row["question_id"], row["fault"], row["gold_operation_ids"]) for row in rows]

    first = cases("0")
    assert cases("0") == first
    assert cases("1") != first


@pytest.mark.embedded
def test_an_endpoint_takes_the_place_of_the_scripted_model(bench: Bench, scripted_server: ScriptedServer) -> None:
    splits = load_dataset(load_config(None)).splits
    let_answer(scripted_server, *splits.train, *splits.validation, *splits.test)
    endpoint = ["--model", "theirs", "--base-url", scripted_server.base_url]
    # What embeds is the real embedded model, which takes its time.
    endpoint += ["--limit-sessions", "1", "--limit-questions", "1", "--cases", "2"]
    code, figures, out, err = bench("--method", "replay", "--system", "rag", *endpoint)
    assert (code, err) == (0, "")
    assert (figures["n"], figures["oia"]) == (2, 1.0)
    assert {body["model"] for body in scripted_server.requests} == {"theirs"}
    assert "questions were answered right without a fault" in out


def test_a_method_is_measured_with_a_model_of_its_own(bench: Bench, scripted_server: ScriptedServer) -> None:
    scripted_server.script = lambda body: "ResponseError"
    endpoint = ["--model", "theirs", "--base-url", scripted_server.base_url]
    code, figures, _, err = bench("--method", "asking_method:ASKING", "--system", "rag", *endpoint)
    assert (code, err) == (0, "")
    right = sum(row["gold_type"] == "ResponseError" for row in figures["cases"]) / figures["n"]
    assert figures["eta"] == pytest.approx(right)
    assert 0 < right < 1
    assert figures["tokens_per_case"] > 0
    # Two faults that leave the same reply are asked about once: the second time the cache answers.
    assert 0 < len(scripted_server.requests) <= figures["n"]
    # Whatever it was asked, it was never the memory's model.
    assert not any("Memories:" in str(body["messages"]) for body in scripted_server.requests)


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["--method", "replay", "--suite", "nowhere"], "nowhere"),
        (["--method", "replay", "--system", "other"], "choose one of"),
        (["--method", "guess"], "choose one of survival"),
    ],
)
def test_what_cannot_be_measured_is_told_in_one_line(bench: Bench, arguments: list[str], remedy: str) -> None:
    code, figures, _, err = bench(*arguments)
    assert code == 2
    assert remedy in err
    assert "\n" not in err
    assert figures == {}


OWN_SYSTEMS = """
from tracing.systems.suite.notebook import Notebook
from tracing.systems.prompts import Contract, PromptSpec
from experiments.systems.rag import Rag

class Silent(Notebook):
    pass

class Hooked(Rag):
    name = "hooked"

class Foreign(Rag):
    name = "foreign"
    prompts = {
        "answer": PromptSpec(
            name="answer",
            text="{context} / {question}",
            operation="answer",
            contract=Contract(placeholders=frozenset({"context", "question"})),
            purpose="Answer.",
            builds=False,
        )
    }
"""


@pytest.fixture
def own_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "benched.py").write_text(OWN_SYSTEMS)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("benched", None)


@pytest.mark.usefixtures("own_systems")
def test_a_system_of_ones_own_is_measured_if_faults_can_be_injected_into_it(bench: Bench) -> None:
    code, figures, _, err = bench("--method", "replay", "--system", "benched:Hooked", "--cases", "4")
    assert (code, err) == (0, "")
    assert (figures["n"], figures["oia"], set(figures["by_system"])) == (4, 1.0, {"benched:Hooked"})


@pytest.mark.usefixtures("own_systems")
@pytest.mark.parametrize(
    ("system", "reason"),
    [
        ("Silent", "passes its outputs to tracing.systems.interventions"),
        ("Foreign", "the scripted model does not know its prompts; name one with --model"),
    ],
)
def test_a_system_that_no_fault_can_be_injected_into_is_refused_with_the_reason(
    bench: Bench, system: str, reason: str
) -> None:
    code, figures, _, err = bench("--method", "survival", "--system", f"benched:{system}")
    assert (code, figures) == (2, {})
    assert reason in err
    assert "\n" not in err


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    return list(load_dataset(load_config(None)).splits.train[:2])


@pytest.fixture(scope="module")
def access(conversations: list[Conversation], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelAccess]:
    folder = tmp_path_factory.mktemp("cache")
    with (
        serve(ScriptedModel(conversations)) as roles,
        ModelAccess.open(roles, cache_dir=folder, limits=Limits()) as opened,
    ):
        yield opened


@pytest.fixture(scope="module")
def made(conversations: list[Conversation], access: ModelAccess) -> tuple[Injector, Injected]:
    """One fault of every kind that two conversations have room for, in the fact memory."""
    injector = Injector(FactMemory(near=0.4), access, lambda asked, reply: judge(reply, asked.answers), seed=0)
    return injector, injector.inject(conversations, len(KINDS), lambda done, total: None)


def test_without_the_fault_the_answer_was_right_and_with_it_it_is_wrong_every_time(
    made: tuple[Injector, Injected], access: ModelAccess
) -> None:
    _, injected = made
    assert injected.asked >= injected.passed > len(injected.cases) / 2
    for labelled in injected.cases:
        assert not labelled.case.passed
        system = injected.systems[labelled.recording]
        candidate = baseline_candidate(system.prompts)
        memory = system.build(labelled.recording.conversation, candidate, access)
        again = system.answer(memory, labelled.case.question, candidate, access)
        assert again.text == labelled.case.reply, labelled.fault


def test_the_truth_is_an_execution_of_the_stage_that_the_kind_of_fault_spoils(made: tuple[Injector, Injected]) -> None:
    _, injected = made
    assert len({labelled.fault for labelled in injected.cases}) >= 20
    stages = {
        "ExtractionError": {"extract_facts"},
        "UpdateError": {"decide_update", "store"},
        "DeletionError": {"decide_update"},
        "RetrievalError": {"retrieve"},
        "ResponseError": {"answer"},
    }
    for labelled in injected.cases:
        operations = labelled.recording.graph.operations
        named = {operations[oid].name for oid in labelled.operation_ids}
        assert labelled.operation_ids
        if KINDS[str(labelled.fault)].nature == "several":
            assert named & stages[labelled.error_type]
            assert named - stages[labelled.error_type]
        else:
            assert named <= stages[labelled.error_type], labelled.fault


def test_a_repair_elsewhere_does_not_stop_the_fault(made: tuple[Injector, Injected]) -> None:
    injector, injected = made
    misled = [one for one in injected.cases if one.error_type == "ResponseError"]
    assert misled
    dropped = [one for one in injected.cases if one.fault == "dropped fact"]
    for labelled in misled:
        replay = replay_of(injector, injected, labelled.recording)
        assert isinstance(replay, Replay)
        assert replay.run(labelled.case.question, ()).reply == labelled.case.reply
    for labelled in dropped:
        replay = replay_of(injector, injected, labelled.recording)
        found = replay.run(labelled.case.question, ()).wrong_outputs
        assert [wrong.place.operation for wrong in found] == ["extract_facts"]
        assert replay.run(labelled.case.question, [wrong.place for wrong in found]).rescued
