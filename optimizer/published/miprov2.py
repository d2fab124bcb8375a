"""MIPROv2 (Opsahl-Ong et al. 2024): instructions and demonstrations, chosen jointly by Bayesian optimization."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from optimizer.published.candidate_search import has_rounds
from optimizer.tuning.stopped import Stopped

if TYPE_CHECKING:
    from optimizer.tuning.tuning import Tuning


def miprov2(tuning: Tuning) -> Stopped:
    """An `Optimizer`: DSPy's MIPROv2, with the author as its prompt model.

    As many instructions for each prompt as the loop's `proposals`, besides the baseline's own, and as many trials as
    rounds times proposals, each on all validation conversations (MIPROv2's minibatches begin above 50). Its sets of
    demonstrations come from passing train cases, in the layout of the prompt.

    Raises:
        ConfigError: rewrites by hand are given, or dspy or optuna is not installed.
        BudgetExceededError: a hard budget ended it.
    """
    settings = tuning.settings
    if not has_rounds(tuning, "miprov2"):
        return Stopped("rounds")
    import dspy

    from optimizer.published.bootstrap import MOST_SHOWN, drawn_sets
    from optimizer.published.memory_program import MemoryProgram, demo_of, examples_of, score_of, search

    class WithOurDemonstrations(dspy.MIPROv2):  # type: ignore[misc]
        """Does not run the program to collect demonstrations: the baseline's train cases are recorded."""

        def _bootstrap_fewshot_examples(self, program: MemoryProgram, *args: Any, **more: Any) -> dict[int, Any]:
            drawn = random.Random(settings.seed)  # noqa: S311 (a draw, not a secret)
            system = program.system
            sets = [drawn_sets(system.pools, drawn) for _ in range(settings.proposals)]
            return {
                place: [
                    [],
                    *(
                        [
                            dspy.Example(augmented=True, **demo_of(prompt, demonstration))
                            for demonstration in chosen.get(name, ())
                        ]
                        for chosen in sets
                    ),
                ]
                for place, (name, prompt) in enumerate(system.prompts.items())
            }

    def compile_with(program: MemoryProgram, author: dspy.LM) -> None:
        WithOurDemonstrations(
            metric=score_of,
            prompt_model=author,
            task_model=author,
            max_bootstrapped_demos=MOST_SHOWN,
            max_labeled_demos=0,
            auto=None,
            num_candidates=settings.proposals + 1,
            num_threads=1,
            seed=settings.seed,
            track_stats=False,
        ).compile(
            program,
            trainset=examples_of(tuning.train),
            valset=examples_of(tuning.validation),
            num_trials=settings.rounds * settings.proposals,
            minibatch=False,
            # The code of a program that carries prompts says nothing of what they are for; the adapter does.
            program_aware_proposer=False,
        )

    search(tuning, "miprov2", compile_with)
    return Stopped("own", "all trials of MIPROv2 done")
