"""Settings of systems that take one of a few names, or a number from some least one on."""

from __future__ import annotations

from collections.abc import Sequence

from tracing.errors import ConfigError
from tracing.suggestions import did_you_mean

REPLY_SCHEMA = ("embedded", "always", "never")
"""When replies are constrained to a schema that the library alone does not ask for ("embedded": of embedded models)."""


def check_choice(setting: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a setting that is none of the choices.

    Raises:
        ConfigError: naming the setting and the choices.
    """
    if value not in choices:
        raise ConfigError(
            f"system_settings.{setting}: unknown: {value!r}{did_you_mean(value, choices)}; choose one of "
            f"{', '.join(choices)}"
        )


def check_least(least: int, **settings: int) -> None:
    """Refuse a setting below the least number that makes sense.

    Raises:
        ConfigError: naming the setting and the number.
    """
    for setting, value in settings.items():
        if value < least:
            raise ConfigError(f"system_settings.{setting}: at least {least} is needed, not {value}")
