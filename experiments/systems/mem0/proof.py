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

TODAY = re.compile(r"\n- Today's date is .*")


def shipped(constants: dict[str, str]) -> dict[str, str]:
    """The prompts that the installed Mem0 uses by itself, by place, without the line that tells today's date."""
    from mem0.configs import prompts

    return {place: TODAY.sub("", getattr(prompts, name)) for place, name in constants.items()}


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
    if "shipped" in payload:
        print(json.dumps(shipped(payload["shipped"])))
    else:
        print("release mem0ai", version("mem0ai"))
        add_message(payload)


main()
