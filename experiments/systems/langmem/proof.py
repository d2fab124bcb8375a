"""Lets a LangMem memory manager with the exported arguments read one conversation."""

import json
import sys
from importlib.metadata import version


def main() -> None:
    """Ask the model of the input for memories."""
    payload = json.load(sys.stdin)
    print("release langmem", version("langmem"))
    from langchain.chat_models import init_chat_model
    from langmem import create_memory_manager

    model = init_chat_model("openai:capture", base_url=payload["base_url"], api_key=payload["key"], max_retries=0)
    manager = create_memory_manager(model, **payload["arguments"])
    manager.invoke({"messages": [{"role": "user", "content": "Ada: I like tea."}]})


main()
