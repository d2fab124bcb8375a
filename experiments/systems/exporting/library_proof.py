"""Runs the program of a row of `library_targets.toml`, in an environment that has the library and not memtune."""

import json
import os
import sys
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from runpy import run_path


def main() -> None:
    """Tell the release, and run the program with the prompts, the model and the service of the input."""
    payload = json.load(sys.stdin)
    print("release", payload["package"], version(payload["package"]), flush=True)
    places = {"folder": payload["scratch"], "url": payload["url"], "key": payload["key"]}
    openai = {"OPENAI_BASE_URL": payload["base_url"], "OPENAI_API_KEY": payload["key"]}
    os.environ |= openai | {name: text.format_map(places) for name, text in payload["environment"].items()}
    sys.path.append(payload["exported"])
    program = Path(payload["scratch"]) / "use.py"
    program.write_text(payload["use"], encoding="utf-8")
    prompts = defaultdict(dict, payload["prompts"])
    run_path(str(program), {**places, "prompts": prompts, "said": "Ada: I like tea from Assam."})


main()
