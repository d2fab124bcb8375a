"""A companion with CrewAI's own memory, recorded: URL of the model, folder, and `missed` for a blind search."""

import os
import sys

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}  # read when it is imported

from crewai import LLM, Agent
from crewai.memory.storage.lancedb_storage import LanceDBStorage
from crewai.memory.unified_memory import Memory

from tracing import session, trace
from tracing.instrument.stages import watch

url, folder, fault = sys.argv[1:]
if fault == "missed":
    LanceDBStorage.search = lambda *arguments, **named: []


class Companion:
    def __init__(self):
        model = LLM(model="openai/scripted", base_url=url, api_key="none")
        self.memory = Memory(llm=model, storage=f"{folder}/store", embedder=lambda texts: [[1.0] for _ in texts])
        self.agent = Agent(role="companion", goal="Be of help.", backstory="", llm=model, memory=self.memory)

    def say(self, text):
        reply = self.agent.kickoff(text).raw
        self.memory.drain_writes()
        return reply

    def ask(self, question):
        return self.say(question)


with (
    watch(Memory, extract="extract_memories", retrieve="recall"),
    watch(Companion, answer="ask"),
    trace(f"{folder}/mara.jsonl"),
):
    companion = Companion()
    with session("d1", user="mara"):
        companion.say("My tortoise Brisket only eats radicchio.")
    with session("q1", user="mara"):
        companion.ask("What does my tortoise eat?")
