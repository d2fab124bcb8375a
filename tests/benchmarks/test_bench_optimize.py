"""`python -m benchmarks optimize`: equal budgets, runs paid once, and figures that say no more than they can."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from gold_runs import GoldModel, live, started
from html_pages import Page
from scripted_server import ScriptedServer

from benchmarks.__main__ import main
from benchmarks.optimize.figures import ContenderRun, OptimizeFigures, Point, area_under, compared
from benchmarks.optimize.picture import mean_curve
from benchmarks.optimize.table import conclusions, markdown, notes
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.runs.lock import locked
from tracing.llm.settings import AT_ONCE

pytestmark = pytest.mark.slow

CALLS = 60


def figures_of(runs: list[ContenderRun], planned: int | None = None) -> OptimizeFigures:
    return OptimizeFigures(
        dataset="sample",
        model="m",
        metric="short_contains",
        calls=100,
        runs_planned=len(runs) if planned is None else planned,
        systems=compared(runs),
        runs=tuple(runs),
    )


def run_of(contender: str, seed: int, scores: list[float], **changed: Any) -> ContenderRun:
    values = {
        "system": "rag",
        "contender": contender,
        "seed": seed,
        "scores": {f"c{n}": score for n, score in enumerate(scores)},
        "failed": (),
        "calls": 100,
        "tokens": 1000,
        "minutes": 2.0,
        "curve": (Point(calls=0, score=0.4),),
        "area": 0.4,
        "rewritten": contender != "baseline",
        "stopped": "budget: search.calls",
        "code": "a",
    }
    return ContenderRun.model_validate(values | changed)


@dataclass(frozen=True)
class Bench:
    """A comparison in a folder, with a model that answers well once its answer prompt is another.

    `figures` are those of the undisturbed one, and `asked` the requests that it took.
    """

    folder: Path
    server: ScriptedServer
    figures: OptimizeFigures | None = None
    asked: int = 0

    @property
    def file(self) -> Path:
        return self.folder / "o.json"

    def command(self, *more: str) -> list[str]:
        sizes = ["--system", "fact-memory", "--seeds", "1", "--rounds", "1", "--calls", str(CALLS)]
        own = ["--folder", str(self.folder / "runs"), "--json", str(self.file)]
        return ["optimize", str(self.folder / "bench.yaml"), *sizes, *own, *more]

    def made(self, *more: str) -> OptimizeFigures:
        with pytest.raises(SystemExit) as ended:
            main(self.command(*more))
        assert ended.value.code == 0
        return self.read()

    def read(self) -> OptimizeFigures:
        return OptimizeFigures.model_validate_json(self.file.read_bytes())

    def copied(self, to: Path, *, runs: bool) -> Bench:
        to.mkdir()
        shutil.copy(self.folder / "bench.yaml", to)
        if runs:
            shutil.copytree(self.folder / "runs", to / "runs")
        return replace(self, folder=to)


@pytest.fixture(scope="module")
def whole(mlflow_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The baseline prompts and the closed loop, undisturbed."""
    server, folder = ScriptedServer(), tmp_path_factory.mktemp("bench")
    server.script = GoldModel(delay=0.001)
    endpoint = f"base_url: '{server.base_url}', retries: 0, api_key: sk-test"
    (folder / "bench.yaml").write_text(
        "limits: {conversations: 9, sessions: 2, questions: 3}\nproposals: 3\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
        f"tracking: {{uri: '{store_uri(mlflow_home)}', experiment: {folder.name}}}\n"
    )
    bench = Bench(folder, server)
    yield replace(bench, figures=bench.made("--optimizer", "closed-loop"), asked=server.asked)
    server.close()


def lasting(figures: OptimizeFigures | None) -> Any:
    """The figures without times."""
    assert figures is not None
    found = figures.model_dump(mode="json")
    for each in (*found["runs"], *(contender for system in found["systems"] for contender in system["contenders"])):
        del each["minutes"]
    return found


