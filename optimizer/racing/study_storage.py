"""Where a run keeps its Optuna studies: in memory, in a journal file of its own, or on a database that runs share."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracing.errors import ConfigError, RunError
from tracing.recording.credentials import without_password
from tracing.recording.known_secrets import remember
from tracing.recording.redaction import Redaction, excerpt

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage
    from sqlalchemy import URL, Engine

PASSWORD_VARIABLE = "MEMTUNE_STORAGE_PASSWORD"  # noqa: S105 (its name)
"""Environment variable with the password of the database, where its URL has none."""

CONNECT_SECONDS = 5
_TIMEOUTS = {
    "psycopg": ("connect_timeout", CONNECT_SECONDS),
    "psycopg2": ("connect_timeout", CONNECT_SECONDS),
    "pymysql": ("connect_timeout", CONNECT_SECONDS),
    "mysqldb": ("connect_timeout", CONNECT_SECONDS),
    # Not to connect, but until other runs have written.
    "pysqlite": ("timeout", 60),
}
"""By driver of SQLAlchemy, the name under which it takes a timeout, and its value in seconds."""

_EXAMPLES = "postgresql+psycopg://user@host/name, mysql+pymysql://user@host/name or sqlite:////folder/studies.db"
_LONGEST_CAUSE = 300
_BEHIND_OTHERS = 15
"""Tables of Optuna, and a few."""


def storage_url(url: str) -> str:
    """The URL of a database, if it is clear what in it is a password.

    Raises:
        ValueError: it is not, or it is no URL.
    """
    if "://" not in url:
        raise ValueError(f"is not a URL of a database; write it as {_EXAMPLES}")
    if url.count("@") > 1:
        raise ValueError("has more than one @; write one in a user's name, a password or a parameter as %40")
    hides = Redaction().hides
    if any(hides(parameter.partition("=")[0]) for parameter in url.partition("?")[2].split("&")):
        raise ValueError(f"has a password among its parameters; give it before the host, or as ${PASSWORD_VARIABLE}")
    return url


class Studies:
    """Studies in memory, where nobody looks at them."""

    _prefix = ""

    def create(self, name: str) -> Study:
        """A new study, which maximizes.

        Raises:
            RunError: it cannot be written.
        """
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with self.written():
            return optuna.create_study(study_name=self._prefix + name, storage=self._storage(), direction="maximize")

    def _storage(self) -> BaseStorage | None:
        return None

    @contextmanager
    def written(self) -> Iterator[None]:
        """Inside, a failure to write a study of these is a `RunError` with its place and remedy."""
        yield


class StudyJournal(Studies):
    """Studies in a journal file, which begins anew: one that was cut off while it was written cannot be read.

    Args:
        file: the journal; it is made with the first study.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        file.unlink(missing_ok=True)

    def _storage(self) -> BaseStorage:
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        return JournalStorage(JournalFileBackend(str(self._file)))

    @contextmanager
    def written(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"{self._file}: the joint choice cannot be recorded ({error.strerror}); make room and continue with "
                "--resume"
            ) from None


