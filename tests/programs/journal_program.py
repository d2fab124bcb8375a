"""A diary that remembers people: facts in SQLite, the OpenAI Responses API."""

import json
import os
import re
import sqlite3
from datetime import UTC, datetime

from openai import OpenAI

MODEL = os.environ.get("JOURNAL_MODEL", "gpt-4.1-mini")
client = OpenAI()
db = sqlite3.connect(os.environ.get("JOURNAL_DB", ":memory:"), check_same_thread=False)
db.execute("CREATE TABLE IF NOT EXISTS facts (id INTEGER PRIMARY KEY, user TEXT, fact TEXT, at TEXT)")

EXTRACT = """Read the conversation and write down each lasting fact about the people in it.

Return JSON: {"facts": ["..."]}. One short sentence per fact, with the name of the person. Leave out small talk."""

FACTS_SCHEMA = {
    "type": "json_schema",
    "name": "facts",
    "strict": True,
    "schema": {
        "type": "object",
        "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
        "required": ["facts"],
        "additionalProperties": False,
    },
}


def remember(user: str, messages: list[dict]) -> list[str]:
    """Store what `messages` tell, and return the new facts."""
    transcript = "\n".join(f"{m['role']}: {m['content']}" for m in messages)
    response = client.responses.create(
        model=MODEL,
        instructions=EXTRACT,
        input=transcript,
        text={"format": FACTS_SCHEMA},
        temperature=0,
        max_output_tokens=400,
    )
    facts = json.loads(response.output_text)["facts"]
    with db:
        db.executemany(
            "INSERT INTO facts (user, fact, at) VALUES (?, ?, ?)",
            [(user, fact, datetime.now(UTC).isoformat()) for fact in facts],
        )
    return facts


def recall(user: str, question: str, limit: int = 8) -> list[str]:
    words = set(re.findall(r"\w+", question.lower()))
    rows = [row[0] for row in db.execute("SELECT fact FROM facts WHERE user = ? ORDER BY id", (user,))]
    return sorted(rows, key=lambda fact: -len(words & set(re.findall(r"\w+", fact.lower()))))[:limit]


def ask(user: str, question: str) -> str:
    facts = recall(user, question)
    response = client.responses.create(
        model=MODEL,
        input=[
            {
                "role": "developer",
                "content": "You answer questions about the user's life.\nWhat you know:\n"
                + "\n".join(f"- {fact}" for fact in facts)
                + "\nAnswer in a few words. Say 'unknown' if the facts do not tell.",
            },
            {"role": "user", "content": question},
        ],
        temperature=0,
        max_output_tokens=60,
    )
    return response.output_text.strip()
