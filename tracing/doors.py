"""Doors: where a user's own parts come in beside the built-in ones, by name or as `module:Object`.

Every kind of part has one `Door`, declared next to its Protocol. A name is that of a built-in part or of an entry point
in the group `memtune.KIND` of any installed distribution; `module:Object` is imported as Python would from the current
folder. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from tracing.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Door:
    """Where parts of one kind come in.

    Attributes:
        kind: of the parts, in the plural: `systems`. The group of the entry points is `memtune.` and this.
        key: the configuration key or option that names a part, for error messages: `system`.
        built_in: name → `module:Object` of the parts that memtune ships.
    """

    kind: str
    key: str
    built_in: Mapping[str, str]

    def names(self) -> list[str]:
        """The built-in names, then those of the entry points; nothing is imported."""
        return list(dict.fromkeys((*self.built_in, *sorted(self._entry_points()))))

    def check(self, name: str) -> None:
        """Refuse a name that can be none, without importing anything.

        Raises:
            ConfigError: it is neither a known name nor of the form `module:Object`.
        """
        module, colon, attribute = name.partition(":")
        if name in self.built_in or name in self._entry_points():
            return
        if not (colon and all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))):
            raise ConfigError(
                f"{self.key}: unknown: {name!r}; choose one of {', '.join(self.names())}, or give your own as "
                "module:Object"
            )

    def open(self, name: str) -> Any:
        """The object of this name: a class, a function or an instance.

        Raises:
            ConfigError: there is none, or its module cannot be imported.
        """
        self.check(name)
        found = self._entry_points().get(name)
        target = self.built_in.get(name) or (found.value if found is not None else name)
        origin = f" (an entry point of {_distribution(found)})" if found is not None else ""
        module, _, attribute = target.partition(":")
        if name not in self.built_in:
            _see_current_folder()
        try:
            value: Any = importlib.import_module(module)
            for part in filter(None, attribute.split(".")):
                value = getattr(value, part)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"{self.key}: {name!r}{origin}: no module {error.name!r}; install it, or run memtune in the folder "
                "that holds it"
            ) from error
        except AttributeError as error:
            raise ConfigError(f"{self.key}: {name!r}{origin}: {error}; name an object of that module") from error
        except Exception as error:
            said = " ".join(str(error).split())
            raise ConfigError(
                f"{self.key}: {name!r}{origin}: cannot be imported: {type(error).__name__}: {said}"
            ) from error
        return value

    def open_callable(self, name: str, *parameters: str) -> Callable[..., Any]:
        """The function, class or callable instance of this name.

        Args:
            parameters: names, for messages, of the positional arguments that it has to take.

        Raises:
            ConfigError: as `open`, or it cannot be called like this.
        """
        value: Callable[..., Any] = self.open(name)
        wanted = f"it has to take ({', '.join(parameters)})"
        if not callable(value):
            raise ConfigError(f"{self.key}: {name!r} is a {type(value).__name__}, which cannot be called; {wanted}")
        try:
            signature = inspect.signature(value)
        except ValueError:  # written in C
            return value
        try:
            signature.bind(*parameters)
        except TypeError as error:
            raise ConfigError(f"{self.key}: {name!r} takes {signature}; {wanted}: {error}") from None
        return value

    def _entry_points(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=f"memtune.{self.kind}")}


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unknown distribution"


def _see_current_folder() -> None:
    """Let modules of the current folder be imported, after all others: as `python` alone would, and the command not."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
