"""An assistant that keeps notes in SQLite."""

import json
import sqlite3

from openai import AsyncOpenAI

NOTE = """You keep notes about people.

Write one line for each thing the speakers tell about themselves.

Said:
{turns}

Notes:"""

ANSWER = "Notes:\n{notes}\n\nQuestion: {question}\nAnswer in a few words, or 'unknown':"


class Memory:
    def __init__(self, path, client=None, model="gpt-4o-mini"):
        self.db = sqlite3.connect(path)
        self.db.execute("create table if not exists notes (id integer primary key, text text)")
        self.client, self.model = client or AsyncOpenAI(), model

    async def ask(self, text, max_tokens=200):
        reply = await self.client.chat.completions.create(
            model=self.model, messages=[{"role": "user", "content": text}], max_tokens=max_tokens
        )
        return reply.choices[0].message.content

    async def add(self, turns):
        for line in (await self.ask(NOTE.format(turns="\n".join(turns)))).splitlines():
            if line.strip("- "):
                await self.store(line.strip("- "))

    async def store(self, note):
        old = self.search(note, 3)
        if not old:
            self.write(note)
            return
        listed = "\n".join(f"{number}: {text}" for number, text in enumerate(old))
        decision = json.loads(
            await self.ask(
                f"Existing notes:\n{listed}\n\nNew note: {note}\n\n"
                f'Reply with JSON {{"replaces": number or null, "note": "text"}}. Merge what belongs together.'
            )
        )
        if decision["replaces"] is not None:
            self.db.execute("delete from notes where text = ?", (old[int(decision["replaces"])],))
        self.write(decision["note"])

    def write(self, note):
        self.db.execute("insert into notes (text) values (?)", (note,))
        self.db.commit()

    def search(self, query, count=6):
        words = set(query.lower().split())
        texts = [text for (text,) in self.db.execute("select text from notes order by id")]
        texts = [text for text in texts if len(words & set(text.lower().split())) > 1]
        return sorted(texts, key=lambda text: -len(words & set(text.lower().split())))[:count]

    async def reply(self, question):
        return (await self.ask(ANSWER.format(notes="\n".join(self.search(question)), question=question), 30)).strip()
