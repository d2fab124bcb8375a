"""A model as the judge of a run: calibrated on the train conversations, and compared with the judging by words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from attribution.cases import PASS_SCORE
from attribution.judging.agreement import Agreement, agreement
from attribution.judging.words import METRICS
from experiments.runs.summary import SummaryJudge

if TYPE_CHECKING:
    from attribution.judging.llm_judge import LlmJudge, Opinion
    from experiments.runs.seen_cases import SeenCase
    from optimizer.evaluation.evaluator import Evaluator, Progress
    from tracing.systems.conversations import Conversation
    from tracing.systems.prompts import Candidate


def calibrate_judge(
    evaluator: Evaluator,
    candidate: Candidate,
    conversations: Sequence[Conversation],
    *,
    progress: Progress | None = None,
) -> None:
    """Calibrate the evaluator's judge, if it has one, on a candidate's replies.

    Evaluations made for it cost nothing when repeated: they are cached.

    Raises:
        ModelError: the judge's model fails.
        BudgetExceededError: a hard budget was spent.
    """
    from optimizer.evaluation.evaluator import Evaluator

    if evaluator.model_judge is None:
        return
    by_words = Evaluator(evaluator.system, evaluator.access, METRICS[0], evaluator.snapshots)
    outcomes = by_words.evaluate(candidate, conversations, progress=progress)
    evaluator.model_judge.calibrate((case.question, case.reply) for outcome in outcomes for case in outcome.cases)


def judge_summary(judge: LlmJudge, model: str, cases: Iterable[SeenCase]) -> SummaryJudge:
    """How the judge was calibrated, and how it agrees with the judging by words on cases of the run.

    `held_out` are those of validation and test, which it was not calibrated on.
    """
    opinions: dict[tuple[str, str, str], tuple[str, Opinion]] = {}
    for seen_case in cases:
        case, where = seen_case.case, "train" if seen_case.split == "train" else "held_out"
        key = (case.conversation, case.question.id, case.reply)
        opinions[key] = (where, judge.opinion(case.question, case.reply))
    agreements: dict[str, Agreement] = {}
    for where in ("train", "held_out"):
        verdicts = [
            (opinion.margin > 0, opinion.words.score >= PASS_SCORE, opinion.margin)
            for place, opinion in opinions.values()
            if place == where and opinion.margin is not None
        ]
        agreed = agreement(verdicts)
        if agreed is not None:
            agreements[where] = agreed
    calibration = judge.calibration
    return SummaryJudge(
        model=model,
        mode=calibration.mode,
        threshold=calibration.threshold,
        calibrated_on=calibration.n,
        judged=len(opinions),
        abstained=sum(opinion.margin is None for _, opinion in opinions.values()),
        compared_with=METRICS[0],
        agreement=agreements,
    )
