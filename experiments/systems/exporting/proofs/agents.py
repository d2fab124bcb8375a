"""Lets memories of agent frameworks read a conversation, with the exported prompts."""

from typing import Any

Payload = dict[str, Any]
SAID = "Ada: I like tea from Assam."


def langmem_manager(prompts: dict[str, str], payload: Payload) -> None:
    """LangMem's memory manager reads a message."""
    from langmem import create_memory_manager

    manager = create_memory_manager("openai:capture", **prompts)
    manager.invoke({"messages": [{"role": "user", "content": SAID}]})


def langchain_summary(prompts: Payload, payload: Payload) -> None:
    """An agent of LangChain summarizes all but the last message."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware

    summary = SummarizationMiddleware(
        "openai:capture", trigger=("messages", 2), keep=("messages", 1), **prompts["SummarizationMiddleware"]
    )
    agent = create_agent("openai:capture", middleware=[summary])
    agent.invoke({"messages": [{"role": "user", "content": SAID}] * 3})


def deep_agent(prompts: Payload, payload: Payload) -> None:
    """A deep agent with a memory file answers after it has summarized all but the last message."""
    from deepagents import MemoryMiddleware, create_deep_agent
    from deepagents.backends.filesystem import FilesystemBackend
    from deepagents.middleware.summarization import SummarizationMiddleware

    files = FilesystemBackend(root_dir=payload["scratch"], virtual_mode=True)
    memory = MemoryMiddleware(backend=files, sources=["/AGENTS.md"], **prompts["MemoryMiddleware"])
    summary = SummarizationMiddleware(
        "openai:capture",
        backend=files,
        trigger=("messages", 2),
        keep=("messages", 1),
        **prompts["SummarizationMiddleware"],
    )
    agent = create_deep_agent("openai:capture", middleware=[summary, memory], **prompts["create_deep_agent"])
    agent.invoke({"messages": [{"role": "user", "content": SAID}] * 3})


def agno_memories(prompts: Payload, payload: Payload) -> None:
    """Agno's managers read a message and a session."""
    from agno.db.in_memory import InMemoryDb
    from agno.memory import MemoryManager
    from agno.models.message import Message
    from agno.models.openai import OpenAIChat
    from agno.run.agent import RunOutput
    from agno.run.base import RunStatus
    from agno.session import AgentSession, SessionSummaryManager

    model = OpenAIChat(id="capture")
    manager = MemoryManager(model=model, db=InMemoryDb(), **prompts["MemoryManager"])
    manager.create_user_memories(message=SAID, user_id="ada")
    run = RunOutput(run_id="1", status=RunStatus.completed, messages=[Message(role="user", content=SAID)])
    session = AgentSession(session_id="1", runs=[run])
    SessionSummaryManager(model=model, **prompts["SessionSummaryManager"]).create_session_summary(session)


def llamaindex_blocks(prompts: Payload, payload: Payload) -> Any:
    """A memory block of LlamaIndex extracts and condenses facts, and a buffer summarizes."""
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import ChatSummaryMemoryBuffer, FactExtractionMemoryBlock
    from llama_index.core.prompts import PromptTemplate
    from llama_index.llms.openai_like import OpenAILike

    model = OpenAILike(
        model="capture", api_base=payload["base_url"], api_key=payload["key"], is_chat_model=True, context_window=4096
    )
    templates = {name: PromptTemplate(text) for name, text in prompts["FactExtractionMemoryBlock"].items()}
    messages = [ChatMessage(role="user", content=SAID)] * 3
    buffer = ChatSummaryMemoryBuffer.from_defaults(
        chat_history=messages,
        llm=model,
        token_limit=8,
        tokenizer_fn=str.split,
        **prompts["ChatSummaryMemoryBuffer"],
    )
    buffer.get()
    block = FactExtractionMemoryBlock(llm=model, facts=["Ada likes tea."], max_facts=0, **templates)
    return block.aput(messages)


async def openai_agent(prompts: Payload, payload: Payload) -> None:
    """An agent of the OpenAI Agents SDK answers."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel("capture", AsyncOpenAI())
    await Runner.run(Agent(name="proof", model=model, **prompts["Agent"]), SAID)


async def strands_memory(prompts: Payload, payload: Payload) -> None:
    """Strands extracts from a message, and summarizes a conversation."""
    from strands import Agent
    from strands.agent.conversation_manager import SummarizingConversationManager
    from strands.memory.extraction.model_extractor import ModelExtractor
    from strands.models.openai import OpenAIModel

    model = OpenAIModel(client_args={"base_url": payload["base_url"], "api_key": payload["key"]}, model_id="capture")
    messages = [{"role": role, "content": [{"text": SAID}]} for role in ("user", "assistant") * 3]
    await ModelExtractor(model, **prompts["ModelExtractor"]).extract(messages)
    manager = SummarizingConversationManager(preserve_recent_messages=1, **prompts["SummarizingConversationManager"])
    agent = Agent(model, messages=messages, conversation_manager=manager, **prompts["Agent"])
    await agent.invoke_async(SAID)
    manager.reduce_context(agent)


async def microsoft_agent(prompts: Payload, payload: Payload) -> None:
    """Microsoft's agent framework answers with memory files, extracts and consolidates them, and summarizes."""
    from datetime import timedelta

    from agent_framework import (
        Agent,
        MemoryContextProvider,
        MemoryFileStore,
        Message,
        SummarizationStrategy,
        apply_compaction,
    )
    from agent_framework.openai import OpenAIChatCompletionClient

    client = OpenAIChatCompletionClient(model="capture")
    memory = MemoryContextProvider(
        store=MemoryFileStore(payload["scratch"], owner_state_key="owner"),
        consolidation_interval=timedelta(0),
        consolidation_min_sessions=1,
        **prompts["MemoryContextProvider"],
    )
    agent = Agent(client, context_providers=[memory], **prompts["Agent"])
    session = agent.create_session()
    session.state["owner"] = "ada"
    await agent.run(SAID, session=session)
    summary = SummarizationStrategy(client=client, target_count=1, threshold=0, **prompts["SummarizationStrategy"])
    await apply_compaction(
        [Message(role=role, contents=[SAID]) for role in ("user", "assistant") * 3], strategy=summary
    )
