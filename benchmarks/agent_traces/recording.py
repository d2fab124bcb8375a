"""The traces of all agents recorded anew, each framework in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import venv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from benchmarks.agent_traces.story import FAULTS, STORIES

DOORS: Mapping[str, tuple[str, ...]] = {
    "langgraph": ("recorded", "openinference", "openllmetry"),
    "pydantic_ai": ("opentelemetry", "openinference"),
    "openai_agents": ("openinference",),
    "agent_framework": ("opentelemetry",),
    "adk": ("opentelemetry", "openinference"),
}
"""Framework → how its agent's traces are got: by memtune's one line, by itself, or by a package that instruments it."""

_ROOT = Path(__file__).parents[2]


def environment_of(framework: str, folder: Path) -> Path:
    """The Python of a framework's environment in a folder, which is made where it is missing."""
    python = folder / framework / "bin" / "python"
    if not python.exists():
        venv.create(folder / framework, with_pip=True)
        packages = tomllib.loads(Path(__file__).with_name("environments.toml").read_text(encoding="utf-8"))
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *packages[framework]["packages"]], check=True)  # noqa: S603
    return python


def recorded(framework: str, environments: Path, folder: Path, faults: Iterable[str] = FAULTS) -> Iterator[Path]:
    """The traces of a framework's agent in a folder, named framework-door-story-fault, as they are recorded."""
    python = environment_of(framework, environments)
    settings = {**os.environ, "PYTHONPATH": str(_ROOT), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    for door in DOORS[framework]:
        for story in STORIES:
            for fault in faults:
                path = folder / f"{framework}-{door}-{story.name}-{fault}.jsonl"
                drive = [str(python), "-m", "benchmarks.agent_traces.drive"]
                asked = [*drive, framework, door, story.name, fault, str(path)]
                subprocess.run(asked, check=True, env=settings, capture_output=True, cwd=_ROOT)  # noqa: S603
                yield path


def archived(traces: Iterable[Path], archive: Path) -> None:
    """Put traces into one archive, without what says who made it and when."""

    def nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for path in sorted(traces):
            packed.add(path, path.name, filter=nobody)


if __name__ == "__main__":
    environments, folder, archive = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    archived([path for framework in DOORS for path in recorded(framework, environments, folder)], archive)
