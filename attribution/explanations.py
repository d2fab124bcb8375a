"""How a method of attribution came to its verdict, step by step, for people who check it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from attribution.cases import Attribution, Case


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
    """A verdict and the steps that led to it, in their order."""

    attribution: Attribution
    steps: tuple[ExplainedStep, ...] = ()


class _Attributes(Protocol):
    def attribute(self, case: Case) -> Attribution: ...


@runtime_checkable
class Explains(Protocol):
    """An `Attributor` that can show its steps."""

    def explain(self, case: Case) -> Explained:
        """As `attribute`, with the steps."""
        ...


def explained(method: _Attributes, case: Case) -> Explained:
    """A method's verdict on a case, with its steps if it shows them. Raises as `attribute`."""
    return method.explain(case) if isinstance(method, Explains) else Explained(method.attribute(case))
