"""`python -m benchmarks blame`: its rules, what candidates are worth, its searches, and what it writes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.blame.contenders import CONTENDERS
from benchmarks.blame.figures import ALL, figures_of
from benchmarks.blame.one_search import Search, Task, search
from benchmarks.blame.pipelines import PIPELINES, Pipeline
from benchmarks.blame.real_model import SYSTEM, RealFigures, real_flaws
from benchmarks.blame.rules import demands, faultless, rules, spoiled, written
from benchmarks.blame.scripted import Author, RepliesInMemory, ScriptedModel, scripted_access
from benchmarks.blame.stories import Stories
from benchmarks.blame.worth import Worth
from benchmarks.scripted_model import serve
from benchmarks.weak_model import WeakModel
from experiments.data.loaders import load_dataset
from experiments.runs.config import RunConfig
from optimizer.evaluation.evaluator import Evaluator, score_of
from tracing.systems.prompts import baseline_candidate
from tracing.systems.registry import open_system


@pytest.mark.parametrize("name", [name for name in PIPELINES if name != "six-steps"])
def test_a_pipeline_has_the_prompts_and_operations_of_the_real_system(name: str) -> None:
    real, pipeline = open_system(name, {}), Pipeline(name)
    steered = [(spec.name, spec.stage, spec.prompt) for spec in real.operations if spec.prompt is not None]
    assert [(spec.name, spec.stage, spec.prompt) for spec in pipeline.operations if spec.prompt is not None] == steered


@pytest.mark.parametrize("flaw", [flaw.name for flaw in rules().flaws])
def test_a_flaw_is_one_thing_that_a_prompt_asks_for_wrongly(flaw: str) -> None:
    place = [flaw.name for flaw in rules().flaws].index(flaw)
    demanded = demands(spoiled(faultless(), rules().flaw(flaw)))
    assert demanded == tuple("wrong" if at == place else "right" for at in range(len(demanded)))


def test_the_author_mends_and_harms_as_often_as_the_rules_say() -> None:
    flaw = rules().flaws[2]
    demanded = [demands(written(0, spoiled(faultless(), flaw), str(sample))) for sample in range(2000)]
    mended = sum(states[2] == "right" for states in demanded) / len(demanded)
    harmed = sum("silent" in states for states in demanded) / len(demanded)
    assert mended == pytest.approx(rules().author.mends, abs=0.03)
    assert harmed == pytest.approx(rules().author.drops, abs=0.03)


@pytest.mark.parametrize("name", PIPELINES)
def test_what_a_candidate_is_worth_is_what_it_scores(name: str, tmp_path: Path) -> None:
    pipeline, scores, worth = Pipeline(name), list[float](), list[float]()
    for seed in range(4):
        stories = Stories(seed)
        candidate = dict(baseline_candidate(pipeline.prompts))
        prompt = pipeline.steps[seed % len(pipeline.steps)].prompt
        candidate[prompt] = spoiled(candidate[prompt], rules().flaws[seed])
        model = ScriptedModel(pipeline, stories, seed)
        with scripted_access(model, Author(seed), tmp_path / f"cache{seed}", RepliesInMemory()) as access:
            evaluator = Evaluator(pipeline, access, "short_contains", tmp_path / "memories")
            outcomes = evaluator.evaluate(candidate, [*stories.splits.train, *stories.splits.validation])
        assert not any(outcome.tainted for outcome in outcomes)
        scores.append(score_of(outcomes).score)
        worth.append(Worth(pipeline, seed).of(candidate))
    # 448 questions.
    assert sum(scores) / 4 == pytest.approx(sum(worth) / 4, abs=0.07)


def test_equal_searches_have_equal_results_and_what_is_won_back_is_counted() -> None:
    task = Task("fact-memory", "extract", "general-terms", "blame", 2, 600)
    result = search(task)
    assert result == search(task)
    assert result.spent <= 600
    assert result.cost > 0.3
    assert result.blamed is not None
    assert result.blamed > 0.5
    assert result.calls_until_enough is not None
    assert result.won_back(result.calls_until_enough) >= 0.9
    assert result.won_back(result.calls_until_enough - 1) < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("contender", CONTENDERS)
def test_each_contender_searches(contender: str) -> None:
    result = search(Task("six-steps", "select", "only-user", contender, 1, 400))
    assert 0 < result.spent <= 400


def test_a_search_of_many_prompts_goes_on_until_its_calls_end() -> None:
    result = search(Task("evermemos", "sufficiency", "stale-rule", "bandit", 5000, 120))
    # It made 12 calls, and then 49 rounds of nothing: no single prompt of eight was worth a call.
    assert result.stopped.startswith("budget")
    assert result.spent == 120


def test_blame_that_is_planted_is_where_it_is_planted() -> None:
    perfect = search(Task("fact-memory", "answer", "general-terms", "perfect", 0, 60))
    misled = search(Task("fact-memory", "answer", "general-terms", "misled-100", 0, 60))
    assert perfect.blamed == 1.0
    assert misled.blamed == 0.0


def test_a_search_that_does_not_get_there_counts_as_all_its_calls() -> None:
    def result(contender: str, seed: int, *crowned: tuple[int, float]) -> Search:
        task = Task("mem0", "extract", "stale-rule", contender, seed, 1000)
        return Search(task, 0.2, None, 1000, crowned, "done")

    searches = [
        result("blame", 0, (100, 0.5), (200, 1.0)),
        result("blame", 1, (400, 0.95)),
        result("random", 0, (600, 1.0)),
        result("random", 1, (700, 0.5)),
        result("gepa", 0),
        result("gepa", 1),
        replace(result("gepa", 2, (1, 0.0)), cost=0.0),
    ]
    figures = figures_of(searches, 1000)
    assert figures.costless == 1
    cells = {cell.contender: cell for cell in figures.cells if cell.prompt == ALL}
    assert [cells[name].calls.value for name in ("blame", "random", "gepa")] == [300, 800, 1000]
    assert cells["blame"].won_back[300].value == 0.5
    assert cells["random"].enough.value == 0.5
    (ratio,) = (ratio for ratio in figures.ratios if ratio.prompt == ALL)
    assert ratio.other == "random"
    assert ratio.ratio.value == 300 / 800


def test_each_flaw_of_a_shipped_prompt_changes_it_and_keeps_its_contract() -> None:
    prompts = open_system(SYSTEM, {}).prompts
    assert len(real_flaws()) == 6
    for flaw in real_flaws():
        prompt = prompts[flaw.prompt]
        text = prompt.text.replace(flaw.replaces, flaw.by)
        assert text != prompt.text
        assert prompt.contract.violations(text) == []


@pytest.mark.slow
def test_with_a_real_model_the_shipped_prompts_are_spoiled_and_runs_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "planted.json"
    sample = load_dataset(RunConfig()).splits
    conversations = [*sample.train, *sample.validation, *sample.test]
    with serve(WeakModel(conversations)) as roles:
        key = roles["task"].api_key
        monkeypatch.setenv("OPENAI_API_KEY", key.get_secret_value() if key is not None else "")
        with pytest.raises(SystemExit) as ended:
            main(
                [
                    *("blame", "--model", roles["task"].model, "--base-url", str(roles["task"].base_url)),
                    *("--contender", "random", "--seeds", "1", "--calls", "40", "--limit-conversations", "6"),
                    *("--limit-questions", "2", "--folder", str(tmp_path / "runs"), "--json", str(target)),
                ]
            )
    assert ended.value.code == 0
    figures = RealFigures.model_validate_json(target.read_text())
    assert [(run.flaw, run.contender) for run in figures.runs] == [(flaw.name, "random") for flaw in real_flaws()]
    assert "won back" in capsys.readouterr().out


def test_searches_are_kept_and_figures_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept, target = tmp_path / "kept.jsonl", tmp_path / "blame.json"
    chosen = ["--system", "fact-memory", "--contender", "blame", "--contender", "random"]
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            main(["blame", *chosen, "--seeds", "1", "--calls", "60", "--kept", str(kept), "--json", str(target)])
        assert ended.value.code == 0
        assert len(kept.read_text().splitlines()) == 3 * 2
    written_figures = json.loads(target.read_text())
    assert {cell["contender"] for cell in written_figures["cells"]} == {"blame", "random"}
    assert "each prompt spoiled in turn" in capsys.readouterr().out
