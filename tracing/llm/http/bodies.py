"""Strict reading of an endpoint's answer: a body becomes a valid reply, or an error that says what is wrong."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from tracing.errors import MalformedReplyError
from tracing.llm.accounting.token_counts import TokenCounts
from tracing.llm.http.strict_json import strict_json
from tracing.llm.http.thinking import SplitReply, split_thinking
from tracing.llm.http.usage import ReportedUsage, Tokens

_LONGEST_TOKEN = 256
_ALWAYS_ALLOWED = 65_536
"""Characters that a reply may always have, however few tokens were requested: some endpoints exceed the limit."""

_Model = TypeVar("_Model", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, hide_input_in_errors=True)


class _Function(_Strict):
    name: Annotated[str, Field(min_length=1)]
    arguments: str


class ToolCall(_Strict):
    """A function that the model wants called, as a client gets it; `arguments` are JSON as the model wrote it."""

    id: str
    type: Literal["function"] = "function"
    function: _Function


class ChatCompletion(_Strict):
    """A chat reply; its JSON form is what the cache keeps.

    Attributes:
        text: what the model answered.
        finish_reason: "stop", "length", "refused" (by the model, or by a filter of what is asked or said), or the
            endpoint's own word.
        prompt_tokens, completion_tokens: as the endpoint counted them, or estimated.
        thinking: what it thought before it answered, if the endpoint sends that.
        cached_tokens: of the prompt's tokens, those that the endpoint had read before.
        thinking_tokens: of the reply's tokens, those that it thought with.
        first_token: log-probabilities of the first token's alternatives, if the endpoint returned them.
        tool_calls: the functions that it wants called; None for none.
        estimated: True if the endpoint did not tell all of its tokens; else None.
    """

    text: str
    finish_reason: str
    prompt_tokens: Tokens
    completion_tokens: Tokens
    first_token: dict[str, FiniteFloat] | None = None
    tool_calls: list[ToolCall] | None = None
    thinking: str | None = None
    cached_tokens: Tokens | None = None
    thinking_tokens: Tokens | None = None
    estimated: Literal[True] | None = None

    @property
    def tokens(self) -> TokenCounts:
        cached, thinking = self.cached_tokens or 0, self.thinking_tokens or 0
        return TokenCounts(self.prompt_tokens, self.completion_tokens, cached, thinking, self.estimated or False)

    @classmethod
    def stored(cls, entry: bytes) -> ChatCompletion | None:
        """The reply that `model_dump_json` wrote; None if the entry is not a valid reply."""
        try:
            return cls.model_validate_json(entry)
        except ValidationError:
            return None


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors of one length, in the order of the texts, and what they cost."""

    vectors: Sequence[Sequence[float]]
    tokens: TokenCounts


class _Part(_Strict):
    type: str
    text: str | None = None
    thinking: str | list[_Part] | None = None


class _Message(_Strict):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    # What a model thought is its own affair: a form that is not known is left out.
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Annotated[list[ToolCall], Field(max_length=1000)] | None = None


class _Alternative(_Strict):
    token: str
    logprob: FiniteFloat


class _Step(_Strict):
    top_logprobs: list[_Alternative] | None = None


class _Logprobs(_Strict):
    # Absent if an endpoint returns them in its own form.
    content: Annotated[list[_Step], Field(max_length=100_000)] | None = None


class _Choice(_Strict):
    message: _Message
    finish_reason: str | None = None
    logprobs: Any = None
    error: Any = None


class _ChatBody(_Strict):
    choices: Annotated[list[_Choice], Field(min_length=1, max_length=100)]
    usage: ReportedUsage | None = None
    error: Any = None


class _Row(_Strict):
    index: Annotated[int, Field(ge=0)] | None = None
    embedding: Annotated[list[FiniteFloat], Field(min_length=1)]


class _VectorsBody(_Strict):
    data: list[_Row]
    usage: ReportedUsage | None = None


