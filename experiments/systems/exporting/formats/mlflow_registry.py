"""Prompts in MLflow's prompt registry, in a store in a sqlite file: a version each, with the alias `champion`."""

from __future__ import annotations

import functools
import re
import sqlite3
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from experiments.systems.exporting.formats.literal_templates import from_double_braces, with_double_braces
from tracing.errors import ConfigError, ContractError, RunError
from tracing.recording.credentials import without_credentials
from tracing.systems.prompts import Candidate

STORE_FILE = "mlflow.db"
CHAMPION = "champion"

_ADDRESS = re.compile(r"(sqlite(\+\w+)?|postgresql(\+\w+)?|mysql(\+\w+)?|https?)://")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_MOST = 1000


class MlflowRegistry:
    """A store that `MLFLOW_TRACKING_URI=sqlite:///…/mlflow.db` names. A prompt is registered by its own name."""

    def write(self, candidate: Candidate, folder: Path) -> dict[str, str]:
        """Write the store."""
        texts = {name: registered(name, template) for name, template in candidate.items()}
        file = folder / STORE_FILE
        file.write_bytes(_empty_store())
        client = _client(_uri(file))
        for name, text in texts.items():
            version = client.register_prompt(name, text, commit_message="exported by memtune")
            client.set_prompt_alias(name, CHAMPION, version.version)
        return dict.fromkeys(candidate, STORE_FILE)

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """A prompt with its values, by MLflow's own `format`."""
        version = _client(_uri(folder / STORE_FILE)).get_prompt_version_by_alias(name, CHAMPION)
        return str(version.format(**values))

    def prove(self, folder: Path) -> list[str]:
        """Load each prompt from the store as a program does."""
        import mlflow

        client = _client(_uri(folder / STORE_FILE))
        proof = []
        for name, text in self.texts(str(folder / STORE_FILE)).items():
            version = client.load_prompt(f"prompts:/{name}@{CHAMPION}")
            if version.template != text:
                raise ContractError(f"{name}: MLflow {mlflow.__version__} loads another text; the export is unusable")
            loads = f"MLflow {mlflow.__version__} loads all {len(text)} characters"
            proof.append(f"{name}: {loads} by prompts:/{name}@{CHAMPION}")
        return proof

    def recognises(self, source: str) -> bool:
        """Whether it is the address of a store, or a sqlite file."""
        path = Path(source)
        return _ADDRESS.match(source) is not None or (path.is_file() and path.suffix in (".db", ".sqlite"))

    def texts(self, source: str) -> dict[str, str]:
        """The texts of the registry: of each prompt the version with the alias `champion`, else the latest."""
        _require()
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        uri = source if _ADDRESS.match(source) else _uri(Path(source))
        path = uri.partition(":///")[2] if uri.startswith("sqlite") else ""
        if path and not Path(path).is_file():
            raise RunError(f"{source}: no such file; give --from the store that holds the prompts")
        try:
            with _copied(Path(path)) if path else nullcontext(uri) as address:
                client = _client(address)
                prompts = client.search_prompts(max_results=_MOST)
                return {prompt.name: _text_of(client, prompt.name) for prompt in prompts}
        except (MlflowException, SQLAlchemyError, sqlite3.Error, OSError) as error:
            reason = " ".join(str(error).replace(uri, without_credentials(uri)).split())[:300]
            raise RunError(f"{without_credentials(source)}: no prompts can be read ({reason})") from None

    def template(self, text: str, placeholders: Collection[str]) -> str:
        """The text as a template, in which `{{name}}` stands for a placeholder."""
        if _is_jinja(text):
            raise ContractError("it is a Jinja template ({% … %}), which memtune cannot hold; write it without")
        return from_double_braces(text)


def registered(name: str, template: str) -> str:
    """The text that is registered for a prompt."""
    if not _NAME.fullmatch(name):
        raise ContractError(f"{name}: MLflow's names have letters, digits, '-', '_' and '.' only; rename the prompt")
    try:
        text = with_double_braces(template)
    except ContractError as error:
        raise ContractError(f"{name}: {error}") from None
    if _is_jinja(text):
        raise ContractError(f"{name}: MLflow would take it for a Jinja template because of {{% and %}}; reword it")
    return text


def _is_jinja(text: str) -> bool:
    return "{%" in text and "%}" in text


def _text_of(client: Any, name: str) -> str:
    from mlflow.exceptions import MlflowException

    try:
        version = client.get_prompt_version_by_alias(name, CHAMPION)
    except MlflowException:
        version = None
    if version is None:
        versions = client.search_prompt_versions(name, max_results=_MOST)
        version = max(versions, key=lambda entry: int(entry.version))
    if not isinstance(version.template, str):
        raise RunError(f"{name}: a prompt of several messages; memtune's prompts have one text")
    return version.template


@contextmanager
def _copied(file: Path) -> Iterator[str]:
    """The address of a copy of a store, since MLflow makes or upgrades the tables of any database that it opens."""
    with tempfile.TemporaryDirectory(prefix="memtune-registry-") as scratch:
        copy = Path(scratch) / STORE_FILE
        with (
            closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as theirs,
            closing(sqlite3.connect(copy)) as ours,
        ):
            if not theirs.execute("SELECT 1 FROM sqlite_master WHERE name = 'registered_models'").fetchone():
                raise RunError(f"{file}: not a store of MLflow's; give --from the one that holds the prompts")
            theirs.backup(ours)
        yield _uri(copy)


def _uri(file: Path) -> str:
    return f"sqlite:///{file.absolute()}"


def _client(uri: str) -> Any:
    _require()
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def _require() -> None:
    try:
        import mlflow  # noqa: F401
    except ImportError:
        raise ConfigError("mlflow is not installed: pip install 'memtune[track]'") from None


@functools.cache
def _empty_store() -> bytes:
    """A store without prompts: making its tables takes seconds."""
    with tempfile.TemporaryDirectory(prefix="memtune-registry-") as scratch:
        file = Path(scratch) / STORE_FILE
        _client(_uri(file)).search_prompts(max_results=1)
        return file.read_bytes()
