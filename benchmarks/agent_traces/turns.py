"""What the people of a story say to the agent, the question at the end."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.agent_traces.story import Story


@dataclass(frozen=True)
class Turn:
    """What a person says in a conversation."""

    by: str
    session: str
    text: str


def turns_of(story: Story) -> list[Turn]:
    """All that is said, in order."""
    asking = story.needed.by
    said = [Turn(turn.by, turn.session, turn.text) for turn in story.told]
    return [*said, Turn(asking, f"{asking}-question", story.question)]
