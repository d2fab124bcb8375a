"""Libraries that a memory system runs: is one installed, and of the generation that the system knows?"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from tracing.errors import ConfigError


def installed_version(package: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def require_generation(package: str, release: str | None, generation: str, *, by: str, remedy: str) -> None:
    """Return if what was found of a library is the generation that a memory system knows, such as `1.5.`.

    Raises:
        ConfigError: it is not installed, or another generation.
    """
    if release is None or not release.startswith(generation):
        has = "it is not installed" if release is None else f"{release} is installed"
        raise ConfigError(f"{by} needs {package} {generation}x, but {has} here: {remedy}")


@dataclass(frozen=True, slots=True)
class SystemLibrary:
    """The library of a memory system that runs in an environment of its own, which has the library's name.

    Attributes:
        package: its distribution.
        generation: how the versions begin that the system knows.
        release: the version that the environment gets.
    """

    package: str
    generation: str
    release: str

    @property
    def requirement(self) -> str:
        """What pip installs."""
        return f"{self.package}=={self.release}"

    @property
    def version(self) -> str | None:
        """Its version in this process, or None."""
        return installed_version(self.package)

    def is_here(self) -> bool:
        """Whether this process has it, in a version that the system knows."""
        return (self.version or "").startswith(self.generation)

    def require(self) -> None:
        """Return if this process has it.

        Raises:
            ConfigError: it is not installed, or another generation.
        """
        remedy = f"memtune system install {self.package}"
        require_generation(self.package, self.version, self.generation, by=self.package, remedy=remedy)
