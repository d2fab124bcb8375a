"""Tokens are counted as they are billed, and estimated where no endpoint tells them, and the estimate is marked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer

from tracing.errors import BudgetExceededError
from tracing.llm.access import ModelAccess
from tracing.llm.accounting.ledger import Ledger
from tracing.llm.accounting.token_counts import TokenCounts, estimated_tokens, fewest_tokens
from tracing.llm.http.usage import ReportedUsage
from tracing.llm.settings import Limits
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace

Open = Callable[..., ModelAccess]
REQUEST = {"messages": [{"role": "user", "content": "Where does Ada live?"}]}  # estimated: 9
HELLO = [{"role": "user", "content": "hello there"}]


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, TokenCounts(10, 5)),
        # OpenAI: thinking is part of the completion.
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 105,
                "total_tokens": 115,
                "completion_tokens_details": {"reasoning_tokens": 100},
            },
            TokenCounts(10, 105, thinking=100),
        ),
        # Gemini: the total alone tells of thinking; xAI: thinking is told beside the completion.
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 115}, TokenCounts(10, 105, thinking=100)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 115,
                "completion_tokens_details": {"reasoning_tokens": 100},
            },
            TokenCounts(10, 105, thinking=100),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 100}},
            TokenCounts(10, 105, thinking=100),
        ),
        # Cached tokens within the prompt's, or beside them.
        (
            {"prompt_tokens": 1010, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1000}},
            TokenCounts(1010, 5, cached=1000),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cache_read_input_tokens": 1000},
            TokenCounts(1010, 5, cached=1000),
        ),
        (
            {
                "prompt_tokens": 700,
                "completion_tokens": 5,
                "total_tokens": 1205,
                "prompt_tokens_details": {"cached_tokens": 500},
            },
            TokenCounts(1200, 5, cached=500),
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 64, "total_tokens": 105},
            TokenCounts(100, 5, cached=64),
        ),
        # What one count lacks, the total tells.
        ({"prompt_tokens": 10, "total_tokens": 15}, TokenCounts(10, 5)),
        ({"completion_tokens": 5, "total_tokens": 15}, TokenCounts(10, 5)),
        # Estimated.
        ({}, TokenCounts(9, 2, estimated=True)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, TokenCounts(9, 2, estimated=True)),
        ({"total_tokens": 15}, TokenCounts(9, 6, estimated=True)),
        ({"prompt_tokens": 10}, TokenCounts(10, 2, estimated=True)),
        ({"completion_tokens": 5}, TokenCounts(9, 5, estimated=True)),
    ],
)
def test_all_that_is_billed_is_counted(usage: dict[str, Any], counts: TokenCounts) -> None:
    assert ReportedUsage.model_validate(usage).counted(REQUEST, "In Oslo") == counts


@pytest.mark.parametrize(
    ("text", "fewest", "most"),
    [
        # Tokens by OpenAI's o200k and cl100k, DeepSeek's and Anthropic's tokenizers.
        ("Hi! I'm moving to Oslo next month, since my sister's there. My flight is on 12 May 2026 at 09:45.", 29, 33),
        ("我下个月要搬到奥斯陆去，因为我的姐姐在那里工作。请记住我的航班是五月十二日上午九点四十五分", 27, 56),
        ("Nächsten Monat ziehe ich nach Oslo um, weil meine Schwester dort arbeitet.", 14, 20),
        ("Party 🎉🎉 tonight 😀😂🥳! Bring cake 🎂 and balloons 🎈 ❤️🔥", 20, 36),
        ('{"name": "Ada", "facts": ["lives in Oslo", "born 1990"], "n": 3}', 20, 25),
        ("def total(values: list[int]) -> int:\n    return sum(value for value in values if value > 0)\n", 23, 24),
        ("다음 달에 오슬로로 이사합니다. 언니가 그곳에서 일하고 있기 때문입니다.", 22, 34),
    ],
)
def test_an_estimate_is_near_what_tokenizers_count(text: str, fewest: int, most: int) -> None:
    assert 0.8 * fewest <= estimated_tokens(text) <= 1.4 * most
    assert fewest_tokens(text) <= fewest


def _without_usage(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "usage"}


def ask_on(access: ModelAccess) -> None:
    for number in range(200):
        access.task.chat([{"role": "user", "content": f"{number} " + "What is it? " * 30}], max_tokens=60)


def test_a_budget_of_tokens_or_money_holds_where_no_usage_is_told(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    """Sixty calls passed a budget of 2,000 tokens before tokens were estimated."""
    scripted_server.script = lambda body: Reply("word " * 30, change=_without_usage)
    for limits in (Limits(tokens=2000), Limits(money=0.002)):
        access = open_access(limits, cache=False, price_in=1, price_out=1)
        with pytest.raises(BudgetExceededError):
            ask_on(access)
        totals = access.meter.totals()
        assert 1_500 < totals["prompt_tokens"] + totals["completion_tokens"] <= 2000
        assert totals["estimated"] == totals["calls_made"] > 5


def test_an_estimate_is_marked_in_reply_trace_meter_and_ledger_and_stays_so_in_the_cache(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    scripted_server.script = lambda body: Reply("ok", change=_without_usage)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    with trace() as recorder, operation("answer") as op:
        first = open_access().with_ledger(ledger).task.chat(HELLO, max_tokens=9)
        again = open_access().task.chat(HELLO, max_tokens=9)
    assert (first.estimated, again.estimated, again.cached) == (True, True, True)
    assert recorder.graph.operations[op.id].attributes["estimated_calls"] == 2
    resumed = open_access()
    resumed.with_ledger(Ledger(tmp_path / "ledger.jsonl")).task.chat(HELLO, max_tokens=9)
    totals = resumed.meter.totals()
    assert (totals["calls_made"], totals["estimated"], totals["prompt_tokens"]) == (1, 1, 6)


def test_embeddings_without_usage_are_estimated(open_access: Open, scripted_server: ScriptedServer) -> None:
    access = open_access(cache=False)
    access.embedding.embed(["Where does Ada live?"])
    scripted_server.embed_reply = lambda body: Reply(change=_without_usage)
    access.embedding.embed(["Where does Ada live?"])
    totals = access.meter.totals()
    assert (totals["calls_made"], totals["estimated"], totals["prompt_tokens"]) == (2, 1, 1 + 5)
