"""The author: a model that writes prompts, and whose unusable replies are told."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tracing.errors import ModelError, in_one_line

if TYPE_CHECKING:
    from tracing.llm.models import ChatModel, ChatReply

REPLY_TOKENS = 700
"""What a prompt of the greatest usual length takes."""

CASES_SHOWN = 3
"""Failed executions in one request: what a context of 4,096 tokens holds beside the prompt."""

TEMPERATURE = 0.7
"""Replies to the same request should differ."""

_LONGEST_INPUT = 700
_MORE = 4
"""How many times longer a reply may be when the last was cut short."""

_ENDPOINT_TOKENS = _MORE**2 * REPLY_TOKENS
"""The longest reply asked of an endpoint: room for a model that reasons at length."""

FAILURES, REST_S = 3, 300.0
"""Calls that fail one after the other, each tried several times, until an author rests, and for how long."""

_TAIL, _TIMES = 60, 3
"""The last characters of a reply, and how often it has them if it goes in circles."""

_log = logging.getLogger(__name__)


class Author:
    """Asks a model for texts.

    A reply that is cut short is asked for again with more room: up to a quarter of the context of an embedded model,
    and up to 11,200 tokens of an endpoint; unless it repeats itself, which more room would not end. One that is still
    cut short, or empty, or refused, becomes an empty text; the first of each kind is logged as a warning. Where calls
    fail one after the other, none is made for five minutes, so that other sources of texts have their turn.

    Args:
        model: the model that writes.
        waits: told at each request how many there were before it; with a slow author each takes minutes.

    Attributes:
        model: the same.
        most: tokens of the longest reply that it is asked for.
    """

    def __init__(self, model: ChatModel, waits: Callable[[int], None] | None = None) -> None:
        self.model = model
        self._waits, self._requests = waits, 0
        self.most = model.settings.context // 4 if model.settings.embedded else _ENDPOINT_TOKENS
        self._reasons: set[str] = set()
        self._failures, self._rests_until = 0, 0.0

    def chat(
        self, messages: Sequence[Mapping[str, str]], *, max_tokens: int = REPLY_TOKENS, **options: Any
    ) -> ChatReply:
        """The model's reply; an empty text if it is unusable.

        Args:
            max_tokens: maximum length of the first reply.
            options: further ones of `ChatModel.chat`, whose errors are raised.

        Raises:
            ModelError: the call failed, or the author rests.
        """
        if time.monotonic() < self._rests_until:
            raise ModelError(f"the last {FAILURES} calls of the proposer failed")
        if self._waits is not None:
            self._waits(self._requests)
        self._requests += 1
        reply: ChatReply | None = None
        limit = max_tokens
        while True:
            try:
                reply = self.model.chat(messages, max_tokens=limit, whole=False, **options)
            except ModelError as error:
                if reply is None:
                    self._note_failure(error)
                    raise
                # The endpoint does not allow so long a reply.
                break
            if reply.finish_reason != "length" or limit >= self.most or goes_in_circles(reply.text):
                break
            limit = min(_MORE * limit, self.most)
        self._failures = 0
        text = reply.text.strip()
        if reply.finish_reason == "length":
            cut = f"the reply was cut short at {reply.completion_tokens or limit} tokens"
            self.tell("cut", f"{cut}, repeating itself" if goes_in_circles(reply.text) else cut)
            text = ""
        elif not text:
            self.tell("empty", "the reply was reasoning only" if reply.thinking else "the reply was empty")
        return replace(reply, text=text)

    def text(self, request: str, *, temperature: float, sample: int) -> str:
        """The reply to a request; empty if it is unusable or the call failed."""
        try:
            reply = self.chat([{"role": "user", "content": request}], temperature=temperature, sample=sample)
        except ModelError:
            return ""
        return reply.text

    def _note_failure(self, error: ModelError) -> None:
        self._failures += 1
        self.tell("failed", f"the call failed: {in_one_line(error)}")
        if self._failures >= FAILURES:
            self._failures, self._rests_until = 0, time.monotonic() + REST_S
            self.tell(
                "rests", f"{FAILURES} calls failed one after the other, so none is made for {REST_S / 60:g} minutes"
            )

    def tell(self, kind: str, what: str) -> None:
        """Log why there is no text; once for each kind of reason."""
        if kind not in self._reasons:
            self._reasons.add(kind)
            _log.warning(
                "the proposer %s wrote no prompt: %s; if this goes on, give models.proposer another model",
                self.model.settings.model,
                what,
            )


def goes_in_circles(reply: str) -> bool:
    """Whether a reply, which was cut short, ends with what it has said several times, but for numbers."""
    words = re.sub(r"\d+", "0", reply)
    return len(words) > _TAIL and words.count(words[-_TAIL:]) >= _TIMES


def cut(text: str) -> str:
    """The start of a long text, as an author is shown it."""
    return text if len(text) <= _LONGEST_INPUT else f"{text[:_LONGEST_INPUT]} …"
