"""Cases as another tool would have traced them: smartcomment documents with MemTraceBench's annotations.

Such a graph has names of its own, one text for all that was retrieved, one operation for a decision and what was done
about it, no prompts, and neither the conversation nor the system beside it. Its labels follow three conventions in
turn: the operation alone; the operation or the update of what it made; or no single one, and several that share it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.labelled_cases import LabelledCase
from benchmarks.labelled_suites import labelled_cases
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.documents import Troubles
from tracing.interchange.smartcomment import graph_of_document
from tracing.systems.protocol import Stage

_HERE = {"graph_id": "foreign", "filename": "system.py", "lineno": 1}
_SESSION = "run"
_MEMORY = ("memory_entry", "delete_marker")
_CARRIED = frozenset(("message", "fact", "context", "query", "prediction", *_MEMORY))


@dataclass(frozen=True, slots=True)
class _House:
    """How a tool names things.

    Attributes:
        names: of the operations, by stage.
        fact: category of what is extracted.
        stamped: whether a message's time stands in its text; else it is in the metadata.
    """

    names: Mapping[Stage, str]
    fact: str
    stamped: bool


_HOUSES = (
    _House(
        {
            "extract": "memory_system.extract_facts",
            "update": "memory_system.update_memory_decision",
            "retrieve": "memory_system.retrieve",
            "answer": "question-answering",
        },
        "memory_entry",
        stamped=True,
    ),
    _House(
        {"extract": "mem.ingest", "update": "mem.consolidate", "retrieve": "mem.lookup", "answer": "respond"},
        "facts",
        stamped=False,
    ),
)


def as_foreign(labelled: LabelledCase, seed: int) -> LabelledCase | None:
    """A case as a foreign trace with its label in an annotation, read back; None where it cannot be told so."""
    drawn = _drawn(f"{seed} {labelled.fault} {labelled.case.conversation} {labelled.case.question.id}")
    document = _Document(labelled, _HOUSES[drawn % len(_HOUSES)], convention=drawn // len(_HOUSES) % 3)
    graph = graph_of_document(document.written(), "foreign", Troubles())
    found = labelled_cases(graph, "foreign", labelled.case.conversation).cases
    return replace(found[0], fault=labelled.fault) if found else None


class _Document:
    """One case's graph in smartcomment's form."""

    def __init__(self, labelled: LabelledCase, house: _House, *, convention: int) -> None:
        self._labelled, self._house, self._convention = labelled, house, convention
        self._graph: ExecutionGraph = labelled.recording.graph
        self._stages = {spec.name: spec.stage for spec in labelled.recording.operations}
        self._times = {
            turn.id: session.time for session in labelled.recording.conversation.sessions for turn in session.turns
        }
        self._merged = self._decisions()
        self._joined: dict[str, str] = {}
        self._nodes: dict[str, dict[str, Any]] = {}
        self._edges: list[dict[str, Any]] = []
        self._operations: list[dict[str, Any]] = []

    def written(self) -> dict[str, Any]:
        """The document, with the annotation."""
        for operation in self._graph.operations.values():
            stage = self._stages.get(operation.name)
            if stage is not None and operation.id not in self._merged:
                self._write(operation, stage)
        for variable in self._graph.variables.values():
            if variable.kind == "message":
                self._node(variable)
        data = {
            "nodes": list(self._nodes.values()),
            "edges": self._edges,
            "operations": self._operations,
            "sessions": [{**_HERE, "session_id": _SESSION}],
            "annotations": [self._annotation()],
        }
        return {"graph_id": "foreign", "driver_type": "in_memory", "data": data}

    def _decisions(self) -> dict[str, str]:
        """Operations that only decide, and the one that carries it out."""
        merged: dict[str, str] = {}
        for operation in self._graph.operations.values():
            made = [self._graph.variables[vid] for vid in operation.output_ids()]
            if self._stages.get(operation.name) != "update" or any(one.kind in _MEMORY for one in made):
                continue
            after = [one for each in made for one in self._graph.consumers(each.id)]
            doer = next((one for one in after if self._stages.get(one.name) == "update"), None)
            if doer is not None:
                merged[operation.id] = doer.id
        return merged

    def _write(self, operation: Operation, stage: Stage) -> None:
        deciders = [self._graph.operations[oid] for oid, doer in self._merged.items() if doer == operation.id]
        read = self._ids(vid for one in (*deciders, operation) for vid in one.input_ids())
        made = self._made(operation, stage)
        self._operations.append(
            {**_HERE, "session_id": _SESSION, "op_id": operation.id, "op_name": self._house.names[stage]}
        )
        self._edges += [
            {
                **_HERE,
                "session_id": _SESSION,
                "op_id": operation.id,
                "source_full_node_id": source,
                "target_full_node_id": target,
            }
            for source in read
            for target in made
        ]

    def _made(self, operation: Operation, stage: Stage) -> list[str]:
        """What an operation made; the pieces of a context are one text."""
        outputs = [self._graph.variables[vid] for vid in operation.output_ids()]
        pieces = [one for one in outputs if one.kind == "context"]
        if stage != "retrieve" or not pieces:
            return self._ids(one.id for one in outputs)
        text = "\n".join(str(one.value) for one in pieces)
        full = self._put(f"ctx-{_short(operation.id)}", text, "memory_context")
        self._joined.update((one.id, full) for one in pieces)
        return [full]

    def _ids(self, vids: Iterable[str]) -> list[str]:
        found = [self._graph.variables[vid] for vid in vids]
        return list(dict.fromkeys(self._node(one) for one in found if one.kind in _CARRIED))

    def _node(self, variable: Variable) -> str:
        """The full id of a variable's node."""
        if variable.id in self._joined:
            return self._joined[variable.id]
        kind, text = variable.kind, "" if variable.value is None else str(variable.value)
        if kind == "message":
            time = self._times.get(variable.name, "")
            if self._house.stamped:
                return self._put(variable.name, f"{text}\nTimestamp: {time}" if time else text, "message")
            return self._put(variable.name, text, "message", metadata={"timestamp": time})
        if kind == "query":
            return self._put(f"qa-{_short(variable.id)}", text, "message & query", owner="query")
        if kind == "prediction":
            return self._put(f"reply-{_short(variable.id)}", text, "prediction", owner="prediction")
        versions = [one.id for one in self._graph.versions(variable.id)]
        name, version = f"mem-{_short(versions[0])}", versions.index(variable.id) + 1
        category = self._house.fact if kind == "fact" else "memory_context" if kind == "context" else kind
        return self._put(name, text, category, version=version)

    def _put(
        self,
        name: str,
        value: str,
        category: str,
        *,
        owner: str | None = None,
        version: int = 1,
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        full = f"{owner}:{name}@{version}" if owner else f"{name}@{version}"
        self._nodes.setdefault(
            full,
            {
                **_HERE,
                "session_id": _SESSION,
                "name": name,
                "version": version,
                "value": value,
                "category": category,
                "class_name": owner,
                "metadata": dict(metadata or {}),
            },
        )
        return full

    # --- the label -------------------------------------------------------------------------------------------------

    def _annotation(self) -> dict[str, Any]:
        labelled, question = self._labelled, self._labelled.case.question
        prediction = labelled.case.prediction or ""
        asked = next(
            self._graph.variables[vid]
            for operation in self._graph.producers(prediction)
            for vid in operation.input_ids()
            if self._graph.variables[vid].kind == "query"
        )
        seen = {edge["op_id"] for edge in self._edges}
        merged = (self._merged.get(oid, oid) for oid in labelled.operation_ids)
        at_fault = [oid for oid in dict.fromkeys(merged) if oid in seen]
        final, acceptable = self._labels(at_fault)
        return {
            "query_id": self._node(asked),
            "query": question.question,
            "golden_answers": list(question.answers),
            "prediction_id": self._node(self._graph.variables[prediction]),
            "source_evidence_ids": [f"{turn}@1" for turn in question.evidence],
            "final_error_type": labelled.error_type,
            "final_op_id": final,
            "acceptable_op_ids": acceptable,
        }

    def _labels(self, at_fault: list[str]) -> tuple[str | None, list[str]]:
        if self._convention == 0 and len(at_fault) == 1:
            return at_fault[0], at_fault
        updates = [
            one.id
            for oid in at_fault
            for vid in self._graph.operations[oid].output_ids()
            for one in self._graph.consumers(vid)
            if self._stages.get(one.name) == "update"
        ]
        shared = list(dict.fromkeys([*at_fault, *(self._merged.get(oid, oid) for oid in updates)]))
        return (at_fault[0], shared) if self._convention == 1 and len(at_fault) == 1 else (None, shared)


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]


def _drawn(name: str) -> int:
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)
