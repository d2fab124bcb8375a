"""What a case is attributed from: a graph with its dialogue and its operations' stages; inferred from it if need be.

Our own runs know their conversation and their system. For a graph from elsewhere both are inferred: the dialogue from
its messages, and an operation's stage from what it reads and makes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import get_args

from attribution.recorded_values import CONTENT, event_of
from attribution.text.content import text_of
from attribution.text.tokens import normalise
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.identities import chat_in
from tracing.interchange.agent_memory import STAGE
from tracing.systems.conversations import Conversation, DialogueSession, Turn
from tracing.systems.protocol import OperationSpec, Stage

_STAMPED = re.compile(r"\n?^(?:time(?:stamp)?|date|session time)\s*:\s*(?P<time>.+)$", re.IGNORECASE | re.MULTILINE)
# Also `Speaker Mara (role: user) says: …`.
_SPOKEN = re.compile(
    r"(?:Speaker\s+)?(?P<speaker>[^\n:()]{1,40}?)(?:\s*\([^()\n]{1,40}\))?(?:\s+says)?:\s+(?P<text>.*)", re.DOTALL
)
_RUN = 5
_MOSTLY = 0.5
_MOST_ENTRIES = 50
_TIMES = ("timestamp", "session_time", "time", "date")
_HINTS: tuple[tuple[Stage, re.Pattern[str]], ...] = (
    ("answer", re.compile(r"answer|respon|generat\w*_reply", re.I)),
    ("retrieve", re.compile(r"retriev|search|recall|rank|round\d", re.I)),
    ("update", re.compile(r"updat|merge|consolidat|delet|store", re.I)),
    ("extract", re.compile(r"extract|chunk|boundary|buffer|summar|ingest|finali[sz]e", re.I)),
)
_JUDGED = frozenset(("golden_answers", "judge_response", "judge_score"))
_ORDER: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A graph and what is needed to read it.

    Attributes:
        graph: the memory's build and its answers in one graph.
        conversation: what the memory was built from, with turns named as the graph's messages.
        operations: the system's operations with their stages, in pipeline order.
    """

    graph: ExecutionGraph
    conversation: Conversation
    operations: tuple[OperationSpec, ...]


def recording_of(graph: ExecutionGraph, name: str) -> Recording:
    """A recording of a graph alone; `name` becomes the conversation's id."""
    return Recording(graph, conversation_of(graph, name), operations_of(graph))


def conversation_of(graph: ExecutionGraph, name: str, days: Mapping[str, str] = MappingProxyType({})) -> Conversation:
    """The dialogue in a graph's messages: speaker, text and time of each, in the order recorded.

    A message is `Speaker: text`, with a line `Timestamp: …` or an attribute for the time; if several share a name, the
    first counts. Outside of recorded sessions, an attribute for the chat makes a session. `days` has by their ids the
    times of messages that name none.
    """
    spoken: dict[str, dict[str, Turn]] = defaultdict(dict)
    times: dict[str, str] = {}
    names: set[str] = set()
    for message in graph.find_variables(kind="message"):
        if message.name in names:
            continue
        names.add(message.name)
        speaker, text, time = _message(message)
        session = graph.sessions.get(message.session or "")
        key = session.name if session is not None else chat_in(message.attributes)
        time = time or days.get(message.id, "")
        if times.setdefault(key, time) != time and time:
            key = f"{key} {time}".strip()
            times[key] = time
        spoken[key][message.name] = Turn(id=message.name, speaker=speaker, text=text)
    unnamed = "session" if "session" not in spoken else "no session"
    sessions = tuple(
        DialogueSession(id=key or unnamed, time=times[key], turns=tuple(turns.values()))
        for key, turns in spoken.items()
    )
    speakers = dict.fromkeys(turn.speaker for session in sessions for turn in session.turns if turn.speaker)
    return Conversation(
        id=name, speakers=tuple(speakers), sessions=sessions or (DialogueSession(id="session", turns=()),)
    )


