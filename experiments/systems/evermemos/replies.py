"""The forms of the replies that EverMemOS' prompts ask for: as schemas for endpoints, and as models that read them.

A small model fills any list it may, so limits are near what is needed. Some endpoints do not enforce them, so a reply
may exceed them by a factor (`_SLACK`).
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

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
