"""Prints the prompts that the installed Mem0 uses by itself, as a JSON object by the name of their place."""

import json
import os
import re
import sys

NAMES = {
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
TODAY = re.compile(r"\n- Today's date is .*")


def main() -> None:
    """Print them."""
    payload = json.load(sys.stdin)
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": payload["scratch"]}
    from mem0.configs import prompts

    names = NAMES[payload["generation"]]
    print(json.dumps({place: TODAY.sub("", getattr(prompts, name)) for place, name in names.items()}))


main()
