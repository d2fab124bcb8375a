"""A biographer on Graphiti, whose memory is a knowledge graph of Kuzu in a file."""

import os

from graphiti_core import Graphiti
from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
from graphiti_core.driver.driver import GraphProvider
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.embedder.openai import OpenAIEmbedder
from graphiti_core.graph_queries import get_fulltext_indices
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.prompts import create_prompt_library
from graphiti_core.prompts.models import ChatPrompt, SystemMessage, UserMessage
from openai import AsyncOpenAI
from pydantic import BaseModel

os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"
RULES = "Take every person, animal, place and thing that somebody speaks of as an entity."
REPLY = """What is known:
{facts}

Question: {question}
Answer in a few words:"""


class Person(BaseModel):
    """Somebody who speaks, or of whom somebody speaks by name."""


class Tells(BaseModel):
    """What somebody tells about their own life."""


def triples(context):
    task = f"""Of the message, write down as facts what the speakers tell about themselves.

Message:
{context["episode_content"]}

Entities that a fact is between:
{context["nodes"]}

Kinds of facts:
{context["edge_types"]}

Said at {context["reference_time"]}."""
    return ChatPrompt(system=SystemMessage(content="You build a knowledge graph."), user=UserMessage(content=task))


class Biographer:
    def __init__(self, path):
        driver = KuzuDriver(str(path))
        self.client = AsyncOpenAI()
        self.graph = Graphiti(
            graph_driver=driver,
            llm_client=OpenAIGenericClient(client=self.client),
            embedder=OpenAIEmbedder(client=self.client),
            cross_encoder=OpenAIRerankerClient(client=self.client),
            prompt_library=create_prompt_library({"extract_edges": {"edge": triples}}),
        )

    async def open(self):
        for query in get_fulltext_indices(GraphProvider.KUZU):
            await self.graph.driver.execute_query(query)

    async def hear(self, name, text, time):
        await self.graph.add_episode(
            name,
            text,
            "a chat",
            time,
            entity_types={"Person": Person},
            edge_types={"TELLS": Tells},
            edge_type_map={("Entity", "Entity"): ["TELLS"]},
            custom_extraction_instructions=RULES,
        )

    async def ask(self, question):
        edges = await self.graph.search(question, num_results=6)
        task = REPLY.format(facts="\n".join(edge.fact for edge in edges), question=question)
        messages = [{"role": "user", "content": task}]
        reply = await self.client.chat.completions.create(model="gpt-4o-mini", messages=messages)
        return reply.choices[0].message.content
