"""A user's own configuration of EverOS, their `everos.toml`: what a run takes of it, and what not."""

from __future__ import annotations

import tomllib
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import ConfigDict, Field, field_validator

from experiments.systems.own_config import Taken, TakenInPart, own_config
from tracing.errors import RunError
from tracing.files.opening import read_text

_MODELS = ("llm", "embedding")
_UNUSED = ("rerank", "decider", "multimodal", "clustering", "knowledge")
"""Sections of what a run does not have: agentic search, files, profiles and documents."""
_RUNS = ("api", "sqlite", "lancedb", "index", "milvus", "cascade", "observability")
"""Sections that say where and how it runs, and nothing of what is kept and found."""


class _Memory(Taken):
    timezone: str = "UTC"

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"no time zone: {name!r}") from None
        return name


class _Limits(Taken):
    hard_token_limit: int = Field(default=65536, ge=1)
    hard_msg_limit: int = Field(default=500, ge=1)


class _Memorize(Taken):
    model_config = ConfigDict(extra="ignore")

    mode: str = "agent"


class OwnEverOs(TakenInPart):
    """What a run takes of a configuration, and the sections that it leaves out; nothing of it is a secret."""

    unused = (*_MODELS, *_UNUSED, *_RUNS)

    memory: _Memory = _Memory()
    boundary_detection: _Limits = _Limits()
    memorize: _Memorize | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a server of this configuration."""
        limits = self.boundary_detection
        return {
            "EVEROS_MEMORY__TIMEZONE": self.memory.timezone,
            "EVEROS_BOUNDARY_DETECTION__HARD_TOKEN_LIMIT": str(limits.hard_token_limit),
            "EVEROS_BOUNDARY_DETECTION__HARD_MSG_LIMIT": str(limits.hard_msg_limit),
        }

    def caveats(self) -> list[str]:
        """What of it did not count in a run, one sentence each."""
        caveats = [
            "EverOS had its user's time zone and limits of episodes, in a storage folder that began empty.",
            *self.left_out(_MODELS, "memtune's models were asked"),
            *self.left_out(_UNUSED, "a run has nothing that uses them"),
        ]
        if self.memorize is not None and self.memorize.mode != "chat":
            caveats.append("EverOS ran in the mode chat, in place of agent: it kept nothing of an agent's own work.")
        return caveats


def read_own_everos(source: object, folder: Path = Path()) -> OwnEverOs:
    """The configuration that is given as the path of a TOML file, or by its content.

    Raises:
        ConfigError: there is no such file, or a section or key is unknown or has no fitting value.
    """
    return own_config(OwnEverOs, source, folder, _toml, "an everos.toml", "EverOS reads")[0]


def _toml(path: Path) -> object:
    try:
        return tomllib.loads(read_text(path))
    except ValueError as error:
        # The message of TOML's reader has no content, which may be a key.
        raise RunError(f"{path}: no configuration ({' '.join(str(error).split())}); give a TOML file") from None
