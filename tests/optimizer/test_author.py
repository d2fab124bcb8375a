"""An author that reasons, or whose replies are cut short or empty, still writes prompts, or its user learns why not."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer

from optimizer.proposers.author import FAILURES, REST_S, Author, goes_in_circles
from tracing.errors import BudgetExceededError
from tracing.llm.access import ModelAccess
from tracing.llm.capabilities import THINKING_TOKENS
from tracing.llm.settings import Limits

Asked = Callable[..., str]

AUTHOR = "optimizer.proposers.author"
"""The logger whose warnings are the author's."""


def asked(access: ModelAccess, times: int = 1) -> str:
    author = Author(access.proposer)
    return [author.text("Write a prompt.", temperature=0.7, sample=n) for n in range(times)][-1]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("List the facts. " + "Write each fact as one short sentence about one person. " * 6, True),
        ("".join(f"{n}. Write the fact number {n} as one short sentence about one person.\n" for n in range(9)), True),
        ("Write." * 30, True),
        ("Write each fact as one short sentence about one person. " * 2, False),
        (
            "".join(f'{{"facts": ["{who} has a dog, and lives in a town"]}}\n' for who in ("Ann", "Ben", "Cid", "Dot")),
            False,
        ),
        ("", False),
    ],
)
def test_a_reply_goes_in_circles_if_it_ends_with_what_it_said_several_times(reply: str, expected: bool) -> None:
    assert goes_in_circles(reply) is expected


def test_a_reply_that_was_cut_short_is_asked_for_again_with_more_room(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], caplog: pytest.LogCaptureFixture
) -> None:
    def reasoning(body: dict[str, Any]) -> Reply:
        if body["max_tokens"] < 2000:
            return Reply("<think>on and on", finish_reason="length")
        return Reply("<think>on and on</think>The prompt")

    scripted_server.script = reasoning
    assert asked(open_access()) == "The prompt"
    # A model that thinks gets more tokens at once, and may have them beside every reply.
    assert [body["max_tokens"] for body in scripted_server.requests] == [700, 700 + THINKING_TOKENS]
    assert not [record for record in caplog.records if record.name == AUTHOR]


def test_reasoning_beside_the_text_is_no_part_of_it(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    def beside(answer: dict[str, Any]) -> dict[str, Any]:
        answer["choices"][0]["message"]["reasoning_content"] = "On and on."
        answer["choices"][0]["message"]["content"] = answer["choices"][0]["message"]["content"] or None
        return answer

    def reasoning(body: dict[str, Any]) -> Reply:
        cut = body["max_tokens"] < 2000
        return Reply("" if cut else "The prompt", finish_reason="length" if cut else "stop", change=beside)

    scripted_server.script = reasoning
    assert asked(open_access()) == "The prompt"
    assert scripted_server.count == 2


@pytest.mark.parametrize(
    ("reply", "told", "calls"),
    [
        (Reply("<think>and so on", finish_reason="length"), "cut short", 7),
        (Reply("Half of a", finish_reason="length"), "cut short", 6),
        (Reply("", finish_reason="length"), "cut short", 7),
        (Reply("And write each fact as one short sentence. " * 60, finish_reason="length"), "repeating itself", 2),
        (Reply(""), "the reply was empty", 2),
        (Reply("<think>Nothing.</think>\n"), "the reply was reasoning only", 2),
        (Reply("no", status=403), "the call failed", 2),
    ],
)
def test_a_reply_of_no_use_is_told_once_and_gives_no_text(
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
    caplog: pytest.LogCaptureFixture,
    reply: Reply,
    told: str,
    calls: int,
) -> None:
    scripted_server.script = lambda body: reply
    with caplog.at_level(logging.WARNING):
        assert asked(open_access(retries=0), times=2) == ""
    (record,) = [record for record in caplog.records if record.name == AUTHOR]
    assert told in record.getMessage()
    assert "models.proposer" in record.getMessage()
    assert scripted_server.count == calls


def test_an_endpoint_that_allows_no_longer_reply_is_asked_once_more_and_no_further(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], caplog: pytest.LogCaptureFixture
) -> None:
    def short(body: dict[str, Any]) -> Reply:
        return Reply("Half", finish_reason="length") if body["max_tokens"] == 700 else Reply("too long", status=400)

    scripted_server.script = short
    assert asked(open_access(retries=0)) == ""
    assert scripted_server.count == 2
    assert "cut short" in caplog.text


def test_an_author_that_fails_again_and_again_rests(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_server.script = lambda body: Reply("no", status=403)
    author = Author(open_access(retries=0).proposer)
    texts = [author.text("Write a prompt.", temperature=0.7, sample=n) for n in range(FAILURES + 4)]
    assert (set(texts), scripted_server.count) == ({""}, FAILURES)
    # Later it is asked again.
    rested = time.monotonic() + REST_S
    monkeypatch.setattr("optimizer.proposers.author.time", SimpleNamespace(monotonic=lambda: rested))
    scripted_server.script = lambda body: "The prompt"
    assert author.text("Write a prompt.", temperature=0.7, sample=9) == "The prompt"


def test_a_spent_budget_is_let_through(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = lambda body: Reply("Half", finish_reason="length")
    with pytest.raises(BudgetExceededError):
        asked(open_access(Limits(calls=1)))
