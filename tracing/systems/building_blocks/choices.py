"""Settings of systems that take one of a few names."""

from __future__ import annotations

from collections.abc import Sequence

from tracing.errors import ConfigError

REPLY_SCHEMA = ("embedded", "always", "never")
"""When replies are constrained to a schema that the library alone does not ask for ("embedded": of embedded models)."""


def check_choice(setting: str, given: str, choices: Sequence[str]) -> None:
    """Refuse a setting that is none of the choices.

    Raises:
        ConfigError: naming the setting and the choices.
    """
    if given not in choices:
        raise ConfigError(f"system_settings.{setting}: unknown: {given!r}; choose one of {', '.join(choices)}")
