"""Long context: every message is kept as it was said, and the answer reads all that fit into a window."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.systems.building_blocks.answering import ANSWER_PROMPT, SharedAnswer, answer_again, answer_from_context
from experiments.systems.building_blocks.choices import Settings, check_least
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, variable
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn
from tracing.systems.interventions import Step, intervening
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate, tokens_of
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import Text, noted, recalled


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


class LongContext(SharedAnswer):
    """Append messages to a window of about `window_tokens` tokens, trim the oldest, answer from the whole window.

    Building asks no model. A trimmed message is deleted by the operation `trim`, so an answer that needed it is
    attributed to that.

    Args:
        window_tokens: most tokens of the messages that are kept, estimated as one for four bytes. Prompt, question and
            reply come in addition, so leave room for them in the context of the task model.
    """

    name = "long-context"
    version = "1"
    prompts = {"answer": ANSWER_PROMPT}  # noqa: RUF012 (the protocol's attribute, never changed)
    operations = (
        OperationSpec("append", "extract", None),
        OperationSpec("trim", "update", None),
        OperationSpec("answer", "answer", "answer"),
    )
    settings = Settings("window_tokens")
    ranges: Mapping[str, Sequence[int]] = {"window_tokens": (2_048, 8_192, 32_768)}

    def __init__(self, *, window_tokens: int = 32_768) -> None:
        check_least(1, window_tokens=window_tokens)
        self.window_tokens = window_tokens

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Append every message with the time of its session, and trim after each session."""
        *_, memory = self.build_stepwise([conversation.sessions], candidate, access)
        return memory

    def build_stepwise(
        self, stretches: Sequence[Sequence[DialogueSession]], candidate: Candidate, access: ModelAccess
    ) -> Iterator[Memory]:
        """The memory after each stretch of sessions."""
        window = Window(self.window_tokens)
        for sessions in stretches:
            for dialogue in sessions:
                with session(dialogue.id, time=dialogue.time):
                    for turn in dialogue.turns:
                        self._read(dialogue.time, turn, window)
                    window.trim()
            yield window.memory()

    def _read(self, time: str, turn: Turn, window: Window) -> None:
        read = [noted(turn.spoken, name=turn.id, kind="message").variable]
        with operation("append", inputs={"message": read}) as op:
            lines = intervening().extracted(Step("append", op.id), read, [time, turn.spoken])
            text = "\n".join(lines).strip()
            if text:
                name = window.next_name
                entry = op.output("entry", text, name=name, kind="memory_entry")
                window.append(Message(name, text, entry.id))

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from the whole window, in the order in which it was said."""
        query = noted(question.question, name=question.id, kind="query")
        context = [Message.from_json(data).as_text() for data in memory.state["entries"]]
        return answer_from_context(query, context, candidate["answer"], access.task)

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Append facts instead of messages."""
        return self._window_of([fact for facts in sessions for fact in facts], trim=True)

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A window of exactly these texts."""
        return self._window_of(texts, trim=False)

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute the prompt's operation once on recorded inputs."""
        answer_again(parts, candidate[prompt], access.task)

    def _window_of(self, texts: Sequence[str], *, trim: bool) -> Memory:
        window = Window(self.window_tokens)
        for text in texts:
            name = window.next_name
            window.append(Message(name, text, variable(text, name=name, kind="memory_entry").id))
        if trim:
            window.trim()
        return window.memory()
