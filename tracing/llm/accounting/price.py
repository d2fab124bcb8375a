"""What calls cost, by the prices of their model."""

from __future__ import annotations

from tracing.llm.accounting.budget import Spending
from tracing.llm.settings import ModelSettings


def price(settings: ModelSettings, prompt_tokens: int, completion_tokens: int) -> Spending:
    """What one call with these tokens costs."""
    money = (prompt_tokens * settings.price_in + completion_tokens * settings.price_out) / 1e6
    return Spending(calls=1, tokens=prompt_tokens + completion_tokens, money=money)
