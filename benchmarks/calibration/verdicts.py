"""Verdicts by survival on cases whose fault is known, from three kinds of source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attribution.cases import Case, ErrorType
from attribution.recordings import Recording
from attribution.survival.calibration import Grounds
from attribution.survival.survival_method import Survival
from benchmarks.attribution_suites import HARD, INJECTED, open_injected
from benchmarks.gold_answers.suite import annotated_cases, part_of
from benchmarks.labelled_cases import LabelledCase, as_complaints
from benchmarks.labelled_suites import load_suite
from experiments.bench.attribution import Progress
from experiments.runs.config import RunConfig
from tracing.systems.conversations import Conversation

Source = Literal["labelled", "injected", "injected-hard", "spoiled"]

SYSTEMS = ("rag", "long-context", "fact-memory", "evermemos")
"""Where faults are injected."""

_Labelled = tuple[Case, Recording, ErrorType]


@dataclass(frozen=True, slots=True)
class KnownVerdict:
    """A main blame by survival.

    Attributes:
        source: which kind of case it is about.
        part: of the source: a file, a data set, or a system and suite.
        grounds: what it rests on.
        right: whether its error type is the true one.
    """

    source: Source
    part: str
    grounds: Grounds
    right: bool


def on_labelled(path: Path) -> list[KnownVerdict]:
    """On failures that people labelled, in annotated graphs; on each once more as a complaint without an answer.

    Raises:
        TraceError: the path holds no labelled case.
    """
    suite = load_suite(path)
    return [
        *_judged("labelled", suite.name, _labelled(suite.cases)),
        *_judged("labelled", suite.name, _labelled(as_complaints(suite.cases))),
    ]


def on_spoiled(conversations: Sequence[Conversation], part: str, seeds: Iterable[int]) -> list[KnownVerdict]:
    """On the development half of some conversations with spoiled gold answers among sound ones, for each seed.

    An answer to a sound question is made wrong from a context that holds what it needs: a response error.
    """
    verdicts: list[KnownVerdict] = []
    for seed in seeds:
        cases = annotated_cases(part_of(conversations, "development"), seed=seed)
        labelled: Iterator[_Labelled] = (
            (annotated.case, annotated.recording, "AnnotationError" if annotated.spoiling else "ResponseError")
            for annotated in cases
        )
        verdicts += _judged("spoiled", part, labelled)
    return verdicts


def on_injected(config: RunConfig, count: int, seed: int, progress: Progress) -> list[KnownVerdict]:
    """On `count` faults injected into each of `SYSTEMS`, and on the same under hard conditions.

    On each case once more as a complaint without an answer, but for the hard ones.

    Raises:
        DataError, ConfigError, ModelError: as of `open_injected`.
    """
    verdicts: list[KnownVerdict] = []
    for suite in (INJECTED, HARD):
        for system in SYSTEMS:
            with open_injected(
                suite, config, [system], models=None, count=count, seed=seed, progress=progress
            ) as bench:
                part, cases = f"{system}, {suite}", bench.suite.cases
                verdicts += _judged("injected" if suite == INJECTED else "injected-hard", part, _labelled(cases))
                if suite == INJECTED:
                    verdicts += _judged("injected", part, _labelled(as_complaints(cases)))
    return verdicts


def _labelled(cases: Sequence[LabelledCase]) -> list[_Labelled]:
    return [(case.case, case.recording, case.error_type) for case in cases]


def _judged(source: Source, part: str, cases: Iterable[_Labelled]) -> Iterator[KnownVerdict]:
    """The main verdict on each case; those on which survival says nothing are left out."""
    methods: dict[int, Survival] = {}
    for case, recording, truth in cases:
        # Complaints have recordings of their own, of the same graph.
        key = id(recording.graph)
        if key not in methods:
            methods[key] = Survival(recording.graph, recording.conversation, recording.operations)
        verdicts = methods[key].verdicts(case)
        if not isinstance(verdicts, str):
            blame, grounds = verdicts[0]
            yield KnownVerdict(source, part, grounds, blame.error_type == truth)
