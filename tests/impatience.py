"""Model access that waits little before it tries again."""

from __future__ import annotations

import openai._base_client
import pytest

from tracing.llm.http import endpoint


def wait_little(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.01) -> None:
    """The SDK's first wait, and those of the endpoint, take so long."""
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", seconds)
    monkeypatch.setattr(endpoint, "ASK_AGAIN_S", seconds)
    monkeypatch.setattr(endpoint, "OUTAGE_WAIT_S", seconds)
