"""Why an endpoint gave no answer to a request, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracing.llm.http.bodies import error_in

if TYPE_CHECKING:
    import httpx

FORM_STATUS = frozenset({400, 404, 405, 406, 415, 422, 501})
"""With these an endpoint may refuse a request for its form."""
_OUTAGE_STATUS = frozenset({429, 502, 503, 504})
_LONGEST_REFUSAL = 20_000

_REMEDIES = {
    401: "check the key (api_key, or the variable named by api_key_env)",
    403: "check the permissions of the key",
    404: "check base_url and model",
    429: "lower the concurrency or raise the quota",
}


class RefusedError(Exception):
    """The endpoint answered with an error status."""

    def __init__(self, answer: httpx.Response) -> None:
        message, self.code = error_in(answer.content)
        # Which field is refused may stand beside the message.
        self.whole = answer.content[:_LONGEST_REFUSAL].decode("utf-8", "replace")
        super().__init__(f"HTTP {answer.status_code} {message}".rstrip())
        self.status = answer.status_code
        self.remedy = _REMEDIES.get(self.status, "")
        if 300 <= self.status < 400:
            self.remedy = f"it redirects to {answer.headers.get('location')}; give that address as base_url"

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed later."""
        return self.code != "insufficient_quota" and (self.status in (408, 409, 429) or self.status >= 500)

    @property
    def outage(self) -> bool:
        """Whether the endpoint takes no request at present."""
        return self.may_pass and self.status in _OUTAGE_STATUS


class UnreachedError(Exception):
    """No whole answer came; `nobody` says that not even a connection could be made."""

    def __init__(self, reason: str, remedy: str = "", *, outage: bool = True, nobody: bool = False) -> None:
        super().__init__(reason)
        self.remedy, self.outage, self.nobody = remedy, outage, nobody
