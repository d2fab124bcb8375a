"""Plugins: how a user's own parts are found beside the built-in ones, by name or as `module:Object`.

Every kind of part has one `PluginRegistry`, declared next to its Protocol. A name is that of a built-in part or of an
entry point in the group `memtune.KIND` of any installed distribution. `module:Object` is imported as Python would from
the current folder, or from one passed to `look_in` (that of a configuration file). Nothing is imported before it is
needed.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from tracing.errors import ConfigError
from tracing.suggestions import did_you_mean, unknown_names

_OBJECT = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):[^\W\d]\w*(\.[^\W\d]\w*)*")
OUR_PACKAGES = {"tracing", "attribution", "optimizer", "experiments"}
_REGISTERED: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class PluginRegistry:
    """Finds parts of one kind.

    Attributes:
        kind: of the parts, in the plural: `systems`. The group of the entry points is `memtune.` plus this.
        key: the configuration key or option that names a part, for error messages: `system`.
        built_in: name → `module:Object` of the parts that memtune ships.
        gone: name → why memtune ships that part no longer, and what to use.
    """

    kind: str
    key: str
    built_in: Mapping[str, str]
    gone: Mapping[str, str] = field(default_factory=dict)

    def names(self) -> list[str]:
        """The built-in names, then those of the entry points; nothing is imported."""
        return list(dict.fromkeys((*self.built_in, *sorted(self._entry_points()))))

    def check(self, name: str) -> None:
        """Raise a `ConfigError` for what is neither a known name nor `module:Object`; nothing is imported."""
        if not (name in self.built_in or name in _REGISTERED or is_object(name) or name in self._entry_points()):
            if name in self.gone:
                raise ConfigError(f"{self.key}: {name!r} is no longer part of memtune: {self.gone[name]}")
            part, at, version = name.partition("@")
            versions = [
                candidate.removeprefix(f"{part}@") for candidate in self.names() if candidate.startswith(f"{part}@")
            ]
            if at and versions:
                raise ConfigError(
                    f"{self.key}: {part} has no version {version!r}{did_you_mean(name, self.names())}; choose one of "
                    f"{', '.join(f'{part}@{known_version}' for known_version in versions)}"
                )
            raise ConfigError(
                f"{self.key}: unknown: {name!r}{did_you_mean(name, self.names())}; choose one of "
                f"{', '.join(self.names())}, or give your own as module:Object"
            )

    def open(self, name: str) -> Any:
        """The object of this name: a class, a function or an instance.

        Raises:
            ConfigError: it does not exist, or its module cannot be imported.
        """
        self.check(name)
        if name in _REGISTERED:
            return _REGISTERED[name]
        entry_point = None if name in self.built_in else self._entry_points().get(name)
        target = self.built_in.get(name) or (entry_point.value if entry_point is not None else name)
        origin = f" (an entry point of {_distribution(entry_point)})" if entry_point is not None else ""
        module, _, attribute = target.partition(":")
        value: Any = None
        if name not in self.built_in:
            look_in(Path.cwd())
        try:
            value = importlib.import_module(module)
            for part in filter(None, attribute.split(".")):
                value = getattr(value, part)
        except ModuleNotFoundError as error:
            here = [file.stem for folder in sys.path if folder for file in Path(folder).glob("*.py")]
            missing = unknown_names([str(error.name)], here)
            raise ConfigError(
                f"{self.key}: {name!r}{origin}: no module {missing}; install it, or run memtune in the folder "
                "that contains it, or list that folder under `modules` in the configuration"
            ) from error
        except AttributeError as error:
            near = did_you_mean(str(error.name), dir(value)) if value is not None else ""
            raise ConfigError(f"{self.key}: {name!r}{origin}: {error}{near}; name an object of that module") from error
        except (Exception, SystemExit) as error:
            message = " ".join(str(error).split())
            raise ConfigError(
                f"{self.key}: {name!r}{origin}: cannot be imported: {type(error).__name__}: {message}"
            ) from error
        return value

    def code(self, name: str) -> str | None:
        """The hash of the source of the part of this name; None for what memtune ships (`code_of`)."""
        return None if name in self.built_in else code_of(self.open(name))

    def open_callable(self, name: str, *parameters: str) -> Callable[..., Any]:
        """The function, class or callable instance of this name.

        Args:
            parameters: names, for messages, of the positional arguments that it must take.

        Raises:
            ConfigError: as `open`, or it cannot be called like this.
        """
        value: Callable[..., Any] = self.open(name)
        expectation = f"it has to take ({', '.join(parameters)})"
        if not callable(value):
            raise ConfigError(
                f"{self.key}: {name!r} is a {type(value).__name__}, which cannot be called; {expectation}"
            )
        try:
            signature = inspect.signature(value)
        except ValueError:  # written in C
            return value
        try:
            signature.bind(*parameters)
        except TypeError as error:
            raise ConfigError(f"{self.key}: {name!r} takes {signature}; {expectation}: {error}") from None
        return value

    def _entry_points(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=f"memtune.{self.kind}")}


def registered_object(part: object) -> str:
    """Register an object that a program made. Every registry in this process opens it by the name returned.

    If the object's class can be imported, the name is also that of the class, `module:Class`, so another process
    opens a new object of it.
    """
    made_by = part if inspect.isclass(part) or inspect.isroutine(part) else type(part)
    name = f"{made_by.__module__}:{made_by.__qualname__.rpartition('.')[2]}"
    number, free = 1, name
    while free in _REGISTERED and _REGISTERED[free] is not part:
        number, free = number + 1, f"{name}_{number + 1}"
    _REGISTERED[free] = part
    return free


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unknown distribution"


def is_object(name: str) -> bool:
    """Whether a name has the form `module:Object`."""
    return _OBJECT.fullmatch(name) is not None


def look_in(folder: Path) -> None:
    """Make modules of this folder importable, after all others."""
    path = str(folder.resolve())
    if path not in sys.path:
        sys.path.append(path)


def code_of(part: object) -> str | None:
    """SHA-256 of the source of a user's own part; None for what memtune ships.

    It covers the file of the module that defines the object (or its class), or its whole package if it is in one.
    What it imports from elsewhere is not covered. A part of ours that runs a user's program has the program's as its
    `program_code`.
    """
    made_by: Any = part if inspect.isclass(part) or inspect.isroutine(part) else type(part)
    return _code_of(made_by) or getattr(part, "program_code", None)


@functools.lru_cache
def _code_of(made_by: Any) -> str | None:
    name = str(made_by.__module__)
    top = name.partition(".")[0]
    if top in OUR_PACKAGES:
        return None
    digest = hashlib.sha256()
    module, package = sys.modules.get(name), sys.modules.get(top)
    package_file = getattr(package, "__file__", None)
    if package_file is not None and hasattr(package, "__path__"):
        files = sorted(Path(package_file).parent.rglob("*.py"))
    elif isinstance(module, ModuleType) and module.__dict__.get("__file__"):
        files = [Path(str(module.__file__))]
    else:
        # A notebook has no file; `inspect` may find its cells.
        try:
            digest.update(inspect.getsource(made_by).encode())
        except (OSError, TypeError):
            digest.update(repr(made_by).encode())
        return digest.hexdigest()
    for path in files:
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()