def read_chat(
    body: bytes,
    *,
    most_tokens: int,
    alternatives: bool,
    tools: bool = False,
    request: Mapping[str, Any] | None = None,
) -> ChatCompletion:
    """The reply in the body of an answer to a chat request that allowed so many tokens.

    Args:
        alternatives: whether log-probabilities were requested; otherwise they are ignored.
        tools: whether the request offered any.
        request: its body, by which tokens are estimated that are not told; None to leave them at 0.

    Raises:
        MalformedReplyError: it has no reply, or an invalid one.
    """
    read = _validated(_ChatBody, body)
    choice, usage = read.choices[0], read.usage or ReportedUsage()
    finish = _finish_reason(choice)
    if read.error or choice.error or finish == "error":
        raise MalformedReplyError(f"it is an error: {error_in(body)[0] or choice.error or 'its reply broke off'}")
    calls = choice.message.tool_calls or None if tools else None
    reply = _split(choice.message)
    if not reply.answer and not calls and choice.finish_reason in ("tool_calls", "function_call"):
        raise MalformedReplyError("it calls a tool, but none was " + ("named" if tools else "offered"))
    arguments = "".join(call.function.arguments for call in calls or ())
    length = len(reply.answer) + len(arguments)
    if length > max(_ALWAYS_ALLOWED, _LONGEST_TOKEN * most_tokens):
        raise MalformedReplyError(f"it has {length:,} characters, but {most_tokens} tokens were requested")
    first = _first_token(choice.logprobs) if alternatives and choice.logprobs is not None else None
    counts = usage.counted(request, reply.thinking + reply.answer + arguments)
    return ChatCompletion(
        text=reply.answer,
        finish_reason=finish,
        prompt_tokens=counts.prompt,
        completion_tokens=counts.completion,
        first_token=first,
        tool_calls=calls,
        thinking=reply.thinking[:_ALWAYS_ALLOWED] or None,
        cached_tokens=counts.cached or None,
        thinking_tokens=counts.thinking or None,
        estimated=counts.estimated or None,
    )


_FINISH_REASONS = {
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "content_filter": "refused",
    "content-filter": "refused",
    "refusal": "refused",
    "safety": "refused",
    "recitation": "refused",
    "blocklist": "refused",
    "prohibited_content": "refused",
}
"""The words of some endpoints, in lower case, for what others call `length`, and for what nobody else names."""


def _finish_reason(choice: _Choice) -> str:
    if choice.message.refusal and not choice.message.content:
        return "refused"
    reason = choice.finish_reason or "stop"
    return _FINISH_REASONS.get(reason.lower(), reason)


def _split(message: _Message) -> SplitReply:
    """The answer of a message, and what was thought before it."""
    content = message.content
    parts = content if isinstance(content, list) else ()
    reply = split_thinking(content if isinstance(content, str) else _texts(parts))
    elsewhere = [text for text in (message.reasoning_content, message.reasoning) if isinstance(text, str)][:1]
    in_parts = [part.thinking if isinstance(part.thinking, str) else _texts(part.thinking or ()) for part in parts]
    return SplitReply(reply.answer, "\n".join(text for text in (*elsewhere, *in_parts, reply.thinking) if text))


def _texts(parts: Sequence[_Part]) -> str:
    return "".join(part.text or "" for part in parts if part.type in ("text", "output_text"))


def _first_token(logprobs: Any) -> dict[str, float] | None:
    steps = _checked(_Logprobs, logprobs, "choices.0.logprobs").content
    return {alternative.token: alternative.logprob for alternative in steps[0].top_logprobs or ()} if steps else None


