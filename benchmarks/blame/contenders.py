"""What searches, and what it is told of whose fault the wrong answers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from attribution.attributor import Attributor, AttributorFactory
from attribution.cases import Attribution, Blame, Case, ErrorType
from attribution.recordings import Recording
from benchmarks.blame.rules import drawn
from optimizer.search.optimizers import LOCAL_SEARCH
from optimizer.tuning.results import Selector
from tracing.llm.access import ModelAccess
from tracing.systems.protocol import OperationSpec, Stage

_ERRORS: Mapping[Stage, ErrorType] = {
    "extract": "ExtractionError",
    "update": "UpdateError",
    "retrieve": "RetrievalError",
    "answer": "ResponseError",
}

Planted = Literal["right", "wrong"]


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to search.

    Attributes:
        name: as on the command line.
        optimizer: by its name in the registry.
        selector, blame: as of `LoopSettings`.
        planted: whether the right or a wrong operation is blamed instead of what attribution names; None for neither.
        share: part of the wrong answers of which that is so.
        about: in a few words.
    """

    name: str
    optimizer: str
    about: str
    selector: Selector = "blame"
    blame: bool = True
    planted: Planted | None = None
    share: float = 0.0


CONTENDERS: Mapping[str, Contender] = {
    contender.name: contender
    for contender in (
        Contender("blame", LOCAL_SEARCH, "the default search"),
        Contender("bandit", LOCAL_SEARCH, "the same, by gains alone: blame says nothing", blame=False),
        Contender("uniform", LOCAL_SEARCH, "the same, all prompts alike", "uniform", blame=False),
        Contender("round-robin", LOCAL_SEARCH, "the same, one prompt a round in turn", "round-robin", blame=False),
        Contender("random", "random", "prompts and texts drawn, end to end"),
        Contender("miprov2", "miprov2", "MIPROv2 of DSPy"),
        Contender("gepa", "gepa", "GEPA, prompts in turn"),
        Contender("gepa-all", "optimizer.published.plain_gepa:gepa_on_all", "GEPA, all prompts at once"),
        Contender("perfect", LOCAL_SEARCH, "blame that is always right", planted="right", share=1.0),
        Contender("misled-30", LOCAL_SEARCH, "30 % of it on a wrong operation", planted="wrong", share=0.3),
        Contender("misled-100", LOCAL_SEARCH, "all of it on a wrong operation", planted="wrong", share=1.0),
    )
}
OURS = "blame"
WITHOUT_BLAME = ("bandit", "uniform", "round-robin", "random", "miprov2", "gepa", "gepa-all")
MISLED = ("misled-30", "misled-100")


@dataclass(frozen=True, slots=True)
class Misleading:
    """An `AttributorFactory` that blames a given operation for some of the wrong answers, and else asks another."""

    factory: AttributorFactory
    operation: OperationSpec
    share: float

    def __call__(self, recording: Recording, access: ModelAccess) -> Attributor:
        return _Misled(self.factory(recording, access), self.operation, self.share)


@dataclass(frozen=True, slots=True)
class _Misled:
    method: Attributor
    operation: OperationSpec
    share: float

    def attribute(self, case: Case) -> Attribution:
        if drawn(case.conversation, case.question.id, self.operation.name) >= self.share:
            return self.method.attribute(case)
        error = _ERRORS[self.operation.stage]
        return Attribution(case, (Blame(self.operation.name, None, error, 0.9, "it was planted here"),))
