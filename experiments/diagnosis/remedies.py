"""What to do about an operation that loses information: change its prompt if it has one, otherwise the system."""

from __future__ import annotations

from typing import Literal

from tracing.systems.protocol import Stage

By = Literal["prompt", "either", "system", "data", "judge"]
BY_PROMPT: frozenset[By] = frozenset(("prompt", "either"))

_SYSTEM: dict[Stage, str] = {
    "extract": "change how it cuts and passes on what it reads (size of the pieces, overlap, what it leaves out)",
    "update": "change how it carries out what was decided, or let something decide that",
    "retrieve": "change how it searches: how many entries, another embedding model, words beside vectors, the ranking",
    "answer": "change what it is given and how its reply is read",
}


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