def read_vectors(body: bytes, count: int, request: Mapping[str, Any] | None = None) -> Embeddings:
    """The vectors in the body of an answer to a request to embed so many texts.

    Raises:
        MalformedReplyError: it does not have that many valid vectors of one length.
    """
    read = _validated(_VectorsBody, body)
    if len(read.data) != count:
        raise MalformedReplyError(f"it has {len(read.data)} embeddings for {count} texts")
    # Some endpoints send no numbers, and the rows in order.
    unnumbered = all(row.index is None for row in read.data)
    rows = {(place if unnumbered else row.index): row.embedding for place, row in enumerate(read.data)}
    if set(rows) != set(range(count)):
        raise MalformedReplyError(f"data.index: the embeddings are not numbered 0 to {count - 1}")
    lengths = sorted({len(row) for row in rows.values()})
    if len(lengths) > 1:
        raise MalformedReplyError(f"data.embedding: one has {lengths[0]} numbers and another {lengths[-1]}")
    usage = read.usage or ReportedUsage()
    if not usage.prompt_tokens:
        usage = ReportedUsage(prompt_tokens=usage.total_tokens)
    return Embeddings([rows[index] for index in range(count)], usage.counted(request, ""))


def packed(vector: Sequence[float]) -> bytes:
    """A vector scaled to length 1, as 32-bit floats, the form the cache keeps; a zero vector stays zero."""
    length = sqrt(sum(x * x for x in vector))
    if not isfinite(length):
        # Squares may overflow a float where the numbers do not.
        greatest = max(map(abs, vector))
        vector = [x / greatest for x in vector]
        length = sqrt(sum(x * x for x in vector))
    return array("f", [x / (length or 1.0) for x in vector]).tobytes()


def unpacked(entry: bytes) -> list[float] | None:
    """The vector that `packed` wrote; None if the entry is invalid."""
    if not entry or len(entry) % 4:
        return None
    vector = array("f", entry).tolist()
    return vector if all(map(isfinite, vector)) else None


def error_in(body: bytes) -> tuple[str, str | None]:
    """The message in the body of a refusal, and its code if it has one."""
    try:
        value = strict_json(body)
    except MalformedReplyError:
        return body.decode("utf-8", "replace"), None
    if isinstance(value, list):
        # Gemini's compatible layer wraps its errors in a list.
        value = next((element for element in value if isinstance(element, dict)), "")
    inner = value.get("error", value) if isinstance(value, dict) else value
    if not isinstance(inner, dict):
        return inner if isinstance(inner, str) else "", None
    words = next((inner[key] for key in ("message", "detail", "error") if isinstance(inner.get(key), str)), "")
    code = inner.get("code")
    return words, code if isinstance(code, str) else None


def _validated(kind: type[_Model], body: bytes) -> _Model:
    value = strict_json(body)
    if _ESCAPED_HALF.search(body):
        value = _encodable(value)
    try:
        return _checked(kind, value)
    except MalformedReplyError:
        if isinstance(value, dict) and value.get("error"):
            raise MalformedReplyError(f"it is an error: {error_in(body)[0]}") from None
        raise


def _checked(kind: type[_Model], value: Any, *within: str) -> _Model:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join((*within, *map(str, problem["loc"])))
        raise MalformedReplyError(f"{place}: {problem['msg']}" if place else problem["msg"]) from None


_ESCAPED_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATES = re.compile(
    r"[\ud800-\udfff]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_PAIR = len(r"\ud83d\ude00")


def _encodable(value: Any) -> Any:
    """`value` with each half of a surrogate pair replaced by U+FFFD, also halves escaped in JSON inside a text.

    A model that is cut off within an emoji writes such halves; no UTF-8 file, database or request can hold them.
    """
    if isinstance(value, str):
        return _SURROGATES.sub(_whole, value)
    if isinstance(value, list):
        return [_encodable(element) for element in value]
    if isinstance(value, dict):
        return {_encodable(name): _encodable(element) for name, element in value.items()}
    return value


def _whole(match: re.Match[str]) -> str:
    if len(match[0]) == 1:
        return "\ufffd"
    return match[0] if len(match[0]) == _PAIR else r"\ufffd"
