"""Cases whose trace or annotation lacks parts, as those of real systems do; what is missing is drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec

from attribution.recordings import Recording
from benchmarks.labelled_cases import LabelledCase
from tracing.graph.elements import Link, Operation
from tracing.graph.execution_graph import ExecutionGraph

MISSING = 0.3
"""The part of the operations, or of the links between them, that is left out."""

_ENTRY = "entry"


def without_operations(labelled: LabelledCase, seed: int) -> LabelledCase:
    """A case with some operations unrecorded; the answer and those at fault are there, so that they can be named."""
    graph, chance = labelled.recording.graph, _chance(labelled, seed)
    kept = [one for one in graph.operations.values() if one.id in _spared(labelled) or chance.random() >= MISSING]
    return _with_graph(
        labelled, ExecutionGraph(graph.variables.values(), kept, graph.sessions.values(), graph.attributes)
    )


def without_lineage(labelled: LabelledCase, seed: int) -> LabelledCase:
    """A case with some inputs unrecorded; no version names the one before, and no context the entry that it shows."""
    graph, chance = labelled.recording.graph, _chance(labelled, seed)
    spared = _spared(labelled)
    asked = {variable.id for variable in graph.variables.values() if variable.kind in ("query", "prediction")}

    def known(link: Link) -> bool:
        return link[1] in asked or chance.random() >= MISSING

    operations: list[Operation] = [
        one if one.id in spared else msgspec.structs.replace(one, inputs=tuple(filter(known, one.inputs)))
        for one in graph.operations.values()
    ]
    variables = [
        msgspec.structs.replace(
            one, previous=None, attributes={key: value for key, value in one.attributes.items() if key != _ENTRY}
        )
        for one in graph.variables.values()
    ]
    return _with_graph(labelled, ExecutionGraph(variables, operations, graph.sessions.values(), graph.attributes))


def without_annotations(labelled: LabelledCase, seed: int) -> LabelledCase:
    """A case of which nothing is known but the accepted answers: no evidence, no facts, no near miss."""
    unknown = {"evidence": (), "fact": None, "near_miss": None, "supersedes": False}
    recording, case = labelled.recording, labelled.case
    questions = tuple(one.model_copy(update=unknown) for one in recording.conversation.questions)
    conversation = recording.conversation.model_copy(update={"facts": (), "questions": questions})
    return replace(
        labelled,
        case=replace(case, question=case.question.model_copy(update=unknown)),
        recording=Recording(recording.graph, conversation, recording.operations),
    )


MISSING_PARTS: Mapping[str, Callable[[LabelledCase, int], LabelledCase]] = {
    "operations missing": without_operations,
    "lineage missing": without_lineage,
    "annotations missing": without_annotations,
}
"""By the name of the condition, what makes it."""


def _spared(labelled: LabelledCase) -> set[str]:
    graph, prediction = labelled.recording.graph, labelled.case.prediction
    answers = {one.id for one in graph.producers(prediction)} if prediction is not None else set[str]()
    return {*labelled.acceptable_op_ids, *answers}


def _chance(labelled: LabelledCase, seed: int) -> random.Random:
    name = f"{seed} {labelled.fault} {labelled.case.conversation} {labelled.case.question.id}"
    return random.Random(name)  # noqa: S311 - a choice of examples, no secret


def _with_graph(labelled: LabelledCase, graph: ExecutionGraph) -> LabelledCase:
    recording = labelled.recording
    return replace(labelled, recording=Recording(graph, recording.conversation, recording.operations))
