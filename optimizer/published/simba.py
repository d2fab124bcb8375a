"""DSPy's SIMBA: rules from what tells a better run from a worse one, and demonstrations of the better one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimizer.published.candidate_search import has_rounds
from optimizer.tuning.stopped import Stopped

if TYPE_CHECKING:
    import dspy

    from optimizer.published.memory_program import MemoryProgram
    from optimizer.tuning.tuning import Tuning

MINIBATCH = 32
"""Train conversations of a minibatch: DSPy's own default; all of them if there are fewer."""


def simba(tuning: Tuning) -> Stopped:
    """An `Optimizer`: DSPy's SIMBA, with the author as its prompt model.

    One step a round, with as many candidates as the loop's `proposals`, and one more. The system answers at its own
    temperature: runs of one candidate are equal, and what varies on a conversation is the candidate. SIMBA chooses on
    train; the best there so far meets validation.

    Raises:
        ConfigError: rewrites by hand are given, or dspy is not installed.
        BudgetExceededError: a hard budget ended it.
    """
    settings = tuning.settings
    if not has_rounds(tuning, "simba"):
        return Stopped("rounds")
    import dspy

    from optimizer.published.bootstrap import MOST_SHOWN
    from optimizer.published.memory_program import examples_of, score_of, search

    def compile_with(program: MemoryProgram, author: dspy.LM) -> None:
        dspy.SIMBA(
            metric=score_of,
            bsize=min(MINIBATCH, len(tuning.train)),
            num_candidates=max(2, settings.proposals),
            max_steps=settings.rounds,
            max_demos=MOST_SHOWN,
            prompt_model=author,
            num_threads=1,
        ).compile(program, trainset=examples_of(tuning.train), seed=settings.seed)

    search(tuning, "simba", compile_with, at_once=len(tuning.train) <= MINIBATCH)
    return Stopped("own", "all steps of SIMBA done")
