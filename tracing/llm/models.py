"""The chat and embedding models of an access; each call is cached, budgeted and recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tracing.errors import ModelError, ReplyCutShortError
from tracing.llm.accounting.budget import Spending
from tracing.llm.accounting.price import price
from tracing.llm.accounting.token_counts import TokenCounts, estimated_tokens, texts_of
from tracing.llm.booking import Call, failures_noted, running_operation
from tracing.llm.cache import request_key
from tracing.llm.dimension import Dimension
from tracing.llm.http.bodies import ChatCompletion, Embeddings, packed, unpacked
from tracing.llm.http.endpoint import Endpoint
from tracing.llm.replies import Replies

_TEXTS_A_REQUEST = 64
_SAMPLES_A_REPETITION = 1000


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's reply: a `ChatCompletion`, and where it came from.

    Attributes:
        text: what it said.
        finish_reason: "stop", or "length" if the token limit cut it short.
        prompt_tokens, completion_tokens: as the endpoint counted them when the reply was made, or estimated.
        cached: True if no model was asked this time.
        model: name of the model.
        first_token: log-probabilities of the likeliest first tokens, if requested and if the endpoint returns them.
        tool_calls: the functions that it wants called, in the form of a chat message's `tool_calls`.
        thinking: what it thought before it answered; "" if the endpoint does not send that.
        estimated: whether the endpoint did not tell all of its tokens.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached: bool
    model: str
    first_token: Mapping[str, float] | None = None
    tool_calls: Sequence[Mapping[str, Any]] = ()
    thinking: str = ""
    estimated: bool = False


class _Model:
    """What every model of an access has: its identity and its endpoint."""

    def __init__(self, replies: Replies, endpoint: Endpoint, identity: str) -> None:
        self.identity = identity
        self.settings = endpoint.settings
        self._replies = replies
        self._endpoint = endpoint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.identity!r})"


class ChatModel(_Model):
    """A chat model in one role.

    Args:
        replies: finds them in the cache or makes them.
        endpoint: where they come from.
        identity: what they depend on besides the request.
        repetition: number of the repetition (`ModelAccess.repeated`).
    """

    def __init__(self, replies: Replies, endpoint: Endpoint, identity: str, *, repetition: int = 0) -> None:
        super().__init__(replies, endpoint, identity)
        self._repetition = repetition

    @property
    def samples(self) -> bool:
        """Whether another sample of a request may be another reply, also since the endpoint takes no temperature."""
        return self.settings.temperature > 0 or "temperature" in self._endpoint.capabilities.accepted.without

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        max_tokens: int,
        schema: Mapping[str, Any] | None = None,
        json_object: bool = False,
        temperature: float | None = None,
        sample: int = 0,
        stop: Sequence[str] = (),
        whole: bool = True,
        alternatives: int = 0,
        tools: Mapping[str, Any] | None = None,
    ) -> ChatReply:
        """Ask for a reply to `messages` (each with `role` and `content`; `tool_calls` and the like are sent too).

        Args:
            max_tokens: maximum length of the reply.
            schema: JSON schema the reply must fit, enforced if the endpoint can; properties come in its order.
            json_object: whether the reply must be any JSON object; without `schema`.
            temperature: of sampling; None means that of the settings.
            sample: number of an independent sample of the same request; also its seed if the temperature is above 0.
                Another repetition (`ModelAccess.repeated`) has its own samples.
            stop: texts before which the reply ends.
            whole: whether a reply that was cut short is an error; if not, it is returned as it is.
            alternatives: how many of the likeliest first tokens to return log-probabilities for.
            tools: the request's fields about functions that the model may call: `tools`, `tool_choice`,
                `parallel_tool_calls`.

        Raises:
            CallFailedError: refused, or every attempt failed.
            WeightsError: an embedded model that was not pulled.
            ReplyCutShortError: `whole`, or it calls a tool, and the reply hit `max_tokens`.
            BudgetExceededError: a budget does not allow the call; it was not made.
        """
        settings = self.settings
        if not alternatives:
            max_tokens = settings.limit(running_operation()) or max_tokens
        number = sample + _SAMPLES_A_REPETITION * self._repetition
        warmth = settings.temperature if temperature is None else temperature
        sent: dict[str, Any] = {
            "messages": [dict(message) for message in messages],
            "temperature": warmth,
            "max_tokens": max_tokens,
        }
        if stop:
            sent["stop"] = list(stop)
        if warmth > 0:
            sent["seed"] = number
        if alternatives:
            sent |= {"logprobs": True, "top_logprobs": alternatives}
        if schema is not None:
            reply_format = {"name": "reply", "schema": dict(schema)}
            sent["response_format"] = {"type": "json_schema", "json_schema": reply_format}
        elif json_object:
            sent["response_format"] = {"type": "json_object"}
        # What the settings add is not the system's, and may hold a credential.
        asked = {"model": settings.model, **sent, **(tools or {}), "seed": sample}
        sent |= settings.fields(chat=True)
        if tools:
            if settings.embedded:
                raise ModelError(f"{settings.model}: the embedded model calls no tools; name an endpoint that does")
            sent |= tools

        # Another credential changes no reply.
        request = sent | settings.shown_body

        def key() -> str:
            """What the endpoint takes is part of it, where that changes the request; a call may find that out."""
            model = self.identity + self._endpoint.capabilities.accepted.label(sent)
            return request_key(kind="chat", model=model, sample=number, request=request)

        def most() -> Spending:
            room = self._endpoint.capabilities.accepted.thinking_room
            return price(settings, TokenCounts(_most_tokens(sent), max_tokens + room))

        call: Call[ChatCompletion] = Call(
            settings,
            most,
            lambda: self._endpoint.chat({"model": settings.model, **sent}),
            lambda completion: {key(): completion.model_dump_json(exclude_none=True).encode()},
        )
        with failures_noted(settings.model):
            completion, cached = self._completion(key(), call)
            self._replies.booking.note_prompt(settings, sent, completion.tokens)
            self._replies.booking.note_thinking(completion)
            self._replies.booking.note_exchange({**asked, "whole": whole}, completion.text)
            # Where alternatives of the first token are asked for, it is all that is wanted.
            reason = None if alternatives and completion.finish_reason == "length" else completion.unusable
            if reason is not None:
                self._replies.booking.note_unusable(reason)
            if completion.finish_reason == "length" and (whole or completion.tool_calls):
                raise ReplyCutShortError(
                    f"{settings.model}: cut short at {max_tokens} tokens; raise max_tokens (models.ROLE.max_tokens, "
                    f"also by operation: {{{running_operation() or 'answer'}: {2 * max_tokens}}}), or ask for a "
                    "shorter reply"
                )
            values = completion.model_dump(exclude_none=True, exclude={"cached_tokens", "thinking_tokens"})
            return ChatReply(**values, cached=cached, model=settings.model)

    def _completion(self, key: str, call: Call[ChatCompletion]) -> tuple[ChatCompletion, bool]:
        """The reply, and whether the cache had it."""
        booking = self._replies.booking
        booking.require_room()
        with self._replies.alone(key):
            completion = self._replies.stored([key], partial(self._replies.own_or_usable, key)).get(key)
            if completion is None:
                (entry,) = self._replies.make(call).values()
                return ChatCompletion.model_validate_json(entry), False
            if booking.claim(call.settings, [key], lambda tokens: call.most()):
                return completion, False
            booking.reuse(call.settings.model, completion.tokens)
            return completion, True


class SilentModel(ChatModel):
    """A chat model that refuses every request, so that a system can be run as far as it goes without one."""

    def chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> ChatReply:
        """Raise a `ModelError`; nothing is sent or booked, and watches see the failure."""
        with failures_noted(self.settings.model):
            raise ModelError(f"{self.settings.model}: is not asked here")


class EmbeddingModel(_Model):
    """Turns texts into vectors whose dot products are cosine similarities.

    All have one length. If the endpoint begins to return another length, the calls fail. Once the access is opened
    again, it counts as another model (`identity`) with nothing cached yet.
    """

    def __init__(self, replies: Replies, endpoint: Endpoint, name: str, dimension: Dimension) -> None:
        """`name` is the model's identity without its `dimension`."""
        super().__init__(replies, endpoint, name + dimension.suffix)
        self._dimension = dimension

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Vectors of length 1, one for each text in order.

        Args:
            query: whether the texts search (True) or are searched (False); the embedded model distinguishes the two.

        Raises:
            CallFailedError, BudgetExceededError: as `ChatModel.chat`; also if the vectors have another length than
                earlier ones.
        """
        settings = self.settings
        extra = {"input_type": "query" if query else "passage"} if settings.embedded else {}
        keys = {text: request_key(kind="embedding", model=self.identity, text=text, **extra) for text in texts}
        with failures_noted(settings.model), self._replies.alone(*keys.values()):
            booking = self._replies.booking
            booking.require_room()
            vectors = self._replies.stored(list(keys.values()), self._dimension.fitting)
            missing = [text for text, key in keys.items() if key not in vectors]
            claimed = booking.claim(settings, list(vectors), partial(price, settings))
            for start in range(0, len(missing), _TEXTS_A_REQUEST):
                part = missing[start : start + _TEXTS_A_REQUEST]
                vectors |= self._request_vectors({text: keys[text] for text in part}, extra)
            if texts and not missing and not claimed:
                booking.reuse(settings.model, TokenCounts())
        return [vectors[keys[text]] for text in texts]

    def _request_vectors(self, keys: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, list[float]]:
        """Vectors by key of texts that are not in the cache."""
        settings = self.settings
        body = {
            "model": settings.model,
            "input": list(keys),
            "encoding_format": "float",
            **extra,
            **settings.fields(chat=False),
        }

        def entries(embeddings: Embeddings) -> dict[str, bytes]:
            return {key: packed(vector) for key, vector in zip(keys.values(), embeddings.vectors, strict=True)}

        call: Call[Embeddings] = Call(
            settings,
            lambda: price(settings, TokenCounts(_most_tokens(body))),
            lambda: self._endpoint.embed(body, self._dimension.check),
            entries,
        )
        return {key: unpacked(entry) or [] for key, entry in self._replies.make(call).items()}


def _most_tokens(body: Mapping[str, Any]) -> int:
    """Tokens of a request, on the high side: English has about four bytes a token."""
    texts = list(texts_of(body))
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return max(math.ceil(size / 3), sum(map(estimated_tokens, texts))) + 8 * len(texts)
