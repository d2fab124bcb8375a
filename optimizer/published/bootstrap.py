"""Bootstrapped demonstrations: random sets of passing train cases in every prompt, and the best set on validation.

After DSPy's BootstrapFewShotWithRandomSearch (Khattab et al. 2023). A demonstration is a short recorded input with a
reply that a right answer proves, written in the layout of the prompt.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from optimizer.proposers.demonstrations import demonstrations_of
from optimizer.proposers.rewrites import Demonstration
from optimizer.proposers.template import take_apart
from optimizer.published.candidate_search import CandidateSearch
from optimizer.tuning.failures import unattributed_examples
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import Tuning
from tracing.systems.protocol import stage_of

MOST_SHOWN = 3
"""Demonstrations in one prompt, at most."""

MOST_TOKENS = 400
"""Longest demonstration. DSPy has no limit; `MOST_SHOWN` of these leave a context of 4,096 tokens room for the data."""


def bootstrap(tuning: Tuning) -> Stopped:
    """An `Optimizer` that tries as many sets as the loop would try rewrites; it asks no author."""
    pools, drawn = demonstration_pools(tuning), random.Random(tuning.settings.seed)  # noqa: S311 (a draw, not a secret)
    if not pools:
        return Stopped("own", "no passing train case is short enough to be shown")
    with CandidateSearch(tuning, "bootstrap") as candidates:
        for _ in range(tuning.settings.rounds * tuning.settings.proposals):
            candidate = dict(tuning.baseline)
            for name, demonstrations in drawn_sets(pools, drawn).items():
                candidate[name] = with_demonstrations(candidate[name], demonstrations)
            candidates.measure(candidate, tuning.validation, "demonstrations from passing train cases")
    return Stopped("rounds")


def demonstration_pools(tuning: Tuning) -> dict[str, list[Demonstration]]:
    """Prompt name → demonstrations from the passing train cases; only prompts that can hold one, and have one."""
    pools: dict[str, list[Demonstration]] = {}
    for name, spec in tuning.prompts.items():
        _, passed = unattributed_examples(spec, tuning.operations, tuning.outcomes("train"))
        usable = [
            demonstration
            for demonstration in demonstrations_of(stage_of(tuning.operations, name), passed, MOST_TOKENS)
            if spec.contract.placeholders <= demonstration.values.keys()
        ]
        if usable and take_apart(tuning.baseline[name]).data:
            pools[name] = usable
    return pools


def drawn_sets(
    pools: Mapping[str, Sequence[Demonstration]], drawn: random.Random
) -> dict[str, tuple[Demonstration, ...]]:
    """A random set for each prompt, of one demonstration to `MOST_SHOWN`."""
    return {
        name: tuple(drawn.sample(list(pool), drawn.randint(1, min(MOST_SHOWN, len(pool)))))
        for name, pool in pools.items()
    }


def with_demonstrations(text: str, demonstrations: Sequence[Demonstration]) -> str:
    """The prompt with these demonstrations before its data, in place of those it has."""
    filled = ((demonstration.values, demonstration.reply) for demonstration in demonstrations)
    return take_apart(text).with_filled(filled).text
