"""What a local objective is: a measure of one prompt on its own operation's recorded inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from tracing.plugins import PluginRegistry
from tracing.systems.conversations import Conversation, Question
from tracing.systems.layouts import Item, Parts
from tracing.systems.prompts import PromptSpec
from tracing.systems.recorded_calls import RecordedCall

OBJECTIVES = PluginRegistry(
    "objectives",
    "search.objectives",
    {
        "extraction": "optimizer.objectives.extraction:extraction",
        "decision": "optimizer.objectives.decisions:decision",
        "update": "optimizer.objectives.updates:UpdateObjective",
        "search": "optimizer.objectives.searching:search",
        "answer": "optimizer.objectives.answers:answer",
    },
)


@dataclass(frozen=True, slots=True)
class RecordedInput:
    """What one execution of a prompt's operation was given.

    Attributes:
        key: identifies it: equal for equal inputs from the same conversation.
        prompt: the prompt that steers the operation.
        conversation: where it was recorded.
        parts: placeholder → the inputs that fill it.
        outputs: what the execution made of it.
        question: what was asked; None for operations that build the memory.
        turns: ids of the turns that it read, itself or by way of what was made of them.
        call: what it asked a model, of a system without `rerun`.
    """

    key: str
    prompt: PromptSpec = field(hash=False, compare=False, repr=False)
    conversation: Conversation = field(hash=False, compare=False, repr=False)
    parts: Parts = field(hash=False, compare=False, repr=False)
    outputs: tuple[Item, ...] = field(default=(), hash=False, compare=False, repr=False)
    question: Question | None = field(default=None, hash=False, compare=False, repr=False)
    turns: tuple[str, ...] = field(default=(), hash=False, compare=False, repr=False)
    call: RecordedCall | None = field(default=None, hash=False, compare=False, repr=False)

    def items(self, kind: str) -> list[Item]:
        """The inputs of one kind, in order."""
        return [item for items in self.parts.values() for item in items if item.kind == kind]


@dataclass(frozen=True, slots=True)
class Credit:
    """How good the outputs for one recorded input are.

    Attributes:
        value: from 0 (all wrong) to 1 (nothing to improve).
        lacks: what is wrong with them, one plain sentence each.
        near: how near they come to the right ones, from 0 to 1; it decides between texts that are worth the same.

    Example:
        >>> Credit(0.5, lacks=("the fact leaves out the city",)).value
        0.5
    """

    value: float
    lacks: tuple[str, ...] = ()
    near: float = 0.0


class Objective(Protocol):
    """Measures what an operation makes of a recorded input, from the gold evidence.

    All methods raise `ModelError` where the judge or the matcher is a model and could not be asked; the input then
    counts as not measured.

    Example:
        >>> class Brief:
        ...     def weight(self, execution):
        ...         return float(execution.question is not None)
        ...
        ...     def credit(self, execution, outputs):
        ...         return Credit(1.0 if outputs and len(outputs[0].text.split()) <= 4 else 0.0)
        >>> Brief().credit(None, [Item("prediction", "prediction", "prediction", "Oslo")]).value
        1.0
    """

    def weight(self, execution: RecordedInput) -> float:
        """How much is at stake at an input, such as the number of facts in it; 0 leaves it out."""

    def credit(self, execution: RecordedInput, outputs: Sequence[Item]) -> Credit:
        """How good the outputs are for the input."""


@runtime_checkable
class KnowsRightOutputs(Protocol):
    """An `Objective` that can show what a correct operation makes of an input; demonstrations are made of that."""

    def right(self, execution: RecordedInput) -> Sequence[Item] | None:
        """The outputs of a correct operation; None if they are not known, or the input is no good example."""
