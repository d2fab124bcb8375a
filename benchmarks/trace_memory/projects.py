"""What the data set `agent-traces` was made from: twelve small projects of agents, written by hand, with questions.

Each turn is somebody's words, a tool call, a step or a decision. As a conversation, tool calls are the messages that an
OpenAI client would send and get; as events, they are what a trace memory records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from experiments.data.dataset_reader import Reading
from experiments.data.own.tables import rows_of
from experiments.systems.trace_memory.turn_events import events_of_turn
from tracing.errors import DataError
from tracing.systems.conversations import Conversation, Split
from tracing.trace_memory.events import Event, moment

_KINDS = ("says", "tool", "step", "decision")


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TracedTurn(_Row):
    """One thing that happened: exactly one of `says`, `tool`, `step` and `decision` is given.

    Attributes:
        id: unique in its conversation.
        time: local, as ISO text.
        by: the agent, or the person who spoke.
        says: what was said.
        tool, arguments, result, error: a call, with a result or an error.
        step, status, detail: a step of a workflow.
        decision, outcome, confidence, reason: a decision.
    """

    id: str
    time: str
    by: str
    says: str | None = None
    tool: str | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    result: Any = None
    error: str | None = None
    step: str | None = None
    status: str = "done"
    detail: str | None = None
    decision: str | None = None
    outcome: str | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)
    reason: str | None = None

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        kinds = [name for name in _KINDS if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise ValueError(f"turn {self.id!r} has {kinds or 'none'} of {', '.join(_KINDS)}; give exactly one")
        try:
            moment(self.time)
        except DataError as error:
            raise ValueError(str(error)) from None
        return self

    def text(self) -> str:
        """The turn as a conversation keeps it: words, or the messages of a tool call."""
        if self.says is not None:
            return self.says
        if self.tool is not None:
            call = f"call_{self.id.replace(':', '_')}"
            function = {"name": self.tool, "arguments": json.dumps(self.arguments, ensure_ascii=False)}
            tool_call = {"id": call, "type": "function", "function": function}
            content = {"error": self.error} if self.error is not None else self.result
            request = {"role": "assistant", "content": None, "tool_calls": [tool_call]}
            answer = {"role": "tool", "tool_call_id": call, "content": json.dumps(content, ensure_ascii=False)}
            return "\n".join(json.dumps(message, ensure_ascii=False) for message in (request, answer))
        names = (
            ("step", "status", "detail") if self.step is not None else ("decision", "outcome", "confidence", "reason")
        )
        facts = {name: getattr(self, name) for name in names}
        return json.dumps({name: fact for name, fact in facts.items() if fact is not None}, ensure_ascii=False)


class TracedSession(_Row):
    """Turns of one occasion."""

    id: str
    turns: tuple[TracedTurn, ...] = Field(min_length=1)


class TracedQuestion(_Row):
    """A question asked after the last session.

    Attributes:
        filter: what an agent that knows its own tools would recall by (`FilterArguments` of a trace memory).
    """

    id: str
    kind: str
    question: str
    answers: tuple[str, ...] = Field(min_length=1)
    evidence: tuple[str, ...] = Field(min_length=1)
    filter: dict[str, Any] = Field(default_factory=dict)


class TracedProject(_Row):
    """What the agents of one entity did in a project."""

    id: str
    split: Split | None = None
    entity: str
    project: str
    sessions: tuple[TracedSession, ...] = Field(min_length=1)
    questions: tuple[TracedQuestion, ...] = ()

    def turns(self) -> Iterator[tuple[str, TracedTurn]]:
        """Each turn with its session's id, in order."""
        for session in self.sessions:
            for turn in session.turns:
                yield session.id, turn

    def conversation(self) -> Conversation:
        """The project as the conversation of its agents and people."""
        return Conversation.model_validate(
            {
                "id": self.id,
                "split": self.split,
                "speakers": list(dict.fromkeys(turn.by for _, turn in self.turns())),
                "sessions": [
                    {
                        "id": session.id,
                        "time": session.turns[0].time,
                        "turns": [{"id": turn.id, "speaker": turn.by, "text": turn.text()} for turn in session.turns],
                    }
                    for session in self.sessions
                ],
                "questions": [question.model_dump(exclude={"filter"}) for question in self.questions],
            }
        )

    def events(self) -> list[Event]:
        """What a trace memory records of it, with the turns' ids."""
        return [
            event
            for session, turn in self.turns()
            for event in events_of_turn(turn.id, turn.by, turn.text(), time=moment(turn.time) or 0.0, session=session)
        ]


_FILE = Path(__file__).with_name("projects.jsonl")


def read_projects(path: Path = _FILE) -> list[TracedProject]:
    """The projects of a JSONL file."""
    return [project for _, _, project in rows_of(path, TracedProject, Reading(), "see docs/trace-memory.md")]
