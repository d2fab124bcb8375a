"""Lets a Graphiti with the exported prompt library add episodes of each kind, alone and in bulk, to a graph."""

import os
from datetime import UTC, datetime
from runpy import run_path
from typing import Any


async def add(module: str, payload: dict[str, Any]) -> None:
    """Add the episodes with the models of the input."""
    os.environ |= {"GRAPHITI_TELEMETRY_ENABLED": "false", "EMBEDDING_DIM": "8"}
    from graphiti_core import Graphiti
    from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
    from graphiti_core.driver.kuzu_driver import KuzuDriver
    from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
    from graphiti_core.graph_queries import get_fulltext_indices
    from graphiti_core.llm_client.config import LLMConfig
    from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
    from graphiti_core.nodes import EpisodeType
    from graphiti_core.utils.bulk_utils import RawEpisode

    prompt_library = run_path(module)["prompt_library"]
    config = LLMConfig(api_key=payload["key"], base_url=payload["base_url"], model="capture", small_model="capture")
    graphiti = Graphiti(
        graph_driver=KuzuDriver(db=f"{payload['scratch']}/graph"),
        llm_client=OpenAIGenericClient(config=config),
        embedder=OpenAIEmbedder(
            OpenAIEmbedderConfig(
                api_key=payload["key"], base_url=payload["base_url"], embedding_model="capture", embedding_dim=8
            )
        ),
        cross_encoder=OpenAIRerankerClient(config=config),
        prompt_library=prompt_library(),
    )
    try:
        await graphiti.build_indices_and_constraints()
        # For this store that makes none of the indices that its searches need.
        for query in get_fulltext_indices(graphiti.driver.provider):
            await graphiti.driver.execute_query(query)
        time = datetime(2026, 1, 1, tzinfo=UTC)
        bodies = {
            EpisodeType.message: "Ada: I like tea from Assam.",
            EpisodeType.text: "Ada likes tea from Assam.",
            EpisodeType.json: '{"name": "Ada", "likes": "tea from Assam"}',
        }
        for source, body in bodies.items():
            await graphiti.add_episode(
                name=f"proof {source.value}",
                episode_body=body,
                source=source,
                source_description="proof",
                reference_time=time,
            )
        await graphiti.add_episode_bulk(
            [
                RawEpisode(
                    name=f"bulk {source.value}",
                    content=body,
                    source=source,
                    source_description="proof",
                    reference_time=time,
                )
                for source, body in bodies.items()
            ]
        )
    finally:
        await graphiti.close()
