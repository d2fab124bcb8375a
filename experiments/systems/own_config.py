"""A user's own configuration of the library that a system runs: read once, and kept without its secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from tracing.errors import ConfigError, RunError
from tracing.systems.conversations import problems_of

M = TypeVar("M", bound=BaseModel)


class Taken(BaseModel):
    """Keys that a run takes of a configuration; their values are never quoted, since they may be credentials."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def kept(self) -> dict[str, Any]:
        """As JSON values, from which it can be read again."""
        return self.model_dump(mode="json", exclude_none=True)


class TakenInPart(Taken):
    """Those of a configuration whose `unused` keys are known; which of these it has, is kept as `others`."""

    unused: ClassVar[tuple[str, ...]]
    others: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _leave_out(cls, keys: Mapping[str, Any]) -> dict[str, Any]:
        others = [name for name in cls.unused if name in keys]
        return {"others": others} | {name: value for name, value in keys.items() if name not in others}

    def left_out(self, names: tuple[str, ...], reason: str) -> list[str]:
        """The sentence that those of these keys which are there did not count; none if none is."""
        there = [name for name in names if name in self.others]
        return [f"Of its configuration {', '.join(there)} did not count: {reason}."] if there else []


class TakesOwn:
    """A system with the setting `config`, a user's own configuration of its library."""

    @classmethod
    def _own(cls, settings: Mapping[str, Any], folder: Path) -> Taken:
        raise NotImplementedError

    @classmethod
    def kept_settings(cls, settings: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """The settings as a run keeps them, with what it takes of `config` in its place; `folder` is of the run's file.

        Raises:
            ConfigError: the configuration cannot be read, or the library would not take it.
        """
        own = {} if settings.get("config") is None else {"config": cls._own(settings, folder).kept()}
        return {**settings, **own}


def own_config(
    model: type[M], source: object, folder: Path, read: Callable[[Path], object], form: str, reader: str
) -> tuple[M, str]:
    """What a run takes of a configuration, and what messages call that.

    Args:
        model: of what it takes.
        source: the path of a file, or its keys.
        folder: of a relative path.
        read: what is in such a file.
        form: of it, for messages: `a TOML file`.
        reader: of the keys, for messages: `EverOS reads`.

    Raises:
        ConfigError: there is no such file, or it has no keys; or one is unknown to the reader, or has no fitting value.
    """
    label = "system_settings.config"
    try:
        if isinstance(source, str):
            label, source = f"{label}: {source}", read(folder / source)
        if not isinstance(source, Mapping):
            raise ConfigError(f"{label}: give the path of {form}, or its keys, not {type(source).__name__}")
        return model.model_validate(source), label
    except RunError as error:
        raise ConfigError(f"{label}: {error}") from None
    except ValidationError as error:
        raise ConfigError(f"{label}: {'; '.join(problems_of(error, model))}; give what {reader}") from None
