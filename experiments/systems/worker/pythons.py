"""Which Python of this machine an environment is made with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tracing.errors import InstallError

Version = tuple[int, int]

_PROBE_S = 20.0


def python_for(name: str, oldest: str, newest: str) -> str:
    """The path of a Python from `oldest` to `newest`: the one that runs here if it fits, or else the newest found.

    Raises:
        InstallError: there is none; the message says which versions would do.
    """
    first, last = version_of(oldest), version_of(newest)
    if first <= sys.version_info[:2] <= last:
        return sys.executable
    for minor in range(last[1], first[1] - 1, -1):
        for path in _named(f"python{first[0]}.{minor}"):
            if _runs(path, (first[0], minor)):
                return path
    versions = oldest if oldest == newest else f"{oldest} to {newest}"
    raise InstallError(
        f"{name} needs Python {versions}, and there is none on the PATH, of pyenv or of uv: install python{newest}"
    )


def _named(name: str) -> Iterator[str]:
    """Programs of this name: on the PATH, then what pyenv and uv have installed, whose folders need not be on it."""
    on_path = shutil.which(name)
    if on_path is not None:
        yield on_path
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or home / ".local" / "share" / "uv" / "python")
    for versions in (pyenv, uv):
        yield from map(str, sorted(versions.glob(f"*/bin/{name}"), reverse=True))


def version_of(text: str) -> Version:
    """Major and minor number of `3.12`."""
    major, minor = text.split(".")
    return int(major), int(minor)


def _runs(path: str, version: Version) -> bool:
    """Whether it is that Python; what a version manager puts on the PATH may only say that it is not."""
    try:
        process = subprocess.run(  # noqa: S603 - a Python that the user's PATH names
            [path, "-I", "-c", "import sys; print(*sys.version_info[:2])"],
            capture_output=True,
            text=True,
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return process.stdout.split() == [str(number) for number in version]
