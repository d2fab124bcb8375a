"""`import memtune` runs, loads and attributes with names and with objects, and says when it is not itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gold_runs import GoldModel
from html_pages import Page
from scripted_server import ScriptedServer
from traced_runs import conversation, record

import memtune
from attribution.cases import Case
from attribution.judging.words import judge
from experiments.api.result import Result
from experiments.api.starting import settings_from
from experiments.data.loaders import load_dataset
from experiments.mlflow_tracking.sqlite_store import store_file
from experiments.runs.config import BudgetSettings
from experiments.runs.config_file import load_config
from experiments.runs.fingerprint import differing, fingerprint
from experiments.systems.fact_memory import FactMemory
from tracing.errors import ConfigError, DataError, RunError, TraceError
from tracing.llm.settings import ModelSettings
from tracing.systems.conversations import Conversation, Question, write_conversations

ROOT = Path(__file__).resolve().parents[2]


class Shortened(FactMemory):
    """A system of one's own: an object that only this program has."""


@pytest.fixture
def models(
    scripted_server: ScriptedServer,
    mlflow_home: Path,
    memtune_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, Any]:
    """The scripted models of a run, and the home's MLflow store, whose tables take seconds to make."""
    monkeypatch.chdir(tmp_path)
    scripted_server.script = GoldModel()
    memtune_home.mkdir()
    shutil.copy(store_file(mlflow_home), store_file(memtune_home))
    return {
        "model": ModelSettings(model="m", base_url=scripted_server.base_url, retries=0),
        "embedding": f"{scripted_server.base_url}#e",
    }


def conversations() -> list[Conversation]:
    splits = load_dataset(load_config(None, overrides={"limits.conversations": 9, "limits.questions": 3})).splits
    return [one for group in splits.named().values() for one in group]


@pytest.mark.slow
def test_a_run_of_objects_gives_verdict_prompts_cases_blame_and_pages(models: dict[str, Any]) -> None:
    result = memtune.run(
        system=Shortened(top_k=3), data=conversations(), rounds=1, proposals=2, tracking={"traces": 2}, **models
    )
    assert result.verdict in ("improved", "inconclusive")
    assert result.summary.system.endswith(":Shortened")
    assert set(result.prompts) == set(FactMemory.prompts)
    cases = result.cases
    assert set(cases["split"]) == {"train", "validation", "test"}
    assert set(cases["prompts"]) <= {"baseline", "champion"}
    wrong = cases[(cases["prompts"] == "baseline") & ~cases["passed"]]
    assert len(wrong)
    assert (wrong["operation"].notna() | wrong["abstained"].notna()).all()
    assert cases[cases["passed"]]["operation"].isna().all()
    assert result.summary.baseline["test"].n == len(
        cases[(cases["prompts"] == "baseline") & (cases["split"] == "test")]
    )
    of_baseline = result.attribute(traces_of="baseline")
    assert len(of_baseline.cases) == len(wrong)
    assert of_baseline.blame["share"].sum() == pytest.approx(1)
    assert set(result.blame.columns) == set(of_baseline.blame.columns)
    assert Page(of_baseline.report.text).open == []
    assert "memtune report" in result.report.text
    for shown in (result, result.report, of_baseline, of_baseline.report):
        assert Page(shown._repr_html_()).open == []
        assert repr(shown)
    assert result.verdict in result._repr_html_()

    again = memtune.load(result.id[:12])
    assert (again.path, again.prompts, again.verdict) == (result.path, result.prompts, result.verdict)
    assert len(memtune.attribute(again, traces_of="baseline").cases) == len(wrong)
    assert len(memtune.attribute(result.id, traces_of="baseline").cases) == len(wrong)
    with pytest.raises(DataError, match="is a run, which has its own questions"):
        memtune.attribute(again, data=conversations())
    with pytest.raises(DataError, match="a run has its own"):
        memtune.attribute(again, [])
    for names_a_side in (lambda side: again.attribute(traces_of=side), again.memory):
        with pytest.raises(ConfigError, match="no side of a run; did you mean 'champion'"):
            names_a_side("chmpion")
    memory = again.memory()
    with pytest.raises(DataError, match=r"TunedMemory\.ingest: turn 2: content: "):
        memory.ingest({"role": "user", name: "I sail."} for name in ("content", "text"))
    with pytest.raises(ConfigError, match="models are not open"):
        memory.recall("Who sails?")


def test_two_objects_of_a_class_are_not_mistaken_for_each_other() -> None:
    from tracing.plugins import registered_object
    from tracing.systems.registry import open_system

    first, second = Shortened(top_k=1), Shortened(top_k=2)
    names = [registered_object(one) for one in (first, second, first)]
    assert names[0] == names[2] != names[1]
    assert [open_system(name) for name in names] == [first, second, first]


