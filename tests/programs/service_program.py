"""A memory service: HTTP handlers, a service that is given its repository, its model and its settings."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Annotated, Protocol

import openai
from fastapi import Depends, FastAPI
from pydantic import BaseModel
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert, select


class Settings(BaseModel):
    database_url: str = "sqlite:///service.db"
    model: str = "gpt-4o-mini"
    top_k: int = 5


class MessageIn(BaseModel):
    user_id: str
    text: str


class QuestionIn(BaseModel):
    user_id: str
    text: str


class Answer(BaseModel):
    text: str
    sources: list[int]


class ChatModel(Protocol):
    async def complete(self, system: str, user: str) -> str: ...


@dataclass
class OpenAIModel:
    settings: Settings

    async def complete(self, system: str, user: str) -> str:
        async with openai.AsyncOpenAI() as client:
            response = await client.chat.completions.create(
                model=self.settings.model,
                messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
                temperature=0,
            )
        return response.choices[0].message.content or ""


class FactRepository:
    def __init__(self, settings: Settings):
        self.engine = create_engine(settings.database_url)
        self.metadata = MetaData()
        self.facts = Table(
            "facts",
            self.metadata,
            Column("id", Integer, primary_key=True),
            Column("user_id", String, index=True),
            Column("text", String),
        )
        self.metadata.create_all(self.engine)

    def insert(self, user_id: str, text: str) -> int:
        with self.engine.begin() as connection:
            return connection.execute(insert(self.facts).values(user_id=user_id, text=text)).inserted_primary_key[0]

    def for_user(self, user_id: str) -> list[tuple[int, str]]:
        with self.engine.begin() as connection:
            rows = connection.execute(select(self.facts).where(self.facts.c.user_id == user_id))
            return [(row.id, row.text) for row in rows]


@dataclass
class MemoryService:
    repository: FactRepository
    model: ChatModel
    settings: Settings
    categories: list[str] = field(default_factory=lambda: ["people", "places", "plans"])

    def _extraction_prompt(self) -> str:
        parts = [
            "You are the memory of an assistant.",
            "Read the message of the user and write down each fact that is worth keeping.",
            "Pay attention to these categories: " + ", ".join(self.categories) + ".",
            'Reply with JSON only: {"facts": ["..."]}',
        ]
        return "\n".join(parts)

    def _answer_prompt(self, facts: list[tuple[int, str]]) -> str:
        prompt = "You answer questions about the user from what is remembered.\n"
        prompt += "Answer in a few words. If it is not remembered, say that you do not know.\n"
        if facts:
            prompt += "What is remembered:\n"
            for number, text in facts:
                prompt += f"[{number}] {text}\n"
        return prompt

    async def remember(self, user_id: str, text: str) -> list[str]:
        reply = await self.model.complete(self._extraction_prompt(), text)
        facts = json.loads(reply)["facts"]
        for fact in facts:
            self.repository.insert(user_id, fact)
        return facts

    def search(self, user_id: str, query: str) -> list[tuple[int, str]]:
        words = set(query.lower().split())
        facts = self.repository.for_user(user_id)
        return sorted(facts, key=lambda fact: -len(words & set(fact[1].lower().split())))[: self.settings.top_k]

    async def answer(self, user_id: str, question: str) -> Answer:
        facts = self.search(user_id, question)
        text = await self.model.complete(self._answer_prompt(facts), question)
        return Answer(text=text, sources=[number for number, _ in facts])


def get_settings() -> Settings:
    return Settings()


def get_service(settings: Annotated[Settings, Depends(get_settings)]) -> MemoryService:
    return MemoryService(FactRepository(settings), OpenAIModel(settings), settings)


app = FastAPI()


@app.post("/messages")
async def post_message(
    body: MessageIn, service: Annotated[MemoryService, Depends(get_service)]
) -> dict[str, list[str]]:
    return {"facts": await service.remember(body.user_id, body.text)}


@app.post("/questions")
async def post_question(body: QuestionIn, service: Annotated[MemoryService, Depends(get_service)]) -> Answer:
    return await service.answer(body.user_id, body.text)
