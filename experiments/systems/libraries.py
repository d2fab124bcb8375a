"""Libraries that a memory system runs: is one installed, and of the generation that the system knows?"""

from __future__ import annotations

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
