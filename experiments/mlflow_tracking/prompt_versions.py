"""Prompts in MLflow's registry: one version per text, with the reason for it; `champion` names the best."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from experiments.mlflow_tracking.store import TrackingStore, all_of
from experiments.mlflow_tracking.writes import Write
from experiments.systems.exporting.formats.literal_templates import with_double_braces
from optimizer.tuning.round import RoundRecord
from tracing.errors import ContractError

CHAMPION = "champion"
TEXT_DIGEST = "memtune.sha256"
"""Tag that identifies a text among a prompt's versions: the registry makes a new one for an equal text."""


class RegisterPrompt(Write):
    """A prompt's text as a version, linked to the run; `text` is as memtune writes it."""

    kind: Literal["prompt"] = "prompt"
    name: str
    text: str
    message: str
    tags: Mapping[str, str]

    def apply(self, store: TrackingStore, folder: Path) -> None:
        with store.as_default():
            version = version_of(store.client, self.name, text_digest(self.text))
            if version is None:
                version = store.client.register_prompt(
                    self.name,
                    registry_form(self.text),
                    commit_message=self.message,
                    tags={**self.tags, TEXT_DIGEST: text_digest(self.text)},
                )
            store.client.link_prompt_version_to_run(store.run_id(self.run), version)


class NameChampion(Write):
    """Point the alias `champion` at a registered text.

    If a run found nothing better (`better` false), an existing alias stays: it may name what an earlier run found.
    """

    kind: Literal["champion"] = "champion"
    name: str
    text: str
    better: bool

    def apply(self, store: TrackingStore, folder: Path) -> None:
        with store.as_default():
            version = version_of(store.client, self.name, text_digest(self.text))
            if version is not None and (self.better or not _has_champion(store.client, self.name)):
                store.client.set_prompt_alias(self.name, CHAMPION, version.version)


def prompt_name(system: str, prompt: str) -> str:
    """A prompt's name in the registry, which allows letters, digits, `-`, `_` and `.`."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", f"memtune.{system}.{prompt}")


def accepted_reasons(record: RoundRecord) -> dict[str, str]:
    """Prompt name → why its text became the champion's in this round; empty where nothing was accepted."""
    if not record.accepted or record.champion is None:
        return {}
    return {
        rewrite.prompt: f"round {record.n}, {rewrite.source}: {rewrite.reason} ({rewrite.gate or 'accepted'})"
        for rewrite in record.rewrites
        if record.champion.get(rewrite.prompt) == rewrite.text
    }


def registry_form(text: str) -> str:
    """A template as the registry writes it: `{{name}}` for a variable, single literal braces.

    A text whose literal braces would read as a variable there is left unchanged.
    """
    try:
        return with_double_braces(text)
    except ContractError:
        return text


def text_digest(text: str) -> str:
    """What identifies a text among the versions of its prompt."""
    return hashlib.sha256(text.encode()).hexdigest()


def version_of(client: Any, name: str, digest: str) -> Any:
    """The version of a prompt whose text has this digest, or None."""
    versions = all_of(lambda token: client.search_prompt_versions(name, page_token=token))
    return _or_none(lambda: next((v for v in versions if v.tags.get(TEXT_DIGEST) == digest), None), 404)


def _has_champion(client: Any, name: str) -> bool:
    # A missing alias is an invalid parameter to some stores.
    return _or_none(lambda: client.get_prompt_version_by_alias(name, CHAMPION), 400, 404) is not None


def _or_none(look_up: Callable[[], Any], *missing: int) -> Any:
    """The result of looking something up; None if the store answers with one of these HTTP codes."""
    from mlflow.exceptions import MlflowException

    try:
        return look_up()
    except MlflowException as error:
        if error.get_http_status_code() not in missing:
            raise
        return None
