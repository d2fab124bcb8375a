"""A user's own configuration of EverOS, their `everos.toml`: what a run takes of it, and what not."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from experiments.systems.exporting.written_files import read_text
from tracing.errors import ConfigError, RunError
from tracing.systems.conversations import problems_of

_LABEL = "system_settings.config"
_MODELS = ("llm", "embedding")
_UNUSED = ("rerank", "decider", "multimodal", "clustering", "knowledge")
"""Sections of what a run does not have: agentic search, files, profiles and documents."""
_RUNS = ("api", "sqlite", "lancedb", "index", "milvus", "cascade", "observability")
"""Sections that say where and how it runs, and nothing of what is kept and found."""


class _Taken(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class _Memory(_Taken):
    timezone: str = "UTC"

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"no time zone: {name!r}") from None
        return name


class _Limits(_Taken):
    hard_token_limit: int = Field(default=65536, ge=1)
    hard_msg_limit: int = Field(default=500, ge=1)


class _Memorize(_Taken):
    model_config = ConfigDict(extra="ignore")

    mode: str = "agent"


class OwnEverOs(_Taken):
    """What a run takes of a configuration, and the sections that it leaves out; nothing of it is a secret."""

    memory: _Memory = _Memory()
    boundary_detection: _Limits = _Limits()
    memorize: _Memorize | None = None
    others: tuple[str, ...] = ()

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a server of this configuration."""
        limits = self.boundary_detection
        return {
            "EVEROS_MEMORY__TIMEZONE": self.memory.timezone,
            "EVEROS_BOUNDARY_DETECTION__HARD_TOKEN_LIMIT": str(limits.hard_token_limit),
            "EVEROS_BOUNDARY_DETECTION__HARD_MSG_LIMIT": str(limits.hard_msg_limit),
        }

    def kept(self) -> dict[str, Any]:
        """As JSON values, from which it can be read again."""
        return self.model_dump(mode="json", exclude_none=True)

    def caveats(self) -> list[str]:
        """What of it did not count in a run, one sentence each."""
        models = [name for name in _MODELS if name in self.others]
        unused = [name for name in _UNUSED if name in self.others]
        caveats = [
            "EverOS had its user's time zone and limits of episodes, on a storage folder of its own, which began empty."
        ]
        if models:
            caveats.append(f"Of its configuration {' and '.join(models)} did not count: memtune's models were asked.")
        if unused:
            caveats.append(
                f"Of its configuration {', '.join(unused)} did not count, as a run has nothing that uses them."
            )
        if self.memorize is not None and self.memorize.mode != "chat":
            caveats.append("EverOS ran in the mode chat, in place of agent: it kept nothing of an agent's own work.")
        return caveats


def read_own_everos(source: object, folder: Path = Path()) -> OwnEverOs:
    """The configuration that is given as the path of a TOML file, or by its content.

    Raises:
        ConfigError: there is no such file, or a section or key is unknown or has no fitting value.
    """
    label = _LABEL
    if isinstance(source, str):
        label = f"{_LABEL}: {source}"
        try:
            source = tomllib.loads(read_text(folder / source))
        except RunError as error:
            raise ConfigError(f"{_LABEL}: {error}") from None
        except ValueError as error:
            # The message of TOML's reader has no content, which may be a key.
            raise ConfigError(f"{label}: no configuration ({' '.join(str(error).split())}); give a TOML file") from None
    if not isinstance(source, Mapping):
        raise ConfigError(f"{label}: give the path of an everos.toml, or its keys, not {type(source).__name__}")
    others = [name for name in (*_MODELS, *_UNUSED, *_RUNS) if name in source]
    try:
        return OwnEverOs.model_validate(
            {"others": others} | {name: value for name, value in source.items() if name not in others}
        )
    except ValidationError as error:
        raise ConfigError(f"{label}: {'; '.join(problems_of(error, OwnEverOs))}; give what EverOS reads") from None
