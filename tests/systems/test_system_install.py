"""An environment is there and whole, or not there; whatever happens while it is made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from light_environment import make_light

from experiments.command import main
from experiments.systems.exporting.exporter import EXPORTERS
from experiments.systems.fact_memory import FactMemory
from experiments.systems.worker import in_worker
from experiments.systems.worker.environment import Environment
from experiments.systems.worker.installing import check, install, our_requirements, python_for, remove
from experiments.systems.worker.isolated import environment_of
from tracing.errors import ConfigError, InstallError

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of environments, and no package index."""
    found = tmp_path / "systems"
    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(found))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return found


def needing(*requirements: str, python: tuple[str, str] = ("3.11", "3.13")) -> Environment:
    found = environment_of(in_worker(requirements=requirements, python=python, name="odd")(FactMemory))
    assert found is not None
    return found


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*") if not path.name.endswith(".lock"))


def memtune(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "experiments.command", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_what_needs_a_python_that_is_not_there_says_which(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shim = tmp_path / "bin" / "python3.30"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\necho 'python3.30: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    with pytest.raises(
        InstallError,
        match=r"^odd needs Python 3.29 to 3.30, and there is none on the PATH, of pyenv or of uv: install python3.30$",
    ):
        install(needing(python=("3.29", "3.30")), lambda line: None)
    assert python_for("odd", "3.9", "3.99") == sys.executable


def test_a_python_of_pyenv_or_uv_need_not_be_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable, place in (("PYENV_ROOT", "versions/3.30.1/bin"), ("UV_PYTHON_INSTALL_DIR", "cpython-3.30.1/bin")):
        kept = tmp_path / variable / place / "python3.30"
        kept.parent.mkdir(parents=True)
        kept.write_text("#!/bin/sh\necho 3 30\n")
        kept.chmod(0o755)
        with monkeypatch.context() as patch:
            patch.setenv("PYENV_ROOT", str(tmp_path / "none"))
            patch.setenv(variable, str(tmp_path / variable))
            assert python_for("odd", "3.29", "3.30") == str(kept)


def test_two_installations_of_one_environment_do_not_meet(folder: Path) -> None:
    folder.mkdir()
    with FileLock(folder / ".odd.lock"), pytest.raises(InstallError, match="another process is installing"):
        install(needing(), lambda line: None)


def test_a_folder_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(tmp_path / "file" / "systems"))
    for use in (lambda: install(needing(), lambda line: None), lambda: remove("odd")):
        with pytest.raises(InstallError, match=r"cannot be written .*MEMTUNE_SYSTEMS"):
            use()


def test_our_own_requirements_are_the_light_ones() -> None:
    names = {one.partition(">")[0].partition("<")[0].partition("=")[0] for one in our_requirements()}
    assert {"pydantic", "msgspec", "starlette"} <= names
    assert not {"mlflow", "dspy", "numpy", "openai", "memtune[llm]", "memtune"} & names


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "mem0@2"), "mem0@2 runs in an environment of its own, which is not installed: "),
        (
            ("check", "mem0@7"),
            "mem0 has no version '7'; did you mean 'mem0@2'?; choose one of mem0@0.1, mem0@1.0, mem0@2",
        ),
        (("install", "rag"), "rag runs in memtune's own process and needs no environment"),
        (("remove", "mem0@2"), "mem0@2: its environment is not installed"),
    ],
)
def test_what_cannot_be_done_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    done = memtune("system", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_damaged_environment_is_mended_by_the_command_that_its_error_gives(folder: Path) -> None:
    there = needing()
    make_light(there)
    (tracing,) = there.folder.glob("lib/python3.*/site-packages/tracing")
    (tracing / "errors.py").write_text("")
    with pytest.raises(InstallError, match="does not work"):
        check(there)
    install(there, lambda line: None)
    check(there)
    assert left_in(folder) == ["odd"]


def test_an_environment_whose_python_is_gone_is_refused_and_made_anew() -> None:
    there = needing(python=("3.29", "3.30"))
    make_light(there)
    there.interpreter.unlink()
    with pytest.raises(ConfigError, match=r"odd: the Python of its environment was removed; .*memtune system install"):
        there.require()
    with pytest.raises(InstallError, match=r"^odd needs Python 3.29"):  # none here makes it
        install(there, lambda line: None)


def test_the_list_says_what_lacks_a_library_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("experiments.systems.libraries.installed_version", lambda package: None)
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["system", "list"])
    said = capsys.readouterr().out
    assert any(line.startswith("│ mem0 ") and "lacks a library" in line for line in said.splitlines())
    assert "mem0 needs mem0ai 1.0.x, but it is not installed here: pip install 'memtune[mem0]'" in said
    assert said.count("memtune system install") == 1, "it is said once, not for each system"


def test_the_environment_of_an_exporter_is_listed_as_ready(capsys: pytest.CaptureFixture[str]) -> None:
    there = environment_of(EXPORTERS.open("langmem@0.0.30"))
    assert there is not None
    make_light(there)
    with pytest.raises(SystemExit):
        main(["system", "list"])
    said = capsys.readouterr().out
    assert any("langmem@0.0.30" in line and "ready" in line for line in said.splitlines())


@pytest.mark.slow
def test_an_installation_that_fails_leaves_the_one_before(folder: Path) -> None:
    said: list[str] = []
    with pytest.raises(InstallError, match=r"^odd: pip cannot install it \(ERROR: .*no-such-library"):
        install(needing("no-such-library==1.0"), said.append)
    assert any("virtual environment" in line for line in said)
    assert left_in(folder) == []
    (folder / "odd").mkdir()
    (folder / "odd" / "kept").write_text("")
    with pytest.raises(InstallError):
        install(needing("no-such-library==1.0"), said.append)
    assert left_in(folder) == ["odd"]
    assert (folder / "odd" / "kept").exists()


@pytest.mark.slow
def test_an_installation_that_is_killed_leaves_none_and_the_next_one_tidies_up(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments.command", "system", "install", "mem0@2"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: any(folder.glob(".mem0@2-part-*/new/bin")))
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not pids_that_name(str(folder)))
    assert not (folder / "mem0@2").exists()
    assert "not installed" in memtune("system", "check", "mem0@2").stderr
    assert "not installed" in memtune("system", "remove", "mem0@2").stderr
    assert left_in(folder) == []


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def pids_that_name(text: str) -> list[str]:
    """Processes whose command names it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            said = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if text in said and path.parent.name != str(os.getpid()):
            found.append(path.parent.name)
    return found
