"""Texts that a memory system works with, each with the variable that stands for it in the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracing.graph.elements import Variable
from tracing.recording.recorder import variable


@dataclass(frozen=True, slots=True)
class Text:
    """A text to go on with, and the variable that stands for it in the trace.

    A variable holds what may be looked at: credentials are taken out of it. So requests and memories are made of
    `text`, and of `variable` only the inputs and outputs of operations.
    """

    text: str
    variable: Variable


def noted(text: str, *, name: str, kind: str, **attributes: Any) -> Text:
    """Take down a text that no operation made, as `tracing.variable` does."""
    return Text(text, variable(text, name=name, kind=kind, **attributes))


def variables_of(texts: Sequence[Text]) -> list[Variable]:
    """The variables that stand for texts, in order."""
    return [one.variable for one in texts]
