"""A diary that asks about all it hears at once, and keeps each note with a random id and the time."""

import asyncio
import json
from datetime import UTC, datetime
from uuid import uuid4

from openai import AsyncOpenAI

PARTS = {"task": "Write down what is told, a line for each thing."}


class Diary:
    def __init__(self, path):
        self.path = path

    async def ask(self, text):
        messages = [{"role": "user", "content": text}]
        return (await AsyncOpenAI().chat.completions.create(model="m", messages=messages)).choices[0].message.content

    async def note(self, row):
        await asyncio.sleep(0)
        note = await self.ask(f"{PARTS['task']}\n\nSaid:\n{row['said']}\n\nNotes of {row['number'] + 1}:")
        return {"id": str(uuid4()), "at": datetime.now(UTC).isoformat(), "note": note}

    async def hear(self, said):
        notes = await asyncio.gather(*(self.note({"said": text, "number": at}) for at, text in enumerate(said)))
        self.path.write_text(json.dumps(notes))

    async def reply(self, question):
        notes = "\n".join(row["note"] for row in json.loads(self.path.read_text()))
        return await self.ask(f"You remember:\n{notes}\n\nQuestion: {question}\nAnswer in a few words:")
