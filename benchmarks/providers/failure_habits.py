"""How providers' endpoints fail: for a moment, which a run survives, or for good, which it has to tell."""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from benchmarks.providers.habit import (
    Act,
    Exchange,
    Habit,
    always,
    at_first,
    chats,
    choice,
    error,
    later,
    refusal,
)
from benchmarks.scripted_server import Reply

_HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>cloudflare</h1></body></html>"
_MODEL = "model|deployment"
_KEY = "key"
_QUOTA = "quota|credit|balance|billing"


def _page(status: int) -> Reply:
    return refusal(status, _HTML, {"Content-Type": "text/html"})


def _sent(data: bytes, **headers: str) -> Reply:
    return Reply(raw=data, headers={name.replace("_", "-"): value for name, value in headers.items()})


def _written(write: Callable[[bytes], bytes], **headers: str) -> Act:
    """The clean body as these bytes, with these headers."""

    def send(send: Callable[[bytes], Any], data: bytes) -> None:
        packed = write(data)
        lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(packed)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        send("\r\n".join([*lines, "", ""]).encode() + packed)

    return lambda exchange: replace(exchange.clean, wire=send)


def _slowly(send: Callable[[bytes], Any], data: bytes) -> None:
    send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    size = len(data) // 3 + 1
    for piece in (data[:size], data[size : 2 * size], data[2 * size :]):
        send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        time.sleep(0.002)
    send(b"0\r\n\r\n")


def _key_expires(exchange: Exchange) -> Reply:
    expired = exchange.key_number == 0 and exchange.number >= 3
    return error(401, "The access token has expired.", code="ExpiredToken") if expired else exchange.clean


def _keeps_open(start: bytes) -> Act:
    return _written(lambda data: start + data, Content_Type="application/json")


_OVERLOADED: Mapping[str, Reply] = {
    "anthropic: 529 overloaded": refusal(
        529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    ),
    "llama.cpp: 503 while it loads": refusal(
        503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
    ),
    "gemini: 503, a list as error body": refusal(
        503, [{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}]
    ),
    "cloudflare: a page with 502": _page(502),
    "cloudflare: a page with 524": _page(524),
    "cloudflare: 520 without a body": refusal(520, b""),
    "openai: 500": error(500, "The server had an error while processing your request.", type="server_error"),
    "ollama: 500, the runner ended": refusal(500, {"error": "llama runner process has terminated"}),
    "azure: 408": error(408, "The operation was timeout.", code="Timeout"),
    "a proxy: 409": error(409, "conflict"),
    "groq: 498 capacity exceeded": error(498, "Flex tier capacity exceeded", code="capacity_exceeded"),
    "azure: 424, a dependency failed": error(424, "Failed dependency: upstream unavailable"),
    "a proxy: 425 too early": refusal(425, b""),
    "openai: 429 with retry-after-ms": error(
        429, "Rate limit reached", {"retry-after-ms": "5"}, code="rate_limit_exceeded"
    ),
    "groq: 429 with a fraction of a second": error(
        429, "Rate limit reached. Please try again in 10ms.", {"retry-after": "0.01"}
    ),
    "azure: 429 without a time": error(429, "Requests have exceeded the call rate limit", code="429"),
    "openrouter: an error in a 200": _sent(
        b'{"error": {"message": "Provider returned error", "code": 502}, "user_id": "u"}'
    ),
    "openrouter: a rate limit in a 200": _sent(b'{"error": {"message": "Rate limit exceeded", "code": 429}}'),
    "a proxy: an error of one word in a 200": _sent(b'{"error": "upstream unavailable"}'),
    "fastchat: an error object in a 200": _sent(b'{"object": "error", "message": "NETWORK ERROR", "code": 50001}'),
    "an error as text with 200": _sent(
        b"upstream connect error or disconnect/reset before headers", Content_Type="text/plain"
    ),
    "a page with 200": _sent(_HTML, Content_Type="text/html"),
    "an empty body": _sent(b""),
    "null as body": _sent(b"null"),
    "a body that ends early": Reply(drop=True),
    "a connection that is reset": Reply(reset=True),
    "not JSON to its end": _sent(b'{"choices": [{"message": {"content": "half'),
}
"""What passes: met once by each request, and by each three times, the score is the clean one."""

