"""A companion with CrewAI's own memory, recorded: URL of the model, folder, and `missed` for a blind search."""

import os
import sys

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}  # read when it is imported

from crewai import LLM, Agent
from crewai.memory.storage.lancedb_storage import LanceDBStorage
from crewai.memory.unified_memory import Memory

from tracing import instrument, session, trace

url, folder, fault = sys.argv[1:]
if fault == "missed":
    LanceDBStorage.search = lambda *arguments, **named: []


class Companion:
    def __init__(self):
        model = LLM(model="openai/scripted", base_url=url, api_key="none")
        self.memory = Memory(llm=model, storage=f"{folder}/store", embedder=lambda texts: [[1.0] for _ in texts])
        self.agent = Agent(role="companion", goal="Be of help.", backstory="", llm=model, memory=self.memory)

    def say(self, text):
        return self.agent.kickoff(text).raw


with instrument.crewai(), trace(f"{folder}/mara.jsonl"):
    companion = Companion()
    with session("d1", user="mara"):
        companion.say("My tortoise Brisket only eats radicchio.")
    with session("q1", user="mara"):
        companion.say("What does my tortoise eat?")
