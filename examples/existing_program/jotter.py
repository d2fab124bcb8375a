"""Keeps what is said in SQLite and answers from the lines that share the most words with a question."""

import re
import sqlite3

from openai import OpenAI

REPLY = """You know what two people have told each other.

What they said:
{lines}

Question: {question}
Answer:"""


class Jotter:
    def __init__(self, path="jotter.db"):
        self.db = sqlite3.connect(path)
        self.db.execute("create table if not exists said (line text)")
        self.client = OpenAI()

    def hear(self, speaker, text):
        self.db.execute("insert into said values (?)", (f"{speaker}: {text}",))
        self.db.commit()

    def recall(self, question, count=2):
        words = set(re.findall(r"\w+", question.lower()))
        lines = [line for (line,) in self.db.execute("select line from said")]
        return sorted(lines, key=lambda line: -len(words & set(re.findall(r"\w+", line.lower()))))[:count]

    def reply(self, question):
        text = REPLY.format(lines="\n".join(self.recall(question)), question=question)
        made = self.client.chat.completions.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": text}], max_tokens=40, temperature=0
        )
        return made.choices[0].message.content.strip()
