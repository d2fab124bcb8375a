"""Mem0, the real library, passes the conformance suite."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from scripted_server import ScriptedServer, prompt_of

from tracing.llm.access import ModelAccess
from tracing.systems.contract_suite import MemorySystemContract
from tracing.systems.mem0_memory import Mem0
from tracing.systems.protocol import MemorySystem


def facts_shown(request: str) -> list[str]:
    """The new facts in Mem0's update request."""
    import ast

    return list(ast.literal_eval(request.split("```")[-2].strip()))


def scripted(body: dict[str, Any]) -> str:
    """Every message is a fact; new facts are added; the answer is the first memory."""
    request = prompt_of(body)
    if "Input:\n" in request:
        lines = request.partition("Input:\n")[2].splitlines()
        return json.dumps({"facts": [line.removeprefix("user: ") for line in lines]})
    if "new retrieved facts" in request:
        items = [{"id": "9", "text": fact, "event": "ADD"} for fact in facts_shown(request)]
        return json.dumps({"memory": items})
    return next((line[2:] for line in request.splitlines() if line.startswith("- ")), "unknown")


class TestMem0(MemorySystemContract):
    @pytest.fixture(autouse=True)
    def _models(self, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]) -> None:
        scripted_server.script = scripted
        self.opened = open_access(cache=False)

    def access(self) -> ModelAccess:
        return self.opened

    def system(self) -> MemorySystem:
        return Mem0()
