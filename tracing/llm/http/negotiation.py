"""Requests are sent in the form that an endpoint takes, which its refusals tell, or trials where they name nothing."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Mapping
from typing import Any, Protocol

from tracing.llm.capabilities import Accepted, Capabilities
from tracing.llm.http.refusals import FORM_STATUS, WORDLESS_STATUS, RefusedRequestError

_UNTRIED = frozenset({"response_format", "seed", "stop", "logprobs", "encoding_format"})
"""Fields of which the small request before a run does not try every value: all others it has tried."""
_ABOUT_SIZE = re.compile(r"context|too (?:long|large|many)|exceed", re.IGNORECASE)
"""How a refusal says that a request is too long, for which no other form of it helps."""

_log = logging.getLogger(__name__)


class Post(Protocol):
    """Gives the answer to a request, as it is, or raises a `RefusedRequestError`; `once` without a retry."""

    def __call__(self, sent: Mapping[str, Any], *, once: bool) -> bytes: ...


class Negotiation:
    """Learns from refusals of one endpoint, and sends again what is refused for its form; thread-safe.

    Args:
        capabilities: what is learnt.
        model: its name.
    """

    def __init__(self, capabilities: Capabilities, model: str) -> None:
        self._capabilities, self._model = capabilities, model
        self._unexplained: set[str] = set()

    def answer(self, body: Mapping[str, Any], post: Post) -> bytes:
        """The answer to a request in the form that the endpoint takes; raises as `post`."""
        while True:
            sent = self._capabilities.adapted(body)
            try:
                return post(sent, once=False)
            except RefusedRequestError as refused:
                if refused.filtered:
                    raise
                if self._capabilities.adapted(body) != sent:
                    # Meanwhile another request has found out what it is.
                    continue
                if refused.status not in FORM_STATUS or not self._capabilities.learn(refused.whole, sent):
                    answer = self._answer_to_less(body, sent, refused, post)
                    if answer is None:
                        raise
                    return answer
            self._tell()

    def _answer_to_less(
        self, body: Mapping[str, Any], sent: Mapping[str, Any], refused: RefusedRequestError, post: Post
    ) -> bytes | None:
        """The answer to a request with less in it, where a refusal names no field; what it was is learnt.

        None if the same is refused with the least that can be sent, or had nothing to do with what was sent.
        """
        # Numbers in it differ from request to request.
        kind = f"{refused.status} {re.sub(r'[0-9]+', '', str(refused))}"
        candidates = self._capabilities.least(sent)
        of_size = "messages" in sent and _ABOUT_SIZE.search(kind)
        if refused.status not in WORDLESS_STATUS or of_size or _UNTRIED.isdisjoint(sent) or not candidates:
            return None
        if kind in self._unexplained:
            return None

        def answer(accepted: Accepted | None = None) -> bytes | None:
            with contextlib.suppress(RefusedRequestError):
                return post(self._capabilities.adapted(body, accepted), once=True)
            return None

        raw = answer()
        if raw is not None:
            return raw
        for accepted in candidates:
            raw = answer(accepted)
            if raw is not None:
                break
        else:
            self._unexplained.add(kind)
            return None
        for name, values in self._capabilities.restorations(sent):
            for value in values:
                more = accepted.restored(name, value)
                richer = answer(more)
                if richer is not None:
                    raw, accepted = richer, more
                    break
        self._capabilities.take(accepted)
        self._tell()
        return raw

    def _tell(self) -> None:
        _log.warning("%s: %s", self._model, self._capabilities.accepted.sentence)
