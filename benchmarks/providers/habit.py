"""One habit of a provider's endpoint: what it sends in place of a clean reply, and what has to come of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.scripted_server import Reply


@dataclass(frozen=True)
class Exchange:
    """A request, and what the clean endpoint would reply.

    Attributes:
        body: of the request.
        clean: the reply.
        number: requests of the route that came before, without the small ones of a check.
        again: how often this very request came before.
        key_number: how many other keys came before the one that it has.
        small: whether it is one of the small requests of a check.
    """

    body: Mapping[str, Any]
    clean: Reply
    number: int
    again: int
    key_number: int
    small: bool

    @property
    def chat(self) -> bool:
        """Whether it is a request for a chat, not for embeddings."""
        return "messages" in self.body

    @property
    def form(self) -> str:
        """The form of JSON that the request asks to be enforced; "" for none."""
        return str(self.body.get("response_format", {}).get("type", ""))


Act = Callable[[Exchange], Reply]


@dataclass(frozen=True)
class Habit:
    """What an endpoint does, and what has to come of it.

    Attributes:
        name: of it.
        act: the reply that is sent.
        fails: what the one line of the failure must say of the cause and the remedy, as patterns; none where the clean
            score has to be reached.
        counted: what the output must say where the run goes on, as patterns: replies that are the model's own affair.
        doctor: whether its small requests meet the failure.
        mended_after: runs on the mended endpoint until the score is the clean one: vectors have the length of the last
            run's endpoint, so the first run after a change of it fails.
        settings: of the models, in the run's configuration.
    """

    name: str
    act: Act
    fails: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    doctor: bool = True
    mended_after: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)


def error(status: int, message: str, /, headers: Mapping[str, str] | None = None, **fields: Any) -> Reply:
    """A refusal in OpenAI's form."""
    inner = {"message": message, "type": "invalid_request_error", "param": None, "code": None, **fields}
    return refusal(status, {"error": inner}, headers)


def refusal(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """A refusal whose body is this JSON value, or this text."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Reply(status=status, raw=raw, headers=headers or {})


def always(reply: Reply) -> Act:
    """This reply to every request."""
    return lambda exchange: reply


def chats(act: Act) -> Act:
    """To chat requests only."""
    return lambda exchange: act(exchange) if exchange.chat else exchange.clean


def embeddings(act: Act) -> Act:
    """To requests for embeddings only."""
    return lambda exchange: exchange.clean if exchange.chat else act(exchange)


def at_first(act: Act, times: int = 1) -> Act:
    """To each request so many times, before it is answered."""
    return lambda exchange: act(exchange) if exchange.again < times else exchange.clean


def later(act: Act, after: int = 3) -> Act:
    """Only after so many requests."""
    return lambda exchange: act(exchange) if exchange.number >= after and not exchange.small else exchange.clean


def refusing(field: str, reply: Reply) -> Act:
    """To requests that have a field; others are clean."""
    return lambda exchange: reply if field in exchange.body else exchange.clean


def text(write: Callable[[str], str]) -> Act:
    """The clean text, written otherwise."""
    return chats(lambda exchange: replace(exchange.clean, text=write(exchange.clean.text)))


def json_text(write: Callable[[Any], str]) -> Act:
    """JSON replies, written otherwise; others are clean."""

    def rewritten(clean: str) -> str:
        return write(json.loads(clean)) if clean.startswith("{") else clean

    return text(rewritten)


def body(change: Callable[[dict[str, Any]], Any]) -> Act:
    """The clean body, changed."""
    return lambda exchange: replace(exchange.clean, change=change)


def choice(change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> Act:
    """The only choice of the clean body with these fields changed."""

    def changed(answer: dict[str, Any]) -> dict[str, Any]:
        first = answer["choices"][0]
        return {**answer, "choices": [{**first, **change(first)}]}

    return chats(body(changed))


def message(change: Callable[[str], Mapping[str, Any]]) -> Act:
    """The message of the clean body with these fields changed, given its text."""
    return choice(lambda first: {"message": {**first["message"], **change(first["message"]["content"])}})


def rows(change: Callable[[list[dict[str, Any]]], list[Any]]) -> Act:
    """The rows of an answer with embeddings, changed."""
    return embeddings(body(lambda answer: {**answer, "data": change(answer["data"])}))
