"""A user's system around a library, whose prompts have the placeholders that are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.systems.rag import Rag
from tracing.systems.prompts import Contract, PromptSpec
from tracing.systems.protocol import OperationSpec

AWKWARD = 'Mind «é» 😀 {{"a": 1}} $5 100 % \\n "quoted"'
STEPS: Mapping[str, tuple[str, str]] = {
    "note": ("extract", "extract"),
    "graph": ("extract_more", "extract"),
    "reply": ("answer", "answer"),
}
"""Prompt → its operation and stage."""


class Own(Rag):
    """By default its prompts have no placeholders and leave the form of the reply to a library."""

    name = "own"

    def __init__(self, *, prompts: Sequence[str] = ("note", "reply"), placeholders: Sequence[str] = ()) -> None:
        super().__init__()
        steps = {name: STEPS[name] for name in STEPS if name in prompts}
        self.operations = tuple(  # type: ignore[assignment]
            OperationSpec(operation, stage, name)  # type: ignore[arg-type]
            for name, (operation, stage) in steps.items()
        )
        self.prompts = {
            name: PromptSpec(
                name=name,
                text=f"{name} {AWKWARD}" + "".join(f"{{{place}}}" for place in placeholders),
                operation=STEPS[name][0],
                contract=Contract(placeholders=frozenset(placeholders)),
                purpose="Note.",
                builds=name != "reply",
            )
            for name in prompts
        }


OWN = "own_system:Own"
