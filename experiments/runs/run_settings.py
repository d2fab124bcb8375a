"""A run's settings as it keeps them in its folder, its fingerprint and MLflow: flat or as YAML, and without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from experiments.runs.config import RunConfig
from tracing.errors import ConfigError
from tracing.formats import stamped
from tracing.recording.credentials import without_credentials, without_password
from tracing.recording.redaction import REDACTED, Redaction, redact

_REACHING = ("key_command", "requests_per_minute", "tokens_per_minute")
"""Settings of a model that change no reply."""


def dump_config(config: RunConfig) -> str:
    """The configuration as YAML, without any API key, password or token: what a run's folder keeps.

    It shows which models were given a key, so that a resumed run does not send their endpoint that of another one.
    """
    values = config.model_dump(mode="json", exclude_none=True)
    if config.tracking.uri is not None:
        values["tracking"]["uri"] = without_credentials(config.tracking.uri)
    if config.search.storage is not None:
        # A resumed run has its user's name from here, and the password from the environment.
        values["search"]["storage"] = without_password(config.search.storage)
    if not config.modules:
        del values["modules"]
    for role, model in config.models.roles().items():
        settings = values["models"][role]
        if settings.get("api_key"):
            settings["api_key"] = REDACTED
        settings["headers"] = dict.fromkeys(model.headers, REDACTED)
        settings["extra_body"] = model.shown_body
        if model.key_command is not None:
            settings["key_command"] = redact(model.key_command)
    values["system_settings"] = without_secrets(values["system_settings"])
    return yaml.safe_dump(stamped("config.yaml", values), sort_keys=False, allow_unicode=True)


def check_secrets(config: RunConfig) -> None:
    """Make sure that no setting of the system lacks the secret that `dump_config` took out of it."""
    for key, value in config.system_settings.items():
        if REDACTED in str(value):
            raise ConfigError(
                f"system_settings.{key}: the run did not keep the secret in it; give the configuration that has it: "
                "memtune run CONFIG, with --resume RUN to go on with the run"
            )


def params_of(config: RunConfig) -> dict[str, Any]:
    """The settings as flat `key.path` → value, without keys, credentials and unset values."""
    return _flat(without_secrets(config.model_dump(mode="json", exclude=None if config.modules else {"modules"})))


def lasting_params(config: RunConfig) -> dict[str, Any]:
    """Those of `params_of` that must be the same when a run is resumed.

    A raised budget lets a run continue that the old one had stopped, and no result depends on the number of concurrent
    requests, on where studies are kept, or on how an endpoint is reached. Data, baseline
    prompts, weights and modules may have moved: their content decides, which the fingerprint has under its own names.
    """
    free = {
        "concurrency",
        "data",
        "modules",
        "search.storage",
        "prompts.start",
        *(f"models.{role}.model" for role, model in config.models.roles().items() if model.embedded),
        *(f"models.{role}.{name}" for role in config.models.roles() for name in _REACHING),
    }
    return {
        key: value
        for key, value in params_of(config).items()
        if key not in free and not key.startswith("budget.") and ".headers." not in key
    }


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        elif value is not None:
            flat[f"{prefix}{key}"] = without_credentials(value) if key == "uri" else value
    return flat


def nested(params: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of which `params_of` made flat ones."""
    settings: dict[str, Any] = {}
    for key, value in params.items():
        *sections, name = key.split(".")
        within = settings
        for section in sections:
            within = within.setdefault(section, {})
        within[name] = value
    return settings


def without_secrets(value: Any) -> Any:
    """A JSON value without what is named like a secret, passwords in URLs, and texts in the form of a credential."""
    if isinstance(value, Mapping):
        hides = Redaction().hides
        return {key: without_secrets(item) for key, item in value.items() if not hides(key)}
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    return redact(without_password(value)) if isinstance(value, str) else value
