"""The texts with which attribution asks a model, as `prompts.toml` has them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def prompts_of(asker: str) -> Mapping[str, Any]:
    """The texts and schemas of who asks."""
    text = (files("attribution") / "prompts.toml").read_text(encoding="utf-8")
    prompts: Mapping[str, Any] = tomllib.loads(text)[asker]
    return prompts


def request(template: str, **texts: str | tuple[str, ...]) -> list[dict[str, str]]:
    """Messages with texts in a template, several in one place as alternatives.

    They are JSON strings, so that none of them can pass for a part of the task.
    """
    alternatives = {name: (text,) if isinstance(text, str) else text for name, text in texts.items()}
    filled = {
        name: " or ".join(json.dumps(text, ensure_ascii=False) for text in listed)
        for name, listed in alternatives.items()
    }
    return [{"role": "user", "content": template.format_map(filled)}]
