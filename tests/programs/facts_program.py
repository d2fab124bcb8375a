"""A notebook on a memory block of LlamaIndex that extracts facts; kept in a file."""

import json

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import FactExtractionMemoryBlock
from llama_index.core.prompts import RichPromptTemplate
from llama_index.llms.openai_like import OpenAILike

FACTS = """List the new facts of the conversation before this, as <facts><fact>...</fact></facts>.
Known already:
{{ existing_facts }}"""
REPLY = """You remember:
{facts}

Question: {question}
Answer in a few words:"""


class Notebook:
    def __init__(self, path):
        self.path = path
        known = json.loads(path.read_text()) if path.exists() else []
        self.llm = OpenAILike(model="gpt-4o-mini", is_chat_model=True, max_retries=0)
        self.block = FactExtractionMemoryBlock(
            llm=self.llm, facts=known, fact_extraction_prompt_template=RichPromptTemplate(FACTS)
        )

    async def hear(self, texts):
        await self.block.aput([ChatMessage(role="user", content=text) for text in texts])
        self.path.write_text(json.dumps(self.block.facts))

    async def ask(self, question):
        asked = REPLY.format(facts="\n".join(self.block.facts), question=question)
        return (await self.llm.achat([ChatMessage(role="user", content=asked)])).message.content
