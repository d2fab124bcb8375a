"""Settings of systems: those that shape the result, and checks of names and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracing.errors import ConfigError
from tracing.llm.access import ModelAccess
from tracing.suggestions import did_you_mean

REPLY_SCHEMA = ("embedded", "always", "never")
"""When replies are constrained to a schema that the library alone does not ask for ("embedded": of embedded models)."""


class Settings:
    """The attribute `settings` of a system, everything besides prompts and models that shapes the result."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __get__(self, system: object, owner: type | None = None) -> Mapping[str, Any]:
        return {name: getattr(system, name) for name in self._names}


class EnforcesSchemas:
    """A system with the setting `reply_schema`, whose library does not enforce a form of replies itself."""

    reply_schema: str

    def enforces_schema(self, *, embedded: bool) -> bool:
        """Whether reply schemas are enforced with such a model."""
        return self.reply_schema == "always" or (self.reply_schema == "embedded" and embedded)

    def enforced_with(self, access: ModelAccess) -> bool:
        """Whether they are with the task model of an access."""
        return self.enforces_schema(embedded=access.task.settings.embedded)


def check_choice(setting: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a setting that is none of the choices."""
    if value not in choices:
        raise ConfigError(
            f"system_settings.{setting}: unknown: {value!r}{did_you_mean(value, choices)}; choose one of "
            f"{', '.join(choices)}"
        )


def check_least(least: int, **settings: int) -> None:
    """Refuse a setting below the least number that makes sense."""
    for setting, value in settings.items():
        if value < least:
            raise ConfigError(f"system_settings.{setting}: at least {least} is needed, not {value}")
