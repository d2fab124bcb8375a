"""An MLflow store as a run writes to it: the experiment, its runs identified by a key, and bounded waiting."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from experiments.mlflow_tracking.sqlite_store import artifacts_beside, file_of, in_turn, is_ready, make_ready, store_uri
from tracing.errors import ConfigError
from tracing.package_data import packaged_text
from tracing.recording.credentials import without_credentials
from tracing.recording.known_secrets import remember_address
from tracing.recording.redaction import excerpt
from tracing.temporary_values import environment_with

PARENT = ""
"""The parent run of an experiment; the nested ones are `baseline`, `champion`, and one for each round."""

NOTE = "mlflow.note.content"
"""The tag that MLflow shows as the description of a run or an experiment."""

ABOUT = packaged_text("experiments", "templates/mlflow_experiment.md")
"""The description of an experiment that has none."""

KEY = "memtune.key"
"""Tag that identifies a run, so that a repeated write needs no id from the reply to the first."""

TIMEOUT_SECONDS = 5
"""How long MLflow waits for its server's reply; its own defaults add up to minutes."""

_LONGEST_SAID = 300


class RefusedError(Exception):
    """The store refuses the write; a retry will not help."""


class TrackingStore:
    """One experiment in one MLflow store; nothing is contacted before the first use.

    Args:
        uri: of the store.
        experiment: name of the experiment.
        key: distinguishes this run's MLflow runs from all others.
        timeout: seconds to wait for a reply of a server.
    """

    def __init__(self, uri: str, experiment: str, key: str, *, timeout: int = TIMEOUT_SECONDS) -> None:
        self.uri, self.experiment, self.key, self._timeout = uri, experiment, key, timeout
        remember_address(uri)
        self._client: Any = None
        self._experiment_id: str | None = None
        self._runs: dict[str, str] = {}
        self._begun: int | None = None

    @property
    def remote(self) -> bool:
        """Whether a server keeps the store, so that it may be unreachable for a while."""
        return urlsplit(self.uri).scheme in ("http", "https")

    @property
    def client(self) -> Any:
        """MLflow's client of the store; a missing store file is created.

        Raises:
            ConfigError: the file cannot be made or used.
        """
        if self._client is None:
            from mlflow.tracking import MlflowClient

            make_ready(self.uri)
            self._client = MlflowClient(tracking_uri=self.uri)
        return self._client

    @property
    def experiment_id(self) -> str:
        """Id of the experiment, which is created if it does not exist.

        Raises:
            ConfigError: it is deleted.
        """
        if self._experiment_id is None:
            experiment = self._find_experiment() or self._new_experiment()
            self._experiment_id = str(experiment.experiment_id)
            if NOTE not in experiment.tags:
                self.client.set_experiment_tag(self._experiment_id, NOTE, ABOUT)
        return self._experiment_id

    def _find_experiment(self) -> Any:
        experiment = self.client.get_experiment_by_name(self.experiment)
        if experiment is not None and experiment.lifecycle_stage != "active":
            raise ConfigError(
                f"tracking.experiment: {self.experiment!r} is deleted in MLflow; restore it there or give another name"
            )
        return experiment

    def _new_experiment(self) -> Any:
        from mlflow.exceptions import MlflowException

        file = file_of(self.uri)
        try:
            self.client.create_experiment(self.experiment, artifact_location=file and artifacts_beside(file))
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":  # which another run has just made
                raise
        return self._find_experiment()

    def check(self, *, make: bool) -> Exception | None:
        """Try the store and the experiment; return why they cannot be reached for the moment, None if they can.

        Args:
            make: whether to make what is missing.

        Raises:
            ConfigError: the store cannot be used, or the experiment is deleted there.
        """
        try:
            _ = self.client  # which may have to be made, and takes its time
            with self.bounded():
                _ = self.experiment_id if make else self._find_experiment()
        except ConfigError:
            raise
        except Exception as error:  # whatever a store raises
            if (self.remote or isinstance(error, TimeoutError)) and not is_refusal(error):
                return error
            raise ConfigError(
                f"tracking.uri: {without_credentials(self.uri)}: {in_words(error, self.uri)}; "
                "give the URI of a working MLflow store"
            ) from None
        return None

    def known_run(self) -> str | None:
        """Id of the parent run if it was already started or found, or None. Contacts nothing."""
        return self._runs.get(PARENT)

    def find_run(self, name: str) -> str | None:
        """Id of the run called `name`, found by its key if this process did not start it, or None."""
        if name not in self._runs:
            key = self._key_of(name)
            matches = self.client.search_runs([self.experiment_id], filter_string=f"tags.`{KEY}` = '{key}'")
            if not matches:
                return None
            self._runs[name] = matches[0].info.run_id
        return self._runs[name]

    def run_id(self, name: str = PARENT) -> str:
        """Id of the run called `name`.

        Raises:
            RefusedError: it was never started.
        """
        run_id = self.find_run(name)
        if run_id is None:
            raise RefusedError(f"the store has no run {self._key_of(name)}")
        return run_id

    def begun(self) -> int:
        """When the parent run began, in milliseconds since the epoch.

        Raises:
            RefusedError: it was never started.
        """
        if self._begun is None:
            self._begun = int(self.client.get_run(self.run_id()).info.start_time)
        return self._begun

    def start_run(self, name: str, title: str, tags: Mapping[str, str], moment: int) -> None:
        """Start the run called `name`, with `title` in the UI, or resume one started before; `moment` in ms."""
        run_id = self.find_run(name)
        if run_id is not None:
            self.client.update_run(run_id, status="RUNNING")
        else:
            all_tags = {**tags, KEY: self._key_of(name)}
            run = self.client.create_run(self.experiment_id, run_name=title, tags=all_tags, start_time=moment)
            self._runs[name] = run.info.run_id

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Inside, take turns with other processes to write, and try a server once, with a short timeout.

        Environment variables of MLflow that are set already keep their values.

        Raises:
            OSError: another process writes for too long.
        """
        variables = {"MLFLOW_HTTP_REQUEST_TIMEOUT": str(self._timeout), "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
        variables = {name: value for name, value in variables.items() if name not in os.environ}
        # Importing MLflow takes seconds, for which nobody else should have to wait.
        import_module("mlflow.tracking")
        with in_turn(self.uri), environment_with(variables):
            yield

    @contextmanager
    def as_default(self) -> Iterator[None]:
        """Make this store and experiment MLflow's defaults inside: parts of its API accept no others."""
        import mlflow

        before = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
        variables = {"MLFLOW_EXPERIMENT_ID": self.experiment_id, "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false"}
        with environment_with(variables):
            mlflow.set_tracking_uri(self.uri)
            try:
                yield
            finally:
                mlflow.set_tracking_uri(before)

    def _key_of(self, name: str) -> str:
        return f"{self.key}/{name}" if name else self.key


