"""Frameworks in which people build memories of their own, recorded."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tracing.errors import ConfigError
from tracing.instrument.clients import clients
from tracing.instrument.patches import Instrumentation, is_installed, recorded
from tracing.instrument.stages import watch

ANSWERS = ("messages", "answer", "response", "generation")
"""Under which keys of a graph's state a model's text is by default the answer to the user."""


def agents() -> Instrumentation:
    """Record agents of any framework that asks by OpenTelemetry's spans, OpenAI's or Anthropic's client, or MCP.

    pydantic-ai, Agent Framework, ADK, AutoGen, CrewAI, OpenAI Agents and others: calls to models with their prompts,
    tools with arguments and results, also those of MCP servers. Spans that the frameworks or OpenInference's packages
    make become operations; what no span tells is read off the clients. `memtune attribute` sees in the tools what was
    kept, changed and found.

    Returns:
        A context manager that undoes it, also with the method `undo`.

    Raises:
        ConfigError: the program has a tracer provider that takes no span processors.

    Example:
        >>> with instrument.agents(), trace("run.jsonl"), session("d1", user="mara"):  # doctest: +SKIP
        ...     agent.run_sync("Where do I live?")
    """
    instrumentation = clients()
    if is_installed("mcp"):
        from tracing.instrument.frameworks.mcp_tools import record_tools

        record_tools(instrumentation)
    if is_installed("opentelemetry.sdk"):
        from tracing.instrument.frameworks.agent_spans import follow_spans

        follow_spans(instrumentation)
    return instrumentation


def crewai() -> Instrumentation:
    """Record CrewAI's own memory, and what `agents` records.

    What is extracted from an exchange is an operation `extract_memories`, what is found `recall`, and the run of an
    agent or a crew `kickoff`, which gives the answer. Of what CrewAI writes in the background, what is left at the end
    of a trace is not in it.

    Returns:
        A context manager that undoes it, also with the method `undo`.

    Raises:
        ConfigError: CrewAI is not installed.

    Example:
        >>> with instrument.crewai(), trace("run.jsonl"), session("d1", user="mara"):  # doctest: +SKIP
        ...     agent.kickoff("My tortoise Brisket only eats radicchio.")
    """
    _require("crewai", "CrewAI", "crewai")
    from crewai import Agent, Crew
    from crewai.memory.unified_memory import Memory

    instrumentation = agents()
    instrumentation.callback(watch(Memory, extract="extract_memories", retrieve="recall").undo)
    for runs, waited_for in ((Agent, "kickoff_async"), (Crew, "akickoff")):
        instrumentation.callback(watch(runs, answer=("kickoff", waited_for)).undo)
    return instrumentation


def langchain(*, answers: Collection[str] = ANSWERS) -> Instrumentation:
    """Record LangChain's chains, models, tools, retrievers and vector stores: sync, async, batched and streaming.

    A chain that is part of no other is an operation by its name, once a model is asked or something is retrieved in
    it. A call counts for the operation or chain that runs, with what it was asked as inputs and its reply as output
    "reply"; outside of any it is an operation "chat". What is found in a vector store is an operation `retrieve`, what
    is added or deleted there an operation `store`. Messages and documents are known again by their ids.

    Args:
        answers: under which keys of what a chain or node returns its model's text is the answer, its "prediction".

    Returns:
        A context manager that undoes it, also with the method `undo`.

    Raises:
        ConfigError: LangChain is not installed.

    Example:
        >>> with instrument.langchain(), trace("run.jsonl") as recorder:  # doctest: +SKIP
        ...     chain.invoke("Where does Mara live?")
    """
    _require("langchain_core", "LangChain", "langchain-core")
    from tracing.instrument.frameworks.langchain_runs import follow_runs
    from tracing.instrument.frameworks.langchain_vectors import record_vectors

    instrumentation = Instrumentation()
    follow_runs(instrumentation, answers)
    record_vectors(instrumentation)
    return instrumentation


def langgraph(*, answers: Collection[str] = ANSWERS) -> Instrumentation:
    """Record every graph and every store of LangGraph, and what `langchain` records.

    A node is an operation by its name once it asks a model, uses the memory or passes on what was found there. Its
    inputs are the messages and values of the state that it used. What is put into a store, found or deleted there are
    operations `store` and `retrieve`; namespace and key say which entry it is.

    Args:
        answers: as of `langchain`.

    Returns:
        A context manager that undoes it, also with the method `undo`.

    Raises:
        ConfigError: LangGraph is not installed.

    Example:
        >>> with instrument.langgraph(), trace("run.jsonl") as recorder:  # doctest: +SKIP
        ...     graph.invoke({"messages": [HumanMessage("Where does Mara live?")]})
    """
    _require("langgraph", "LangGraph", "langgraph")
    from tracing.instrument.frameworks.langgraph_stores import record_stores

    instrumentation = langchain(answers=answers)
    record_stores(instrumentation)
    return instrumentation


def langmem(manager: Any) -> Instrumentation:
    """Record a memory manager of LangMem, and what `langgraph` records.

    Each call of it is an operation `manage_memory` that reads the messages, with its requests to the model in it; what
    it writes into its store are operations `store`. The graphs it is made of inside are left out.

    Args:
        manager: what `create_memory_store_manager` or `create_memory_manager` has made.

    Returns:
        A context manager that undoes it, also with the method `undo`.

    Raises:
        ConfigError: LangMem is not installed.

    Example:
        >>> with instrument.langmem(manager), trace("run.jsonl") as recorder:  # doctest: +SKIP
        ...     manager.invoke({"messages": [HumanMessage("I moved to Oslo.")]})
    """
    _require("langmem", "LangMem", "langmem")
    from tracing.instrument.frameworks.langchain_runs import managing

    instrumentation = langgraph()
    for name in ("invoke", "ainvoke"):
        instrumentation.replace(manager, name, recorded(managing))
    return instrumentation


def llama_index() -> Instrumentation:
    """Record LlamaIndex: its memory, indices, retrievers, models, query and chat engines, agents and workflows.

    What `Memory` passes on is read by its blocks: an operation `extract_facts` or `store`, or one by the block's name.
    What it gives back, or a retriever finds, is an operation `retrieve`; what is inserted into an index or deleted is
    an operation `store`. A question to an engine is an operation `query` or `chat`, a run of a workflow or agent one by
    the name of its class, with all calls in it and its answer. Streamed replies are recorded when they end.

    Returns:
        A context manager that undoes it, also with the method `undo`.

    Raises:
        ConfigError: LlamaIndex is not installed.

    Example:
        >>> with instrument.llama_index(), trace("run.jsonl") as recorder:  # doctest: +SKIP
        ...     index.as_query_engine().query("Where does Mara live?")
    """
    _require("llama_index", "LlamaIndex", "llama-index-core")
    from tracing.instrument.frameworks.llama_index_memory import record_memory
    from tracing.instrument.frameworks.llama_index_runs import follow_spans

    instrumentation = Instrumentation()
    follow_spans(instrumentation)
    record_memory(instrumentation)
    return instrumentation


def _require(module: str, name: str, package: str) -> None:
    if not is_installed(module):
        raise ConfigError(f"{name} is not installed: pip install {package}")
