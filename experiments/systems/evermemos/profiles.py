"""Profiles: a few sentences on each cluster, begun with its first episode and rewritten with each later one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.systems.building_blocks.structured_replies import parsed_reply, read_as
from experiments.systems.evermemos.replies import PROFILE_SCHEMA, Profile
from tracing.llm.access import ModelAccess
from tracing.llm.models import ChatModel
from tracing.recording.recorder import ActiveOperation, operation, variable
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change, Step, intervening
from tracing.systems.layouts import bullets
from tracing.systems.prompts import Candidate, render
from tracing.systems.texts import Text, variables_of

MAX_PROFILE_TOKENS = 800

_read = read_as(Profile)


def init_profile(name: str, facts: Sequence[Text], candidate: Candidate, access: ModelAccess) -> Entry | None:
    """The profile of a new cluster as an entry called `name`; None if the facts give none."""
    template = candidate["profile_init"]
    inputs = {"facts": variables_of(facts), "prompt": variable(template, name="profile_init", kind="prompt")}
    with operation("init_profile", kind="llm", inputs=inputs) as op:
        text = _written(op, template, {"facts": bullets([fact.text for fact in facts])}, access.task)
        change = Change("ADD", text=text)
        return _stored("init_profile", op, name, change if text else Change("NONE"), None, access)


def update_profile(
    profile: Entry, profile_text: Text, facts: Sequence[Text], candidate: Candidate, access: ModelAccess
) -> Entry:
    """The next version of a profile, given new facts; the same if an unusable reply was given.

    Args:
        profile: as it is stored.
        profile_text: the same as text.
        facts: of the new episode.
        candidate: the prompts.
        access: the models.
    """
    template = candidate["profile_update"]
    prompt = variable(template, name="profile_update", kind="prompt")
    inputs = {"profile": profile_text.variable, "facts": variables_of(facts), "prompt": prompt}
    with operation("update_profile", kind="llm", inputs=inputs) as op:
        values = {"profile": profile_text.text, "facts": bullets([fact.text for fact in facts])}
        text = _written(op, template, values, access.task)
        change = Change("UPDATE", profile.id, text) if text else Change("NONE", profile.id)
        return _stored("update_profile", op, profile.id, change, profile.variable, access) or profile


def _written(op: ActiveOperation, template: str, values: Mapping[str, str], model: ChatModel) -> str:
    reply = parsed_reply(_read, model, render(template, values), PROFILE_SCHEMA, MAX_PROFILE_TOKENS, op)
    lines = [line.strip() for line in reply.profile] if reply is not None else []
    return "\n".join(dict.fromkeys(filter(None, lines)))


def _stored(
    step: str, op: ActiveOperation, name: str, decision: Change, previous: str | None, access: ModelAccess
) -> Entry | None:
    change = intervening().stored(Step(step, op.id), decision, decision)
    if change.event not in ("ADD", "UPDATE"):
        return None
    (vector,) = access.embedding.embed([change.text])
    output = op.output("profile", change.text, name=name, kind="memory_entry", previous=previous)
    return Entry(name, change.text, tuple(vector), output.id)