class StudyServer:
    """A database that keeps the studies of several runs.

    Args:
        url: SQLAlchemy's URL of it, as `storage_url` lets through. A password that it lacks is taken from
            `PASSWORD_VARIABLE`, if that is set.
        environment: of the process.

    Raises:
        ConfigError: the URL is none of a database that can be used here.
    """

    def __init__(self, url: str, environment: Mapping[str, str] = os.environ) -> None:
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError

        self.shown = without_password(url)
        try:
            self._url: URL = make_url(self.shown)
            driver = self._url.get_dialect().driver
            self._secret = make_url(url).password or environment.get(PASSWORD_VARIABLE)
            remember(None if self._secret is None else str(self._secret))
        except (ArgumentError, ValueError):
            raise self._refusal("no URL of a database that SQLAlchemy knows", f"write it as {_EXAMPLES}") from None
        self._storage: BaseStorage | None = None
        self._options: dict[str, Any] = {}
        if driver in _TIMEOUTS and _TIMEOUTS[driver][0] not in self._url.query:
            self._options[_TIMEOUTS[driver][0]] = _TIMEOUTS[driver][1]
        if self._secret and driver != "pysqlite":
            # Not in the URL: what has no password in it cannot show one.
            self._options["password"] = self._secret

    def check(self) -> None:
        """Refuse a database that cannot be reached, without writing to it or making it.

        Raises:
            ConfigError: it cannot be reached, or its driver is not installed.
        """
        file = self._file
        if file is not None and not file.exists():
            folder = file.absolute().parent
            if not os.access(folder, os.W_OK | os.X_OK):
                raise self._refusal(f"{folder} is not a folder that can be written to", "name a file in another one")
            return
        with self._refused(), self._engine().connect():
            pass

    def open(self) -> BaseStorage:
        """Optuna's storage there, whose tables are made if they are missing.

        Raises:
            ConfigError: the database cannot be used.
        """
        if self._storage is None:
            self.check()
            with self._refused():
                self._storage = self._open_storage()
        return self._storage

    def studies(self, run: str) -> Studies:
        """The studies of a run, which are named by it; any that it left before are deleted.

        Args:
            run: identifies it among all runs that share the database.

        Raises:
            ConfigError: the database cannot be used.
        """
        import optuna

        storage = self.open()
        with self._refused():
            for name in optuna.get_all_study_names(storage):
                if name.startswith(f"{run} "):
                    optuna.delete_study(study_name=name, storage=storage)
        return _ServerStudies(self, storage, run)

    def one_line(self, error: BaseException) -> str:
        """A failure on one line, without the password."""
        cause = getattr(error, "orig", None) or (error.__cause__ and getattr(error.__cause__, "orig", None)) or error
        first = " ".join(str(cause).split()) or type(cause).__name__
        return excerpt(first, _LONGEST_CAUSE, self._secret)

    @property
    def _file(self) -> Path | None:
        """The file of a sqlite database."""
        if self._url.get_backend_name() != "sqlite":
            return None
        name = self._url.database
        if not name or name == ":memory:" or name.startswith("file:"):
            raise self._refusal("names no file, so no study would be kept", "write it as sqlite:////folder/studies.db")
        return Path(name)

    def _engine(self) -> Engine:
        from sqlalchemy import create_engine

        return create_engine(self._url, **self._engine_options())

    def _engine_options(self) -> dict[str, Any]:
        from sqlalchemy import NullPool

        # Hours may lie between two writes: a connection that was kept would be cut off, or be missing to others.
        return {"connect_args": dict(self._options), "poolclass": NullPool}

    def _open_storage(self) -> BaseStorage:
        from optuna.storages import RDBStorage
        from sqlalchemy.exc import DBAPIError

        # Optuna fills placeholders in the URL.
        url = self._url.render_as_string(hide_password=False).replace("{", "{{").replace("}", "}}")
        for _ in range(_BEHIND_OTHERS):
            # Each failure is one more table that another run, starting at the same time, has just made.
            with suppress(DBAPIError):
                return RDBStorage(url, engine_kwargs=self._engine_options())
        return RDBStorage(url, engine_kwargs=self._engine_options())

    @contextmanager
    def _refused(self) -> Iterator[None]:
        from optuna.exceptions import StorageInternalError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except ImportError as error:
            raise self._refusal(
                f"the driver that the URL names is not installed ({error.name or error})",
                'install it (pip install "psycopg[binary]" for postgresql+psycopg), or name another one',
            ) from None
        except (SQLAlchemyError, StorageInternalError, RuntimeError, OSError) as error:
            raise self._refusal(
                self.one_line(error),
                f"start the server, or give user, password (${PASSWORD_VARIABLE}) and database as it has them",
            ) from None

    def _refusal(self, why: str, remedy: str) -> ConfigError:
        return ConfigError(f"search.storage: {self.shown}: {why}; {remedy}, or leave it out")


class _ServerStudies(Studies):
    def __init__(self, server: StudyServer, storage: BaseStorage, run: str) -> None:
        self._server, self._opened, self._prefix = server, storage, f"{run} "

    def _storage(self) -> BaseStorage:
        return self._opened

    @contextmanager
    def written(self) -> Iterator[None]:
        from optuna.exceptions import StorageInternalError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (SQLAlchemyError, StorageInternalError) as error:
            raise RunError(
                f"search.storage: {self._server.shown}: the joint choice cannot be recorded "
                f"({self._server.one_line(error)}); make the server reachable again and continue with --resume"
            ) from None
