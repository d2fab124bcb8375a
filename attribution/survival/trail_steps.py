"""Where content survived, stage by stage, in sentences for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attribution.cases import Case
from attribution.explanations import ExplainedStep, quote
from attribution.survival.case_view import Trail
from attribution.text.content import text_of
from tracing.graph.elements import Variable

_MOST_QUOTED = 3


def steps_of(trails: Sequence[Trail], case: Case) -> tuple[ExplainedStep, ...]:
    """What each trail follows, what carries it after extraction, in memory and in the context, then the reply."""
    return (*(step for trail in trails for step in _steps(trail)), _reply(case))


def _steps(trail: Trail) -> Iterable[ExplainedStep]:
    need = trail.need
    where = f" from {', '.join(need.turns)}" if need.turns else ""
    yield ExplainedStep("What the answer needs", f"{quote(need.label)}{where} ({need.basis})")
    yield _stage("Extracted", trail.extracted, "nothing that was extracted carries it")
    yield _stage("In memory at the end", trail.stored, "no stored entry carries it")
    yield _stage("Given to the answer", trail.context, "nothing that the answer was given carries it")
    if trail.reviewed:
        yield ExplainedStep("Reviewed", "a model has looked at these texts too")


def _stage(title: str, carriers: Sequence[Variable], nothing: str) -> ExplainedStep:
    quoted = "; ".join(quote(text_of(carrier.value)) for carrier in carriers[:_MOST_QUOTED])
    more = f" and {len(carriers) - _MOST_QUOTED} more" if len(carriers) > _MOST_QUOTED else ""
    return ExplainedStep(
        title, f"carried by {quoted}{more}" if carriers else nothing, tuple(carrier.id for carrier in carriers)
    )


def _reply(case: Case) -> ExplainedStep:
    right = " or ".join(quote(answer) for answer in case.question.answers if answer.strip()) or "not known"
    return ExplainedStep(
        "Reply", f"{quote(case.reply)}; right would be {right}", (case.prediction,) if case.prediction else ()
    )
