"""Every key of a configuration with its default and meaning, read off the settings themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from experiments.runs.config import Models, RunConfig
from tracing.llm.settings import ModelSettings
from tracing.systems.registry import SYSTEMS

ROLE = "ROLE"
"""Stands for task, proposer, judge and embedding."""

_REGISTRIES = {registry.key: registry for registry, _ in RunConfig().parts() if registry is not SYSTEMS}
"""By the keys whose choices are listed; those of `system` are in docs/systems.md."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key, named with its sections.

    `default` is YAML, and empty if the meaning tells it. `choices` come with memtune; none if they are not listed.
    """

    name: str
    default: str
    meaning: str
    choices: tuple[str, ...] = ()


def config_keys(section: type[BaseModel] = RunConfig, prefix: str = "") -> Iterator[ConfigKey]:
    """All keys of a section, in the order of the settings. Those of a model are given once, for every role."""
    for name, field in section.model_fields.items():
        inner = _section_of(field)
        if inner is Models:
            yield from _model_keys(f"{prefix}{name}.")
        elif inner is not None:
            yield from config_keys(inner, f"{prefix}{name}.")
        else:
            yield ConfigKey(f"{prefix}{name}", _default(field), _meaning(field), _choices(f"{prefix}{name}", field))


def _model_keys(prefix: str) -> Iterator[ConfigKey]:
    first, *others = (
        ConfigKey(f"{prefix}{role}.model", str(getattr(field.default, "model", "")), _meaning(field))
        for role, field in Models.model_fields.items()
    )
    yield first
    for name, field in ModelSettings.model_fields.items():
        if name != "model":
            yield ConfigKey(f"{prefix}{ROLE}.{name}", _default(field), _meaning(field))
    yield from others


def _choices(name: str, field: FieldInfo) -> tuple[str, ...]:
    if name in _REGISTRIES:
        return tuple(_REGISTRIES[name].built_in)
    return tuple(map(str, get_args(field.annotation))) if get_origin(field.annotation) is Literal else ()


def _section_of(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _meaning(field: FieldInfo) -> str:
    return " ".join((field.description or "").split())


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "{}" if field.default_factory is dict else ""
    if field.default is None:
        return ""
    plain = list(field.default) if isinstance(field.default, tuple) else field.default
    return yaml.safe_dump(plain, default_flow_style=True, width=1000).removesuffix("...\n").strip()
