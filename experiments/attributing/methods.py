"""The methods of attribution by name, and how each is set up for a recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attribution.attributor import Attributor
    from attribution.recordings import Recording
    from tracing.llm.access import ModelAccess

METHODS = ("survival", "assisted", "agent", "triage")
ASKING = frozenset(("assisted", "agent", "triage"))
"""Methods that ask a model."""


def method_named(
    name: str, access: ModelAccess | None = None, *, seconds: float | None = None
) -> Callable[[Recording], Attributor]:
    """How to set a method up: `survival`, that `assisted` by a model, the `agent`, or `triage` of survival and agent.

    Args:
        name: of METHODS.
        access: whose task model is asked, where the method asks one.
        seconds: that a case may take a model.
    """
    from attribution.agent.assisted import assisted
    from attribution.agent.method import Agent
    from attribution.agent.triage import Triage
    from attribution.survival.method import Survival

    def survival(recording: Recording) -> Survival:
        return Survival(recording.graph, recording.conversation, recording.operations)

    if name not in ASKING:
        return survival
    assert access is not None  # noqa: S101 (the caller opens it for these methods)
    model = access.task
    if name == "assisted":
        return lambda recording: assisted(recording, model, seconds=seconds)

    def agent(recording: Recording) -> Agent:
        return Agent(recording.graph, model, operations=recording.operations, seconds=seconds)

    if name == "agent":
        return agent
    return lambda recording: Triage(survival(recording), agent(recording))
