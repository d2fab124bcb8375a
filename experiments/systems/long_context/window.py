"""A window of messages that is trimmed from the oldest, and the operation that records what was trimmed."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tracing.recording.recorder import operation, variable
from tracing.systems.prompts import tokens_of
from tracing.systems.protocol import Memory
from tracing.systems.texts import Text, recalled


@dataclass(frozen=True, slots=True)
class Message:
    """One message in the window: its name, its text and the id of its variable in the trace."""

    name: str
    text: str
    variable: str

    def as_json(self) -> dict[str, str]:
        """JSON form, for a memory's state."""
        return {"id": self.name, "text": self.text, "variable": self.variable}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Message:
        """The message that `as_json` wrote."""
        return cls(data["id"], data["text"], data["variable"])

    def as_text(self) -> Text:
        """The message to work with: the stored entry itself, or a note of it where the trace does not have that."""
        matches = [match for match in recalled([self.variable]) if not match.is_reference]
        return Text(self.text, matches[0] if matches else variable(self.text, name=self.name, kind="memory_entry"))


class Window:
    """The newest messages of a conversation that have at most so many tokens together."""

    def __init__(self, tokens: int) -> None:
        self._most, self._held = tokens, 0
        self._messages: deque[Message] = deque()
        self._appended = 0

    @property
    def next_name(self) -> str:
        """Name of the message that is appended next."""
        return f"m{self._appended + 1}"

    def append(self, message: Message) -> None:
        """Add the newest message."""
        self._appended += 1
        self._messages.append(message)
        self._held += tokens_of(message.text)

    def trim(self) -> None:
        """Delete the oldest messages until the others fit, recorded as one operation. The newest is always kept."""
        trimmed: list[Message] = []
        while self._held > self._most and len(self._messages) > 1:
            trimmed.append(self._messages.popleft())
            self._held -= tokens_of(trimmed[-1].text)
        if not trimmed:
            return
        with operation("trim", inputs={"entries": recalled(message.variable for message in trimmed)}) as op:
            for message in trimmed:
                op.output("entry", None, name=message.name, kind="delete_marker", previous=message.variable)

    def memory(self) -> Memory:
        """What is in the window."""
        return Memory({"entries": [message.as_json() for message in self._messages]})
