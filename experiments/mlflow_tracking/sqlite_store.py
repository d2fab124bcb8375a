"""An MLflow store in a sqlite file: made elsewhere and moved in place, never migrated, one process writes at a time.

MLflow makes and migrates its tables in many statements. A process killed between them leaves a file that no later one
can use, and two processes that make the same file at once fail on each other's tables. MLflow checks what exists and
then writes, without a transaction around both, so two processes with the same write do it twice or fail.
"""

from __future__ import annotations

import glob
import logging
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path

from filelock import FileLock, Timeout

from tracing.errors import ConfigError

logger = logging.getLogger(__name__)

MAKING_SECONDS = 120.0
"""How long to wait for another process that is making the same store; making one takes a few seconds."""

TURN_SECONDS = 10.0
"""How long to wait for the writes of another process, each of which takes less than a second."""

_FILE = re.compile(r"sqlite(\+\w+)?:///(?P<path>(?!:memory:|file:)[^?]+)")
_REVISION = re.compile(r"""^(down_)?revision\s*=\s*\(?((?:["']\w+["'](?:,\s*)?)+)""", re.MULTILINE)
_HALF_MIGRATED = "_alembic_tmp_"
_USERS_OWN = ("experiments", "runs", "registered_models")
_BESIDE = ("", "-journal", "-wal", "-shm")


def store_file(home: Path) -> Path:
    """The default store: a sqlite file under the home."""
    return (home / "mlflow.db").resolve()


def store_uri(home: Path) -> str:
    """The URI of the default store."""
    return f"sqlite:///{store_file(home)}"


def make_ready(uri: str) -> None:
    """Make the store if it does not exist. An empty one whose creation was interrupted is moved out of the way.

    Args:
        uri: of any store; only one in a sqlite file is looked at.

    Raises:
        ConfigError: the file is not a store or is of another MLflow version, or the store cannot be made.
    """
    path = file_of(uri)
    if path is None:
        return
    try:
        if is_ready(path):
            return
        with _lock(path).acquire(timeout=MAKING_SECONDS):
            if not is_ready(path):
                _set_aside(path)
                _make(path)
    except Timeout:
        raise ConfigError(f"{path}: another process has been making it for {MAKING_SECONDS:.0f} s; end that") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be made ({error.strerror}); make room, or give another --home") from None


@contextmanager
def in_turn(uri: str) -> Iterator[None]:
    """Be the only memtune process that writes to a store in a sqlite file; servers handle this for other stores.

    Raises:
        OSError: another process held the lock for `TURN_SECONDS`, or the lock's file cannot be made.
    """
    path = file_of(uri)
    if path is None:
        yield
    else:
        with _lock(path).acquire(timeout=TURN_SECONDS):
            yield


def file_of(uri: str) -> Path | None:
    """The sqlite file of a store; None for another kind of store."""
    named = _FILE.fullmatch(uri)
    return None if named is None else Path(named["path"])


def artifacts_beside(path: Path) -> str:
    """URI of the folder for artifacts beside a sqlite file; MLflow would put them into the current folder."""
    return path.resolve().with_name("artifacts").as_uri()


def _lock(path: Path) -> FileLock:
    path.parent.mkdir(parents=True, exist_ok=True)
    # One object per process, so that the holder of the lock can take it again.
    return FileLock(path.with_name(f".{path.name}.lock"), is_singleton=True)


def is_ready(path: Path) -> bool:
    """Whether MLflow can use the store as it is; if False, it holds no user data.

    Raises:
        ConfigError: the file is not a sqlite database, or holds a store that this MLflow cannot use.
    """
    if not path.exists():
        return False
    try:
        with closing(sqlite3.connect(path, timeout=MAKING_SECONDS)) as store:
            tables = {name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            cut_short = any(name.startswith(_HALF_MIGRATED) for name in tables)
            versions = store.execute("SELECT version_num FROM alembic_version") if "alembic_version" in tables else ()
            if not cut_short and [version for (version,) in versions] == [_newest_version()]:
                return True
            own = [name for name in sorted(tables) if name.removeprefix(_HALF_MIGRATED) in _USERS_OWN]
            empty = not any(store.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() for name in own)  # noqa: S608
    except sqlite3.Error as error:
        raise ConfigError(f"{path}: unusable MLflow store ({error}); move it away, or give another --home") from None
    if empty:
        return False
    if cut_short:
        raise ConfigError(f"{path}: an upgrade of this MLflow store was cut short; put its copy back, or move it away")
    raise ConfigError(
        f"{path}: an MLflow store of another version; keep a copy and run: mlflow db upgrade sqlite:///{path}"
    )


def _newest_version() -> str | None:
    # Read rather than imported, as alembic would: the migrations import MLflow, which takes seconds.
    mlflow = find_spec("mlflow")
    assert mlflow is not None  # noqa: S101 (who asks has it)
    assert mlflow.submodule_search_locations is not None  # noqa: S101 (it is a package)
    revisions: set[str] = set()
    followed: set[str] = set()
    for file in Path(mlflow.submodule_search_locations[0], "store", "db_migrations", "versions").glob("*.py"):
        for name, ids in _REVISION.findall(file.read_text(encoding="utf-8")):
            (followed if name else revisions).update(re.findall(r"\w+", ids))
    heads = revisions - followed
    return heads.pop() if len(heads) == 1 else None


def _set_aside(path: Path) -> None:
    """Move the store out of the way; a journal left behind would be rolled back into the new store."""
    there = [path.with_name(path.name + end) for end in _BESIDE if path.with_name(path.name + end).exists()]
    if there:
        folder = tempfile.mkdtemp(prefix=f"{path.name}.unfinished-", dir=path.parent)
        for file in there:
            file.rename(Path(folder) / file.name)
        logger.warning("%s: its making was cut short; it is kept in %s, and a new store is made", path, folder)


def _make(path: Path) -> None:
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient
    from sqlalchemy.exc import SQLAlchemyError

    for abandoned in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", suffix=".part", dir=path.parent) as scratch:
        aside = Path(scratch) / path.name
        try:
            MlflowClient(tracking_uri=f"sqlite:///{aside.absolute()}").search_experiments(max_results=1)
        except (MlflowException, SQLAlchemyError) as error:
            if _is_interrupt(error):
                raise KeyboardInterrupt from None
            message = " ".join(str(error).split())[:300]
            raise ConfigError(f"{path}: cannot be made ({message}); make room, or give another --home") from None
        os.replace(aside, path)


def _is_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C caused it, after which SQLAlchemy may fail on the interrupted transaction."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__
    return cause is not None
