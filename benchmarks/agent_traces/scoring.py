"""How often the operation with the planted fault is named, from what the agents' traces alone tell."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from attribution.attributor import survival_in
from attribution.cases import Attribution
from benchmarks.agent_traces.story import FAULTS, STORIES, Fault, Story
from experiments.attributing.source import Complaint, Source
from tracing.errors import TraceError

ARCHIVE = Path(__file__).with_name("traces.tar.xz")
"""What `make.py` recorded: a trace for each framework, door, story and fault."""

TOOLS: Mapping[str, tuple[str, str, str]] = {
    "langgraph": ("save_memory", "update_memory", "search_memory"),
    "pydantic_ai": ("remember", "revise", "recall"),
    "openai_agents": ("log_fact", "amend", "lookup"),
    "agent_framework": ("add_note", "change_note", "find_notes"),
    "adk": ("write_profile", "overwrite_profile", "read_profile"),
}
"""Framework → the tools that save, change and find."""

TYPES: Mapping[Fault, frozenset[str]] = {
    # Whether what was never saved was not extracted or not stored is a matter of words: the agent does both.
    "left_out": frozenset(("ExtractionError", "UpdateError")),
    "cut": frozenset(("ExtractionError", "UpdateError")),
    "wrong_update": frozenset(("UpdateError",)),
    "missed": frozenset(("RetrievalError",)),
    "ignored": frozenset(("ResponseError",)),
}
"""Fault → the error types that name it."""


@dataclass(frozen=True)
class AgentTrace:
    """A trace of one story with one fault, as one door gave it."""

    path: Path
    framework: str
    door: str
    story: Story
    fault: Fault

    def attributed(self) -> Attribution:
        """Whose fault the last answer is, given the right one."""
        source = Source(self.path, complaint=Complaint(self.story.question, "", (self.story.answer,)))
        content = source.read()
        (case,) = content.cases
        return survival_in(content.of(case)).attribute(case)

    def is_right(self, attribution: Attribution) -> bool:
        """Whether the verdict names the operation that has the fault, and its kind of error."""
        main = attribution.main
        if main is None or main.error_type not in TYPES[self.fault]:
            return False
        save, change, find = TOOLS[self.framework]
        if self.fault in ("cut", "left_out"):
            return main.operation == save or (self.fault == "left_out" and main.operation not in (change, find))
        return {
            "wrong_update": main.operation == change,
            "missed": main.operation == find,
            "ignored": main.operation not in (save, change, find),
        }[self.fault]


@contextmanager
def agent_traces(archive: Path = ARCHIVE) -> Iterator[list[AgentTrace]]:
    """All recorded traces, while the context is open."""
    with TemporaryDirectory() as folder, tarfile.open(archive) as recorded:
        recorded.extractall(folder, filter="data")
        yield [trace_at(path) for path in sorted(Path(folder).glob("*.jsonl"))]


def trace_at(path: Path) -> AgentTrace:
    """The trace in a file that is named framework-door-story-fault."""
    framework, door, story_name, fault_name = path.stem.split("-")
    story = next(story for story in STORIES if story.name == story_name)
    return AgentTrace(path, framework, door, story, next(fault for fault in FAULTS if fault == fault_name))


def told(trace: AgentTrace) -> tuple[bool, str]:
    """Whether the fault is named right, and what was said, in a line. Where there is none, the reply is to be right."""
    try:
        attribution = trace.attributed()
    except TraceError as error:
        return False, f"not attributed: {error}"
    if trace.fault == "none":
        return attribution.case.judgement.contains > 0, f"the reply is {attribution.case.reply!r}"
    main = attribution.main
    if main is None:
        return False, f"abstained: {attribution.abstained}"
    return trace.is_right(attribution), f"{main.error_type} at {main.operation}, {main.confidence:.2f}: {main.reason}"
