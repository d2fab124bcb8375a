"""Calls of all clients that a program may ask its models with."""

from __future__ import annotations

import sys

from tracing.instrument.litellm_calls import litellm
from tracing.instrument.openai_calls import anthropic, openai
from tracing.instrument.patches import Instrumentation, is_installed


def clients() -> Instrumentation:
    """Record what `openai` and `anthropic` do, of those that are installed, and `litellm` if it is imported already."""
    instrumentation = Instrumentation()
    for module, record in (("openai", openai), ("anthropic", anthropic)):
        if is_installed(module):
            instrumentation.callback(record().undo)
    if "litellm" in sys.modules:  # to import it takes seconds
        instrumentation.callback(litellm().undo)
    return instrumentation
