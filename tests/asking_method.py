"""A method of attribution of a user's own, which asks a model for the type of error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, get_args

from attribution.cases import Attribution, Blame, Case, ErrorType
from attribution.explanations import Explained, ExplainedStep
from attribution.recordings import Recording
from tracing.llm.access import ModelAccess


@dataclass(frozen=True)
class Asking:
    """Blames the answer for whatever the model names. `seconds` is what it was told that a case may take."""

    seconds: float | None = None

    def within(self, seconds: float) -> Self:
        return replace(self, seconds=seconds)

    def __call__(self, recording: Recording, access: ModelAccess) -> Asked:
        return Asked(access, self.seconds)


@dataclass(frozen=True)
class Asked:
    access: ModelAccess
    seconds: float | None

    def attribute(self, case: Case) -> Attribution:
        return self.explain(case).attribution

    def explain(self, case: Case) -> Explained:
        request = f"Which error is it?\n{case.question.question}\n{case.reply}"
        text = self.access.task.chat([{"role": "user", "content": request}], max_tokens=9, whole=False).text
        step = ExplainedStep("asked", text)
        for error_type in get_args(ErrorType):
            if error_type == text:
                blame = Blame("answer", None, error_type, 0.5, "the model names it")
                return Explained(Attribution(case, (blame,)), (step,))
        return Explained(Attribution(case, abstained=f"the model said {text!r}"), (step,))


ASKING = Asking()
