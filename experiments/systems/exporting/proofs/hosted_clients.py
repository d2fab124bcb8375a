"""Lets the clients of hosted memories hand over the exported prompts, to a server on loopback."""

import os
from typing import Any

Payload = dict[str, Any]


def zep_instructions(prompts: Payload, payload: Payload) -> None:
    """Zep's client sets the instructions of a graph, and of a user's summary."""
    from zep_cloud import Zep

    client = Zep(api_key=payload["key"], base_url=payload["url"], max_retries=0)
    if "set_instructions" in prompts:
        client.graph.set_instructions("proof", **prompts["set_instructions"])
    if "set_summary_instructions" in prompts:
        client.user.set_summary_instructions("proof", **prompts["set_summary_instructions"])


def honcho_workspace(prompts: Payload, payload: Payload) -> None:
    """Honcho's client configures a workspace."""
    from honcho import Honcho
    from honcho.api_types import WorkspaceConfiguration

    client = Honcho(payload["key"], base_url=payload["url"], workspace_id="proof", max_retries=0)
    client.set_configuration(WorkspaceConfiguration(**prompts))


def hindsight_bank(prompts: Payload, payload: Payload) -> None:
    """Hindsight's client configures a bank."""
    from hindsight_client import Hindsight

    with Hindsight(base_url=payload["url"]) as client:
        client.update_bank_config("proof", **prompts)


def letta_agent(prompts: Payload, payload: Payload) -> None:
    """Letta's client creates an agent."""
    from letta_client import Letta

    Letta(api_key=payload["key"], base_url=payload["url"], max_retries=0).agents.create(**prompts)


def mem0_project(prompts: Payload, payload: Payload) -> None:
    """The client of Mem0's platform updates a project."""
    os.environ["MEM0_TELEMETRY"] = "False"
    from mem0 import MemoryClient

    MemoryClient(payload["key"], payload["url"]).project.update(**prompts)


def agentcore_memory(prompts: Payload, payload: Payload) -> None:
    """The client of Bedrock AgentCore creates a memory with a strategy for each override."""
    import boto3

    for steps in prompts.values():
        for step in steps.values():
            step["modelId"] = "capture"
    strategies = [
        {"customMemoryStrategy": {"name": f"proof{number}", "configuration": {override: steps}}}
        for number, (override, steps) in enumerate(prompts.items())
    ]
    client = boto3.client(
        "bedrock-agentcore-control",
        "us-east-1",
        endpoint_url=payload["url"],
        aws_access_key_id="capture",
        aws_secret_access_key=payload["key"],
    )
    client.create_memory(name="proof", eventExpiryDuration=7, memoryStrategies=strategies)


def vertex_memory_bank(prompts: Payload, payload: Payload) -> None:
    """The client of Vertex AI creates an engine with a memory bank."""
    import vertexai
    from google.oauth2.credentials import Credentials

    credentials, options = Credentials(payload["key"]), {"base_url": payload["url"]}
    client = vertexai.Client(project="proof", location="us-central1", credentials=credentials, http_options=options)
    client.agent_engines.create(config={"context_spec": {"memory_bank_config": prompts}})
