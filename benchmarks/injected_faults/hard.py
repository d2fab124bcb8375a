"""The hard split: injected cases as foreign traces, or with missing parts, each under one condition in turn."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.injected_faults.foreign import as_foreign
from benchmarks.injected_faults.missing_parts import MISSING_PARTS
from benchmarks.labelled_cases import LabelledCase

FOREIGN = "foreign trace"
CONDITIONS = (FOREIGN, *MISSING_PARTS)


def hardened(cases: Sequence[LabelledCase], seed: int) -> list[LabelledCase]:
    """The cases, each under one of the hard conditions; equal seeds give equal conditions.

    A case that a foreign trace cannot tell stays out.
    """
    drawn = list(range(len(cases)))
    random.Random(f"{seed} hard").shuffle(drawn)  # noqa: S311 - a choice of examples, no secret
    made: list[LabelledCase] = []
    for place, labelled in zip(drawn, cases, strict=True):
        condition = CONDITIONS[place % len(CONDITIONS)]
        spoilt = MISSING_PARTS[condition](labelled, seed) if condition != FOREIGN else as_foreign(labelled, seed)
        if spoilt is not None:
            made.append(replace(spoilt, condition=condition))
    return made
