"""Replies are written together, and the common start of two prompts is read once; each is the one it would be alone.

One step of the model takes about as long for several replies as for one. But the runtime computes a batch of few tokens
by other code than a larger one, and the last digits of the numbers depend on which. So every token of a prompt but the
last is computed in a batch of at least `FEW`, whatever is taken over from an earlier prompt; and the last token, and
those of replies, in batches of fewer, whatever else is written meanwhile. Among batches of either kind, the numbers of
a token do not depend on the others.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FEW = 8
"""Tokens from which on the runtime computes a batch by its code for large ones."""

TOGETHER = 6
"""Replies that are written together, at most. Seven take longer, and eight would be a large batch."""

SLOTS = TOGETHER + 2
"""Prompts that are kept. A group finds what its systems send in turn, and does not evict all that others sent."""

WORTH_COPYING = 8
"""Tokens that a copy of a slot has to save; it takes as long as reading one, and what follows is cut."""

BATCH = 64
"""Tokens of a batch, at most."""


_PROBES = tuple(
    {
        "messages": [{"role": "user", "content": f"Name bird number {number}"}],
        "max_tokens": 4,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 1,
    }
    for number in (1, 2)
)


@dataclass(slots=True)
class _Slot:
    """A place of the runtime.

    Attributes:
        tokens: of the prompt that was computed in it.
        reused: how many of them it took over itself, if that was a good part.
        reused_at, used_at: when that was, and when it was used last, in prompts.
    """

    tokens: Sequence[int] = ()
    reused: int = 0
    reused_at: int = 0
    used_at: int = 0


@dataclass(slots=True)
class Slots:
    """The runtime of a model, and what its slots hold.

    Attributes:
        runtime: with `SLOTS` slots of their own memory, and batches of `BATCH` tokens.
        key: of the runtime's own listener.
        folder: through which the runtime copies slots.
        exact: whether numbers do not depend on what is computed together. Otherwise each request is answered alone.
    """

    runtime: Any
    key: str
    folder: TemporaryDirectory[str]
    exact: bool = True
    _slots: list[_Slot] = field(default_factory=lambda: [_Slot() for _ in range(SLOTS)])
    _prompts: int = 0

    def answer(self, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Answer at most `TOGETHER` chat requests; a failure has an `error` object."""
        if not self.exact:
            return [self._alone(request) for request in requests]
        replies = self._together(requests)
        if replies is not None:
            return replies
        if len(requests) > 1:
            return [self.answer([request])[0] for request in requests]
        return [self._alone(requests[0])]

    def check(self) -> None:
        """Find out whether this build of the runtime is `exact`, by two short prompts that begin alike."""
        alone = []
        for request in _PROBES:
            self._slots = [_Slot() for _ in range(SLOTS)]
            alone.append(self._together([request]))
        times = TOGETHER // len(_PROBES)
        together = self._together(_PROBES * times)
        expected = [_numbers(reply) for replies in alone for reply in replies or ()] * times
        self.exact = together is not None and [_numbers(reply) for reply in together] == expected

    def _alone(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._slots[0].tokens = ()
        return self._write(request, 0, reuse=False)

    def _together(self, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
        """Replies that are written together; None if the runtime cannot read one of the prompts as it will be read."""
        prompts = [self._tokens(request) for request in requests]
        places = list(self._places(prompts))
        # While a prompt is read nothing may be written: the tokens of both would be in one batch.
        if not all(self._read(place, prompt) for place, prompt in zip(places, prompts, strict=True)):
            return None
        with ThreadPoolExecutor(len(requests)) as pool:
            replies = list(pool.map(lambda request, place: self._write(request, place, reuse=True), requests, places))
        as_read = all(map(_begins_with, replies, prompts))
        for reply, place in zip(replies, places, strict=True):
            if "error" in reply or not as_read:
                self._slots[place].tokens = ()
        return replies if as_read else None

    def _places(self, prompts: Sequence[Sequence[int]]) -> Iterator[int]:
        """A slot for each prompt."""
        free = set(range(SLOTS))
        for prompt in prompts:
            self._prompts += 1
            shared = {number: self._shared(number, prompt) for number in free}
            oldest = sorted(free, key=lambda number: (self._slots[number].reused_at, self._slots[number].used_at))
            place = max(oldest, key=shared.__getitem__)
            free.remove(place)
            slot = self._slots[place]
            slot.reused, slot.used_at = shared[place], self._prompts
            slot.reused_at = self._prompts if slot.reused else 0
            yield place

    def _shared(self, number: int, prompt: Sequence[int]) -> int:
        """How many tokens a slot saves a prompt; 0 if too few to give up what it holds."""
        slot = self._slots[number]
        shared = _takeable(slot.tokens, prompt)
        # All prompts begin alike; for that alone, a long common start must not be given up.
        return shared if 4 * shared >= len(prompt) and 2 * shared >= slot.reused else 0

    def _read(self, number: int, tokens: Sequence[int]) -> bool:
        """Have a slot hold a prompt up to its last token; False if that is not possible."""
        slot = self._slots[number]
        end = len(tokens) - 1
        if end < 1:
            slot.tokens = ()
            return False
        self._copy_better(number, tokens)
        previous, slot.tokens = slot.tokens, ()
        reused = _takeable(previous, tokens)
        if reused == end:
            slot.tokens = tokens
            return True
        if reused and previous[reused] == tokens[reused]:
            # Make the slot forget what follows, by a prompt that goes on otherwise.
            self._complete(number, [*tokens[:reused], 0 if tokens[reused] else 1], reuse=True)
        stops = [end]
        if 0 < (end - reused) % BATCH < FEW <= end - reused:
            # The last batch would be a small one.
            stops.insert(0, end - FEW)
        if not all(self._complete(number, tokens[:stop], reuse=reused > 0 or stop != stops[0]) for stop in stops):
            return False
        slot.tokens = tokens
        return True

    def _copy_better(self, number: int, tokens: Sequence[int]) -> None:
        """Copy what another slot holds into this one, if that saves enough."""
        shared = [_takeable(slot.tokens, tokens) for slot in self._slots]
        best = max(range(SLOTS), key=shared.__getitem__)
        if shared[best] < shared[number] + WORTH_COPYING:
            return
        self._slots[number].tokens = ()
        name = f"{best}"
        try:
            # On a full disk nothing is copied.
            with suppress(OSError, http.client.HTTPException):
                self._post(f"/slots/{best}?action=save", {"filename": name})
                self._post(f"/slots/{number}?action=restore", {"filename": name})
                self._slots[number].tokens = self._slots[best].tokens
        finally:
            Path(self.folder.name, name).unlink(missing_ok=True)

    def _complete(self, number: int, tokens: Sequence[int], *, reuse: bool) -> bool:
        request = {"prompt": list(tokens), "n_predict": 0, "cache_prompt": reuse, "id_slot": number}
        return "error" not in self.runtime.handle_completions(request)

    def _write(self, request: Mapping[str, Any], number: int, *, reuse: bool) -> dict[str, Any]:
        try:
            return dict(self.runtime.handle_chat_completions({**request, "cache_prompt": reuse, "id_slot": number}))
        except Exception as error:
            # It says nothing about the other requests of a group.
            code = 400 if isinstance(error, (TypeError, ValueError)) else 500
            return {"error": {"code": code, "message": f"the runtime refused the request: {error!r}"}}

    def _tokens(self, request: Mapping[str, Any]) -> list[int]:
        """The prompt that the model reads; empty if the runtime cannot say, as for a malformed request."""
        try:
            prompt = self._post("/apply-template", {"messages": request.get("messages")})["prompt"]
            tokens = self._post("/tokenize", {"content": prompt, "add_special": True, "parse_special": True})["tokens"]
        except (urllib.error.HTTPError, KeyError, ValueError):
            return []
        return [int(token) for token in tokens]

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        # The address is the runtime's own, on loopback.
        request = urllib.request.Request(  # noqa: S310
            f"{self.runtime.listening_address}{path}", json.dumps(body).encode(), headers
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as reply:
            return dict(json.load(reply))


def _takeable(computed: Sequence[int], tokens: Sequence[int]) -> int:
    """How many tokens of a prompt that was computed may be taken over, so that no small batch of the other remains."""
    if min(len(computed), len(tokens)) <= FEW:
        return 0
    # The last token of either is computed in a small batch.
    pairs = zip(computed[:-1], tokens[:-1], strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    end = len(tokens) - 1
    return common if common == end else min(common, end - FEW)


def _begins_with(reply: Mapping[str, Any], prompt: Sequence[int]) -> bool:
    """Whether a reply was written after just the prompt that was read for it."""
    return "error" in reply or reply.get("timings", {}).get("cache_n", len(prompt) - 1) == len(prompt) - 1


def _numbers(reply: Mapping[str, Any]) -> object:
    """The log probabilities of a reply's tokens."""
    return [choice["logprobs"] for choice in reply.get("choices", ())]
