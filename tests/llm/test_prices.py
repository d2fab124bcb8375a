"""Prices come from settings or LiteLLM's table, and cached and thinking tokens have their own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from tracing.llm.accounting import price as price_module
from tracing.llm.accounting.price import price, price_of
from tracing.llm.accounting.token_counts import TokenCounts
from tracing.llm.settings import ModelSettings

_LOCAL = "http://127.0.0.1:4000/v1"
_ROWS = {
    "gpt-5-mini": ("openai", 0.25, 2.0, 0.025),
    "azure/gpt-5-mini": ("azure", 0.26, 2.1, None),
    "gemini/gemini-flash": ("gemini", 0.3, 2.5, 0.03),
    "claude-small": ("anthropic", 3.0, 15.0, 0.3),
    "groq/openai/gpt-oss": ("groq", 0.15, 0.6, None),
    "xai/grok": ("xai", 1.25, 2.5, None),
    "deepseek/deepseek-chat": ("deepseek", 0.28, 0.42, None),
    "dashscope/qwen-plus": ("dashscope", 0.4, 1.2, None),
    "embed-small": ("openai", 0.02, 0.0, None),
}


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {
        name: {
            "litellm_provider": provider,
            "mode": "chat",
            "input_cost_per_token": prompt / 1e6,
            "output_cost_per_token": completion / 1e6,
            **({} if cached is None else {"cache_read_input_token_cost": cached / 1e6}),
        }
        for name, (provider, prompt, completion, cached) in _ROWS.items()
    }
    rows["dashscope/qwen-plus"]["output_cost_per_reasoning_token"] = 4e-6
    monkeypatch.setattr(price_module, "_table", lambda: rows)
    for cached_function in (price_module._providers, price_of):
        cached_function.cache_clear()


@pytest.mark.parametrize(
    ("model", "base_url", "row"),
    [
        ("gpt-5-mini", "https://api.openai.com/v1", "gpt-5-mini"),
        ("gpt-5-mini-2025-08-07", "https://eu.api.openai.com/v1", "gpt-5-mini"),
        ("gpt-5-mini", "https://own.openai.azure.com", "azure/gpt-5-mini"),
        ("gpt-5-mini", "https://own.services.ai.azure.com/models", "gpt-5-mini"),
        ("models/gemini-flash", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini/gemini-flash"),
        ("claude-small-20260101", "https://api.anthropic.com/v1", "claude-small"),
        ("openai/gpt-5-mini", "https://openrouter.ai/api/v1", "gpt-5-mini"),
        ("openai/gpt-oss", "https://api.groq.com/openai/v1", "groq/openai/gpt-oss"),
        ("grok", "https://api.x.ai/v1", "xai/grok"),
        ("qwen-plus-latest", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "dashscope/qwen-plus"),
        # A proxy has names of its own, with the provider's or without.
        ("gpt-5-mini", _LOCAL, "gpt-5-mini"),
        ("azure/gpt-5-mini", _LOCAL, "azure/gpt-5-mini"),
        ("openrouter/openai/gpt-5-mini", _LOCAL, "gpt-5-mini"),
        # No price is better than another provider's.
        ("gpt-5-mini", "https://api.groq.com/openai/v1", None),
        ("my-deployment", "https://own.openai.azure.com", None),
        ("llama3.1", "http://localhost:11434/v1", None),
    ],
)
@pytest.mark.usefixtures("table")
def test_a_known_model_is_found_by_its_name_and_address(model: str, base_url: str, row: str | None) -> None:
    prices = price_of(ModelSettings(model=model, base_url=base_url))
    if row is None:
        assert prices is None
        return
    assert prices is not None
    assert (prices.prompt, prices.completion) == _ROWS[row][1:3]
    assert prices.source == f"LiteLLM's table: {row}"


@pytest.mark.parametrize(
    ("settings", "money"),
    [
        ({"model": "gpt-5-mini"}, (600 * 0.25 + 400 * 0.025 + 200 * 2) / 1e6),
        ({"model": "dashscope/qwen-plus"}, (1000 * 0.4 + 50 * 1.2 + 150 * 4) / 1e6),
        ({"model": "gpt-5-mini", "price_in": 1.0}, (1000 * 1 + 200 * 2) / 1e6),
        ({"model": "gpt-5-mini", "price_in": 1.0, "price_cached": 0.5}, (600 + 400 * 0.5 + 200 * 2) / 1e6),
        ({"model": "gpt-5-mini", "price_in": 0, "price_out": 0}, 0.0),
        ({"model": "own", "price_out": 3}, 200 * 3 / 1e6),
        ({"model": "own"}, 0.0),
    ],
)
@pytest.mark.usefixtures("table")
def test_cached_and_thinking_tokens_have_their_own_price_and_settings_come_first(
    settings: dict[str, object], money: float
) -> None:
    model = ModelSettings.model_validate({"base_url": _LOCAL, **settings})
    spent = price(model, TokenCounts(1000, 200, cached=400, thinking=150))
    assert (spent.tokens, spent.money) == (1200, pytest.approx(money))


@pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="dspy brings it")
def test_the_installed_table_is_read_without_importing_its_package() -> None:
    program = (
        "import sys; from tracing.llm.settings import ModelSettings; from tracing.llm.accounting.price import price_of;"
        "prices = price_of(ModelSettings(model='gpt-5-mini', base_url='https://api.openai.com/v1'));"
        "assert 0 < prices.cached < prices.prompt < prices.completion, prices;"
        "assert 'litellm' not in sys.modules and 'dspy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