@pytest.mark.thorough
def test_every_search_pays_for_all_it_needs_up_to_the_same_limit_and_a_finished_one_is_not_repeated(
    whole: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench, files = whole.copied(tmp_path / "more", runs=True), (tmp_path / "o.md", tmp_path / "o.svg")
    # Without local objectives, the default search is the closed loop: both need the same calls.
    contenders = ("--optimizer", "closed-loop", "--optimizer", "no-local-objectives", "--optimizer", "local-search")
    figures = bench.made(*contenders, "--table", str(files[0]), "--picture", str(files[1]))
    assert whole.figures is not None
    assert figures.runs[:2] == whole.figures.runs
    baseline, closed, same, ours = figures.runs
    assert (baseline.contender, baseline.calls, baseline.rewritten) == ("baseline", 0, False)
    assert (same.calls, same.tokens, same.scores, same.curve) == (
        closed.calls,
        closed.tokens,
        closed.scores,
        closed.curve,
    )
    assert all(0 < each.calls <= CALLS for each in (closed, same, ours))
    assert closed.rewritten
    assert sum(closed.scores.values()) > sum(baseline.scores.values())
    # The curve begins at the baseline prompts with nothing paid, since all share their baselines.
    assert closed.curve[0] == baseline.curve[0] == ours.curve[0]
    assert closed.curve[0].calls == 0 < closed.curve[1].calls <= closed.calls
    assert closed.area == area_under(closed.curve, CALLS) > baseline.area == closed.curve[0].score

    said = capsys.readouterr()
    assert "3 searches make at most 180 calls" in said.err
    assert "local-search against closed-loop: " in said.out
    rows = [line for line in files[0].read_text().splitlines() if line.startswith("|")]
    assert [len(row.split(" | ")) for row in rows] == [11] * (2 + 4)
    picture = files[1].read_text()
    drawn = Page(picture)
    assert (drawn.tags[0], drawn.tags.count("svg"), drawn.open) == ("svg", 1, [])
    assert all(each.contender in drawn.text for each in figures.runs)
    assert "var(--" not in picture

    asked = bench.server.asked
    assert bench.made(*contenders) == figures
    assert bench.server.asked == asked


@pytest.mark.thorough
@pytest.mark.parametrize(
    "shares",
    [(0.4, 0.8), pytest.param([n / 12 for n in range(1, 12)], marks=pytest.mark.thorough)],
    ids=["few", "many"],
)
def test_a_comparison_killed_at_any_moment_goes_on_and_pays_nothing_twice(
    whole: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: Sequence[float]
) -> None:
    monkeypatch.chdir(tmp_path)
    bench = whole.copied(tmp_path / "killed", runs=False)
    arguments, before = bench.command("--optimizer", "closed-loop"), bench.server.asked
    for share in shares:
        process = started(arguments, command=main)
        while bench.server.asked - before < share * whole.asked:
            assert process.is_alive(), Path("output.txt").read_text()[-2000:]
            time.sleep(0.005)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        # What was written so far is whole.
        assert len(bench.read().runs) < bench.read().runs_planned
    assert live(arguments, None, main) == 0
    assert lasting(bench.read()) == lasting(whole.figures)
    assert whole.asked <= bench.server.asked - before <= whole.asked + len(shares) * AT_ONCE


@pytest.mark.thorough
def test_programs_that_are_started_together_share_the_runs(
    whole: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bench, before = whole.copied(tmp_path / "together", runs=False), whole.server.asked
    programs = [started(bench.command("--optimizer", "closed-loop"), command=main) for _ in range(3)]
    for program in programs:
        program.join()
        assert program.exitcode == 0
    assert lasting(bench.read()) == lasting(whole.figures)
    assert bench.server.asked - before == whole.asked


def test_a_run_that_another_program_is_at_is_left_to_it(
    whole: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = whole.copied(tmp_path / "held", runs=True)
    (place,) = bench.folder.glob("runs/*/closed-loop-*/seed-0")
    figures = (place / "figures.json").read_bytes()
    (place / "figures.json").unlink()
    before = bench.server.asked
    with locked(place.with_name("seed-0.lock")):
        (baseline,) = bench.made("--optimizer", "closed-loop").runs
    assert baseline.contender == "baseline"
    assert "other programs are still at 1 of the runs" in capsys.readouterr().err
    assert bench.server.asked == before
    (place / "figures.json").write_bytes(figures)
    assert bench.made("--optimizer", "closed-loop") == whole.figures


@pytest.mark.thorough
def test_an_unfinished_run_of_other_code_starts_over(whole: Bench, tmp_path: Path) -> None:
    bench = whole.copied(tmp_path / "older", runs=True)
    (place,) = bench.folder.glob("runs/*/closed-loop-*/seed-0")
    (place / "figures.json").unlink()
    fingerprint = place / "run" / "fingerprint.json"
    fingerprint.write_text(json.dumps(json.loads(fingerprint.read_text()) | {"memtune.code": "older"}))
    before = bench.server.asked
    assert lasting(bench.made("--optimizer", "closed-loop")) == lasting(whole.figures)
    # All that the search needs is paid: nothing of the earlier life is left to profit from.
    assert bench.server.asked - before >= bench.read().runs[1].calls


def test_the_figures_alone_are_enough_to_go_on(whole: Bench, tmp_path: Path) -> None:
    assert whole.figures is not None
    bench = whole.copied(tmp_path / "moved", runs=True)
    for home in bench.folder.glob("runs/*/*/*/home"):
        shutil.rmtree(home)
        shutil.rmtree(home.parent / "run")
    before = bench.server.asked
    assert bench.made("--optimizer", "closed-loop") == whole.figures
    assert bench.server.asked == before

    (closed,) = bench.folder.glob("runs/*/closed-loop-*/*/figures.json")
    closed.unlink()
    assert lasting(bench.made("--optimizer", "closed-loop")) == lasting(whole.figures)
    assert bench.server.asked - before == whole.asked


@pytest.fixture
def refused(whole: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The error of the command with more arguments."""
    bench = whole.copied(tmp_path / "refused", runs=True)

    def run(*arguments: str) -> str:
        before = bench.server.asked
        with pytest.raises(SystemExit) as ended:
            main(bench.command(*arguments))
        assert ended.value.code == 2
        assert bench.server.asked == before
        return capsys.readouterr().err

    return run


def test_what_cannot_be_compared_is_refused_before_any_call(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "--optimizer: " in (error := refused("--optimizer", "gradient"))
    assert "no-local-objectives" in error
    assert "--seeds" in refused("--seeds", "0")
    assert "--json" in refused("--json", str(tmp_path / "refused" / "bench.yaml" / "o.json"))
    error = refused("--calls", "61", "--limit-questions", "2")
    assert "its runs have other values of --calls, data, limits.questions (--calls: 60 there, 61 now)" in error
    with (tmp_path / "refused" / "bench.yaml").open("a") as file:
        file.write("budget: {calls: 9}\n")
    assert "budget: would end runs before their test" in refused()


def test_the_system_that_the_configuration_names_is_tuned_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bench.yaml"
    for lines, searches in (("", 14), ("system: fact-memory\n", 7)):
        file.write_text(lines + "budget: {calls: 9}\n")
        with pytest.raises(SystemExit):
            main(["optimize", str(file), "--seeds", "1", "--folder", str(tmp_path / "runs")])
        assert f"{searches} searches make at most " in capsys.readouterr().err


def test_damaged_figures_are_told_and_made_again_without_a_call(
    whole: Bench, refused: Callable[..., str], tmp_path: Path
) -> None:
    (file,) = (tmp_path / "refused").glob("runs/*/closed-loop-*/*/figures.json")
    file.write_text("{}")
    assert "delete the file" in refused("--optimizer", "closed-loop")
    file.unlink()
    before = whole.server.asked
    bench = replace(whole, folder=tmp_path / "refused")
    assert lasting(bench.made("--optimizer", "closed-loop")) == lasting(whole.figures)
    assert whole.server.asked == before


def test_the_area_is_that_of_steps_over_the_whole_budget() -> None:
    curve = (Point(calls=0, score=0.2), Point(calls=25, score=0.6), Point(calls=50, score=1.0))
    assert area_under(curve, 100) == pytest.approx(0.25 * 0.2 + 0.25 * 0.6 + 0.5 * 1.0)
    assert area_under(curve, 50) == pytest.approx(0.5 * 0.2 + 0.5 * 0.6)
    assert area_under(curve[:1], 70) == pytest.approx(0.2)
    assert mean_curve([curve, curve[:1]], 40) == [
        Point(calls=0, score=0.2),
        Point(calls=25, score=0.4),
        Point(calls=40, score=0.4),
    ]


def test_arms_are_compared_by_conversation_over_their_seeds() -> None:
    base = [0.0, 0.2, 0.4, 0.1, 0.3, 0.2, 0.0, 0.1]
    higher, shifted = [score + 0.5 for score in base], [score + 0.3 for score in base]
    runs = [
        run_of("baseline", 0, base),
        *(run_of("local-search", seed, higher if seed else shifted) for seed in (0, 1)),
        run_of("gepa", 0, [*base[1:], base[0]]),
    ]
    (system,) = compared(runs)
    assert system.contenders[0].contender == "local-search"
    ours = system.contenders[0]
    assert ours.by_seed == pytest.approx({0: sum(shifted) / 8, 1: sum(higher) / 8})
    assert ours.score == pytest.approx(sum(base) / 8 + 0.4)
    assert ours.against_baseline == system.ours["baseline"]
    assert (system.ours["baseline"].conclusion, round(system.ours["baseline"].delta, 9)) == ("better", 0.4)
    assert system.ours["baseline"].p_value == pytest.approx(2 / 2**8)
    gepa = next(contender for contender in system.contenders if contender.contender == "gepa")
    assert gepa.against_baseline is not None
    assert gepa.against_baseline.conclusion == "inconclusive"
    *_, last = conclusions(system)
    assert last == (
        "local-search has the highest held-out score of 3 contenders; shown to be better than baseline, gepa, "
        "and worse than none"
    )


def test_an_arm_that_is_not_first_is_not_called_first() -> None:
    low, high = [0.1] * 8, [0.6] * 8
    (system,) = compared([run_of("baseline", 0, low), run_of("local-search", 0, low), run_of("gepa", 0, high)])
    *lines, last = conclusions(system)
    assert lines[0] == "local-search against baseline: +0.000 (95 % -0.196 to +0.196, p 1.000): inconclusive"
    assert last.startswith("local-search is number 2 of 3 contenders by held-out score; gepa is first; ")
    assert last.endswith("shown to be better than none, and worse than gepa")
    (level,) = compared([run_of("baseline", 0, low), run_of("local-search", 0, low)])
    assert "has the highest held-out score of 2 contenders, and so has baseline; " in conclusions(level)[-1]
    (without,) = compared([run_of("baseline", 0, low)])
    assert conclusions(without) == []


def test_what_limits_the_comparison_is_told() -> None:
    runs = [
        run_of("baseline", 0, [0.1, 0.2]),
        run_of("gepa", 0, [0.0, 0.2], failed=("c0",), stopped="all rounds done", calls=40),
        run_of("gepa", 1, [0.3, 0.2], code="b"),
    ]
    told = notes(figures_of(runs, planned=8))
    assert told == [
        "5 of 8 runs are not finished",
        "rag, gepa, seed 0: the champion fails on 1 of 2 held-out conversations, which count as 0",
        "rag, gepa: 1 of 2 searches left calls unused (all rounds done)",
        "the runs were made by 2 versions of memtune's code",
    ]
    assert "| gepa | 0.175 |" in markdown(figures_of(runs))
    unequal = figures_of([*runs[:2], *(run_of("random", seed, [0.1, 0.2]) for seed in (0, 1))])
    assert "rag: means are over different numbers of seeds (random 2, gepa 1)" in notes(unequal)
