"""What is published holds all that memtune needs to run, no tests, no benchmarks, and starts from that alone."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("memtune", "tracing", "attribution", "optimizer", "experiments")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that was built of it."""
    folder = tmp_path_factory.mktemp("dist")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("this is no checkout of memtune's repository")
    # A copy, since two builds in one folder, by other processes of pytest-xdist, disturb each other.
    for name in filter(lambda name: (ROOT / name).is_file(), listed.stdout.splitlines()):
        (folder / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "copy" / name)
    command = [sys.executable, "-m", "build", "--outdir", folder, folder / "copy"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return folder


def sources() -> set[str]:
    """The files of the packages, as git knows them."""
    listed = subprocess.run(["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == sources()


@pytest.mark.slow
def test_the_source_distribution_holds_the_same_and_the_licence_and_no_tests_or_benchmarks(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert sources() | {"LICENSE", "README.md", "pyproject.toml"} <= names
    assert not [name for name in names if name.startswith(("tests", "benchmarks"))]


@pytest.mark.slow
def test_the_command_starts_from_the_wheel_alone(built: Path, tmp_path: Path) -> None:
    """Its libraries are those of the tests' environment; memtune itself is the wheel's."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "clean"], check=True)
    (packages,) = (tmp_path / "clean").glob("lib/python3.*/site-packages")
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(packages)  # noqa: S202 (our own)
    (packages / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def memtune(*arguments: str) -> str:
        code = f"import memtune; assert memtune.__file__.startswith({str(packages)!r}); memtune.main()"
        command = [tmp_path / "clean/bin/python", "-c", code, *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "memtune run demo" in memtune("--help")
    assert re.match(r"memtune, version \d", memtune("--version"))
    assert "train-01" in memtune("data", "show", "--limit-conversations", "3")
    memtune("init", "mine")
    assert (tmp_path / "mine" / "my_memory.py").is_file()


def dockerfile() -> list[list[str]]:
    """The instructions of the Dockerfile, as words."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [shlex.split(line) for line in text.splitlines() if line]


def test_the_image_copies_what_exists_and_what_is_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = {source for word, *given in dockerfile() if word == "COPY" for source in given[:-1]}
    assert copied >= {*PACKAGES, "pyproject.toml"}
    assert [source for source in copied if not (ROOT / source).exists()] == []
    assert {line[1:] for line in ignored if line.startswith("!")} == copied
    assert "*" in ignored


def test_the_image_runs_the_demo_as_nobody_in_particular_and_offers_no_port() -> None:
    instructions = dockerfile()
    last = {word: given for word, *given in instructions}
    assert "EXPOSE" not in last
    assert last["USER"] == ["1000"]
    assert last["ENTRYPOINT"] == ["[memtune]"]
    assert last["CMD"] == ["[run,", "demo]"]
