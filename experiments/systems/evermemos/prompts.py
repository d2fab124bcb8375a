"""The eight prompts, and the forms of their replies: schemas for endpoints, and models that read them.

Compacting a profile, which EverMemOS does with a prompt of its own, is part of the update here: its reply has room for
a few sentences only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from experiments.systems.building_blocks.answering import ANSWER_PROMPT
from experiments.systems.building_blocks.prompt_files import prompts_in
from experiments.systems.building_blocks.structured_replies import object_schema
from tracing.systems.layouts import Item, Parts

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


def boundary_schema(messages: int = MAX_MESSAGES) -> dict[str, Any]:
    """The form of the boundaries among so many messages."""
    numbers = {"type": "integer", "enum": list(range(1, messages + 1))}
    return object_schema(
        reasoning={"type": "string", "maxLength": LONGEST_REASONING},
        boundaries={"type": "array", "items": numbers, "maxItems": max(1, min(messages // 2, MAX_BOUNDARIES))},
        should_wait={"type": "boolean"},
    )


EPISODE_SCHEMA = object_schema(
    title={"type": "string", "maxLength": LONGEST_TITLE}, content={"type": "string", "maxLength": LONGEST_EPISODE}
)
FACTS_SCHEMA = object_schema(
    event_log=object_schema(time={"type": "string", "maxLength": 40}, atomic_fact=_lines(MAX_FACTS))
)
PROFILE_SCHEMA = object_schema(profile=_lines(MAX_TRAITS))
SUFFICIENCY_SCHEMA = object_schema(
    is_sufficient={"type": "boolean"},
    key_information_found=_lines(MAX_POINTS),
    missing_information=_lines(MAX_POINTS),
)
QUERIES_SCHEMA = object_schema(queries=_lines(MAX_QUERIES))


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


PROMPTS = {
    **prompts_in(
        Path(__file__).with_name("prompts.toml"),
        schemas={
            "boundary": boundary_schema(),
            "episode": EPISODE_SCHEMA,
            "facts": FACTS_SCHEMA,
            "profile_init": PROFILE_SCHEMA,
            "profile_update": PROFILE_SCHEMA,
            "sufficiency": SUFFICIENCY_SCHEMA,
            "queries": QUERIES_SCHEMA,
        },
        replies={
            "boundary": _boundary_reply,
            "episode": _episode_reply,
            "facts": _facts_reply,
            "profile_init": _profile_reply,
            "profile_update": _profile_reply,
        },
    ),
    "answer": ANSWER_PROMPT,
}
