"""Have one story with one fault told to one agent: python -m benchmarks.agent_traces.drive …

It runs in the environment of the framework, which has neither memtune nor what that needs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from benchmarks.agent_traces.model import script_of
from benchmarks.agent_traces.story import FAULTS, STORIES
from benchmarks.agent_traces.tools import Notes
from benchmarks.agent_traces.turns import turns_of
from benchmarks.scripted_server import ScriptedServer


def main(agent: str, door: str, story_name: str, fault_name: str, path: str) -> None:
    """Write the trace of an agent by a door, into a new file."""
    driver = import_module(f"benchmarks.agent_traces.drivers.{agent}_agent")
    story = next(story for story in STORIES if story.name == story_name)
    fault = next(fault for fault in FAULTS if fault == fault_name)
    server = ScriptedServer(script_of(story, fault, driver.CALLS))
    try:
        driver.converse(turns_of(story), Notes(story, fault), server.base_url, door, Path(path))
    finally:
        server.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
