"""What a program finds its store by, where that is global: while it runs, another in the folder of the memory."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.systems.wrapped.program_state import other_state, state_of
from tracing.errors import ConfigError
from tracing.plugins import PluginRegistry

_VARIABLES = PluginRegistry(kind="stores", key="stores", built_in={})
_HEAD = b"SQLite format 3\0"
_URL = "sqlite:///"


@dataclass(frozen=True, slots=True)
class GlobalStore:
    """A variable of a module, or an attribute of one: a path, a connection to SQLite, or what is kept in memory.

    Attributes:
        place: its name, `module:NAME.attribute`.
        name: of the file or folder that takes its place.
        tables: how its tables are made, if it is a database; an empty one has them too.
        begins: what is in a memory at first, if it is a container or an object.
    """

    place: str
    name: str
    tables: tuple[str, ...] = ()
    begins: Any = None

    @classmethod
    def at(cls, place: str, name: str) -> GlobalStore:
        """The one at a place.

        Raises:
            ConfigError: there is none, or it is something else.
        """
        value = _VARIABLES.open(place)
        if isinstance(value, sqlite3.Connection):
            return cls(place, name, _tables_of(value))
        if isinstance(value, str | Path):
            file = Path(str(value).removeprefix(_URL))
            if file.is_file() and file.open("rb").read(len(_HEAD)) == _HEAD:
                with contextlib.closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
                    return cls(place, name, _tables_of(database))
            return cls(place, name)
        try:
            return cls(place, name, begins=state_of(value))
        except TypeError as error:
            raise ConfigError(
                f"stores: {place} is {error}, and no path, connection of sqlite3, container or object that is kept as "
                "JSON; let `build` and `answer` put one there that is kept in `folder`, with alone=True"
            ) from None

    @contextlib.contextmanager
    def within(self, folder: Path) -> Iterator[None]:
        """While it is open, the program stores in this folder."""
        module, _, dotted = self.place.partition(":")
        *inner, attribute = dotted.split(".")
        holder = functools.reduce(getattr, inner, sys.modules[module])
        value, path = getattr(holder, attribute), folder / self.name
        if self.begins is not None:
            with other_state(self.place, value, self.begins, path):
                yield
            return
        with contextlib.ExitStack() as stack:
            other: Any
            if isinstance(value, sqlite3.Connection):
                other = stack.enter_context(contextlib.closing(self._database(path)))
                other.row_factory, other.isolation_level = value.row_factory, value.isolation_level
            else:
                if self.tables:
                    self._database(path).close()
                other = type(value)(f"{_URL if str(value).startswith(_URL) else ''}{path}")
            setattr(holder, attribute, other)
            stack.callback(setattr, holder, attribute, value)
            yield

    def _database(self, path: Path) -> sqlite3.Connection:
        is_new = not path.exists()
        database = sqlite3.connect(path, check_same_thread=False)
        for statement in self.tables if is_new else ():
            with contextlib.suppress(sqlite3.OperationalError):  # what a virtual table makes by itself
                database.execute(statement)
        database.commit()
        return database


def _tables_of(database: sqlite3.Connection) -> tuple[str, ...]:
    rows = database.execute("select sql from sqlite_master where sql is not null and name not like 'sqlite_%'")
    return tuple(row[0] for row in rows)
