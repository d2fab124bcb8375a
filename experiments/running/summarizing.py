"""From what a run found, and what is known of it before it starts, to its summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from experiments.runs.summary import (
    SplitSize,
    Summary,
    SummaryAlignment,
    SummaryBlame,
    SummaryCalls,
    SummaryEdit,
    SummaryIteration,
    SummaryMlflow,
    SummaryNoise,
    SummaryPromptsAlone,
    SummaryScore,
    SummarySearch,
    SummarySetting,
    SummarySettingsAttempt,
)
from optimizer.evaluation.noise import NoiseFloor
from optimizer.evaluation.scores import Score, SplitName, Splits
from optimizer.gating.verdict import Verdict
from optimizer.tuning.results import IterationRecord, LoopResult, SearchCost


def sizes(splits: Splits) -> dict[SplitName, SplitSize]:
    """How large each split is."""
    return {
        name: SplitSize(conversations=tuple(c.id for c in group), questions=sum(len(c.questions) for c in group))
        for name, group in splits.named().items()
    }


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run before it starts."""

    run_id: str
    system: str
    dataset: str
    model: str
    seed: int
    metric: str
    attribution: str
    optimizer: str
    samples: bool
    splits: Mapping[SplitName, SplitSize]
    prompts_dir: str
    report: str
    mlflow: SummaryMlflow | None


def summarize(facts: RunFacts, result: LoopResult) -> Summary:
    """The summary of a result."""
    return Summary(
        run_id=facts.run_id,
        system=facts.system,
        dataset=facts.dataset,
        model=facts.model,
        seed=facts.seed,
        metric=facts.metric,
        attribution=facts.attribution,
        optimizer=facts.optimizer,
        splits=dict(facts.splits),
        baseline=_scores(result.baseline),
        champion=_scores(result.champion),
        verdict=result.verdict,
        delta=result.delta,
        delta_ci=result.delta_ci,
        p_value=result.p_value,
        iterations=tuple(_iteration(record) for record in result.iterations),
        calls=SummaryCalls(**asdict(result.calls)),
        stopped=str(result.stopped),
        prompts_dir=facts.prompts_dir,
        report=facts.report,
        mlflow=facts.mlflow,
        samples=facts.samples,
        noise=_noise(result.noise),
        settings={name: SummarySetting(**asdict(each)) for name, each in result.settings.items()},
        prompts_alone=_alone(result.prompts_alone),
        search=_search(result.search),
    )


def _scores(scores: Mapping[SplitName, Score]) -> dict[SplitName, SummaryScore]:
    return {split: SummaryScore(**asdict(score)) for split, score in scores.items()}


def _noise(found: NoiseFloor | None) -> SummaryNoise | None:
    if found is None:
        return None
    return SummaryNoise(noise=found.noise, deviation=found.deviation, changed=found.changed, questions=found.questions)


def _alone(found: Verdict | None) -> SummaryPromptsAlone | None:
    if found is None:
        return None
    return SummaryPromptsAlone(verdict=found.verdict, delta=found.delta, delta_ci=found.delta_ci, p_value=found.p_value)


def _search(found: SearchCost | None) -> SummarySearch | None:
    if found is None:
        return None
    parts = {name: SummarySearch(calls=each.calls, tokens=each.tokens) for name, each in found.by_optimizer.items()}
    return SummarySearch(calls=found.calls, tokens=found.tokens, by_optimizer=parts)


def _iteration(record: IterationRecord) -> SummaryIteration:
    values = {
        field.name: getattr(record, field.name)
        for field in fields(record)
        if field.name in SummaryIteration.model_fields
    }
    values["blame"] = {name: SummaryBlame(**asdict(share)) for name, share in record.blame.items()}
    values["alignment"] = {
        name: SummaryAlignment(**asdict(found), misleads=found.misleads) for name, found in record.alignment.items()
    }
    values["settings"] = [
        SummarySettingsAttempt(**{**asdict(each), "gate": each.gate and str(each.gate)}) for each in record.settings
    ]
    values["changed"] = {name: SummarySetting(**asdict(each)) for name, each in record.changed.items()}
    values["edit"] = SummaryEdit.model_validate(asdict(record.edit)) if record.edit is not None else None
    return SummaryIteration(**values)
