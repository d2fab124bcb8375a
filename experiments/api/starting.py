"""Turns the arguments of a Python program into the settings of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from experiments.data.datasets import DATASETS, JSONL
from experiments.runs.config import RunConfig
from experiments.runs.config_file import OPTIONS, load_config
from experiments.runs.earlier_names import NO_CLUSTER
from experiments.runs.earlier_names import SETTINGS as EARLIER_SETTINGS
from tracing.errors import ConfigError
from tracing.llm.settings import ModelSettings
from tracing.plugins import registered_object
from tracing.suggestions import did_you_mean
from tracing.systems.conversations import Conversation, first_problem, write_conversations
from tracing.systems.protocol import MemorySystem

DATA = "data"
"""Folder of a home that keeps conversations given as objects."""

Model = str | Mapping[str, Any] | ModelSettings
"""A model: an embedded one's name, `http://host/v1#name`, a mapping of its settings, or the settings themselves."""


def settings_from(
    home: Path,
    *,
    config: str | Path | None = None,
    system: str | MemorySystem | type[MemorySystem] | None = None,
    data: str | Path | Iterable[Conversation] | None = None,
    models: Mapping[str, Model | None],
    settings: Mapping[str, Any],
) -> RunConfig:
    """The configuration of a run.

    Args:
        home: keeps conversations that are given as objects, so that the run can be resumed and attributed later.
        config: a YAML file or the name of a bundled one, overridden by everything else.
        system: the memory system.
        data: a data set's name (`sample`), a file or folder, or conversations.
        models: by role; None leaves the role unset.
        settings: further keys of the configuration (`rounds`, `budget`) or options of `memtune run` (`budget_calls`).
            What names a part of one's own (`metric`) may be the object itself.

    Raises:
        ConfigError: a value is invalid, or a setting is unknown.
    """
    given_keys: dict[str, Any] = {}
    if system is not None:
        given_keys["system"] = system if isinstance(system, str) else registered_object(system)
    if isinstance(data, str) and data in DATASETS.names():
        given_keys["dataset"] = data
    elif isinstance(data, str | Path):
        given_keys["data"] = Path(data)
    elif data is not None:
        given_keys |= {"dataset": JSONL, "data": conversations_file(data, home)}
    given_keys |= {f"models.{role}": _model(role, model) for role, model in models.items() if model is not None}
    return load_config(None if config is None else str(config), overrides={**given_keys, **_keyed(settings)})


def _keyed(settings: Mapping[str, Any]) -> dict[str, Any]:
    options = {option.removeprefix("--").replace("-", "_"): key for key, option in OPTIONS.items()}
    names = [*options, *(name for name in RunConfig.model_fields if name not in options)]
    keyed: dict[str, Any] = {}
    for name, value in settings.items():
        # `prompts` is a section of a configuration, and once was an option, which takes one value.
        section = name in RunConfig.model_fields and isinstance(value, Mapping | BaseModel)
        name = name if section else EARLIER_SETTINGS.get(name, name)
        if name == "executor":
            raise ConfigError(f"{name}: {NO_CLUSTER}")
        if name not in names:
            near = did_you_mean(name, names) or f"; known: {', '.join(names)}"
            raise ConfigError(f"{name}: unknown setting{near}")
        named = value if name == "system_settings" else named_parts(value)
        keyed[name if section else options.get(name, name)] = _switched(name, named)
    return keyed


def named_parts(value: Any) -> Any:
    """A setting with names in place of functions, classes and objects that can be called; this process opens them."""
    if isinstance(value, Mapping):
        return {key: named_parts(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [named_parts(inner) for inner in value]
    return registered_object(value) if callable(value) else value


def _switched(name: str, value: Any) -> Any:
    """The value of the key that an option sets: one named `no_…` switches its key off."""
    if not name.startswith("no_") or value is None:
        return value
    if not isinstance(value, bool):
        raise ConfigError(f"{name}: must be True or False, not {value!r}; leave it out, or give one of these")
    return not value


def model_settings(role: str, model: Model) -> ModelSettings:
    """The settings of a model.

    Raises:
        ConfigError: they are not valid, or an address names no model.
    """
    settings = _model(role, model)
    try:
        return settings if isinstance(settings, ModelSettings) else ModelSettings.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(f"{role}: {first_problem(error)}") from None


def _model(role: str, model: Model) -> Mapping[str, Any] | ModelSettings:
    if not isinstance(model, str):
        return model
    if not model.startswith(("http://", "https://")):
        return {"model": model, "base_url": None}
    url, _, name = model.partition("#")
    if not name:
        raise ConfigError(f"{role}: {model}: names no model; write {url}#NAME, or give a mapping of model and base_url")
    return {"model": name, "base_url": url}


def conversations_file(given: Iterable[Conversation], home: Path) -> Path:
    """The file of these conversations in a home, named by its content; raises as `conversations_in`."""
    conversations, folder = conversations_in(given, "data"), home / DATA
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{conversation.model_dump_json(exclude_none=True)}\n" for conversation in conversations)
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsonl"
    if not path.exists():
        write_conversations(path, conversations)
    return path


def conversations_in(given: Iterable[Conversation], argument: str) -> list[Conversation]:
    """The conversations given as an argument.

    Raises:
        ConfigError: there are none, or something else is among them.
    """
    conversations = list(given)
    wrong = next((element for element in conversations if not isinstance(element, Conversation)), None)
    if wrong is not None or not conversations:
        kind = "an empty list" if wrong is None else type(wrong).__name__
        raise ConfigError(f"{argument}: holds {kind}; give conversations (tracing.systems.conversations.Conversation)")
    return conversations