_PASSING = (
    *(Habit(f"{name}, once", at_first(always(reply))) for name, reply in _OVERLOADED.items()),
    Habit("429 storm: each request twice", at_first(always(error(429, "Too Many Requests")), 2)),
    Habit("503 storm: each request three times", at_first(always(refusal(503, b"")), 3)),
    Habit("openrouter: finish_reason is error, once", at_first(choice(lambda first: {"finish_reason": "error"}))),
    Habit(
        "openrouter: an error in the choice, once",
        at_first(choice(lambda first: {"error": {"code": 502, "message": "broke off"}})),
    ),
    Habit(
        "a key that expires, with a command", _key_expires, settings={"key_command": "date +key-%N", "api_key": None}
    ),
    Habit("azure: a deployment's address and version", lambda e: e.clean, settings={"api_version": "2024-10-21"}),
    Habit("another content type", _written(lambda data: data, Content_Type="text/plain; charset=utf-8")),
    Habit("gzip", _written(gzip.compress, Content_Encoding="gzip")),
    Habit("deflate", _written(zlib.compress, Content_Encoding="deflate")),
    Habit("chunks that come slowly", lambda e: replace(e.clean, wire=_slowly)),
    Habit("deepseek: empty lines before the body", _keeps_open(b"\n" * 40)),
    Habit(
        "openrouter: comments before the body", _keeps_open(b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n")
    ),
    Habit("a byte order mark before the body", _keeps_open(b"\xef\xbb\xbf")),
)


def _lasting(name: str, reply: Reply, *fails: str, **options: Any) -> Habit:
    return Habit(name, always(reply), fails=fails, **options)


_TOLD = (
    _lasting(
        "openai: an invalid key",
        error(401, "Incorrect API key provided: zoo-k*y.", code="invalid_api_key"),
        "Incorrect API key",
        _KEY,
    ),
    _lasting(
        "gemini: an invalid key, 400 in a list",
        refusal(
            400,
            [
                {
                    "error": {
                        "code": 400,
                        "message": "API key not valid. Please pass a valid API key.",
                        "status": "INVALID_ARGUMENT",
                    }
                }
            ],
        ),
        "API key not valid",
        _KEY,
    ),
    _lasting(
        "a proxy: 401 as FastAPI writes it", refusal(401, {"detail": "Not authenticated"}), "Not authenticated", _KEY
    ),
    _lasting("a proxy: 401 without a body", refusal(401, b""), "401", _KEY),
    Habit(
        "a key that is taken away",
        later(always(error(401, "Incorrect API key provided"))),
        fails=("Incorrect API key", _KEY),
        doctor=False,
    ),
    _lasting(
        "openai: a country",
        error(403, "Country, region, or territory not supported", code="unsupported_country_region_territory"),
        "Country",
        "permission",
    ),
    _lasting(
        "openrouter: 402",
        error(402, "Insufficient credits. Add more using https://openrouter.ai/credits", code=402),
        "Insufficient credits",
        _QUOTA,
    ),
    _lasting(
        "deepseek: 402",
        error(402, "Insufficient Balance", code="invalid_request_error"),
        "Insufficient Balance",
        "add credit|top up",
    ),
    _lasting(
        "openai: the quota is used up",
        error(
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            code="insufficient_quota",
        ),
        "exceeded your current quota",
        _QUOTA,
    ),
    _lasting(
        "litellm: the budget is used up, 400",
        error(400, "Budget has been exceeded! Current cost: 1.2, Max budget: 1.0", type="budget_exceeded", code="400"),
        "Budget has been exceeded",
        doctor=False,
    ),
    _lasting(
        "openai: no such model",
        error(404, "The model `x` does not exist or you do not have access to it.", code="model_not_found"),
        "does not exist",
        _MODEL,
    ),
    _lasting(
        "ollama: no such model",
        refusal(404, {"error": 'model "x" not found, try pulling it first'}),
        "not found",
        _MODEL,
    ),
    _lasting(
        "vllm: no such model",
        refusal(
            404, {"object": "error", "message": "The model `x` does not exist.", "type": "NotFoundError", "code": 404}
        ),
        "does not exist",
        _MODEL,
    ),
    _lasting(
        "litellm: no such model, 400",
        error(
            400,
            "Invalid model name passed in model=x. Call `/v1/models` to view available models for your key.",
            code="400",
        ),
        "Invalid model name",
        _MODEL,
    ),
    _lasting(
        "azure: no such deployment",
        error(404, "The API deployment for this resource does not exist.", code="DeploymentNotFound"),
        "deployment",
        _MODEL,
        settings={"api_version": "2024-10-21"},
    ),
    _lasting(
        "azure: an api-version that it has not",
        error(404, "Resource not found", code="404"),
        "Resource not found",
        "api_version",
        settings={"api_version": "2020-01-01"},
    ),
    _lasting(
        "a base_url without /v1",
        refusal(404, b"404 page not found", {"Content-Type": "text/plain"}),
        "404 page not found",
        "base_url",
    ),
    _lasting("ollama's own address", refusal(405, b"405 method not allowed"), "405", "base_url"),
    _lasting(
        "a model for completions only",
        error(
            404,
            "This is not a chat model. Did you mean to use v1/completions?",
        ),
        "not a chat model",
        _MODEL,
    ),
    _lasting(
        "redirects, as to https",
        Reply(status=308, headers={"Location": "https://example.com/v1"}),
        "redirects",
        "https://example.com",
        "base_url",
    ),
    _lasting("429 for good", error(429, "Too Many Requests"), "Too Many Requests", "concurrency|quota", doctor=False),
    _lasting("503 for good", refusal(503, b"Service Unavailable"), "503", "later|server", doctor=False),
    Habit(
        "500 for good, after a while",
        later(always(error(500, "internal error"))),
        fails=("internal error", "resume|again|later"),
        doctor=False,
    ),
    _lasting("a page with 200, for good", _sent(_HTML, Content_Type="text/html"), "not JSON", "base_url"),
    _lasting(
        "events though nobody asked for them",
        _sent(b'data: {"choices": []}\n\ndata: [DONE]\n\n', Content_Type="text/event-stream"),
        "not JSON|event",
        "base_url",
    ),
    _lasting(
        "an error in a 200, for good",
        _sent(b'{"error": {"message": "No endpoints found for x", "code": 404}}'),
        "No endpoints found",
    ),
    Habit(
        "finish_reason is error, for good",
        choice(lambda first: {"finish_reason": "error"}),
        fails=("error",),
        doctor=False,
    ),
    Habit(
        "the context is exceeded (openai)",
        later(
            chats(
                always(
                    error(
                        400,
                        "This model's maximum context length is 8192 tokens. Your messages have 9000.",
                        code="context_length_exceeded",
                    )
                )
            )
        ),
        fails=("maximum context length", "context"),
        doctor=False,
    ),
    Habit(
        "the context is exceeded (vllm)",
        later(
            chats(
                always(
                    refusal(
                        400,
                        {
                            "object": "error",
                            "message": "'max_tokens' is too large: 512. This model's maximum context length is 600",
                            "code": 400,
                        },
                    )
                )
            )
        ),
        fails=("maximum context length",),
        doctor=False,
    ),
    Habit(
        "the context is exceeded (llama.cpp)",
        later(
            chats(
                always(
                    error(
                        400,
                        "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",
                        type="exceed_context_size_error",
                    )
                )
            )
        ),
        fails=("context size",),
        doctor=False,
    ),
    Habit(
        "a request is too large for the rate (groq)",
        later(
            chats(
                always(
                    error(
                        413,
                        "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000",
                        code="rate_limit_exceeded",
                    )
                )
            )
        ),
        fails=("Request too large",),
        doctor=False,
    ),
    Habit(
        "the model was decommissioned (groq)",
        later(
            chats(
                always(
                    error(
                        400,
                        "The model `x` has been decommissioned and is no longer supported.",
                        code="model_decommissioned",
                    )
                )
            )
        ),
        fails=("decommissioned",),
        doctor=False,
    ),
    Habit(
        "messages of which nothing is taken",
        chats(
            always(error(400, "Invalid value: 'user'. Supported values are: 'developer'.", param="messages[0].role"))
        ),
        fails=("Supported values",),
        doctor=False,
    ),
)

HABITS = (*_PASSING, *_TOLD)
