"""Lets a Mem0 with the exported settings add one message, or prints the prompts that it uses by itself.

It runs where Mem0 is, without memtune.
"""

import json
import os
import re
import sys
from importlib.metadata import version
from runpy import run_path
from typing import Any

SHIPPED = {
    "mem0@0.1": {
        "custom_fact_extraction_prompt": "FACT_RETRIEVAL_PROMPT",
        "custom_update_memory_prompt": "DEFAULT_UPDATE_MEMORY_PROMPT",
    },
    "mem0@1.0": {
        "custom_fact_extraction_prompt": "USER_MEMORY_EXTRACTION_PROMPT",
        "custom_update_memory_prompt": "DEFAULT_UPDATE_MEMORY_PROMPT",
    },
    "mem0@2": {"ADDITIVE_EXTRACTION_PROMPT": "ADDITIVE_EXTRACTION_PROMPT"},
}
"""By generation: the constant of `mem0.configs.prompts` for each place of a prompt."""

TODAY = re.compile(r"\n- Today's date is .*")


def shipped(generation: str) -> dict[str, str]:
    """The prompts that the installed Mem0 uses by itself, by place, without the line that tells today's date."""
    from mem0.configs import prompts

    return {place: TODAY.sub("", getattr(prompts, name)) for place, name in SHIPPED[generation].items()}


def add_message(payload: dict[str, Any]) -> None:
    """Add a message with the model and the settings of the input."""
    from mem0 import Memory

    if payload["module"]:
        run_path(payload["module"])["use"]()
    endpoint = {"api_key": payload["key"], "openai_base_url": payload["base_url"]}
    memory = Memory.from_config(
        {
            "llm": {"provider": "openai", "config": {**endpoint, "model": "capture"}},
            "embedder": {"provider": "openai", "config": {**endpoint, "model": "capture", "embedding_dims": 8}},
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": f"{payload['scratch']}/store", "embedding_model_dims": 8},
            },
            "history_db_path": f"{payload['scratch']}/history.db",
            **payload["settings"],
        }
    )
    if payload["replies"]:
        memory = run_path(payload["replies"])["with_reply_schemas"](memory)
    memory.add([{"role": "user", "content": "Ada: I like tea."}], user_id="proof")


def main() -> None:
    """Do what the input asks for."""
    payload = json.load(sys.stdin)
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": payload["scratch"]}
    if "generation" in payload:
        print(json.dumps(shipped(payload["generation"])))
    else:
        print("release mem0ai", version("mem0ai"))
        add_message(payload)


main()
