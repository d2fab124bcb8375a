"""Suites: wrong answers whose decisive operation is known, to measure attribution by."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from attribution.cases import Attribution, Case, ErrorType
from attribution.metrics import Prediction
from attribution.recordings import Recording
from tracing.errors import MemtuneError

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """A wrong answer with the truth about it.

    Attributes:
        case: the wrong answer.
        recording: what it is attributed from; cases of one graph share it.
        error_type: the true one.
        operation_ids: the operation at fault; several where they share the fault, none where the label names none.
        acceptable_op_ids: operations that may be blamed too, those at fault included.
        fault: kind of the injected fault; None for a case that people labelled.
    """

    case: Case
    recording: Recording
    error_type: ErrorType
    operation_ids: tuple[str, ...]
    acceptable_op_ids: tuple[str, ...]
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """Labelled cases, and the labels that could not be read, one line each."""

    name: str
    cases: tuple[LabelledCase, ...]
    skipped: tuple[str, ...] = ()


class Attributor(Protocol):
    """A method of attribution, set up for one recording."""

    def attribute(self, case: Case) -> Attribution:
        """Whose fault the case is."""
        ...


def run(suite: Suite, make: Callable[[Recording], Attributor], access: ModelAccess | None = None) -> list[Prediction]:
    """Attribute every case of a suite, in its order; a case that fails is one abstention, and the rest goes on.

    Args:
        suite: the cases.
        make: sets the method up, once a recording.
        access: whose tokens are counted.
    """
    made: dict[int, Attributor | MemtuneError] = {}
    predictions: list[Prediction] = []
    for labelled in suite.cases:
        key = id(labelled.recording)
        if key not in made:
            made[key] = _set_up(make, labelled.recording)
        predictions.append(_predict(made[key], labelled.case, access))
    return predictions


def _set_up(make: Callable[[Recording], Attributor], recording: Recording) -> Attributor | MemtuneError:
    try:
        return make(recording)
    except Exception as error:
        return MemtuneError(f"{type(error).__name__}: {error}")


def _predict(method: Attributor | MemtuneError, case: Case, access: ModelAccess | None) -> Prediction:
    started = time.perf_counter()
    with access.watch() if access is not None else nullcontext() as watch:
        try:
            if isinstance(method, MemtuneError):
                raise method
            attribution = method.attribute(case)
        except Exception as error:
            attribution = Attribution(case, abstained=f"attribution failed: {type(error).__name__}: {error}")
    tokens = watch.prompt_tokens + watch.completion_tokens if watch is not None else 0
    return Prediction(attribution, tokens, (time.perf_counter() - started) * 1000)
