"""A step of a memory system as JSON: what a worker is given, what it gives back, and the doing in between.

Nothing here knows how the two texts travel.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optimizer.evaluation.executor import ConversationAnswers, LocalExecutor
from optimizer.evaluation.memories import Snapshot, Stage
from tracing.errors import MemtuneError
from tracing.files.loading import graph_of
from tracing.files.trace_file import records_of
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.llm.forwarding.forwarded_access import Ask, ForwardedAccess
from tracing.llm.forwarding.forwarded_calls import described, error_read, error_written
from tracing.llm.threads import GivenUp
from tracing.recording.trace_context import trace
from tracing.systems.conversations import Conversation
from tracing.systems.layouts import Item, Parts
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Answer, MemorySystem


class StepExecutor(ABC):
    """An `Executor` whose steps are done elsewhere."""

    @abstractmethod
    def result(self, access: ModelAccess, about: str, step: str) -> dict[str, Any]:
        """The result of a step; `about` names, in errors, what the step is about."""

    def build(self, access: ModelAccess, conversation: Conversation, candidate: Candidate) -> Snapshot:
        """See `Executor`."""
        step = _step("build", access, candidate, conversation=conversation.model_dump(mode="json"))
        return Snapshot.read(self.result(access, conversation.id, step))

    def answer(
        self,
        access: ModelAccess,
        conversation: Conversation,
        candidate: Candidate,
        snapshot: Snapshot,
        path: Path | None = None,
    ) -> ConversationAnswers:
        """See `Executor`."""
        answers, calls = {}, 0
        with trace(path, prefix="a") as recorder:
            for part, stage in zip(conversation.parts(), snapshot.stages, strict=True):
                recorder.adopt(stage.records)
                recording = Snapshot([Stage(stage.memory, recorder.records())], 0).as_json()
                dialogue = part.model_dump(mode="json")
                step = _step("answer", access, candidate, conversation=dialogue, snapshot=recording)
                result = self.result(access, conversation.id, step)
                recorder.adopt(result["records"])
                calls += result["calls"]
                for question, (text, variable) in zip(part.questions, result["answers"], strict=True):
                    answers[question.id] = Answer(text, variable)
        in_order = [answers[question.id] for question in conversation.questions]
        return ConversationAnswers(in_order, recorder.graph, calls)

    def rerun(self, access: ModelAccess, prompt: str, parts: Parts, candidate: Candidate, name: str) -> ExecutionGraph:
        """See `Executor`."""
        items = {
            placeholder: [[item.role, item.name, item.kind, item.value] for item in filling]
            for placeholder, filling in parts.items()
        }
        step = _step("rerun", access, candidate, prompt=prompt, parts=items, name=name)
        return graph_of(self.result(access, f"{prompt}, {name}", step)["records"])


def result_of(text: str) -> dict[str, Any]:
    """A step's result; what the step raised is raised here."""
    result: dict[str, Any] = json.loads(text)
    if "error" in result:
        raise error_read(result["error"])
    return result


def perform(system: MemorySystem, step: str, ask: Ask) -> str:
    """Do a step here, with models that are asked by `ask`; an error of memtune's becomes part of the result."""
    request = json.loads(step)
    with ForwardedAccess(ask, request["access"]) as access:
        try:
            return json.dumps(_STEPS[request["step"]](LocalExecutor(system), access, request))
        except (MemtuneError, GivenUp) as error:
            return json.dumps({"error": error_written(error)})


def _step(kind: str, access: ModelAccess, candidate: Candidate, **inputs: Any) -> str:
    return json.dumps({"step": kind, "access": described(access), "candidate": dict(candidate), **inputs})


def _build(executor: LocalExecutor, access: ModelAccess, step: Mapping[str, Any]) -> dict[str, Any]:
    conversation = Conversation.model_validate(step["conversation"])
    return executor.build(access, conversation, step["candidate"]).as_json()


def _answer(executor: LocalExecutor, access: ModelAccess, step: Mapping[str, Any]) -> dict[str, Any]:
    conversation = Conversation.model_validate(step["conversation"])
    snapshot = Snapshot.read(step["snapshot"])
    answers = executor.answer(access, conversation, step["candidate"], snapshot)
    # The records of the build are known where the result goes.
    build_ids = {record.get("id") for record in snapshot.records}
    return {
        "answers": [[answer.text, answer.variable] for answer in answers.answers],
        "records": [record for record in records_of(answers.graph) if record.get("id") not in build_ids],
        "calls": answers.calls,
    }


def _rerun(executor: LocalExecutor, access: ModelAccess, step: Mapping[str, Any]) -> dict[str, Any]:
    parts = {name: tuple(Item(*item) for item in items) for name, items in step["parts"].items()}
    graph = executor.rerun(access, step["prompt"], parts, step["candidate"], step["name"])
    return {"records": records_of(graph)}


_STEPS = {"build": _build, "answer": _answer, "rerun": _rerun}
