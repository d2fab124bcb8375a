"""What an endpoint can do, found out from what it refuses, and the form in which it takes a request."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tracing.llm.cache import ResponseCache, request_key

_LIMIT, _NEW_LIMIT = "max_tokens", "max_completion_tokens"
THINKING_TOKENS = 8192
"""What a reply of a model that thinks may have beside its answer."""

_OPTIONAL = ("temperature", "seed", "stop", "logprobs", "top_logprobs", "encoding_format", "input_type")
"""Fields that a request can do without, if with another reply."""
LEARNT = (_LIMIT, "response_format", *_OPTIONAL)
"""Fields of which is learnt how an endpoint takes them."""
_FORMS = ("json_schema", "json_object", "none")
_MANNERS = re.compile(
    r"unsupported|not (?:\w+ ){0,3}(?:support|allow|permit|accept|available|compatible|recogni[sz]ed)\w*"
    r"|n't support|unrecogni[sz]ed|unknown|unexpected|extra (?:inputs|fields)|extra_forbidden|invalid|deprecated"
    r"|only (?:the )?default|must be|must contain|cannot|can't",
    re.IGNORECASE,
)
"""How endpoints say that they do not take something."""
_UNKNOWN = re.compile(r"unsupported|not support|n't support|unrecogni[sz]ed|unknown|unexpected|extra", re.IGNORECASE)
_ABOUT_FORMAT = re.compile(r"response_?format|json_?schema|json_?object|structured output", re.IGNORECASE)


class Accepted(BaseModel):
    """What one endpoint takes of what requests have.

    Attributes:
        token_limit: the name of the limit of a reply's tokens; None if it takes none.
        reply_format: the strictest form of JSON that it enforces; with `none` the request asks for it in words.
        without: fields that it does not take.
        texts: most texts that it takes in one request for embeddings, where that was found out; None for any number.
        thinks: whether the model spends tokens of a reply before it answers.
        tried: fields of a small request that it has answered, in whichever form.
        usage: whether it tells how many tokens a call took; None if that is not known.

    Example:
        >>> Accepted(tried=["temperature", "seed"], without=["temperature"], usage=True).description
        'takes seed; not temperature; tells usage'
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    token_limit: str | None = _LIMIT
    reply_format: str = _FORMS[0]
    without: tuple[str, ...] = ()
    texts: int | None = None
    thinks: bool = False
    tried: tuple[str, ...] = ()
    usage: bool | None = None

    def restored(self, name: str, value: str) -> Accepted:
        """With one more thing that is taken, of `Capabilities.restorations`."""
        if name == "without":
            return self.model_copy(update={"without": tuple(field for field in self.without if field != value)})
        return self.model_copy(update={name: value})

    @property
    def thinking_room(self) -> int:
        """Tokens that a reply may have beside the answer."""
        return THINKING_TOKENS if self.thinks else 0

    def label(self, request: Mapping[str, Any]) -> str:
        """What it changes of the replies to a request, as part of their key; "" if nothing."""
        form = request.get("response_format", {}).get("type", _FORMS[2])
        weaker = max(form, self.reply_format, key=_FORMS.index)
        # Another name of the limit changes no reply.
        changing = ",".join(name for name in self.without if name in request)
        return (
            (f" format={weaker}" if weaker != form else "")
            + (f" without={changing}" if changing else "")
            + (f" thinking={THINKING_TOKENS}" if self.thinks else "")
        )

    @property
    def description(self) -> str:
        """What is known of it, in a line; "" if nothing."""
        names = {_LIMIT: self.token_limit, "response_format": self.reply_format.removesuffix(_FORMS[2])}
        fields = [name for field in self.tried if field not in self.without and (name := names.get(field, field))]
        refused = (
            *((_LIMIT,) if self.token_limit != _LIMIT else ()),
            *_FORMS[: _FORMS.index(self.reply_format)],
            *self.without,
        )
        parts = (
            f"takes {', '.join(fields)}" if fields else "",
            f"not {', '.join(refused)}" if refused else "",
            "thinks before it answers" if self.thinks else "",
            "" if self.usage is None else f"tells {'' if self.usage else 'no '}usage",
        )
        return "; ".join(filter(None, parts))

    @property
    def sentence(self) -> str:
        """What it does not take, in words; "" if it takes all."""
        parts = ["it thinks before it answers"] if self.thinks else []
        if self.token_limit != _LIMIT:
            parts.append(
                f"its limit of tokens is {self.token_limit}" if self.token_limit else "it takes no limit of tokens"
            )
        if self.reply_format != _FORMS[0]:
            parts.append("it enforces no JSON schema" + (", but JSON" if self.reply_format == _FORMS[1] else ""))
        if self.without:
            parts.append(f"it does not take {', '.join(self.without)}")
        if self.texts is not None:
            parts.append(f"it takes {self.texts:,} texts at a time")
        return "; ".join(parts)


