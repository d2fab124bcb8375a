"""The traces of all agents recorded anew, each framework in an environment of its own.

python -m benchmarks.agent_traces.recording ENVIRONMENTS FOLDER exported|recorded
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import venv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from benchmarks.agent_traces.scoring import ARCHIVE, RECORDED
from benchmarks.agent_traces.story import ALLERGY, PETS, STORIES, Story

DOORS: Mapping[str, tuple[str, ...]] = {
    "langgraph": ("recorded", "openinference", "openllmetry"),
    "pydantic_ai": ("opentelemetry", "openinference"),
    "openai_agents": ("openinference", "openinference responses"),
    "agent_framework": ("opentelemetry",),
    "adk": ("opentelemetry", "openinference"),
    "one_tool": ("opentelemetry",),
    "odd_names": ("opentelemetry",),
}
"""Agent, most by the name of its framework → how its traces are got: recorded by memtune's one line, or exported by the
framework itself or by a package that instruments it."""

ONE_LINE: tuple[str, ...] = (
    "adk",
    "agent_framework",
    "autogen",
    "crewai",
    "langgraph",
    "llama_index",
    "mcp",
    "mcp_memory",
    "openai_agents",
    "pydantic_ai",
)
"""Agents that memtune records by its one line, by the door `recorded`."""

_RECORDING = ("msgspec", "networkx", "pydantic")
"""What memtune's own recording needs."""

_ROOT = Path(__file__).parents[2]


def environment_of(agent: str, folder: Path) -> Path:
    """The Python of the environment of an agent's framework in a folder, which is made where it is missing."""
    environments = tomllib.loads(Path(__file__).with_name("environments.toml").read_text(encoding="utf-8"))
    framework = environments[agent].get("like", agent)
    python: Path = folder / framework / "bin" / "python"
    if not python.exists():
        venv.create(folder / framework, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *environments[framework]["packages"], *_RECORDING], check=True)  # noqa: S603
        if servers := environments[framework].get("npm"):
            install = ["npm", "install", "--silent", "--prefix", str(folder / framework)]
            subprocess.run([*install, *servers], check=True)  # noqa: S603
    return python


def recorded(
    agent: str, environments: Path, folder: Path, stories: Iterable[Story] = STORIES, doors: Iterable[str] = ()
) -> Iterator[Path]:
    """The traces of an agent in a folder, named agent-door-story-fault, as they are recorded by its or these doors."""
    python = environment_of(agent, environments)
    settings = {**os.environ, "PYTHONPATH": str(_ROOT), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    names = [story.name for story in stories]
    for door in doors or DOORS[agent]:
        drive = [str(python), "-m", "benchmarks.agent_traces.drive", agent, door, str(folder), *names]
        subprocess.run(drive, check=True, env=settings, cwd=_ROOT, stdout=subprocess.DEVNULL)  # noqa: S603
        yield from sorted(folder.glob(f"{agent}-{door}-*.jsonl"))


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
    environments, folder = map(Path, sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    agents, stories, doors, archive = (
        (ONE_LINE, (PETS, ALLERGY), ("recorded",), RECORDED)
        if sys.argv[3] == "recorded"
        else (DOORS, STORIES, (), ARCHIVE)
    )
    archived([path for agent in agents for path in recorded(agent, environments, folder, stories, doors)], archive)
