"""Libraries that a memory system runs, or that an export is for: is one installed, and of the generation known?"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import ClassVar

from tracing.errors import ConfigError


def installed_version(package: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class Library:
    """A library.

    Attributes:
        package: its distribution.
        generation: how the versions begin that are known, such as `1.5.`, or the only one.
        remedy: the command that installs it.
        release: the version that an environment of its own gets.
        by: what needs it, for messages.
    """

    package: str
    generation: str
    remedy: str
    release: str = ""
    by: str = "this"

    @property
    def requirement(self) -> str:
        """What pip installs."""
        return f"{self.package}=={self.release}"

    def here(self) -> str | None:
        """Its version in this process, or None."""
        return installed_version(self.package)

    def is_here(self) -> bool:
        """Whether this process has it, in a version that is known."""
        version = self.here()
        prefix = self.generation.endswith(".")
        return version is not None and (version.startswith(self.generation) if prefix else version == self.generation)

    def require(self) -> None:
        """Return if this process has it.

        Raises:
            ConfigError: it is not installed, or another generation.
        """
        if not self.is_here():
            raise self.missing()

    def missing(self) -> ConfigError:
        """The error that says what is here instead, and what installs it."""
        has = "it is not installed" if self.here() is None else f"{self.here()} is installed"
        releases = f"{self.generation}x" if self.generation.endswith(".") else self.generation
        return ConfigError(f"{self.by} needs {self.package} {releases}, but {has} here: {self.remedy}")


class NeedsLibrary:
    """A part that works only where its library is; `memtune system install` asks so in the environment that it made."""

    library: ClassVar[Library]

    def require_library(self) -> None:
        """Return if this process has the library; see `Library.require`."""
        self.library.require()
