"""A fitness coach: prompts as members of an enum and attributes of a class; one memory for the whole process."""

import re
from datetime import date
from enum import StrEnum
from typing import ClassVar, NamedTuple

from openai import OpenAI


class Prompt(StrEnum):
    EXTRACT = """You take notes for a fitness coach.

Write what the client says of training, injuries, food and life, each as <category>: <note>
"""
    NOTHING = "Write 'none' when there is nothing to note."


class Note(NamedTuple):
    category: str
    text: str


class Prompts:
    STYLE: ClassVar[str] = "Be encouraging in what you answer."

    def __init__(self, name="the client"):
        self.name = name

    def answer(self, notes, question):
        listed = "\n".join(f"- ({note.category}) {note.text}" for note in notes) or "- nothing yet"
        return f"{self.STYLE}\nYou coach {self.name}. You noted ({len(notes)}):\n{listed}\n\nAsked: {question}"


class CoachMemory:
    def __init__(self):
        self.prompts = Prompts()
        self.notes: dict[str, list[Note]] = {}

    def chat(self, *messages):
        asked = [{"role": role, "content": content} for role, content in messages]
        return OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked).choices[0].message.content

    def observe(self, client_id, message):
        system = f"{Prompt.EXTRACT.value}{Prompt.NOTHING.value}\nToday is {date.today():%d %B %Y}."
        found = re.finditer(r"^(\w+): (.+)$", self.chat(("system", system), ("user", message)), re.MULTILINE)
        self.notes.setdefault(client_id, []).extend(Note(*match.groups()) for match in found)

    def relevant(self, client_id, question, top=8):
        words = set(question.lower().split())
        notes = self.notes.get(client_id, [])
        return sorted(notes, key=lambda note: -len(words & set(note.text.lower().split())))[:top]

    def answer(self, client_id, question):
        return self.chat(("user", self.prompts.answer(self.relevant(client_id, question), question)))


memory = CoachMemory()
