"""Lets cognee with the exported arguments read one text into a graph, and answer one question from it."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any


async def use(prompts: dict[str, Any], payload: dict[str, Any]) -> None:
    """Read and ask with the models of the input."""
    scratch, endpoint, key = payload["scratch"], payload["base_url"], payload["key"]
    # The table of the tokenizer is in litellm, so that nothing is downloaded.
    litellm = find_spec("litellm")
    places = litellm.submodule_search_locations if litellm is not None else None
    tables = Path((places or [scratch])[0]) / "litellm_core_utils" / "tokenizers"
    os.environ |= {
        "TIKTOKEN_CACHE_DIR": str(tables),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "TELEMETRY_DISABLED": "true",
        "ENABLE_BACKEND_ACCESS_CONTROL": "false",
        "COGNEE_SKIP_CONNECTION_TEST": "true",
        "CACHING": "false",
        "SYSTEM_ROOT_DIRECTORY": f"{scratch}/system",
        "DATA_ROOT_DIRECTORY": f"{scratch}/data",
        "CACHE_ROOT_DIRECTORY": f"{scratch}/cache",
        "COGNEE_LOGS_DIR": f"{scratch}/logs",
        "LLM_PROVIDER": "openai",
        "LLM_MODEL": "openai/capture",
        "LLM_ENDPOINT": endpoint,
        "LLM_API_KEY": key,
        "EMBEDDING_PROVIDER": "openai",
        "EMBEDDING_MODEL": "openai/text-embedding-3-large",
        "EMBEDDING_ENDPOINT": endpoint,
        "EMBEDDING_API_KEY": key,
        "EMBEDDING_DIMENSIONS": "8",
    }
    import cognee

    await cognee.add("Ada likes tea from Assam.", dataset_name="proof")
    await cognee.cognify(datasets=["proof"], **prompts["cognify"])
    if "search" in prompts:
        await cognee.search(query_text="What does Ada like?", datasets=["proof"], **prompts["search"])
