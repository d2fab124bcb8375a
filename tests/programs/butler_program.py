"""An agent that keeps what it is told by itself: a model that calls tools until it has something to say."""

import asyncio
import json
from string import Template

from openai import AsyncOpenAI


class MemoryStore:
    def __init__(self):
        self.items = {}
        self.last = 0

    def save(self, text):
        self.last += 1
        self.items[self.last] = text
        return {"id": self.last}

    def search(self, query):
        words = set(query.lower().split())
        found = [(len(words & set(text.lower().split())), text) for text in self.items.values()]
        return {"found": [text for score, text in sorted(found, reverse=True)[:5] if score]}


STORE = MemoryStore()

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "save",
            "description": "Keep one fact about the user for later conversations, as a full sentence.",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Find what is known about the user. Use it before each answer to a question.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        },
    },
]

LINES = [
    "You are the butler of $name.",
    "Keep whatever $name tells you that may matter later, with the tool save.",
    "Before you answer a question, search what you know.",
    "Answer in at most ten words.",
]
SYSTEM = Template("\n".join(LINES))


class Butler:
    def __init__(self, name="the user", max_steps=6):
        self.name = name
        self.max_steps = max_steps
        self.client = AsyncOpenAI()

    async def _complete(self, messages):
        response = await self.client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=TOOLS)
        return response.choices[0].message

    async def _call(self, call):
        arguments = json.loads(call.function.arguments)
        result = {"save": STORE.save, "search": STORE.search}[call.function.name](**arguments)
        return {"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)}

    async def chat(self, text):
        messages = [
            {"role": "system", "content": SYSTEM.substitute(name=self.name)},
            {"role": "user", "content": text},
        ]
        for _ in range(self.max_steps):
            message = await self._complete(messages)
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return message.content
            messages += await asyncio.gather(*(self._call(call) for call in message.tool_calls))
        return "I could not find out."
