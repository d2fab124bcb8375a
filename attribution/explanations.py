"""How a method of attribution came to its verdict, step by step, and how its reasons quote texts, for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from attribution.cases import Attribution, Case
from attribution.text.content import text_of
from tracing.graph.elements import Variable
from tracing.recording.redaction import excerpt

_LONGEST_QUOTE = 90


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """One step of a method on its way to a verdict.

    Attributes:
        title: what was done.
        text: what came of it.
        variables: ids of the variables that it is about.
    """

    title: str
    text: str
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explained:
    """A verdict and the steps that led to it, in their order.

    Example:
        >>> from attribution.conformance import recorded
        >>> attribution = Attribution(recorded()[1][0], abstained="the trace has no operation that made the reply")
        >>> Explained(attribution, (ExplainedStep("follow the reply", "nothing made it"),)).steps[0].title
        'follow the reply'
    """

    attribution: Attribution
    steps: tuple[ExplainedStep, ...] = ()


class _Attributes(Protocol):
    def attribute(self, case: Case) -> Attribution: ...


@runtime_checkable
class Explains(Protocol):
    """An `Attributor` that can show its steps."""

    def explain(self, case: Case) -> Explained:
        """As `attribute`, with the steps."""


def explained(method: _Attributes, case: Case) -> Explained:
    """A method's verdict on a case, with its steps if it shows them. Raises as `attribute`."""
    return method.explain(case) if isinstance(method, Explains) else Explained(method.attribute(case))


def quote(text: str) -> str:
    """A text in quotation marks, without credentials and cut to a readable length."""
    return f"'{excerpt(' '.join(text.split()), _LONGEST_QUOTE)}'"


def quoted(variable: Variable) -> str:
    """A variable's text in quotation marks."""
    return quote(text_of(variable.value))
