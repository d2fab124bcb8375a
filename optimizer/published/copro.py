"""DSPy's COPRO: instructions for one prompt after the other, written from those tried and their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimizer.published.candidate_search import has_rounds
from optimizer.tuning.stopped import Stopped

if TYPE_CHECKING:
    import dspy

    from optimizer.published.memory_program import MemoryProgram
    from optimizer.tuning.tuning import Tuning


def copro(tuning: Tuning) -> Stopped:
    """An `Optimizer`: DSPy's COPRO, with the author as its prompt model.

    As deep as the loop has rounds and as broad as it has proposals, for each prompt. COPRO chooses on train; the best
    there so far meets validation. It knows no demonstrations, and what it proposes as the end of a prompt is left out.

    Raises:
        ConfigError: rewrites by hand are given, or dspy is not installed.
        BudgetExceededError: a hard budget ended it.
    """
    settings = tuning.settings
    if not has_rounds(tuning, "copro"):
        return Stopped("rounds")
    import dspy

    from optimizer.published.memory_program import examples_of, score_of, search

    def compile_with(program: MemoryProgram, author: dspy.LM) -> None:
        dspy.COPRO(
            prompt_model=author, metric=score_of, breadth=max(2, settings.proposals), depth=settings.rounds
        ).compile(
            program,
            trainset=examples_of(tuning.train),
            eval_kwargs={"num_threads": 1, "display_progress": False, "display_table": 0},
        )

    search(tuning, "copro", compile_with)
    return Stopped("own", "all depths of COPRO done")
