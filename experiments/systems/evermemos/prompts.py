"""The eight prompts, their contracts, and the forms of their replies: schemas for endpoints, and models that read them.

Placeholders and reply keys are those of EverMemOS, so a prompt that is tuned here fits there. Compacting a profile,
which EverMemOS does with a prompt of its own, is part of the update here: its reply has room for a few sentences only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from experiments.systems.building_blocks.answering import ANSWER_PROMPT
from tracing.systems.layouts import Item, Layout, Parts, bullets, numbered
from tracing.systems.prompts import Contract, PromptSpec

MAX_FACTS, MAX_TRAITS = 6, 6
"""Most atomic facts of an episode, and most sentences of a profile."""

MAX_QUERIES, MAX_POINTS = 3, 2
"""Most queries that are asked in addition, and most points found or missing."""

LONGEST_LINE = 140
"""Most characters of a fact, a trait, a query or a point."""

LONGEST_TITLE, LONGEST_EPISODE, LONGEST_REASONING = 80, 600, 80

MAX_MESSAGES = 50
"""Most messages whose boundaries are asked for at once, if no setting says another number."""

MAX_BOUNDARIES = 12
"""Most boundaries of one reply; and at most one for two messages, since a small model would end an episode at each."""

_SLACK = 4
"""A small model fills any list it may, so limits are near what is needed; a reply may exceed them by this factor, since
some endpoints do not enforce them."""

_Line = Annotated[str, Field(max_length=_SLACK * LONGEST_LINE)]


def _lines(most: int) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", "maxLength": LONGEST_LINE}, "maxItems": most}


def _form(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def boundary_schema(messages: int = MAX_MESSAGES) -> dict[str, Any]:
    """The form of the boundaries among so many messages."""
    numbers = {"type": "integer", "enum": list(range(1, messages + 1))}
    return _form(
        reasoning={"type": "string", "maxLength": LONGEST_REASONING},
        boundaries={"type": "array", "items": numbers, "maxItems": max(1, min(messages // 2, MAX_BOUNDARIES))},
        should_wait={"type": "boolean"},
    )


EPISODE_SCHEMA = _form(
    title={"type": "string", "maxLength": LONGEST_TITLE}, content={"type": "string", "maxLength": LONGEST_EPISODE}
)
FACTS_SCHEMA = _form(event_log=_form(time={"type": "string", "maxLength": 40}, atomic_fact=_lines(MAX_FACTS)))
PROFILE_SCHEMA = _form(profile=_lines(MAX_TRAITS))
SUFFICIENCY_SCHEMA = _form(
    is_sufficient={"type": "boolean"},
    key_information_found=_lines(MAX_POINTS),
    missing_information=_lines(MAX_POINTS),
)
QUERIES_SCHEMA = _form(queries=_lines(MAX_QUERIES))


class _Reply(BaseModel):
    model_config = ConfigDict(strict=True)


class Boundaries(_Reply):
    """Where episodes end; `reasoning` is not read."""

    boundaries: Annotated[list[int], Field(max_length=1000)]
    should_wait: bool = False


class Episode(_Reply):
    """One episode, told."""

    title: Annotated[str, Field(max_length=_SLACK * LONGEST_TITLE)] = ""
    content: Annotated[str, Field(max_length=_SLACK * LONGEST_EPISODE)]


class _EventLog(_Reply):
    atomic_fact: Annotated[list[_Line], Field(max_length=_SLACK * MAX_FACTS)]


class Facts(_Reply):
    """The atomic facts of an episode; the time that the reply gives is not read, since it is known."""

    event_log: _EventLog


class Profile(_Reply):
    """Sentences about people."""

    profile: Annotated[list[_Line], Field(max_length=_SLACK * MAX_TRAITS)]


class Sufficiency(_Reply):
    """Whether documents tell the answer, and what they tell and lack."""

    is_sufficient: bool
    key_information_found: Annotated[list[_Line], Field(max_length=_SLACK * MAX_POINTS)] = []
    missing_information: Annotated[list[_Line], Field(max_length=_SLACK * MAX_POINTS)] = []


class Queries(_Reply):
    """What to search for in addition."""

    queries: Annotated[list[_Line], Field(max_length=_SLACK * MAX_QUERIES)]


_TITLE_WORDS = 6


def _boundary_reply(parts: Parts, outputs: Sequence[Item]) -> str:
    value = outputs[0].value if outputs else {}
    ends = value.get("ends", ()) if isinstance(value, dict) else ()
    boundaries = [number for number, end in enumerate(ends, start=1) if end]
    waits = bool(value.get("should_wait")) if isinstance(value, dict) else False
    return json.dumps({"reasoning": "", "boundaries": boundaries, "should_wait": waits})


def _episode_reply(parts: Parts, outputs: Sequence[Item]) -> str:
    content = " ".join(item.text for item in outputs if item.role == "content")
    titles = [item.text for item in outputs if item.role == "title"]
    title = titles[0] if titles else " ".join(content.split()[:_TITLE_WORDS])
    return json.dumps({"title": title, "content": content}, ensure_ascii=False)


def _facts_reply(parts: Parts, outputs: Sequence[Item]) -> str:
    time = next((item.text for item in parts.get("TIME", ())), "")
    facts = [item.text for item in outputs]
    return json.dumps({"event_log": {"time": time, "atomic_fact": facts}}, ensure_ascii=False)


def _profile_reply(parts: Parts, outputs: Sequence[Item]) -> str:
    lines = [line for item in outputs for line in item.text.splitlines()]
    return json.dumps({"profile": lines}, ensure_ascii=False)


BOUNDARY = PromptSpec(
    name="boundary",
    text=(
        "Divide the conversation into episodes of several messages, each about one topic. Give the number of the last "
        "message of each episode. Say that it should wait only if the last topic is clearly not finished.\n"
        'Reply as JSON: {{"reasoning": "...", "boundaries": [...], "should_wait": ...}}\n\n'
        "Messages:\n{messages}"
    ),
    operation="detect_boundaries",
    contract=Contract(
        placeholders=frozenset({"messages"}),
        reply_schema=boundary_schema(),
        markers=('"boundaries"', '"should_wait"'),
    ),
    purpose="Find the messages at which one episode ends and another topic begins.",
    builds=True,
    layout=Layout(lists={"messages": numbered}, reply=_boundary_reply),
)

EPISODE = PromptSpec(
    name="episode",
    text=(
        "Retell the conversation as a short text in the third person. Name every person, and keep every concrete "
        "value, place and date.\n"
        'Reply as JSON: {{"title": "...", "content": "..."}}\n\n'
        "Time: {conversation_start_time}\n"
        "Conversation:\n{conversation}"
    ),
    operation="write_episode",
    contract=Contract(
        placeholders=frozenset({"conversation_start_time", "conversation"}),
        reply_schema=EPISODE_SCHEMA,
        markers=('"title"', '"content"'),
    ),
    purpose="Retell a part of a conversation in the third person, with every name and every concrete value.",
    builds=True,
    layout=Layout(
        roles={"conversation": "messages", "conversation_start_time": "time"},
        reply=_episode_reply,
    ),
)

FACTS = PromptSpec(
    name="facts",
    text=(
        "List the facts that the text tells. Write each as one short sentence in the third person that names the "
        "person.\n"
        'Reply as JSON: {{"event_log": {{"time": "...", "atomic_fact": ["...", "..."]}}}}\n\n'
        "Time: {TIME}\n"
        "Text:\n{INPUT_TEXT}"
    ),
    operation="extract_facts",
    contract=Contract(
        placeholders=frozenset({"INPUT_TEXT", "TIME"}),
        reply_schema=FACTS_SCHEMA,
        markers=('"event_log"', '"atomic_fact"'),
    ),
    purpose="Turn an episode into short, self-contained facts that name the person and keep every concrete value.",
    builds=True,
    layout=Layout(roles={"INPUT_TEXT": "episode", "TIME": "time"}, reply=_facts_reply),
)

PROFILE_INIT = PromptSpec(
    name="profile_init",
    text=(
        "Write a profile of the people from the facts: one short sentence for each thing worth knowing, naming the "
        "person.\n"
        'Reply as JSON: {{"profile": ["...", "..."]}}\n\n'
        "Facts:\n{facts}"
    ),
    operation="init_profile",
    contract=Contract(
        placeholders=frozenset({"facts"}),
        reply_schema=PROFILE_SCHEMA,
        markers=('"profile"',),
    ),
    purpose="Begin the profile of a matter: what its facts tell about the people, in a few sentences.",
    builds=True,
    layout=Layout(lists={"facts": bullets}, reply=_profile_reply),
)

PROFILE_UPDATE = PromptSpec(
    name="profile_update",
    text=(
        "Rewrite the profile so that it agrees with the new facts: replace what has changed, keep the rest, and leave "
        "nothing twice.\n"
        'Reply as JSON: {{"profile": ["...", "..."]}}\n\n'
        "Profile:\n{profile}\n\n"
        "New facts:\n{facts}"
    ),
    operation="update_profile",
    contract=Contract(
        placeholders=frozenset({"profile", "facts"}),
        reply_schema=PROFILE_SCHEMA,
        markers=('"profile"',),
    ),
    purpose="Keep a profile current and short: new facts replace what they change, and the rest stays.",
    builds=True,
    layout=Layout(lists={"facts": bullets}, reply=_profile_reply),
)

SUFFICIENCY = PromptSpec(
    name="sufficiency",
    text=(
        # Begins like the answer's request with the same memories, so that a server that keeps beginnings reads it once.
        "Memories:\n{retrieved_docs}\n\n"
        "Question: {query}\n"
        "Do the memories tell the answer to the question?\n"
        'Reply as JSON: {{"is_sufficient": ..., "key_information_found": ["..."], "missing_information": ["..."]}}'
    ),
    operation="check_sufficiency",
    contract=Contract(
        placeholders=frozenset({"query", "retrieved_docs"}),
        reply_schema=SUFFICIENCY_SCHEMA,
        markers=('"is_sufficient"', '"key_information_found"', '"missing_information"'),
    ),
    purpose="Say whether the memories hold what the question asks for, and what is missing.",
    builds=False,
    layout=Layout(lists={"retrieved_docs": bullets}),
)

QUERIES = PromptSpec(
    name="queries",
    text=(
        "Memories:\n{retrieved_docs}\n\n"
        "Question: {original_query}\n"
        "Found: {key_info}\n"
        "Missing: {missing_info}\n"
        "Write one to three short search queries that would find what is missing.\n"
        'Reply as JSON: {{"queries": ["...", "..."]}}'
    ),
    operation="ask_more",
    contract=Contract(
        placeholders=frozenset({"original_query", "key_info", "missing_info", "retrieved_docs"}),
        reply_schema=QUERIES_SCHEMA,
        markers=('"queries"',),
    ),
    purpose="Write search queries, other than the question, that find what the memories lack.",
    builds=False,
    layout=Layout(
        roles={"original_query": "query"},
        lists={"retrieved_docs": bullets, "key_info": "; ".join, "missing_info": "; ".join},
    ),
)

PROMPTS = {
    prompt.name: prompt
    for prompt in (BOUNDARY, EPISODE, FACTS, PROFILE_INIT, PROFILE_UPDATE, SUFFICIENCY, QUERIES, ANSWER_PROMPT)
}
