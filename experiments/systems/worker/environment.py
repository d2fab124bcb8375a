"""The environment that a memory system needs: its requirements, its Python, where it is, and memtune's code in it."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from tracing.errors import ConfigError
from tracing.llm.serving.user_cache import user_cache
from tracing.version import memtune_version

MARKER = "memtune.json"
"""Says what an environment contains. It is written last, so an environment without it is none."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")


class Installed(BaseModel):
    """What an environment contains.

    Attributes:
        requirements: what pip was asked to install for the system.
        python: version of its Python.
        memtune: version of memtune that it was made by.
        fingerprint: of the code of memtune in it.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    requirements: tuple[str, ...]
    python: str
    memtune: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Environment:
    """What a system needs around it.

    Attributes:
        name: of its folder; letters, digits, `_`, `.`, `@` and `-`.
        system: the class of the system, as `module:Class`.
        requirements: what pip installs, pinned: `mem0ai==2.2.1`.
        python: oldest and newest version that it runs on.
    """

    name: str
    system: str
    requirements: tuple[str, ...]
    python: tuple[str, str] = ("3.11", "3.13")

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(f"{self.name!r} names a folder: use letters, digits, `_`, `.`, `@` and `-` only")

    @property
    def command(self) -> str:
        """The command that installs it."""
        return f"memtune system install {self.name if self._ours else self.system}"

    @property
    def folder(self) -> Path:
        """Where it is, or would be."""
        return environments_folder() / self.name

    @property
    def interpreter(self) -> Path:
        """Its Python."""
        return interpreter_of(self.folder)

    @property
    def modules(self) -> str | None:
        """The folder in which a worker finds the module of the class; None where its environment has it."""
        if self._ours:
            return None
        top = self.system.partition(":")[0].partition(".")[0]
        file = getattr(sys.modules.get(top), "__file__", None)
        if file is None:
            raise ConfigError(f"{self.system}: a worker needs its module in a file")
        path = Path(file).resolve()
        folder = path.parents[1] if path.name == "__init__.py" else path.parent
        # What is installed here may not fit the Python there: list it in the requirements.
        return None if {"site-packages", "dist-packages"} & set(folder.parts) else str(folder)

    @property
    def _ours(self) -> bool:
        return self.system.startswith("experiments.systems.")

    def installed(self) -> Installed | None:
        """What it contains; None where it is not installed."""
        try:
            return Installed.model_validate_json((self.folder / MARKER).read_bytes())
        except (OSError, ValidationError):
            return None

    def require(self) -> None:
        """Return if it is installed, for this system and by this memtune.

        Raises:
            ConfigError: it is not; the message gives the command that installs it.
        """
        installed = self.installed()
        if installed is None:
            raise ConfigError(f"{self.name} runs in an environment of its own, which is not installed: {self.command}")
        if installed.requirements != self.requirements:
            had, needs = " ".join(installed.requirements), " ".join(self.requirements)
            raise ConfigError(f"{self.name}: its environment has {had}, and this memtune needs {needs}: {self.command}")
        if installed.fingerprint != fingerprint():
            other = "with other code" if installed.memtune == memtune_version() else f"(version {installed.memtune})"
            raise ConfigError(
                f"{self.name}: its environment was made by another memtune {other}; bring it up to date: {self.command}"
            )
        if not self.interpreter.exists():
            raise ConfigError(f"{self.name}: the Python of its environment was removed; make it anew: {self.command}")


def environments_folder() -> Path:
    """The folder of all environments: `$MEMTUNE_SYSTEMS`, or else `systems` in the user's cache."""
    named = os.environ.get("MEMTUNE_SYSTEMS")
    return Path(named).expanduser().absolute() if named else user_cache() / "systems"


def interpreter_of(folder: Path) -> Path:
    """The Python of a virtual environment."""
    return folder / "bin" / "python"


_ROOT = Path(__file__).parents[3]
PARTS = ("tracing", "experiments/__init__.py", "experiments/systems", "memtune/systems.py")
"""Of memtune, relative to the folder of its packages: what a system needs, built-in or a user's; not the loop."""


def sources() -> Iterator[tuple[str, Path]]:
    """The files of these parts: the name relative to the folder of packages, and the place."""
    for part in PARTS:
        place = _ROOT / part
        paths = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
        for path in paths:
            if "__pycache__" not in path.parts:
                yield path.relative_to(_ROOT).as_posix(), path


@functools.cache
def fingerprint() -> str:
    """SHA-256 of the files of these parts in this process."""
    digest = hashlib.sha256()
    for name, path in sources():
        digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()
