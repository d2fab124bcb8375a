"""The process with the run: calls that a worker forwards pass through its cache, ledger, budget and endpoint."""

from __future__ import annotations

import base64
import contextlib
import json
from array import array
from dataclasses import asdict
from typing import Any

from tracing.errors import MemtuneError
from tracing.llm.access import ModelAccess
from tracing.llm.forwarding.errors import written
from tracing.llm.settings import Role
from tracing.llm.threads import GivenUp
from tracing.recording.recorder import operation, trace

CHATS: tuple[Role, ...] = ("task", "proposer", "judge")
"""The roles of chat models."""


def described(access: ModelAccess) -> dict[str, Any]:
    """What a `ForwardedAccess` needs to know of an access, as JSON. It contains no API key."""
    models = {role: getattr(access, role) for role in (*CHATS, "embedding")}
    return {
        "models": {
            role: {
                "identity": model.identity,
                "settings": model.settings.model_dump(mode="json", exclude={"api_key", "api_key_env"}),
            }
            for role, model in models.items()
        },
        "repetition": access.repetition,
        "concurrency": access.concurrency,
        "threads": access.threads.count,
    }


def answered(access: ModelAccess, request: str) -> str:
    """Make a call that a `ForwardedAccess` asks for, in the watches that are open here; both are JSON.

    The call is made as if the worker's operation ran here, so that the meter has its name.
    """
    asked = json.loads(request)
    said: dict[str, Any] = {}
    with access.watch() as watch, trace() as recorder:
        name = asked["operation"]
        with operation(name, kind="llm") if name is not None else contextlib.nullcontext():
            try:
                said["reply"] = _chatted(access, asked) if asked["role"] in CHATS else _embedded(access, asked)
            except (MemtuneError, GivenUp) as error:
                said["error"] = written(error)
    counted = {"calls": watch.calls, "cached": watch.cached}
    said["watched"] = {
        **counted,
        "prompt_tokens": watch.prompt_tokens,
        "completion_tokens": watch.completion_tokens,
    }
    for made in recorder.graph.operations.values():
        said["recorded"] = {
            **counted,
            "model": made.model,
            "prompt_tokens": made.prompt_tokens,
            "completion_tokens": made.completion_tokens,
            "cost": made.cost,
        }
    return json.dumps(said)


def unmade(error: MemtuneError | GivenUp) -> str:
    """The answer to a call that was not made."""
    none = {"calls": 0, "cached": 0, "prompt_tokens": 0, "completion_tokens": 0}
    return json.dumps({"watched": none, "error": written(error)})


def _chatted(access: ModelAccess, asked: dict[str, Any]) -> dict[str, Any]:
    return asdict(getattr(access, asked["role"]).chat(asked["messages"], **asked["options"]))


def _embedded(access: ModelAccess, asked: dict[str, Any]) -> list[str]:
    vectors = access.embedding.embed(asked["texts"], query=asked["query"])
    return [base64.b64encode(array("f", vector).tobytes()).decode() for vector in vectors]