def all_of(search: Callable[[str | None], Any]) -> Iterator[Any]:
    """What a search of MLflow's finds on all its pages, each of which it gives for the token of the page before."""
    token = None
    while True:
        page = search(token)
        yield from page
        token = page.token
        if not token:
            return


def is_refusal(error: BaseException) -> bool:
    """Whether a write failed permanently: not for no connection, a busy store or a rejected login."""
    from mlflow.exceptions import MlflowException

    if isinstance(error, ConfigError):
        return False  # of the store, whatever is written
    if isinstance(error, MlflowException):
        status = int(error.get_http_status_code())
        return 400 <= status < 500 and status not in (401, 403, 408, 429)
    return not isinstance(error, OSError)


def in_words(error: BaseException, uri: str) -> str:
    """An error on one line, without the credentials of `uri`."""
    message = " ".join(str(error).replace(uri, without_credentials(uri)).split()) or type(error).__name__
    password = urlsplit(uri).password
    return excerpt(message, _LONGEST_SAID, password, unquote(password or ""))


def check_store(uri: str | None, experiment: str, home: Path) -> None:
    """Refuse a store that a run would refuse; an unreachable server and a file yet to be made are accepted.

    Args:
        uri: of the store; None for the one of `home`.
        experiment: name of the run's experiment.

    Raises:
        ConfigError: the store cannot be used, or the experiment is deleted there.
    """
    used = uri or store_uri(home)
    file = file_of(used)
    if file is None or is_ready(file):
        TrackingStore(used, experiment, "").check(make=False)
