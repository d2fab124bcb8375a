"""The facts of a diagnosis, aggregated from attributed failures, as data that can be written as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Literal, get_args

from pydantic import Field

from attribution.cases import OUTSIDE_THE_SYSTEM, UNUSABLE_REPLY
from attribution.signals import Signals, aggregate
from attribution.survival.flow import STAGES
from experiments.attributing.attributions import Attributions, CaseLine, doubts_of
from experiments.diagnosis.case_clusters import case_clusters
from optimizer.evaluation.ladder import Rung, attainable
from tracing.strict_models import StrictModel
from tracing.systems.protocol import OperationSpec, Stage

UNUSABLE_REMEDY = (
    "Make replies usable: raise models.task.max_tokens where they are cut short, take a model that keeps to a form, "
    "or loosen the endpoint's content filter"
)
"""What to do about replies that were malformed, cut short, empty, refused or filtered."""

FLOW = ("said in the conversation", "extracted", "stored at the end", "in the answer's context", "answered right")
"""What was said, and what each stage makes of it."""

_STAGES: tuple[Stage, ...] = get_args(Stage)

_Namer = Callable[[Iterable[CaseLine]], tuple[str, ...]]
By = Literal["prompt", "either", "system", "data", "judge"]
BY_PROMPT: frozenset[By] = frozenset(("prompt", "either"))
_SYSTEM: dict[Stage, str] = {
    "extract": "change how it cuts and passes on what it reads (size of the pieces, overlap, what it leaves out)",
    "update": "change how it carries out what was decided, or let something decide that",
    "retrieve": "change how it searches: how many entries, another embedding model, words beside vectors, the ranking",
    "answer": "change what it is given and how its reply is read",
}


class Counts(StrictModel):
    """Counts of a diagnosis; `judged` is None if only failures were given."""

    traces: int
    damaged: int
    judged: int | None
    failures: int
    attributed: int
    beyond: int
    abstained: int
    undone: int
    tokens: int


class OperationLoss(StrictModel):
    """What one operation is to blame for.

    `share` is its part of the loss inside the system, 0 to 1, weighted by confidence, with a 95 % bootstrap interval
    over conversations; `loss` what the score would gain at most if it made no more errors, None where only failures
    were given. `first` is the part of the bootstrap's resamples in which its share is the greatest, None for a single
    conversation, `attainable` what a faultless stage gains by the oracle ladder, where one was climbed, `confirmed` the
    part of its blames, by confidence, that replay confirms of those it looked at.
    """

    operation: str
    stage: Stage
    prompt: str | None
    share: float
    share_ci: tuple[float, float]
    loss: float | None
    loss_ci: tuple[float, float] | None
    first: float | None
    attainable: float | None
    confirmed: float | None = None
    failures: int
    error_types: dict[str, int]
    cases: tuple[str, ...]


class LossByPrompt(StrictModel):
    """What the score would gain at most if none of the operations that a prompt steers made an error."""

    prompt: str
    operations: tuple[str, ...]
    loss: float
    loss_ci: tuple[float, float]


class FlowStep(StrictModel):
    """A stage that information reaches: in how many cases it did, and how many lost it since the stage before."""

    name: str
    reached: int
    lost: int
    cases: tuple[str, ...] = ()


class ClusterFact(StrictModel):
    """A way in which several failures went wrong; `words` has `…` for what differs, which `example` fills in.

    `caveat` says what it does not prove.
    """

    operation: str
    error_type: str
    words: str
    example: str | None
    caveat: str | None
    cases: tuple[str, ...]


class Action(StrictModel):
    """An action, by rank: what, why, the maximum gain in score, and whether a prompt can do it."""

    what: str
    why: str
    gain: float | None
    failures: int
    by: By
    cases: tuple[str, ...]


class DiagnosedCase(StrictModel):
    """A failure, with the id that other facts use for it."""

    id: str
    line: CaseLine


class Diagnosis(StrictModel):
    """All facts of a diagnosis; `prompts_known` says whether a missing prompt means that there is none.

    Cases are named `c1`, `c2`, … in the order of the attributions. `fixable` is the part of the loss that lies with
    operations that a prompt steers, None where prompts are not known; `prompts` are empty where only failures were
    given. `leaks` are entries of one user that another one was answered with, after the name of the trace.
    """

    title: str
    subtitle: str
    method: str
    model: str | None
    counts: Counts
    prompts_known: bool
    operations: tuple[OperationLoss, ...]
    fixable: float | None = None
    prompts: tuple[LossByPrompt, ...] = ()
    error_types: dict[str, int]
    flow: tuple[FlowStep, ...]
    ladder: tuple[Rung, ...] = ()
    clusters: tuple[ClusterFact, ...]
    actions: tuple[Action, ...]
    damaged: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()
    abstained: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    cases: tuple[DiagnosedCase, ...]
    notes: tuple[str, ...] = ()


def diagnose(
    attributions: Attributions, *, title: str, subtitle: str, ladder: Sequence[Rung] = (), notes: Sequence[str] = ()
) -> Diagnosis:
    """The facts that follow from attributions."""
    lines = list(attributions.cases.values())
    names = {line.key: f"c{number}" for number, line in enumerate(lines, start=1)}

    def case_ids(cases: Iterable[CaseLine]) -> tuple[str, ...]:
        return tuple(names[case.key] for case in cases)

    with_cases = [trace for trace in attributions.traces.values() if trace.cases]
    judged = sum(trace.cases for trace in with_cases)
    failures = sum(trace.failed for trace in with_cases)
    total = judged if with_cases and all(trace.all_judged for trace in with_cases) else None
    signals = aggregate(
        [line.attribution() for line in lines],
        _specs(attributions),
        total_cases=total or len(lines),
        seed=0,
        conversations=len({trace.conversation for trace in with_cases}),
        gains=attainable(ladder) if ladder else None,
    )
    operations = _operations(signals, attributions, lines, total, case_ids)
    prompts_known = all(trace.prompts_known for trace in attributions.traces.values())
    beyond = [case for case in lines if (main := case.main) is not None and main.error_type in OUTSIDE_THE_SYSTEM]
    clusters = case_clusters(lines)
    facts = tuple(
        ClusterFact(
            operation=cluster.operation,
            error_type=cluster.error_type,
            words=cluster.words,
            example=cluster.example,
            caveat=cluster.caveat,
            cases=case_ids(cluster.cases),
        )
        for cluster in clusters
    )
    return Diagnosis(
        title=title,
        subtitle=subtitle,
        method=attributions.header.method,
        model=attributions.header.model,
        counts=Counts(
            traces=len(attributions.traces),
            damaged=sum(trace.problem is not None for trace in attributions.traces.values()),
            judged=total,
            failures=max(failures, len(lines)),
            attributed=sum(bool(case.decisive) for case in lines),
            beyond=len(beyond),
            abstained=sum(case.abstained is not None for case in lines),
            undone=max(failures, len(lines)) - len(lines) + sum(case.failed is not None for case in lines),
            tokens=sum(case.tokens for case in lines),
        ),
        prompts_known=prompts_known,
        operations=operations,
        fixable=signals.fixable_share if prompts_known and any(loss.failures for loss in operations) else None,
        prompts=_prompts(signals) if prompts_known and total is not None else (),
        error_types=dict(Counter(main.error_type for case in lines if (main := case.main)).most_common()),
        flow=_flow(lines, 0 if total is None else judged - failures, case_ids),
        ladder=tuple(ladder),
        clusters=facts,
        actions=_actions(operations, facts, lines, total, case_ids, prompts_known=prompts_known),
        damaged=tuple(trace.problem for trace in attributions.traces.values() if trace.problem is not None),
        leaks=tuple(f"{trace.trace}: {leak}" for trace in attributions.traces.values() for leak in trace.leaks),
        abstained=_abstained(lines, case_ids),
        cases=tuple(DiagnosedCase(id=names[line.key], line=line) for line in lines),
        notes=(*notes, *_notes(attributions)),
    )


def _notes(attributions: Attributions) -> list[str]:
    notes = []
    if len({trace.conversation for trace in attributions.traces.values() if trace.cases}) == 1:
        notes.append(
            "All is from one conversation, which says little about others: the intervals are as wide as possible."
        )
    notes += [f"{doubt}." for doubt in doubts_of(attributions.traces.values())]
    troubles = [case.incomplete for case in attributions.cases.values() if case.incomplete is not None]
    if troubles:
        notes.append(f"{len(troubles)} verdicts were found without the model, whose calls failed: {troubles[0]}.")
    return notes


def _specs(attributions: Attributions) -> list[OperationSpec]:
    """The operations of all traces, by name."""
    return list({spec.name: spec for trace in attributions.traces.values() for spec in trace.operations}.values())


def _operations(
    signals: Signals, attributions: Attributions, lines: Sequence[CaseLine], total: int | None, case_ids: _Namer
) -> tuple[OperationLoss, ...]:
    stages = {spec.name: spec.stage for spec in _specs(attributions)}
    return tuple(
        OperationLoss(
            operation=signal.operation,
            stage=stages[signal.operation],
            prompt=signal.prompt,
            share=signal.share,
            share_ci=signal.share_ci,
            loss=None if total is None else signal.loss,
            loss_ci=None if total is None else signal.loss_ci,
            first=signal.first,
            attainable=signal.attainable,
            confirmed=signal.confirmed,
            failures=signal.failures,
            error_types=dict(signal.error_types),
            cases=case_ids(line for line in lines if any(b.operation == signal.operation for b in line.decisive)),
        )
        for signal in signals.signals
    )


def _prompts(signals: Signals) -> tuple[LossByPrompt, ...]:
    return tuple(
        LossByPrompt(
            operations=tuple(signal.operation for signal in signals.signals if signal.prompt == prompt_signal.prompt),
            **asdict(prompt_signal),
        )
        for prompt_signal in signals.prompts
    )


def _flow(lines: Sequence[CaseLine], right: int, case_ids: _Namer) -> tuple[FlowStep, ...]:
    lost: list[list[CaseLine]] = [[] for _ in FLOW[1:]]
    for case in lines:
        main = case.main
        if main is not None and main.error_type in STAGES:
            lost[_STAGES.index(STAGES[main.error_type])].append(case)
    remaining = right + sum(map(len, lost))
    steps = [FlowStep(name=FLOW[0], reached=remaining, lost=0)]
    for name, cases in zip(FLOW[1:], lost, strict=True):
        remaining -= len(cases)
        steps.append(FlowStep(name=name, reached=remaining, lost=len(cases), cases=case_ids(cases)))
    return tuple(steps)


def _actions(
    operations: Sequence[OperationLoss],
    clusters: Sequence[ClusterFact],
    lines: Sequence[CaseLine],
    total: int | None,
    case_ids: _Namer,
    *,
    prompts_known: bool,
) -> tuple[Action, ...]:
    actions = []
    for loss in operations:
        unusable = loss.error_types.get(UNUSABLE_REPLY, 0)
        for failures, is_unusable in ((loss.failures - unusable, False), (unusable, True)):
            if not failures:
                continue
            typical = next(
                (
                    cluster
                    for cluster in clusters
                    if cluster.operation == loss.operation and (cluster.error_type == UNUSABLE_REPLY) == is_unusable
                ),
                None,
            )
            what, by = remedy_for(loss.operation, loss.stage, loss.prompt, prompts_known=prompts_known)
            if is_unusable:
                what, by = f"{UNUSABLE_REMEDY} ({loss.operation})", "system"
            part = failures / loss.failures
            answers = "1 wrong answer" if failures == 1 else f"{failures} wrong answers"
            why = f"{answers}, {loss.share * part:.0%} of the loss"
            if typical is not None:
                why += f"; most often ({len(typical.cases)}×): {typical.words}"
                why += f" (for example: {typical.example})" if typical.example else ""
            own_cases = case_ids(
                case
                for case in lines
                if any(
                    blame.operation == loss.operation and (blame.error_type == UNUSABLE_REPLY) == is_unusable
                    for blame in case.decisive
                )
            )
            gain = None if loss.loss is None else loss.loss * part
            actions.append(Action(what=what, why=why, gain=gain, failures=failures, by=by, cases=own_cases))
    for error_type in sorted(OUTSIDE_THE_SYSTEM):
        cases = [case for case in lines if (main := case.main) is not None and main.error_type == error_type]
        if cases:
            what, why, by = remedy_beyond(error_type, len(cases))
            gain = None if total is None else len(cases) / total
            actions.append(Action(what=what, why=why, gain=gain, failures=len(cases), by=by, cases=case_ids(cases)))
    actions.sort(key=lambda action: -(action.gain if action.gain is not None else action.failures))
    return tuple(actions)


def _abstained(lines: Iterable[CaseLine], case_ids: _Namer) -> dict[str, tuple[str, ...]]:
    reasons: dict[str, list[CaseLine]] = {}
    for case in lines:
        reason = case.failed or case.abstained
        if reason is not None:
            reasons.setdefault(reason, []).append(case)
    return {reason: case_ids(cases) for reason, cases in reasons.items()}


def remedy_for(operation: str, stage: Stage, prompt: str | None, *, prompts_known: bool) -> tuple[str, By]:
    """What to do about an operation, and by what; `known` says whether its prompt, or that it has none, is known."""
    if not prompts_known and stage != "retrieve":
        return f"Look at {operation}: rewrite its prompt if it has one, otherwise {_SYSTEM[stage]}", "either"
    if not prompts_known:
        return f"Look at {operation}: {_SYSTEM[stage]}", "system"
    if prompt is not None:
        return f"Rewrite the prompt {prompt} of {operation}; memtune run does this and measures it", "prompt"
    return f"No prompt steers {operation}: {_SYSTEM[stage]}", "system"


def remedy_beyond(error_type: str, count: int) -> tuple[str, str, By]:
    """What to do about failures that are not the system's: what, why, and where."""
    cases = f"{count} case{'s' if count > 1 else ''}"
    if error_type == "AnnotationError":
        return (
            "Check the gold answers of these questions",
            f"in {cases} the conversation does not support them",
            "data",
        )
    return "Check the judge on these replies", f"in {cases} the answer is right after all", "judge"
