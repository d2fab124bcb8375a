"""Checks of a memory system by a memory of two turns and a question: does it build, answer, record, rerun?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.doctor.health_check import HealthCheck
from experiments.doctor.surroundings import fault_and_remedy
from experiments.running.wiring import RunParts, open_parts
from optimizer.evaluation.executor import LocalExecutor
from optimizer.objectives.local_evaluation import recorded_inputs
from tracing.errors import MemtuneError
from tracing.recording.redaction import excerpt
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate, seed_candidate
from tracing.systems.protocol import MemorySystem, RerunsOperations
from tracing.systems.recording_check import (
    message_faults,
    prediction_faults,
    prompt_faults,
    rerun_difference,
    sees_calls,
    unrecorded_operations,
)

if TYPE_CHECKING:
    from experiments.runs.config import RunConfig
    from optimizer.evaluation.evaluator import Outcome

_SUITE = "run the conformance suite on it (docs/extending.md)"

_TINY = Conversation.model_validate(
    {
        "id": "doctor",
        "speakers": ["Ann", "Bo"],
        "sessions": [
            {
                "id": "D1",
                "time": "2026-05-04",
                "turns": [
                    {"id": "D1:1", "speaker": "Ann", "text": "My dog is called Rex."},
                    {"id": "D1:2", "speaker": "Bo", "text": "Mine is called Fido."},
                ],
            }
        ],
        "questions": [
            {"id": "q1", "question": "What is Ann's dog called?", "answers": ["Rex"], "evidence": ["D1:1"]},
        ],
    }
)
"""What `check_build` builds a memory of."""


def check_build(config: RunConfig) -> Iterator[HealthCheck]:
    """Whether the memory system builds a memory of two turns and answers a question on it, with the models of `config`;
    whether it records what attribution needs, and its `rerun` does again what was recorded.

    Nothing is kept of it. The models are called.
    """
    subject = f"memory of {config.system}"
    with tempfile.TemporaryDirectory(prefix="memtune-doctor-") as folder:
        try:
            with open_parts(config, Path(folder)) as parts:
                seeds = seed_candidate(parts.system.prompts)
                (outcome,) = parts.evaluator.evaluate(seeds, [_TINY])
                if outcome.tainted is not None:
                    yield HealthCheck(subject, "broken", outcome.tainted, "fix the system, or give it another model")
                    return
                (case,) = outcome.cases
                asked = f"asked {case.question.question!r} it says {excerpt(case.reply, 80)!r}"
                yield HealthCheck(subject, "ok", f"built of two turns; {asked}")
                yield from _check_recording(parts.system, outcome)
                yield from _check_reruns(parts, seeds, outcome)
        except MemtuneError as error:
            yield HealthCheck(subject, "broken", *fault_and_remedy(error))


def _check_recording(system: MemorySystem, outcome: Outcome) -> Iterator[HealthCheck]:
    (case,) = outcome.cases
    faults = (
        *prompt_faults(system, outcome.graph),
        *message_faults(_TINY, outcome.graph),
        *prediction_faults(system, case.reply, case.prediction, outcome.graph),
    )
    for fault in faults:
        yield HealthCheck("recording", "broken", fault, f"record it, or attribution goes wrong; {_SUITE}")
    unrecorded = unrecorded_operations(system, outcome.graph)
    if unrecorded is not None:
        yield HealthCheck("recording", "missing", unrecorded, "they may have nothing to do with two turns")
    elif not faults:
        yield HealthCheck("recording", "ok", "operations, prompts, messages and prediction are recorded")


def _check_reruns(parts: RunParts, seeds: Candidate, outcome: Outcome) -> Iterator[HealthCheck]:
    system = parts.system
    if not isinstance(system, RerunsOperations):
        says = "the system has none, so rewrites are compared on whole conversations, which takes more calls"
        yield HealthCheck("rerun", "missing", says)
        return
    executor = parts.evaluator.executor or LocalExecutor(system)
    for name, spec in system.prompts.items():
        for given in recorded_inputs(spec, [outcome])[:1]:
            graph = executor.rerun(parts.access, name, given.parts, seeds, given.key[:12])
            repeatable = parts.access.caches and sees_calls(spec, graph)
            difference = rerun_difference(spec, given.parts, given.outputs, graph, repeatable=repeatable)
            if difference is None:
                yield HealthCheck(f"rerun of {name}", "ok", "does again what was recorded")
            else:
                remedy = f"let rerun fill the prompt with `parts` as the operation does; {_SUITE}"
                yield HealthCheck(f"rerun of {name}", "broken", difference, remedy)
