"""Reads a conversation into Memori, exchange by exchange, and records what it recalls, extracts and stores.

The prompt of the extraction is ours: that of Memori's cloud is not public.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.systems.building_blocks.answering import ANSWER_PROMPT
from experiments.systems.building_blocks.facts import FACTS_PROMPT, Extractor
from experiments.systems.building_blocks.recall import recorded
from experiments.systems.memori import library
from experiments.systems.memori.augmentation import PromptedAugmentation
from experiments.systems.memori.library import ConnectedMemori
from experiments.systems.memori.own_config import OwnMemori
from tracing.errors import MemorySystemError, MemtuneError, raise_first
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.systems.conversations import DialogueSession, moment_of
from tracing.systems.texts import Text, noted, variables_of

PROMPTS = {prompt.name: prompt for prompt in (FACTS_PROMPT, ANSWER_PROMPT)}


@dataclass(slots=True)
class _Exchange:
    """Messages that Memori reads at once, what it put before them, and what was extracted."""

    messages: Sequence[Text]
    context: Text | None = None
    facts: list[Text] = field(default_factory=list)


class MemoriIngestion(ConnectedMemori):
    """Memori that reads: a client of the openai package is registered with it, whose replies are the conversation's.

    So everything that Memori does around a user's own chat request happens here too: it recalls facts, puts them into
    the request, stores the exchange, and extracts facts from it in the background.
    """

    def __init__(self, access: ModelAccess, entity: str, own: OwnMemori, template: str, *, max_tokens: int) -> None:
        super().__init__(access, entity, own)
        self._extractor = Extractor(FACTS_PROMPT, template, access, max_tokens=max_tokens)
        self._failures: list[MemtuneError] = []
        self._exchange = _Exchange(())
        self.memori.augmentation.augmentations = [_Recorded(self)]

    def read(self, dialogue: DialogueSession, window: int) -> None:
        """Read a session, a window of turns at a time; the last turn of a window is the reply to the others.

        Raises:
            ModelError, BudgetExceededError: a model call failed, even if Memori swallowed the error.
        """
        self.now = _as_written(dialogue.time)
        self.memori.new_session().set_session(dialogue.id)
        # A client of its own for each session: Memori counts what it put into one client's requests, and does not
        # begin again with a session, so that the first messages of the next one would be lost.
        client = library.replaying_client(self._replied)
        self.memori.llm.register(client)
        for start in range(0, len(dialogue.turns), window):
            turns = dialogue.turns[start : start + window]
            self._exchange = _Exchange([noted(turn.spoken, name=turn.id, kind="message") for turn in turns])
            messages = [{"role": "user", "content": message.text} for message in self._request()]
            client.chat.completions.create(model=self._access.task.settings.model, messages=messages)
            self._settle()

    def recalling(self, request: dict[str, Any], inject: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Hook: record what Memori recalls for an exchange and puts before it."""
        query, entries = self._request()[-1].variable, recorded([fact.entry for fact in self.stored.values()])
        with operation("recall", kind="retrieval", inputs={"query": query, "entries": entries}) as op:
            injected = inject()
            first = injected["messages"][0]
            if first["role"] == "system":
                output = op.output("context", first["content"], name="memori_context", kind="context")
                self._exchange.context = Text(first["content"], output)
        return injected

    def extracted(self, texts: Sequence[str]) -> list[str]:
        """The facts of an exchange, given what Memori says it consists of."""
        try:
            exchange = self._exchange
            read = [*([exchange.context] if exchange.context else []), *exchange.messages]
            if list(texts) != [message.text for message in read]:
                raise MemorySystemError(f"memori gives {len(texts)} messages to extract from, not the {len(read)} sent")
            exchange.facts = self._extractor.extract(read)
        except MemtuneError as error:
            self._failures.append(error)  # Memori swallows it
            raise
        return [fact.text for fact in exchange.facts]

    def embedded(self, facts: Sequence[str]) -> list[list[float]]:
        """The vectors of the facts of an exchange."""
        try:
            with operation("embed", kind="embedding", inputs={"facts": variables_of(self._exchange.facts)}):
                return [list(vector) for vector in self._access.embedding.embed(facts)]
        except MemtuneError as error:
            self._failures.append(error)
            raise

    def _request(self) -> Sequence[Text]:
        messages = self._exchange.messages
        return messages[:-1] if len(messages) > 1 else messages

    def _replied(self) -> str | None:
        messages = self._exchange.messages
        return messages[-1].text if len(messages) > 1 else None

    def _settle(self) -> None:
        library.settle(self.memori)
        raise_first(self._failures)
        facts = self._exchange.facts
        self.note(variables_of(facts), [fact.text for fact in facts])


class _Recorded(PromptedAugmentation):
    """The exported augmentation, with its two requests made and recorded by a `MemoriIngestion`."""

    def __init__(self, reader: MemoriIngestion) -> None:
        self._reader = reader

    def extract(self, messages: Sequence[str]) -> list[str]:
        """The facts of an exchange."""
        return self._reader.extracted(messages)

    def embed(self, facts: Sequence[str]) -> list[list[float]]:
        """Their vectors."""
        return self._reader.embedded(facts)


def _as_written(time_said: str) -> str:
    """A session's time as sqlite writes one; "" if it is not known."""
    moment = moment_of(time_said)
    return "" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S")
