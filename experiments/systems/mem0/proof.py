"""Lets a Mem0 with the exported settings add one message."""

import json
import os
import sys
from importlib.metadata import version
from runpy import run_path


def main() -> None:
    """Add a message with the model of the input."""
    given = json.load(sys.stdin)
    print("release mem0ai", version("mem0ai"))
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": given["scratch"]}
    from mem0 import Memory

    if given["module"]:
        run_path(given["module"])["use"]()
    endpoint = {"api_key": given["key"], "openai_base_url": given["base_url"]}
    memory = Memory.from_config(
        {
            "llm": {"provider": "openai", "config": {**endpoint, "model": "capture"}},
            "embedder": {"provider": "openai", "config": {**endpoint, "model": "capture", "embedding_dims": 8}},
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": f"{given['scratch']}/store", "embedding_model_dims": 8},
            },
            "history_db_path": f"{given['scratch']}/history.db",
            **given["settings"],
        }
    )
    if given["replies"]:
        memory = run_path(given["replies"])["with_reply_schemas"](memory)
    memory.add([{"role": "user", "content": "Ada: I like tea."}], user_id="proof")


main()
