"""A made-up but complete run: shapes that the tests of summary, report, tracking and runs share."""

from datetime import datetime
from pathlib import Path

from experiments.runs.folder import FINGERPRINT, RunFolder
from experiments.runs.summary import RunFacts, SplitSize, Summary, SummaryMlflow, summarize
from optimizer.evaluation.scores import Score
from optimizer.tuning.results import CallCounts, LoopResult
from optimizer.tuning.round import BlameShare, RoundRecord
from optimizer.tuning.stopped import Stopped

BASELINE = {"answer": "Answer from the memories.\nBe short.\n\nMemories:\n{context}\n\nQuestion: {question}\nAnswer:"}
FILES = {FINGERPRINT: "{}"}
TUNED = {"answer": BASELINE["answer"].replace("Be short.", "Answer in one to four words & no sentence.")}


def score(value: float) -> Score:
    return Score(score=value, em=value / 2, f1=value, contains=value, n=40, ci=(value - 0.1, value + 0.1))


def record(n: int, *, accepted: bool, champion: dict[str, str] | None = None) -> RoundRecord:
    blame = {"answer": BlameShare(0.7, (0.5, 0.9)), "retrieve": BlameShare(0.3, (0.1, 0.5))}
    return RoundRecord(n, blame, ("answer",), 3, accepted, 0.5 + n / 100, 100 * n, 50, 4000, champion)


def loop_result(*, verdict: str | None = "improved", stopped: str = "all rounds done") -> LoopResult:
    met = verdict is not None
    return LoopResult(
        baseline={"train": score(0.4), "validation": score(0.45), "test": score(0.42)}
        if met
        else {"train": score(0.4)},
        champion={"validation": score(0.55), "test": score(0.52)} if met else {},
        champion_candidate=TUNED if met else BASELINE,
        verdict=verdict,  # type: ignore[arg-type]
        delta=0.1 if met else None,
        delta_ci=(0.02, 0.18) if met else None,
        p_value=0.031 if met else None,
        power=0.64 if met else None,
        rounds=(record(1, accepted=True, champion=TUNED), record(2, accepted=False, champion=TUNED)) if met else (),
        stopped=Stopped.read(stopped),
        calls=CallCounts(made=700, cached=300, without_reuse=2600),
        tokens_per_question={"baseline": 310.5, "champion": 322.0} if met else {},
    )


def facts(run_id: str = "r1", mlflow: SummaryMlflow | None = None, seed: int = 0) -> RunFacts:
    return RunFacts(
        run_id=run_id,
        system="rag",
        dataset="sample",
        model="some-model",
        seed=seed,
        metric="short_contains",
        attribution="survival",
        optimizer="closed-loop",
        samples=False,
        splits={
            name: SplitSize(conversations=(f"{name}-1", f"{name}-2"), questions=20)
            for name in ("train", "validation", "test")
        },
        prompts_dir="prompts",
        report="report.html",
        mlflow=mlflow,
    )


def summary(result: LoopResult | None = None, **given: object) -> Summary:
    return summarize(facts(**given), result or loop_result())  # type: ignore[arg-type]


def run_folder(home: Path, second: int = 0, *, result: LoopResult | None = None, seed: int = 0) -> RunFolder:
    """A finished run's folder."""
    folder = RunFolder.create(home, system="rag", now=datetime(2026, 1, 2, 3, 4, second), files=FILES)
    done = result or loop_result()
    folder.write_summary(summary(done, run_id=folder.id, seed=seed))
    folder.write_prompts("baseline", BASELINE)
    folder.write_prompts("champion", done.champion_candidate)
    return folder
