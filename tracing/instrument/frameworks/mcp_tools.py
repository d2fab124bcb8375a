"""Calls of the tools of servers of the Model Context Protocol, as operations of the program that makes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcp import ClientSession

from tracing.instrument.patches import Instrumentation, ResultHandler, recorded
from tracing.instrument.program_steps import executed, step_here
from tracing.recording.recorder import Recorder


def record_tools(instrumentation: Instrumentation) -> None:
    """Record every call of a tool by any session of a client."""
    instrumentation.replace(ClientSession, "call_tool", recorded(_calling))


@contextmanager
def _calling(
    recorder: Recorder, client: ClientSession, name: str, arguments: Any = None, *args: Any, **kwargs: Any
) -> Iterator[ResultHandler]:
    with executed(name, "tool", step_here()) as operation:
        for role, value in (arguments or {}).items():
            operation.use(role, value)

        def on_result(result: Any) -> None:
            texts = [part.text for part in getattr(result, "content", ()) if getattr(part, "type", "") == "text"]
            operation.output("result", "\n".join(texts))

        yield on_result
