"""The operations of a build: where episodes end, what each tells, its atomic facts, and the profile of its cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.systems.building_blocks.structured_replies import model_step
from experiments.systems.evermemos.prompts import PROMPTS, Boundaries, Episode, Facts, Profile, boundary_schema
from tracing.llm.access import ModelAccess
from tracing.llm.models import ChatModel
from tracing.recording.operations import ActiveOperation
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change, Step, intervening
from tracing.systems.prompts import Candidate
from tracing.systems.texts import Text, variables_of

MAX_BOUNDARY_TOKENS, MAX_EPISODE_TOKENS, MAX_FACTS_TOKENS, MAX_PROFILE_TOKENS = 256, 640, 800, 800


@dataclass(frozen=True, slots=True)
class WrittenEpisode:
    """An episode as it was told: its title and its content."""

    title: Text
    content: Text


def detect_boundaries(messages: Sequence[Text], template: str, model: ChatModel) -> tuple[list[int], bool]:
    """The numbers of the messages that end an episode, from 1, and whether the rest should wait for more.

    An unusable reply makes all of them one episode.
    """
    spec, schema = PROMPTS["boundary"], boundary_schema(len(messages))
    texts = {"messages": messages}
    with model_step(spec, template, texts, Boundaries, model, MAX_BOUNDARY_TOKENS, schema) as (op, reply):
        boundaries = set(reply.boundaries) if reply is not None else set()
        waits = reply.should_wait if reply is not None else False
        # As flags, since numbers in a trace could be taken for something that was said.
        ends = [number in boundaries for number in range(1, len(messages) + 1)]
        op.output("boundaries", {"ends": ends, "should_wait": waits}, name="boundaries", kind="value")
    return [number for number, end in enumerate(ends, start=1) if end], waits


def write_episode(messages: Sequence[Text], time: Text, template: str, model: ChatModel) -> WrittenEpisode | None:
    """The messages retold; None if nothing is."""
    texts = {"messages": messages, "time": [time]}
    with model_step(PROMPTS["episode"], template, texts, Episode, model, MAX_EPISODE_TOKENS) as (op, reply):
        lines = [line for line in reply.content.splitlines() if line.strip()] if reply is not None else []
        step = Step("write_episode", op.id)
        content = "\n".join(intervening().extracted(step, variables_of(messages), lines)).strip()
        if not content:
            return None
        title = reply.title.strip() if reply is not None else ""
        return WrittenEpisode(
            content=Text(content, op.output("content", content, name="episode", kind="fact")),
            title=Text(title, op.output("title", title, name="title", kind="value")),
        )


def extract_facts(episode: Text, time: Text, messages: Sequence[Text], template: str, model: ChatModel) -> list[Text]:
    """The atomic facts of an episode; `messages` are those that it was made of."""
    texts = {"episode": [episode], "time": [time]}
    with model_step(PROMPTS["facts"], template, texts, Facts, model, MAX_FACTS_TOKENS) as (op, reply):
        statements = [text.strip() for text in reply.event_log.atomic_fact] if reply is not None else []
        unique = list(dict.fromkeys(filter(None, statements)))
        facts = intervening().extracted(Step("extract_facts", op.id), variables_of(messages), unique)
        return [
            Text(text, op.output("facts", text, name=f"fact{number}", kind="fact"))
            for number, text in enumerate(facts, start=1)
        ]


def init_profile(name: str, facts: Sequence[Text], candidate: Candidate, access: ModelAccess) -> Entry | None:
    """The profile of a new cluster as an entry called `name`; None if the facts give none."""
    spec, template = PROMPTS["profile_init"], candidate["profile_init"]
    with model_step(spec, template, {"facts": facts}, Profile, access.task, MAX_PROFILE_TOKENS) as (op, reply):
        text = _joined(reply)
        change = Change("ADD", text=text) if text else Change("NONE")
        return _stored(spec.operation, op, name, change, None, access)


def update_profile(
    profile: Entry, profile_text: Text, facts: Sequence[Text], candidate: Candidate, access: ModelAccess
) -> Entry:
    """The next version of a profile, given new facts; the same if an unusable reply was given."""
    spec, template = PROMPTS["profile_update"], candidate["profile_update"]
    texts = {"profile": [profile_text], "facts": facts}
    with model_step(spec, template, texts, Profile, access.task, MAX_PROFILE_TOKENS) as (op, reply):
        text = _joined(reply)
        change = Change("UPDATE", profile.id, text) if text else Change("NONE", profile.id)
        return _stored(spec.operation, op, profile.id, change, profile.variable, access) or profile


def _joined(reply: Profile | None) -> str:
    """The sentences of a profile, each once."""
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
