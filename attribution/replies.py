"""Reading the JSON object out of a model's reply, whatever the model put around it."""

from __future__ import annotations

import json
from typing import Any


def object_in(reply: str) -> dict[str, Any] | None:
    """The last JSON object of a reply that is in no other; None if there is none.

    What a model thinks aloud before it may hold braces, and even an object that it decides against.
    """
    decoder = json.JSONDecoder()
    found: dict[str, Any] | None = None
    at = reply.find("{")
    while at >= 0:
        try:
            said, end = decoder.raw_decode(reply, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            found = said
        at = reply.find("{", end)
    return found
