"""Loads the program of an export, and runs each of its predictors."""

import json
import sys
from runpy import run_path


def main() -> None:
    """Run the predictors with the inputs given for each, on one loopback model."""
    import dspy

    payload = json.load(sys.stdin)
    print("release dspy", dspy.__version__)
    program = run_path(payload["program"])["load"](payload["file"])
    model = dspy.LM("openai/capture", api_base=payload["base_url"], api_key=payload["key"], cache=False, num_retries=0)
    with dspy.context(lm=model):
        for name, inputs in payload["inputs"].items():
            reply = getattr(program, name)(**inputs).reply
            if reply != payload["reply"]:
                sys.exit(f"{name}: the reply {payload['reply']!r} became {reply!r}")


main()
