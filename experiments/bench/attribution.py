"""How often an attribution method is right on labelled cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from attribution.attributor import ATTRIBUTORS, SURVIVAL, Attributor, bound, open_attributor
from attribution.benchmark.attribution_scores import Prediction, score
from attribution.benchmark.baselines import Constant, Random
from attribution.benchmark.suites import load_suite, run
from attribution.cases import Attribution, Case
from attribution.labelled_cases import Suite, as_complaints
from attribution.recordings import Recording
from attribution.survival.matching.matcher import WORDS
from experiments.bench.phases import Progress
from experiments.data.published.memtracebench import NAME, fetched
from tracing.errors import ConfigError
from tracing.llm.access import ModelAccess

CONTROLS = ("majority", "random")
"""Measured in addition to the attribution methods: two lower bounds."""

Make = Callable[[Recording], Attributor]


def read_suite(suite: str, home: Path, progress: Progress) -> Suite:
    """The suite at a path, or the public one, which is downloaded into the home once.

    Raises:
        TraceError, DataError: it cannot be read or fetched, or holds no labelled case.
    """
    return load_suite(fetched(home, progress) if suite == NAME else Path(suite))


def needs_models(method: str, controls: Sequence[str] = CONTROLS) -> bool:
    """Whether a method may ask a model.

    Raises:
        ConfigError: there is no such method.
    """
    if method in controls:
        return False
    try:
        ATTRIBUTORS.check(method)
    except ConfigError as error:
        raise ConfigError(f"--method: {error}; or a control: {', '.join(controls)}") from None
    return method != SURVIVAL


def attributor(method: str, suite: Suite, access: ModelAccess | None, *, seed: int, matcher: str = WORDS) -> Make:
    """What sets a method up for a recording; `access` has the models that it may ask."""
    if method not in CONTROLS:
        return bound(open_attributor(method, matcher=matcher), access)
    if method == "majority":
        types = Counter(labelled.error_type for labelled in suite.cases)
        return lambda recording: Constant(recording, types.most_common(1)[0][0])
    return lambda recording: Random(recording, seed)


def complaints_in(suite: Suite) -> Suite:
    """The suite with cases of which only question and reply are known."""
    return replace(suite, name=f"{suite.name}, as complaints", cases=tuple(as_complaints(suite.cases)))


def remarks_on(suite: Suite) -> tuple[str, ...]:
    """What a reader of the figures must know about labels that were not read, or not wholly."""
    return (*(f"skipped: {line}" for line in suite.skipped), *(f"doubtful: {line}" for line in suite.doubts))


def measure(
    suite: Suite, make: Make, access: ModelAccess | None, *, seed: int, progress: Progress
) -> tuple[list[Prediction], dict[str, Any]]:
    """Attribute every case and score it: the predictions, and the figures of `metrics.score`, beside which

    calls_per_case: model calls made, cached ones left out. by_nature, by_system: of injected faults, so empty here.
    """
    total = len(suite.cases)
    numbers = iter(range(1, total + 1))
    before = _calls(access)
    predictions = run(
        suite,
        lambda recording: Announced(make(recording), lambda: progress("attribution", next(numbers), total)),
        access,
    )
    figures = score(predictions, suite, seed=seed)
    return predictions, figures | {
        "calls_per_case": (_calls(access) - before) / total,
        "by_nature": {},
        "by_system": {},
    }


class Announced:
    """A method that reports when it has finished a case."""

    def __init__(self, method: Attributor, tell: Callable[[], None]) -> None:
        self._method, self._tell = method, tell

    def attribute(self, case: Case) -> Attribution:
        try:
            return self._method.attribute(case)
        finally:
            self._tell()


def _calls(access: ModelAccess | None) -> float:
    return access.meter.totals()["calls_made"] if access is not None else 0