class Capabilities:
    """What an endpoint takes, as far as it is known; thread-safe. It is kept in the cache, for the next run.

    Args:
        cache: None to keep it for this process only.
        identity: of the model at its endpoint.
    """

    def __init__(self, cache: ResponseCache | None, identity: str) -> None:
        self._cache, self._key = cache, request_key(kind="capabilities", model=identity)
        self._lock = threading.Lock()
        self.accepted = self._from_cache()

    def adapted(self, body: Mapping[str, Any], accepted: Accepted | None = None) -> dict[str, Any]:
        """The request in a form that the endpoint takes, as far as is known, or as `accepted` says."""
        accepted = accepted or self.accepted
        sent = {name: value for name, value in body.items() if name not in accepted.without}
        if _LIMIT in sent:
            most = sent.pop(_LIMIT) + accepted.thinking_room
            if accepted.token_limit is not None:
                sent[accepted.token_limit] = most
        if "response_format" in sent:
            self._format(sent, accepted.reply_format)
        return sent

    def learn(self, refusal: str, sent: Mapping[str, Any]) -> bool:
        """Learn from what a refusal says of a request; whether the request now has another form.

        Args:
            refusal: the body of the refusal (HTTP 400, 404, 422 and the like), as text.
            sent: the request as it was refused.
        """
        with self._lock:
            before = self.accepted
            after = _learnt(before, refusal, sent)
            return after is not None and self._note(after)

    def least(self, sent: Mapping[str, Any]) -> list[Accepted]:
        """What to try where a refusal names no field: a request without all that it can do without.

        Args:
            sent: the request as it was refused.
        """
        accepted = self.accepted
        fewer: dict[str, Any] = {"without": (*accepted.without, *(name for name in _OPTIONAL if name in sent))}
        if "response_format" in sent:
            fewer["reply_format"] = _FORMS[-1]
        least = accepted.model_copy(update=fewer)
        renamed = least.model_copy(update={"token_limit": _NEW_LIMIT})
        return [variant for variant in (least, *([renamed] if _LIMIT in sent else [])) if variant != accepted]

    def restorations(self, sent: Mapping[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
        """What of a request may be sent again after all: attributes of `accepted`, each with values to try in turn.

        A value of `without` is the name of a field that is taken.
        """
        forms = _FORMS[_FORMS.index(sent["response_format"]["type"]) : -1] if "response_format" in sent else ()
        return [("reply_format", forms), *(("without", (name,)) for name in _OPTIONAL if name in sent)]

    def learn_thinking(self) -> bool:
        """Learn that the model used up its tokens by thinking; whether that is new."""
        return self.note(thinks=True)

    def note(self, **learnt: Any) -> bool:
        """Keep attributes of `accepted` that are learnt from an answer; whether that is new."""
        with self._lock:
            return self._note(self.accepted.model_copy(update=learnt))

    def take(self, accepted: Accepted) -> None:
        """Learn that the endpoint takes requests in this form."""
        with self._lock:
            self._note(accepted)

    def _note(self, accepted: Accepted) -> bool:
        if accepted == self.accepted:
            return False
        self.accepted = accepted
        if self._cache is not None:
            self._cache.replace(self._key, accepted.model_dump_json().encode())
        return True

    def _format(self, sent: dict[str, Any], accepted: str) -> None:
        reply_format = sent["response_format"]
        if reply_format["type"] == _FORMS[0] and accepted == _FORMS[0]:
            return
        schema = reply_format.get("json_schema", {}).get("schema")
        if accepted == _FORMS[2]:
            del sent["response_format"]
        elif reply_format["type"] == _FORMS[0]:
            sent["response_format"] = {"type": _FORMS[1]}
        form = f" that fits this JSON schema: {json.dumps(schema, ensure_ascii=False)}" if schema else ""
        sent["messages"] = _with_note(sent["messages"], f"Reply with nothing but a JSON object{form}")

    def _from_cache(self) -> Accepted:
        entry = None if self._cache is None else self._cache.get(self._key)
        try:
            return Accepted.model_validate_json(entry) if entry else Accepted()
        except ValidationError:
            return Accepted()


def _learnt(before: Accepted, refusal: str, sent: Mapping[str, Any]) -> Accepted | None:
    if not _MANNERS.search(refusal):
        return None
    if _LIMIT in sent and (_NEW_LIMIT in refusal or (_LIMIT in refusal and _UNKNOWN.search(refusal))):
        return before.model_copy(update={"token_limit": _NEW_LIMIT})
    if _NEW_LIMIT in sent and _NEW_LIMIT in refusal and _UNKNOWN.search(refusal):
        return before.model_copy(update={"token_limit": None})
    if "response_format" in sent and _ABOUT_FORMAT.search(refusal):
        # A request may ask for an object where a schema is refused: what is refused is what was sent.
        refused = sent["response_format"]["type"]
        weaker = _FORMS[_FORMS.index(refused) + 1]
        return before.model_copy(update={"reply_format": max(weaker, before.reply_format, key=_FORMS.index)})
    for name in _OPTIONAL:
        if name in sent and re.search(rf"\b{name}\b", refusal):
            together = ("logprobs", "top_logprobs") if name in ("logprobs", "top_logprobs") else (name,)
            return before.model_copy(update={"without": tuple(dict.fromkeys((*before.without, *together)))})
    return None


def _with_note(messages: Any, note: str) -> list[Any]:
    """The messages with a sentence at the end of the last one that has a text."""
    noted = list(messages)
    for place in reversed(range(len(noted))):
        content = noted[place].get("content")
        if isinstance(content, str) and noted[place].get("role") in ("user", "system"):
            noted[place] = {**noted[place], "content": f"{content}\n\n{note}"}
            break
    return noted
