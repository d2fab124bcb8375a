"""Checks of Python, memtune's own packages and the libraries of its extras."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, packages_distributions, requires, version

from experiments.doctor.health_check import HealthCheck

OLDEST = (3, 11)

DEVELOPMENT = frozenset({"dev", "docs"})

_OURS = "memtune"

_FOR = {
    "ray": "--executor ray",
    "mem0": "the memory system mem0",
    "postgres": "a trace memory in Postgres",
}
"""What needs an extra that most people do not."""


def check_python() -> HealthCheck:
    """Whether this Python is new enough."""
    says = f"{platform.python_version()} in {sys.prefix}"
    if sys.version_info >= OLDEST:
        return HealthCheck("Python", "ok", says)
    return HealthCheck("Python", "broken", says, f"memtune needs Python {OLDEST[0]}.{OLDEST[1]} or newer")


def check_packages() -> Iterator[HealthCheck]:
    """Whether memtune is installed, and no other distribution has packages of the same names.

    Which of two packages of one name is imported depends on where they were installed to; that of another distribution
    also loses its files when either is uninstalled.
    """
    try:
        yield HealthCheck(_OURS, "ok", version(_OURS))
    except PackageNotFoundError:
        yield HealthCheck(_OURS, "broken", "runs from a folder", "install it: pip install -e '.[run]'")
    for name, owners in packages_distributions().items():
        others = sorted({owner for owner in owners if owner != _OURS})
        if others and _OURS in owners:
            says = f"the distribution {', '.join(others)} has a package of this name too"
            yield HealthCheck(
                f"package {name}", "broken", says, f"pip uninstall {others[0]}, or use another environment"
            )


def check_extras() -> Iterator[HealthCheck]:
    """For each extra, whether its libraries are installed in the versions that memtune is made for."""
    from packaging.requirements import Requirement

    try:
        extras = metadata(_OURS).get_all("Provides-Extra") or []
        needed = [Requirement(line) for line in requires(_OURS) or ()]
    except PackageNotFoundError:
        return
    for extra in extras:
        if extra in DEVELOPMENT:
            continue
        own = [
            requirement
            for requirement in needed
            if requirement.marker is not None and requirement.marker.evaluate({"extra": extra})
        ]
        absent, unfit = [], []
        for requirement in own:
            if requirement.name == _OURS:
                continue
            try:
                installed = version(requirement.name)
            except PackageNotFoundError:
                absent.append(requirement.name)
                continue
            if not requirement.specifier.contains(installed, prereleases=True):
                unfit.append(f"{requirement.name} {installed}, where {requirement.specifier} is needed")
        remedy = f"pip install 'memtune[{extra}]'"
        if unfit:
            yield HealthCheck(f"extra {extra}", "broken", "; ".join(unfit), remedy)
        elif absent:
            use = f"; only {_FOR[extra]} needs it" if extra in _FOR else ""
            yield HealthCheck(f"extra {extra}", "missing", f"without {', '.join(absent)}{use}", remedy)
        else:
            yield HealthCheck(f"extra {extra}", "ok", "installed")
