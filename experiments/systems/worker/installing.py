"""Making the environment of a memory system, and removing it.

A new environment is made beside its place and moved there when all of it works, so a failed or killed installation
leaves none, and one that was there before goes on until then.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from experiments.systems.worker.environment import (
    MARKER,
    PARTS,
    Environment,
    Installed,
    environments_folder,
    fingerprint,
    interpreter_of,
    sources,
)
from experiments.systems.worker.handle import Worker
from experiments.systems.worker.messages import CHECK
from tracing.errors import ConfigError, InstallError, MemorySystemError
from tracing.files.whole_files import write_whole
from tracing.llm.forwarding.forwarded_calls import error_read
from tracing.llm.serving.child_process import start_child
from tracing.recording.redaction import excerpt
from tracing.version import memtune_version

Report = Callable[[str], None]
"""Takes what is being done now, in a few words."""

_LONGEST = 400
# Python compiles what is imported, when it is; compiling all of it would take nearly half of the installation.
_PIP = ("--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--no-compile")


def install(environment: Environment, report: Report) -> Installed:
    """Make an environment, or bring the one that is there up to date; one that does not work is made anew.

    Raises:
        InstallError: there is no fitting Python, pip cannot install the requirements, its worker does not start, or
            the folder cannot be written.
    """
    try:
        with _alone(environment.name):
            installed = environment.installed()
            usable = installed is not None and installed.requirements == environment.requirements
            return (usable and _refreshed(environment, report)) or _created(environment, report)
    except OSError as error:
        raise InstallError(
            f"{error.filename or environment.folder}: cannot be written ({error.strerror}); free some room, or set "
            "MEMTUNE_SYSTEMS to another folder"
        ) from error


def remove(name: str) -> bool:
    """Remove the environment of this name; whether there was one."""
    folder = environments_folder() / name
    with _alone(name):
        if not folder.exists():
            return False
        try:
            with tempfile.TemporaryDirectory(prefix=_aside(name), dir=folder.parent) as aside:
                folder.rename(Path(aside) / "removed")
        except OSError as error:
            raise InstallError(f"{folder}: cannot be removed ({error.strerror})") from error
        return True


@contextlib.contextmanager
def _alone(name: str) -> Iterator[None]:
    """Hold the lock of an environment, and remove what an installation that was killed has left."""
    from filelock import FileLock, Timeout

    parent = environments_folder()
    lock = FileLock(parent / f".{name}.lock")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        raise InstallError(f"{name}: another process is installing or removing it; wait until it has ended") from None
    except OSError as error:
        raise InstallError(
            f"{parent}: cannot be written ({error.strerror}); set MEMTUNE_SYSTEMS to another folder"
        ) from error
    try:
        for leftover in parent.glob(f"{_aside(name)}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield
    finally:
        lock.release()


def _aside(name: str) -> str:
    """How the names of folders beside an environment begin."""
    return f".{name}-part-"


def _refreshed(environment: Environment, report: Report) -> Installed | None:
    """The environment that is there, with this memtune's code; None where it does not work even so."""
    for copies in (False, True):
        with contextlib.suppress(InstallError):
            if copies:
                report("copying memtune")
                _copy_code(environment.folder)
            report("starting its worker")
            return _marked(environment, environment.folder, check(environment))
    return None


def _created(environment: Environment, report: Report) -> Installed:
    python = python_for(environment.name, *environment.python)
    with tempfile.TemporaryDirectory(
        prefix=_aside(environment.name), dir=environments_folder(), ignore_cleanup_errors=True
    ) as aside:
        part = Path(aside) / "new"
        report(f"making a virtual environment with {python}")
        _run(environment, [python, "-m", "venv", str(part)], report)
        requirements = [*environment.requirements, *our_requirements()]
        _run(environment, [str(interpreter_of(part)), "-m", "pip", "install", *_PIP, *requirements], report)
        report("copying memtune")
        _copy_code(part)
        report("starting its worker")
        installed = _marked(environment, part, check(environment, part))
        if environment.folder.exists():
            environment.folder.rename(Path(aside) / "old")
        part.rename(environment.folder)
        return installed


def check(environment: Environment, folder: Path | None = None) -> str:
    """Start a worker in an environment, and let its system look for what it needs; the version of its Python.

    Args:
        folder: of the environment, if it is not in its place yet.

    Raises:
        InstallError: the worker does not start, or the system lacks something.
    """
    try:
        worker = Worker(environment, interpreter_of(folder or environment.folder))
        try:
            call = {"method": CHECK, "system": environment.system, "modules": environment.modules}
            reply = worker.step(call, lambda about, request: "")
        finally:
            worker.close()
        if "error" in reply:
            raise error_read(reply["error"])
    except (ConfigError, MemorySystemError) as error:
        raise InstallError(f"{environment.name}: what was installed does not work ({error})") from None
    return worker.python


def _marked(environment: Environment, folder: Path, python: str) -> Installed:
    installed = Installed(
        requirements=environment.requirements,
        python=python,
        memtune=memtune_version(),
        fingerprint=fingerprint(),
    )
    write_whole(folder / MARKER, installed.model_dump_json(indent=2) + "\n")
    return installed


def _copy_code(folder: Path) -> None:
    """Put the code that a worker needs into an environment, and nothing else of memtune."""
    packages = next((folder / "lib").glob("python3.*/site-packages"), None)
    if packages is None:
        raise InstallError(f"{folder}: has no folder of packages")
    with tempfile.TemporaryDirectory(prefix=".memtune-", dir=packages) as aside:
        new, old = Path(aside) / "new", Path(aside) / "old"
        for name, path in sources():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, new / name)
        old.mkdir()
        for package in {part.partition("/")[0] for part in PARTS}:
            if (packages / package).exists():
                (packages / package).rename(old / package)
            (new / package).rename(packages / package)


def our_requirements() -> list[str]:
    """What memtune's code needs in an environment: memtune's own requirements and those of the extra `serve`."""
    try:
        declared = requires("memtune") or []
    except PackageNotFoundError:
        raise InstallError("memtune runs from a folder, so its requirements are not known: pip install -e .") from None
    split = [
        (requirement.strip(), marker.strip()) for requirement, _, marker in (line.partition(";") for line in declared)
    ]
    return [
        requirement
        for requirement, marker in split
        if (not marker or re.fullmatch(r"extra == ['\"]serve['\"]", marker)) and not requirement.startswith("memtune")
    ]


def _run(environment: Environment, command: Sequence[str], report: Report) -> None:
    """Run a command, reporting its lines."""
    lines: list[str] = []
    quiet = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    with start_child(command, output=subprocess.PIPE, env=quiet) as process:
        for line in process.stdout or ():
            lines.append(" ".join(line.decode(errors="replace").split()))
            if lines[-1] and not lines[-1].startswith("WARNING:"):
                report(excerpt(lines[-1], _LONGEST))
        code = process.wait()
    if code:
        errors = [line for line in lines if line.startswith("ERROR:")] or [line for line in lines if line]
        reason = excerpt(errors[-1], _LONGEST) if errors else f"exit code {code}"
        what = "pip cannot install it" if "pip" in command else "no virtual environment can be made"
        raise InstallError(f"{environment.name}: {what} ({reason})")


Version = tuple[int, int]

_PROBE_S = 20.0


def python_for(name: str, oldest: str, newest: str) -> str:
    """The path of a Python from `oldest` to `newest`: the one that runs here if it fits, or else the newest found."""
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
