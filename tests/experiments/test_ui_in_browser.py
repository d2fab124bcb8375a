"""What people see in MLflow after a run: `memtune ui` over a real store, in headless Chromium, with screenshots."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from judged_cases import seen_case
from run_shapes import SEED, TUNED, loop_result, record, run_folder, score

from attribution.signals import Signal
from experiments.data.loaders import load_dataset
from experiments.mlflow_tracking.logged_datasets import split_data
from experiments.mlflow_tracking.tracking import MlflowRun
from experiments.runs.config_file import load_config
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.gating.verdict import Verdict
from optimizer.tuning.round import RewriteRecord

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
PLANTED = (
    "</code></pre><img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>\n"
    "```\n# Planted heading\n~~~\n| planted | table |\n|---|---|\n[planted](javascript:alert(1)) **planted**"
)
CHAMPION = {"answer": f"{TUNED['answer']}\n{PLANTED}"}
SIGNALS = [
    Signal("extract_facts", "extract", 0.6, (0.5, 0.9), 7, 0.3, {"ExtractionError": 7}, ("q1",), True),
    Signal("answer", "answer", 0.4, (0.1, 0.5), 3, 0.1, {"ResponseError": 3}, ("q3",), False),
]
VALIDATION = (0.45, 0.52, 0.52, 0.6)
LONG = 60_000


class Shown(NamedTuple):
    """The latest run's page, its address, and how to keep a picture of it."""

    page: Any
    address: str

    def keep(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"mlflow-{name}.png")

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name, exact=True).click()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one finished run, in whose prompts and replies somebody planted markup."""
    home = tmp_path_factory.mktemp("seen")
    result = replace(loop_result(), champion_candidate=CHAMPION)
    folder = run_folder(home, 1, result=result)
    data = split_data("sample", load_dataset(load_config(None)).splits)
    run = MlflowRun.start(
        uri=None, experiment="memtune", home=home, folder=folder, system="rag", seed=SEED, params={}, datasets=data
    )
    for split, value in (("train", 0.4), ("validation", 0.45), ("test", 0.42)):
        run.baseline(split, score(value))  # type: ignore[arg-type]
    rewrite = RewriteRecord(
        "answer",
        "bank",
        "asks for a short answer",
        CHAMPION["answer"],
        0.5,
        GateDecision(GateOutcome.ACCEPTED, "+0.070"),
        0.2,
    )
    for n, value in enumerate(VALIDATION, start=1):
        accepted = n in (2, 4)
        if n == 1:
            run.blame(n, SIGNALS)
        made = replace(record(n, accepted=accepted, champion=CHAMPION), validation_score=value, rewrites=(rewrite,))
        run.round(replace(made, blame={}))
    run.verdict(Verdict("improved", 0.1, (0.02, 0.18), 0.031, 0.64))
    # More of the test than are wrong, and questions of the train set, in which the champion is worse.
    asked = {n: f"Where does Mara live in year {n}?" for n in range(1, 9)}
    told = {"question": "Where does Mara live?", "split": "train", "lost_at": "extract_facts"}
    seed = [seen_case(n, "Oslo" if n > 5 else "unknown", lost_at="extract_facts", question=asked[n]) for n in asked]
    champion = [seen_case(n, "Oslo" if n > 1 else PLANTED, question=asked[n]) for n in asked]
    seed += [seen_case(n, "Oslo", **told) for n in (20, 21)]
    champion += [seen_case(n, "unknown", **told) for n in (20, 21)]
    run.cases(seed, champion, CHAMPION, metric="short_contains", method="survival", most=500)
    run.finish(result)
    assert run.problems == []
    folder.write_summary(replace(folder.summary(), mlflow=run.link))
    return home


@pytest.fixture(scope="module")
def shown(home: Path) -> Iterator[Shown]:
    """The page that `memtune ui` names."""
    command = [sys.executable, "-m", "experiments.command", "ui", "--home", str(home)]
    with (
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process,
        playwright.sync_playwright() as driver,
    ):
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[0]
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1920, "height": 1400})
            page.set_default_timeout(LONG)
            page.goto(address)
            yield Shown(page, address)
            browser.close()
        finally:
            process.terminate()


def test_the_page_that_opens_says_verdict_scores_and_what_changed(shown: Shown) -> None:
    page = shown.page
    page.get_by_role("heading", name="Improved: +0.100 (+0.020 to +0.180), from 0.420 to 0.520").wait_for()
    shown.keep("run")
    page.get_by_text("Show more").first.click()
    lines = page.locator("li", has_text="questions: baseline").all_inner_texts()
    assert [line.partition(",")[0] for line in lines] == ["Test", "Validation", "Train"]
    assert lines[1] == ("Validation, 20 questions: baseline 0.450 (0.350 to 0.550) → champion 0.550 (0.450 to 0.650)")
    diff = page.locator("pre", has_text="-Be short.")
    assert "+Answer in one to four words & no sentence." in diff.inner_text()
    shown.keep("description")


def test_what_was_planted_in_a_prompt_stays_text(shown: Shown) -> None:
    page = shown.page
    assert "+```\n+# Planted heading\n+~~~" in page.locator("pre", has_text="-Be short.").inner_text()
    assert page.locator("img[src=x]").count() == 0
    assert page.get_by_role("heading", name="Planted heading").count() == 0
    assert page.locator("a", has_text="planted").count() == 0
    assert "broken" not in page.title()


def test_data_sets_and_the_runs_of_both_sides_stand_beside(shown: Shown) -> None:
    page = shown.page
    page.get_by_text("sample training").first.wait_for()
    assert re.search(r"rag 0\.42→0\.52 · \d\d:\d\d", page.locator("h1, h2, h3").all_inner_texts()[0])
    for side in ("baseline", "champion"):
        page.get_by_role("link", name=re.compile(rf"^{side} · rag · \d\d:\d\d")).first.wait_for()


def test_scores_come_first_and_costs_last_the_curve_climbs_in_steps_and_the_blame_is_one_picture(shown: Shown) -> None:
    shown.tab("Model metrics")
    page = shown.page
    page.get_by_text("validation_score", exact=True).first.wait_for()
    page.locator("path.js-line").first.wait_for()
    sections = re.findall(r"\b(answers|blame|settings|spending)\s*\(\d+\)", page.locator("body").inner_text())
    assert sections == ["answers", "blame", "spending"]
    drawn = page.locator("path.js-line").first.get_attribute("d")
    points = [tuple(map(float, pair.split(","))) for pair in re.findall(r"[\d.]+,[\d.]+", drawn)]
    assert len(points) > 3
    assert all(before[0] == after[0] or before[1] == after[1] for before, after in pairwise(points))
    # One for the seed and for each round, and one more at each of two rises.
    marks = page.locator("g.scatter").first.locator("g.points path")
    assert marks.count() == 1 + len(VALIDATION) + 2
    # The first of each section: the champion's test score is drawn, and one picture has all of the blame.
    titles = page.locator("body").inner_text()
    assert titles.index("test_baseline") < titles.index("test_champion") < titles.index("validation_score")
    assert "blame\n(1)" in titles
    page.get_by_text("spending", exact=True).first.scroll_into_view_if_needed()
    page.get_by_text("blame/share of wrong answers").first.wait_for()
    page.wait_for_function("[...document.images].some((image) => image.naturalWidth > 100)")
    shown.keep("curves")


def test_the_rewrites_are_a_table(shown: Shown) -> None:
    shown.tab("Artifacts")
    shown.page.get_by_text("rewrites.json").first.click()
    shown.page.get_by_text("asks for a short answer").first.wait_for()
    shown.keep("rewrites")


def test_the_run_shows_the_champions_traces_whose_average_is_its_score_and_pairs_them_with_the_baselines(
    shown: Shown,
) -> None:
    page = shown.page
    page.goto(shown.address)
    shown.tab("Traces")
    page.get_by_text("Where does Mara live in year 8?", exact=True).first.wait_for()
    page.get_by_text("Where does Mara live? · conv20").first.wait_for()
    page.get_by_text("Group by session").click()
    # All eight of the test, of which the champion answers seven; the train set's have a column of their own.
    page.get_by_text("0.88", exact=True).first.wait_for()
    assert "expected_a" in page.locator("body").inner_text()
    assert '["Oslo"]' not in page.locator("body").inner_text()
    shown.keep("traces")
    # Exactly this one: while a page loads, the choice of the run itself is called "Select baseline run".
    page.get_by_role("button", name="baseline run", exact=True).click()
    page.get_by_role("option", name="baseline").click()
    page.get_by_text("extract_facts").first.wait_for()
    shown.keep("comparison")
    rows = page.locator("tr, [role=row]").filter(has_text="Where does Mara live in year").all_inner_texts()
    assert len(rows) == len(set(rows)) == 8
    for row in rows:
        # A trace of each side.
        assert len(re.findall(r"\btr-[0-9a-f]+", row)) == 2, row


def test_the_questions_of_the_test_are_an_evaluation_data_set_and_the_experiment_is_described(shown: Shown) -> None:
    page = shown.page
    page.goto(f"{shown.address.partition('/runs/')[0]}/datasets")
    page.get_by_text("Runs of memtune").first.wait_for()
    page.get_by_text("sample test").first.click()
    page.get_by_text("8 records").wait_for()
    page.get_by_text('"expected_answer":"Oslo"').first.wait_for()
    shown.keep("dataset")


def test_a_prompts_versions_have_the_reason_and_the_alias(shown: Shown) -> None:
    page = shown.page
    page.goto(f"{shown.address.partition('/#')[0]}/#/prompts/memtune.rag.answer")
    page.get_by_text("Version 2").first.wait_for()
    page.get_by_text("champion").first.wait_for()
    page.get_by_text("asks for a short answer").first.wait_for()
    shown.keep("prompt")
