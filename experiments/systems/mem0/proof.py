"""Lets a Mem0 with the exported settings add one message."""

import json
import os
import sys
from importlib.metadata import version
from runpy import run_path


def main() -> None:
    """Add a message with the model of the input."""
    payload = json.load(sys.stdin)
    print("release mem0ai", version("mem0ai"))
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": payload["scratch"]}
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


main()
