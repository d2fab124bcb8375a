"""The operations of a build: where episodes end, what each tells, its atomic facts, and the profile of its cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.systems.building_blocks.structured_replies import parsed_reply, read_as
from experiments.systems.evermemos.prompts import (
    EPISODE_SCHEMA,
    FACTS_SCHEMA,
    PROFILE_SCHEMA,
    Boundaries,
    Episode,
    Facts,
    Profile,
    boundary_schema,
)
from tracing.llm.access import ModelAccess
from tracing.llm.models import ChatModel
from tracing.recording.recorder import ActiveOperation, operation, variable
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change, Step, intervening
from tracing.systems.layouts import bullets, numbered
from tracing.systems.prompts import Candidate, render
from tracing.systems.texts import Text, variables_of

MAX_BOUNDARY_TOKENS, MAX_EPISODE_TOKENS, MAX_FACTS_TOKENS = 256, 640, 800

_boundaries, _episode, _facts = read_as(Boundaries), read_as(Episode), read_as(Facts)


@dataclass(frozen=True, slots=True)
class WrittenEpisode:
    """An episode as it was told: its title and its content."""

    title: Text
    content: Text


def detect_boundaries(messages: Sequence[Text], template: str, model: ChatModel) -> tuple[list[int], bool]:
    """The numbers of the messages that end an episode, from 1, and whether the rest should wait for more.

    An unusable reply makes all of them one episode.
    """
    prompt = variable(template, name="boundary", kind="prompt")
    inputs = {"messages": variables_of(messages), "prompt": prompt}
    with operation("detect_boundaries", kind="llm", inputs=inputs) as op:
        request = render(template, {"messages": numbered([message.text for message in messages])})
        reply = parsed_reply(_boundaries, model, request, boundary_schema(len(messages)), MAX_BOUNDARY_TOKENS, op)
        boundaries = set(reply.boundaries) if reply is not None else set()
        waits = reply.should_wait if reply is not None else False
        # As flags, since numbers in a trace could be taken for something that was said.
        ends = [number in boundaries for number in range(1, len(messages) + 1)]
        op.output("boundaries", {"ends": ends, "should_wait": waits}, name="boundaries", kind="value")
    return [number for number, end in enumerate(ends, start=1) if end], waits


def write_episode(messages: Sequence[Text], time: Text, template: str, model: ChatModel) -> WrittenEpisode | None:
    """The messages retold; None if nothing is."""
    prompt = variable(template, name="episode", kind="prompt")
    read = variables_of(messages)
    with operation(
        "write_episode", kind="llm", inputs={"messages": read, "time": time.variable, "prompt": prompt}
    ) as op:
        conversation = "\n".join(message.text for message in messages)
        request = render(template, {"conversation": conversation, "conversation_start_time": time.text})
        reply = parsed_reply(_episode, model, request, EPISODE_SCHEMA, MAX_EPISODE_TOKENS, op)
        lines = [line for line in reply.content.splitlines() if line.strip()] if reply is not None else []
        content = "\n".join(intervening().extracted(Step("write_episode", op.id), read, lines)).strip()
        if not content:
            return None
        title = reply.title.strip() if reply is not None else ""
        return WrittenEpisode(
            content=Text(content, op.output("content", content, name="episode", kind="fact")),
            title=Text(title, op.output("title", title, name="title", kind="value")),
        )


def extract_facts(episode: Text, time: Text, messages: Sequence[Text], template: str, model: ChatModel) -> list[Text]:
    """The atomic facts of an episode; `messages` are those that it was made of."""
    prompt = variable(template, name="facts", kind="prompt")
    inputs = {"episode": episode.variable, "time": time.variable, "prompt": prompt}
    with operation("extract_facts", kind="llm", inputs=inputs) as op:
        request = render(template, {"INPUT_TEXT": episode.text, "TIME": time.text})
        reply = parsed_reply(_facts, model, request, FACTS_SCHEMA, MAX_FACTS_TOKENS, op)
        statements = [text.strip() for text in reply.event_log.atomic_fact] if reply is not None else []
        step = Step("extract_facts", op.id)
        texts = intervening().extracted(step, variables_of(messages), list(dict.fromkeys(filter(None, statements))))
        return [
            Text(text, op.output("facts", text, name=f"fact{number}", kind="fact"))
            for number, text in enumerate(texts, start=1)
        ]


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