def test_a_run_of_an_object_is_not_gone_on_with_by_one_with_other_settings() -> None:
    config = load_config(None)
    splits = load_dataset(config).splits
    three, four = (fingerprint(config, Shortened(top_k=most), splits, {}, {}) for most in (3, 4))
    assert differing(three, four) == ["system.top_k"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"round": 3}, "did you mean 'rounds'"),
        ({"model": "http://127.0.0.1:9/v1"}, "write http://127.0.0.1:9/v1#NAME"),
        ({"data": []}, "empty list"),
        ({"data": ["hello"]}, "holds str"),
        ({"system": 7}, "system"),
        ({"system": "nowhere:Memory"}, "nowhere"),
        ({"rounds": -1}, "rounds"),
        ({"no_blame": "yes"}, "no_blame: must be True or False"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_it(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        memtune.run(**{"model": "http://127.0.0.1:9/v1#m", **given})


@pytest.mark.parametrize(("model", "base_url"), [("https://b/v1#m", "https://b/v1"), ("qwen2.5-coder-0.5b", None)])
def test_a_model_that_is_named_is_not_reached_by_the_endpoint_and_key_of_the_configuration(
    tmp_path: Path, model: str, base_url: str | None
) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_text("models: {task: {model: a, base_url: 'https://a/v1', api_key_env: A_KEY}}")
    task = settings_from(tmp_path, config=path, models={"task": model}, settings={}).models.task
    assert (task.base_url, task.api_key_env) == (base_url, "OPENAI_API_KEY")


def test_a_setting_named_like_an_option_means_what_the_option_means(tmp_path: Path) -> None:
    given = {"no_blame": True, "no_local_objectives": True, "start": "mine", "rounds": 2}
    config = settings_from(tmp_path, models={}, settings=given)
    assert (config.search.blame, config.search.local_objectives) == (False, False)
    assert (config.prompts.start, config.rounds) == (Path("mine"), 2)
    sections = {"prompts": {"max_tokens": 9}, "budget": BudgetSettings(calls=7), "no_blame": False}
    config = settings_from(tmp_path, models={}, settings=sections)
    assert (config.prompts.max_tokens, config.budget.calls, config.search.blame) == (9, 7, True)
    with pytest.raises(ConfigError, match="executor: Ray is no longer part of memtune"):
        settings_from(tmp_path, models={}, settings={"executor": "ray"})


def test_a_part_of_ones_own_may_be_the_object_itself(tmp_path: Path) -> None:
    class Part:
        def __call__(self, *given: Any) -> Any:
            raise RuntimeError("boom")

    metric, loader, search, proposer, objective = parts = [Part() for _ in range(5)]
    given = {
        "metric": metric,
        "dataset": loader,
        "optimizer": [search, "gepa"],
        "proposers": ("bank", proposer),
        "search": {"objectives": {"answer": objective}},
    }
    config = settings_from(tmp_path, models={}, settings=given)
    opened = [registry.open(name) for registry, name in config.parts()]
    assert [part for part in opened if isinstance(part, Part)] == [search, proposer, objective, metric, loader]
    assert set(parts) <= set(opened)


def test_a_file_is_recognised_unless_the_configuration_names_its_data_set(tmp_path: Path) -> None:
    write_conversations(tmp_path / "mine.jsonl", [conversation("one")])
    (tmp_path / "locomo.yaml").write_text("dataset: locomo\ndata: mine.jsonl\n")
    read = [
        settings_from(tmp_path, config=config, data=tmp_path / "mine.jsonl", models={}, settings={})
        for config in (None, tmp_path / "locomo.yaml")
    ]
    assert [config.dataset for config in read] == ["jsonl", "locomo"]
    with pytest.raises(ConfigError, match=r"no such file: .*absent\.jsonl"):
        settings_from(tmp_path, data=tmp_path / "absent.jsonl", models={}, settings={})


def test_conversations_are_taken_wherever_their_file_is(tmp_path: Path) -> None:
    record(tmp_path / "traces" / "one.jsonl", conversation("one"))
    found = memtune.attribute(tmp_path / "traces", data=iter([conversation("one")]))
    assert len(found.cases) == 2
    with pytest.raises(ConfigError, match="--kinds: there is no 'fct'; did you mean 'fact'"):
        memtune.generate([conversation("one")], tmp_path / "out.jsonl", kinds="fct")
    with pytest.raises(ConfigError, match="chats: holds an empty list"):
        memtune.generate([], tmp_path / "out.jsonl")
    with pytest.raises(ConfigError, match="leave them out with conversations"):
        memtune.generate([conversation("one")], tmp_path / "out.jsonl", dataset="sharegpt")


def test_a_run_that_is_not_there_cannot_be_loaded() -> None:
    with pytest.raises(RunError, match="no such run"):
        memtune.load("20200101")


def test_a_graph_is_attributed_with_its_cases() -> None:
    with memtune.trace() as recorder:
        said = memtune.variable("Mara: I moved to Oslo.", name="D1:1", kind="message")
        with memtune.operation("extract_facts", inputs={"messages": [said]}) as extracting:
            fact = extracting.output("facts", "Mara moved.", kind="fact")
        with memtune.operation("answer", inputs={"context": [fact]}) as answering:
            reply = answering.output("reply", "unknown", kind="prediction")
    question = Question(id="q1", question="Where does Mara live?", answers=("Oslo",), evidence=("D1:1",))
    case = Case("graph", question, "unknown", judge("unknown", ("Oslo",)), reply.id)
    found = memtune.attribute(recorder.graph, [case])
    assert found.cases["operation"].tolist() == ["extract_facts"]
    assert found.blame.index.tolist() == ["extract_facts"]
    drawn = found.picture(0)
    assert drawn.text.count('<li class="lost">') == 1
    assert "✗ Extracted ExtractionError · extract_facts" in Page(drawn.text).text
    assert Page(drawn._repr_html_()).open == []
    with pytest.raises(DataError, match=r"picture\(1\): there are 1 wrong answers"):
        found.picture(1)
    with pytest.raises(DataError, match="give the judged questions of a graph as cases"):
        memtune.attribute(recorder.graph, [case], data="questions.jsonl")

    def fails(recording: Any, access: Any) -> Any:
        raise RuntimeError("boom")

    assert memtune.attribute(recorder.graph, [case], method=fails).cases["abstained"][0].endswith("RuntimeError: boom")


def test_traces_that_cannot_be_used_are_told_and_refused_where_there_are_no_others(tmp_path: Path) -> None:
    told = conversation("one")
    record(tmp_path / "traces" / "one.jsonl", told)
    write_conversations(tmp_path / "data.jsonl", [told])
    for name in ("traces/garbage.jsonl", "damaged/one.jsonl", "damaged/two.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("garbage\n")
    found = memtune.attribute(tmp_path / "traces", data=tmp_path / "data.jsonl")
    assert len(found.cases) == 2
    assert "garbage.jsonl" in found.notes[0]
    assert "1 of 2 traces with a problem" in repr(found)
    assert "garbage.jsonl" in found._repr_html_()
    with pytest.raises(TraceError, match=r"damaged/one\.jsonl.*\(and 1 more\)"):
        memtune.attribute(tmp_path / "damaged", data=tmp_path / "data.jsonl")


def python(*arguments: str, paths: tuple[Path, ...], cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)


def test_importing_it_takes_nothing_but_the_base_dependencies(tmp_path: Path) -> None:
    code = (
        "import sys, time, memtune\n"
        "with memtune.trace() as recorder, memtune.operation('x') as op: op.output('y', 1)\n"
        "heavy = {'mlflow', 'openai', 'httpx', 'rich', 'click', 'yaml', 'jinja2', 'matplotlib', 'pandas', 'dspy'}\n"
        "print(sorted(heavy & set(sys.modules)), time.process_time() < 1)"
    )
    done = python("-c", code, paths=(ROOT,), cwd=tmp_path)
    assert (done.stdout.strip(), done.stderr) == ("[] True", "")


@pytest.mark.parametrize("name", memtune.PACKAGES)
def test_a_module_that_hides_one_of_ours_is_named_with_the_remedy(tmp_path: Path, name: str) -> None:
    own = tmp_path / f"{name}.py"
    own.write_text("")
    imported = python("-c", "import memtune", paths=(tmp_path, ROOT), cwd=tmp_path)
    assert imported.stderr.splitlines()[-1] == (
        f"ImportError: memtune's package {name!r} is hidden by {own}; rename it, or start elsewhere"
    )
    script = tmp_path / "bin" / "memtune"  # as pip writes it
    script.parent.mkdir()
    script.write_text("import sys\nfrom memtune import main\nsys.exit(main())\n")
    command = python(str(script), "runs", paths=(tmp_path, ROOT), cwd=tmp_path)
    assert command.returncode == 2
    assert command.stderr == f"memtune: memtune's package {name!r} is hidden by {own}; rename it, or start elsewhere\n"
    assert python("-c", "import memtune", paths=(ROOT, tmp_path), cwd=ROOT).returncode == 0


def test_a_distribution_that_hides_one_of_ours_is_named(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "tracing").mkdir(parents=True)
    (site / "tracing/__init__.py").write_text("")
    about = site / "lost_and_found-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lost-and-found\nVersion: 1.0\n")
    (about / "top_level.txt").write_text("tracing\n")
    imported = python("-c", "import memtune", paths=(site, ROOT), cwd=tmp_path)
    assert "uninstall lost-and-found or use another environment" in imported.stderr.splitlines()[-1]


def test_a_result_reads_nothing_before_it_is_asked(tmp_path: Path) -> None:
    missing = Result(tmp_path / "gone", tmp_path)
    with pytest.raises(RunError, match="run it again"):
        _ = missing.verdict
