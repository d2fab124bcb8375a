"""A hotel concierge service: async, the Anthropic client, prompts in a dataclass. Its routes are thin."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from anthropic import AsyncAnthropic
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel


@dataclass(frozen=True)
class Prompts:
    note: str = (
        "You are the memory of a concierge. From the guest's messages, list every fact that helps to serve "
        "the guest later. One fact on each line, no numbering."
    )
    reply: str = (
        "You are a concierge. Use what is known of the guest.\n\n<known>\n{known}\n</known>\n\n"
        "Answer the guest's question in at most ten words."
    )


@dataclass
class Settings:
    store: Path = Path("guests.json")
    model: str = "claude-haiku-4-5"
    known: int = 10
    prompts: Prompts = field(default_factory=Prompts)


class Concierge:
    def __init__(self, settings: Settings | None = None, client: AsyncAnthropic | None = None) -> None:
        self.settings = settings or Settings()
        self.client = client or AsyncAnthropic()
        self._lock = asyncio.Lock()

    def _load(self) -> dict[str, list[str]]:
        return json.loads(self.settings.store.read_text()) if self.settings.store.exists() else {}

    async def note(self, guest: str, messages: list[str]) -> list[str]:
        message = await self.client.messages.create(
            model=self.settings.model,
            max_tokens=400,
            system=self.settings.prompts.note,
            messages=[{"role": "user", "content": "\n".join(messages)}],
        )
        facts = [line.strip("- ") for line in message.content[0].text.splitlines() if line.strip()]
        async with self._lock:
            notes = self._load()
            notes.setdefault(guest, []).extend(facts)
            self.settings.store.write_text(json.dumps(notes, indent=1))
        return facts

    async def known(self, guest: str, question: str) -> list[str]:
        words = set(question.lower().split())
        facts = self._load().get(guest, [])
        return sorted(facts, key=lambda fact: -len(words & set(fact.lower().split())))[: self.settings.known]

    async def stream(self, guest: str, question: str) -> AsyncIterator[str]:
        known = await self.known(guest, question)
        async with self.client.messages.stream(
            model=self.settings.model,
            max_tokens=60,
            system=self.settings.prompts.reply.format(known="\n".join(known)),
            messages=[{"role": "user", "content": [{"type": "text", "text": question}]}],
        ) as stream:
            async for text in stream.text_stream:
                yield text

    async def reply(self, guest: str, question: str) -> str:
        return "".join([piece async for piece in self.stream(guest, question)])


class Told(BaseModel):
    guest: str
    messages: list[str]


class Asked(BaseModel):
    guest: str
    question: str


app = FastAPI()
service: Concierge | None = None


def concierge() -> Concierge:
    global service
    if service is None:
        service = Concierge()
    return service


@app.post("/notes")
async def notes(told: Told) -> list[str]:
    return await concierge().note(told.guest, told.messages)


@app.post("/reply")
async def reply(asked: Asked) -> StreamingResponse:
    return StreamingResponse(concierge().stream(asked.guest, asked.question), media_type="text/plain")
