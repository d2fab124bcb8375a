"""Uses a library with exported prompts: calls the function of a file here that the input names."""

import asyncio
import inspect
import json
import os
import sys
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from runpy import run_path


def main() -> None:
    """Tell the release, and use the library with the models of the input."""
    payload = json.load(sys.stdin)
    sys.stdout.write(f"release {payload['package']} {version(payload['package'])}\n")
    sys.stdout.flush()
    os.environ |= {"OPENAI_BASE_URL": payload["base_url"], "OPENAI_API_KEY": payload["key"]}
    file, _, function = payload["proof"].partition(":")
    use = run_path(str(Path(__file__).with_name(f"{file}.py")))[function]
    prompts = payload["prompts"]
    ended = use(defaultdict(dict, prompts) if isinstance(prompts, dict) else prompts, payload)
    if inspect.iscoroutine(ended):
        asyncio.run(ended)


main()
