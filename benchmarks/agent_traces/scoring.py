"""How often the operation with the planted fault is named, from what the agents' traces alone tell."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from attribution.attributor import survival_in
from attribution.cases import Attribution
from benchmarks.agent_traces.story import FAULTS, TOLD, Fault, Story
from experiments.attributing.source import Complaint, Source, TraceContent
from tracing.errors import TraceError
from tracing.interchange import read_graph
from tracing.interchange.agent_memory import interpreted
from tracing.interchange.agent_memory.mapping import read_mapping

ARCHIVE = Path(__file__).with_name("traces.tar.xz")
"""What `recording.py` exported: a trace for each agent, door, story and fault."""

RECORDED = Path(__file__).with_name("recorded.tar.xz")
"""Traces of two stories that memtune recorded by its one line on these packages."""

TOOLS: Mapping[str, tuple[str, str, str]] = {
    "langgraph": ("save_memory", "update_memory", "search_memory"),
    "pydantic_ai": ("remember", "revise", "recall"),
    "openai_agents": ("log_fact", "amend", "lookup"),
    "agent_framework": ("add_note", "change_note", "find_notes"),
    "adk": ("write_profile", "overwrite_profile", "read_profile"),
    "autogen": ("keep_detail", "edit_detail", "get_details"),
    "llama_index": ("memorize", "rewrite_memory", "look_in_memory"),
    "mcp": ("create_entry", "update_entry", "search_entries"),
    "mcp_memory": ("add_observations", "delete_observations", "search_nodes"),
    "crewai": ("record_fact", "modify_fact", "fetch_facts"),
    "one_tool": ("memory (store)", "memory (update)", "memory (retrieve)"),
    "odd_names": ("jot_down", "put_right", "consult"),
}
"""Agent → the tools that save, change and find."""

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
    """A trace of one story with one fault, as one door gave it; `mapping` says what tools do whose names do not."""

    path: Path
    agent: str
    door: str
    story: Story
    fault: Fault
    mapping: Path | None = None

    def read(self) -> TraceContent:
        """Its recording, and the last answer as its one case, called wrong and given the right one."""
        source = Source(self.path, complaint=Complaint(self.story.question, "", (self.story.answer,)))
        if self.mapping is None:
            return source.read()
        graph, problem = read_graph(self.path)
        return source.read_in(interpreted(graph, read_mapping(self.mapping)), problem)

    def is_right(self, attribution: Attribution) -> bool:
        """Whether the verdict names the operation that has the fault, and its kind of error."""
        main = attribution.main
        if main is None or main.error_type not in TYPES[self.fault]:
            return False
        save, change, find = TOOLS[self.agent]
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
        traces = [trace_at(path) for path in sorted(Path(folder).glob("*.jsonl"))]
        yield [*traces, *(mapped(trace) for trace in traces if trace.agent == "odd_names")]


def trace_at(path: Path) -> AgentTrace:
    """The trace in a file that is named agent-door-story-fault."""
    agent, door, story_name, fault_name = path.stem.split("-")
    story = next(story for story in TOLD if story.name == story_name)
    return AgentTrace(path, agent, door, story, next(fault for fault in FAULTS if fault == fault_name))


def mapped(trace: AgentTrace) -> AgentTrace:
    """A trace of the agent with odd names, with the file that says what they mean."""
    return replace(trace, door=f"{trace.door}, mapped", mapping=Path(__file__).with_name("odd_names.yaml"))


def told(trace: AgentTrace) -> tuple[bool, str]:
    """Whether the fault is named right, and what was said, in a line.

    Where there is none, the reply is to be found and right; for a leak, whose entry somebody else was given.
    """
    try:
        content = trace.read()
    except TraceError as error:
        return False, f"not attributed: {error}"
    (case,) = content.cases
    if trace.fault == "none":
        return case.judgement.contains > 0 and not content.leaks, f"the reply is {case.reply!r}"
    if trace.fault == "leak":
        owner = next(turn.by for turn in trace.story.told if trace.story.foreign in turn.text)
        return any(owner in leak for leak in content.leaks), "; ".join(content.leaks) or "no leak is told"
    attribution = survival_in(content.of(case)).attribute(case)
    main = attribution.main
    if main is None:
        return False, f"abstained: {attribution.abstained}"
    return trace.is_right(attribution), f"{main.error_type} at {main.operation}, {main.confidence:.2f}: {main.reason}"
