"""Have stories told to one agent by one door: python -m benchmarks.agent_traces.drive AGENT DOOR FOLDER STORY …

It runs in the environment of the framework, which has neither memtune nor what that needs, but for the door `recorded`.
"""

from __future__ import annotations

import multiprocessing
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.agent_traces.model import script_of
from benchmarks.agent_traces.story import FAULTS, TOLD, Fault, Story
from benchmarks.agent_traces.tools import Notes
from benchmarks.agent_traces.turns import turns_of
from benchmarks.scripted_server import ScriptedServer


def told(driver: Any, door: str, story: Story, fault: Fault, path: Path) -> None:
    """Write the trace of an agent by a door, into a new file."""
    server = ScriptedServer(script_of(story, fault, driver.CALLS))
    try:
        if door == "recorded":
            from tracing import instrument, trace

            with getattr(instrument, getattr(driver, "RECORDER", "agents"))(), trace(path):
                driver.converse(turns_of(story), Notes(story, fault), server.base_url, door, path)
        else:
            driver.converse(turns_of(story), Notes(story, fault), server.base_url, door, path)
    finally:
        server.close()


def main(agent: str, door: str, folder: str, *names: str) -> None:
    """Write a trace for each fault in each of these stories, each by a process of its own: there is one tracer each."""
    driver = import_module(f"benchmarks.agent_traces.drivers.{agent}_agent")
    forking = multiprocessing.get_context("fork")  # what was imported needs not be imported again
    for story in TOLD:
        for fault in FAULTS if story.name in names else ():
            path = Path(folder) / f"{agent}-{door}-{story.name}-{fault}.jsonl"
            process = forking.Process(target=told, args=(driver, door, story, fault, path))
            process.start()
            process.join()
            if process.exitcode:
                raise SystemExit(f"{path.name}: its process ended with {process.exitcode}")


if __name__ == "__main__":
    main(*sys.argv[1:])