def operations_of(graph: ExecutionGraph) -> tuple[OperationSpec, ...]:
    """The operations of a graph whose stage can be inferred, in pipeline order; judges and similar ones are left out.

    Those that write the memory have no prompt if its contents are cut from the messages, or if they carry out what
    another operation decided.
    """
    told = {operation.name: operation for operation in graph.operations.values() if STAGE in operation.attributes}
    if told:
        named_stages = [(operation.attributes[STAGE], name) for name, operation in told.items()]
        staged = sorted((row for row in named_stages if row[0] in _ORDER), key=lambda row: _ORDER.index(row[0]))
        prompted = {operation.name for operation in graph.operations.values() if operation.kind == "llm"}
        return tuple(OperationSpec(name, stage, name if name in prompted else None) for stage, name in staged)
    executions: dict[str, list[Operation]] = defaultdict(list)
    frames = _frames(graph)
    for operation in graph.operations.values():
        if operation.id not in frames:
            executions[operation.name].append(operation)
    named = any(variable.kind in CONTENT - {"prediction"} for variable in graph.variables.values())
    stages = {name: _stage(name, graph, runs, named=named) for name, runs in executions.items()}
    staged = [(stage, name) for name, stage in stages.items() if stage is not None]
    staged.sort(key=lambda stage_and_name: _ORDER.index(stage_and_name[0]))
    unprompted = ("extract", "update") if _is_verbatim(graph) else ()
    carriers = {name for name, runs in executions.items() if any(_carries_out(graph, run) for run in runs)}
    return tuple(
        OperationSpec(name, stage, None if stage in unprompted or name in carriers else name) for stage, name in staged
    )


def _frames(graph: ExecutionGraph) -> set[str]:
    """Operations inside which others read the messages, and which made no content themselves: these did the work."""
    frames = {
        operation.parent
        for operation in graph.operations.values()
        if any(graph.variables[vid].kind == "message" for vid in operation.input_ids())
    }
    return {
        operation.id
        for operation in graph.operations.values()
        if operation.id in frames and not any(graph.variables[vid].kind in CONTENT for vid in operation.output_ids())
    }


def _carries_out(graph: ExecutionGraph, operation: Operation) -> bool:
    """Whether an operation read a decision that another one made."""
    return any(event_of([graph.variables[vid]]) and graph.producers(vid) for vid in operation.input_ids())


def _is_verbatim(graph: ExecutionGraph) -> bool:
    """Whether most of what the memory holds is in the messages word for word; paraphrase shares few long runs."""
    message_runs = {run for message in graph.find_variables(kind="message") for run in _runs_of(text_of(message.value))}
    entry_texts = [text_of(entry.value) for entry in graph.find_variables(kind="memory_entry")][:_MOST_ENTRIES]
    runs = [run for text in entry_texts for run in _runs_of(text)]
    return bool(runs) and sum(run in message_runs for run in runs) >= _MOSTLY * len(runs)


def _runs_of(text: str) -> list[tuple[str, ...]]:
    words = normalise(text)
    return [words[at : at + _RUN] for at in range(len(words) - _RUN + 1)]


def _stage(name: str, graph: ExecutionGraph, executions: Sequence[Operation], *, named: bool) -> Stage | None:
    """The stage of an operation; `named` says whether its name may tell it, where what it read and made does not.

    It may not where the graph shows nothing of a memory, nor for a tool: then it shows nothing of what was kept.
    """
    read = {graph.variables[vid].kind for operation in executions for vid in operation.input_ids()}
    outputs = {graph.variables[vid].kind for operation in executions for vid in operation.output_ids()}
    if "prediction" in outputs:
        return "answer"
    if "prediction" in read or read & _JUDGED or outputs & _JUDGED:
        return None
    if "context" in outputs or "query" in read:
        return "retrieve"
    if "message" in read and (outputs or dict(_HINTS)["extract"].search(name)):  # one may never find anything to keep
        return "extract"
    if outputs & {"memory_entry", "delete_marker"} and read & {"fact", "memory_entry"}:
        return "update"
    if not named or all(operation.kind == "tool" for operation in executions):
        return None
    # An operation that only passes values on can be recognised only by its name.
    return next((stage for stage, hint in _HINTS if hint.search(name)), None)


def _message(message: Variable) -> tuple[str, str, str]:
    """Speaker, text and time of a message."""
    facts = metadata_of(message)
    text = text_of(message.value)
    stamp = _STAMPED.search(text)
    time = next((str(facts[key]) for key in _TIMES if facts.get(key)), stamp["time"].strip() if stamp else "")
    if stamp:
        text = text[: stamp.start()] + text[stamp.end() :]
    spoken_line = _SPOKEN.match(text)
    speaker = facts.get("speaker") or facts.get("role")
    if spoken_line and (speaker is None or spoken_line["speaker"].strip() == speaker):
        return spoken_line["speaker"].strip(), spoken_line["text"].strip(), time
    return str(speaker or ""), text.strip(), time


def metadata_of(variable: Variable) -> Mapping[str, object]:
    """A variable's attributes, with those that smartcomment kept in the node's metadata."""
    raw = variable.attributes.get("smartcomment")
    metadata = raw.get("metadata") if isinstance(raw, Mapping) else None
    return {**variable.attributes, **(metadata if isinstance(metadata, Mapping) else {})}
