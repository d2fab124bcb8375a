"""The models of an access, as its users call them: chat and embedding, each call cached, budgeted and recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracing.errors import ReplyCutShortError
from tracing.llm.budget import Spending
from tracing.llm.cache import request_key
from tracing.llm.dimension import Dimension
from tracing.llm.http.bodies import Said, packed, unpacked
from tracing.llm.http.endpoint import Endpoint
from tracing.llm.settings import ModelSettings

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess, _Call

DEFAULT_MAX_TOKENS = 1024
"""Greatest length of a reply where a program that brings its own client names none: budgets reserve the most."""

_TEXTS_A_REQUEST = 64
_SAMPLES_A_REPETITION = 1000


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's reply.

    Attributes:
        text: what it said.
        finish_reason: "stop", or "length" where the token limit cut it short.
        prompt_tokens, completion_tokens: as the endpoint counted them when the reply was made.
        cached: True where no model was asked this time.
        model: name of the model.
        first_token: log-probabilities of the likeliest first tokens, where they were asked for and the endpoint tells.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached: bool
    model: str
    first_token: Mapping[str, float] | None = None


class _Model:
    """What every model of an access has: who it is, and how it is reached."""

    def __init__(self, access: ModelAccess, endpoint: Endpoint, identity: str) -> None:
        self.identity = identity
        self.settings = endpoint.settings
        self._access = access
        self._endpoint = endpoint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.identity!r})"


class ChatModel(_Model):
    """A chat model in one role."""

    def chat(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        schema: Mapping[str, Any] | None = None,
        json_object: bool = False,
        temperature: float | None = None,
        sample: int = 0,
        stop: Sequence[str] = (),
        whole: bool = True,
        alternatives: int = 0,
    ) -> ChatReply:
        """Ask for a reply to `messages` (each with `role` and `content`).

        Args:
            max_tokens: greatest length of the reply.
            schema: JSON schema the reply must fit, enforced where the endpoint can; properties come in its order.
            json_object: whether the reply must be some JSON object, where no schema says which.
            temperature: of sampling; the settings' where None.
            sample: number of an independent sample of the same request; also its seed where the temperature is above 0.
                Another repetition (`ModelAccess.repeat`) has samples of its own.
            stop: texts before which the reply ends.
            whole: whether a reply that was cut short is an error; if not, it is returned as it is.
            alternatives: how many of the likeliest first tokens to tell the log-probabilities of.

        Raises:
            CallFailedError: refused, or every attempt failed.
            WeightsError: an embedded model that was not pulled.
            ReplyCutShortError: `whole`, and the reply hit `max_tokens`.
            BudgetExceededError: a budget does not allow the call; it was not made.
        """
        settings = self.settings
        sample += _SAMPLES_A_REPETITION * self._access.repeat
        warmth = settings.temperature if temperature is None else temperature
        sent: dict[str, Any] = {
            "messages": [dict(message) for message in messages],
            "temperature": warmth,
            "max_tokens": max_tokens,
        }
        if stop:
            sent["stop"] = list(stop)
        if warmth > 0:
            sent["seed"] = sample
        if alternatives:
            sent |= {"logprobs": True, "top_logprobs": alternatives}
        if schema is not None:
            reply_format = {"name": "reply", "schema": dict(schema)}
            sent["response_format"] = {"type": "json_schema", "json_schema": reply_format}
        elif json_object:
            sent["response_format"] = {"type": "json_object"}
        key = request_key(kind="chat", model=self.identity, sample=sample, request=sent)
        text_size = sum(len(str(message.get("content", "")).encode("utf-8", "replace")) for message in messages)
        most = price(settings, _estimate(text_size, len(messages)), max_tokens)
        with self._access._call(settings.model) as call:
            with self._access._alone(key):
                found = self._access._stored([key], Said.stored).get(key)
                if found is None:
                    found = call.make(most, lambda: self._endpoint.chat({"model": settings.model, **sent}), settings)
                    entry = found.model_dump_json(exclude_none=True).encode()
                    self._access._store({key: entry}, found.prompt_tokens, found.completion_tokens)
                    cached = False
                elif paid := self._access._claimed([key]):
                    call.again(most, paid[0], settings)
                    cached = False
                else:
                    call.reuse(found.prompt_tokens, found.completion_tokens)
                    cached = True
            if whole and found.finish_reason == "length":
                raise ReplyCutShortError(
                    f"{settings.model}: cut short at {max_tokens} tokens; raise max_tokens, or ask for a shorter reply"
                )
            return ChatReply(
                text=found.text,
                finish_reason=found.finish_reason,
                prompt_tokens=found.prompt_tokens,
                completion_tokens=found.completion_tokens,
                cached=cached,
                model=settings.model,
                first_token=found.first_token,
            )


class EmbeddingModel(_Model):
    """Turns texts into vectors whose dot products are cosine similarities.

    All have one length: where the endpoint begins to give others, the calls fail, and from the next opening of the
    access on it is another model (`identity`), of which nothing is known yet.
    """

    def __init__(self, access: ModelAccess, endpoint: Endpoint, identity: str) -> None:
        self._dimension = Dimension(access._cache, identity)
        self._name = identity
        super().__init__(access, endpoint, identity + self._dimension.suffix)

    def go_on_as(self, identity: str) -> None:
        """Be the model that a run began with: the endpoint may have answered with other vectors since, and be mended.

        An identity of another model changes nothing.
        """
        if identity.startswith(self._name):
            self._dimension.expect(identity.removeprefix(self._name))
            self.identity = self._name + self._dimension.suffix

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Vectors of length 1, one for each text in order.

        Args:
            query: whether the texts search (True) or are searched (False); the embedded model tells the two apart.

        Raises:
            CallFailedError, BudgetExceededError: as `ChatModel.chat`; also where the vectors have another length than
                those before.
        """
        settings = self.settings
        extra = {"input_type": "query" if query else "passage"} if settings.embedded else {}
        keys = {text: request_key(kind="embedding", model=self.identity, text=text, **extra) for text in texts}
        found = self._access._stored(list(keys.values()), self._dimension.fitting)
        missing = [text for text, key in keys.items() if key not in found]
        earlier = self._access._claimed(list(found))
        for paid in earlier:
            with self._access._call(settings.model) as call:
                call.again(price(settings, paid.prompt_tokens, 0), paid, settings)
        for start in range(0, len(missing), _TEXTS_A_REQUEST):
            part = missing[start : start + _TEXTS_A_REQUEST]
            with self._access._call(settings.model) as call:
                found |= self._made({text: keys[text] for text in part}, extra, call)
        if texts and not missing and not earlier:
            with self._access._call(settings.model) as call:
                call.reuse(0, 0)
        return [found[keys[text]] for text in texts]

    def _made(self, keys: Mapping[str, str], extra: Mapping[str, str], call: _Call) -> dict[str, list[float]]:
        """Vectors by key of texts that are not in the cache."""
        settings = self.settings
        most = price(settings, _estimate(sum(len(text.encode("utf-8", "replace")) for text in keys), len(keys)), 0)
        body = {"model": settings.model, "input": list(keys), "encoding_format": "float", **extra}
        made = call.make(most, lambda: self._endpoint.embed(body, self._dimension.check), settings)
        entries = {key: packed(vector) for key, vector in zip(keys.values(), made.vectors, strict=True)}
        self._access._store(entries, made.prompt_tokens, 0)
        return {key: unpacked(entry) or [] for key, entry in entries.items()}


def _estimate(size: int, texts: int) -> int:
    """Tokens of texts of `size` bytes, on the high side: a token of English has about four bytes."""
    return math.ceil(size / 3) + 8 * texts


def price(settings: ModelSettings, prompt_tokens: int, completion_tokens: int) -> Spending:
    """What one call with these tokens costs."""
    money = (prompt_tokens * settings.price_in + completion_tokens * settings.price_out) / 1e6
    return Spending(calls=1, tokens=prompt_tokens + completion_tokens, money=money)
