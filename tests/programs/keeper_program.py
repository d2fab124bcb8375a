"""A keeper of facts: a tool that the model must call, several sessions at once, retries, replies kept in a cache."""

import json
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from string import Template

from openai import APIConnectionError, OpenAI
from tenacity import retry, retry_if_exception_type, stop_after_attempt

DB = sqlite3.connect(os.environ.get("KEEPER_DB", ":memory:"), check_same_thread=False, isolation_level=None)
DB.execute("CREATE TABLE IF NOT EXISTS facts (user TEXT, session INTEGER, fact TEXT)")
LOCK = threading.Lock()

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "save_facts",
            "description": "Save the facts that the user tells of their life. Call it once. Leave out small talk.",
            "parameters": {
                "type": "object",
                "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
                "required": ["facts"],
            },
        },
    }
]
REPLY = Template("""\
The user is $user. Facts that cost $$0 to keep:
$facts

Question of ${user}: $question

Answer as briefly as you can.""")


def ask(text, **options):
    messages = [{"role": "user", "content": text}]
    return OpenAI().chat.completions.create(model="gpt-4o-mini", messages=messages, **options).choices[0].message


@retry(retry=retry_if_exception_type(APIConnectionError), stop=stop_after_attempt(3))
@lru_cache(maxsize=512)
def complete(prompt):
    return ask(prompt).content


def ingest_one(user, number, text):
    reply = ask(text, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "save_facts"}})
    facts = json.loads(reply.tool_calls[0].function.arguments)["facts"]
    with LOCK:
        DB.executemany("INSERT INTO facts VALUES (?, ?, ?)", [(user, number, fact) for fact in facts])


def ingest(user, sessions, workers=4):
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda pair: ingest_one(user, *pair), enumerate(sessions)))


def lookup(user, question):
    words = set(question.lower().split())
    with LOCK:
        facts = [fact for (fact,) in DB.execute("SELECT fact FROM facts WHERE user = ? ORDER BY session", (user,))]
    return sorted(facts, key=lambda fact: -len(words & set(fact.lower().split())))[:5]


def answer(user, question):
    return complete(REPLY.substitute(user=user, facts="\n".join(lookup(user, question)), question=question))
