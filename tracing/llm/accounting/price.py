"""What calls cost: by the prices in the settings of their model, or by those of LiteLLM's table of known models."""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tracing.llm.accounting.budget import Spending
from tracing.llm.accounting.token_counts import TokenCounts
from tracing.llm.settings import ModelSettings

_PER_MILLION = 1e6
_TABLE = "model_prices_and_context_window_backup.json"
_DATE = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$|-latest$|:[a-z]+$")
"""What may follow the name of a model whose price is the name's."""
_HOSTS = {"googleapis": "gemini", "aliyuncs": "dashscope", ".ai.azure": "azure_ai"}
"""Providers of the table whose names are not in their addresses."""
_RESOLD = frozenset({"openrouter", "azure", "azure_ai"})
"""Providers that sell models of others for their prices."""


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of a million tokens of a model, in US dollars where they are the table's.

    Attributes:
        prompt, completion: in and out.
        cached: of the prompt's tokens that the endpoint had read before.
        thinking: of the completion's that were no answer.
        source: `settings`, or the table and its name for the model.
    """

    prompt: float
    completion: float
    cached: float
    thinking: float
    source: str


def price(settings: ModelSettings, tokens: TokenCounts) -> Spending:
    """What one call with these tokens costs; no money if no price is known."""
    prices = price_of(settings)
    money = 0.0
    if prices is not None:
        money = (
            (tokens.prompt - tokens.cached) * prices.prompt
            + tokens.cached * prices.cached
            + (tokens.completion - tokens.thinking) * prices.completion
            + tokens.thinking * prices.thinking
        ) / _PER_MILLION
    return Spending(calls=1, tokens=tokens.prompt + tokens.completion, money=money)


@functools.cache
def price_of(settings: ModelSettings) -> Price | None:
    """The prices of a model: those of its settings, completed from the table; None if neither has any.

    Example:
        >>> price_of(ModelSettings(model="own", base_url="http://127.0.0.1:8000/v1", price_in=2)).source
        'settings'
    """
    if settings.embedded:
        return Price(settings.price_in or 0.0, settings.price_out or 0.0, 0.0, settings.price_out or 0.0, "settings")
    own = settings.price_in, settings.price_out, settings.price_cached
    name, row = ("", {}) if None not in own else _in_table(settings.model, settings.base_url or "")
    if not row and own == (None, None, None):
        return None
    listed_in, listed_out = row.get("input_cost_per_token") or 0.0, row.get("output_cost_per_token") or 0.0
    prompt = listed_in * _PER_MILLION if own[0] is None else own[0]
    completion = listed_out * _PER_MILLION if own[1] is None else own[1]
    listed_cached = row.get("cache_read_input_token_cost") if own[0] is None else None
    listed_thinking = row.get("output_cost_per_reasoning_token") if own[1] is None else None
    cached = prompt if listed_cached is None else listed_cached * _PER_MILLION
    thinking = completion if listed_thinking is None else listed_thinking * _PER_MILLION
    cached = cached if own[2] is None else own[2]
    source = "settings" if own[:2] != (None, None) else f"LiteLLM's table: {name}"
    return Price(round(prompt, 9), round(completion, 9), round(cached, 9), round(thinking, 9), source)


def unknown_prices(settings: ModelSettings, *, writes: bool = True) -> list[str]:
    """The settings of a price that neither a model has nor the table knows; `writes`: it is paid for its replies too.

    Example:
        >>> unknown_prices(ModelSettings(model="own", base_url="http://127.0.0.1:8000/v1", price_in=2))
        ['price_out']
    """
    if settings.embedded:
        return []
    listed = {"price_in": "input_cost_per_token", "price_out": "output_cost_per_token"}
    row = _in_table(settings.model, settings.base_url or "")[1]
    asked = listed if writes else ("price_in",)
    return [name for name in asked if getattr(settings, name) is None and row.get(listed[name]) is None]


def _in_table(model: str, base_url: str) -> tuple[str, Mapping[str, Any]]:
    """A model's name in the table, and its row there; empty if it has none."""
    table = _table()
    return next(((name, table[name]) for name in _names(model, base_url) if _is_text_model(table.get(name))), ("", {}))


def _names(model: str, base_url: str) -> Iterator[str]:
    """Names that the table may have for a model, the likeliest first."""
    provider = _provider(base_url)
    written = model.removeprefix("models/")
    for name in dict.fromkeys((written, _DATE.sub("", written))):
        if provider is None:
            yield from (name, *((name.rpartition("/")[2],) if name.startswith(tuple(f"{p}/" for p in _RESOLD)) else ()))
            continue
        yield f"{provider}/{name}"
        last = name.rpartition("/")[2]
        yield from (
            own for own in (name, last) if provider in _RESOLD or _provider_of(_table().get(own)) == _bare(provider)
        )


def _provider(base_url: str) -> str | None:
    """The provider of the table that an address names; None if it names none, as that of a proxy."""
    host = urlsplit(base_url).hostname or ""
    by_part = next((name for part, name in _HOSTS.items() if part in host), None)
    providers = _providers()
    labels = host.split(".")
    joined = [*reversed(labels[:-1]), "".join(labels[-2:])]
    return by_part or next((providers[label] for label in map(_bare, joined) if label in providers), None)


@functools.cache
def _providers() -> dict[str, str]:
    """The providers of the table by their bare names."""
    names = {str(row.get("litellm_provider")) for row in _table().values()} | {"openrouter"}
    return {_bare(name): name for name in sorted(names, reverse=True)}


def _bare(provider: str) -> str:
    return provider.removesuffix("_ai").replace("_", "").replace("-", "")


def _provider_of(row: Mapping[str, Any] | None) -> str:
    return _bare(str((row or {}).get("litellm_provider")))


def _is_text_model(row: Mapping[str, Any] | None) -> bool:
    return row is not None and row.get("mode") in ("chat", "responses", "completion", "embedding")


@functools.cache
def _table() -> dict[str, dict[str, Any]]:
    """The table in the installed package, which need not be imported: that takes seconds, and asks the network."""
    package = importlib.util.find_spec("litellm")
    try:
        place = Path(next(iter((package and package.submodule_search_locations) or ())))
        table: dict[str, dict[str, Any]] = json.loads((place / _TABLE).read_bytes())
    except (StopIteration, OSError, ValueError):
        return {}
    return {name: row for name, row in table.items() if _is_text_model(row) and "input_cost_per_token" in row}
