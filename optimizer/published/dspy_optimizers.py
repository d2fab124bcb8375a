"""DSPy's optimizers on a memory system: COPRO, SIMBA and MIPROv2 (Opsahl-Ong et al. 2024), asking the author."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from optimizer.published.bootstrap import MOST_SHOWN, drawn_sets
from optimizer.tuning.stopped import Stopped
from tracing.llm.dspy_lm import require_dspy

if TYPE_CHECKING:
    import dspy

    from optimizer.proposers.rewrites import Demonstration
    from optimizer.published.memory_program import MemoryProgram
    from optimizer.tuning.tuning import Tuning

MINIBATCH = 32
"""Train conversations of a minibatch of SIMBA: DSPy's own default; all of them if there are fewer."""


def copro(tuning: Tuning) -> Stopped:
    """COPRO: instructions for one prompt after the other, written from those tried and their scores.

    As deep as the loop has rounds and as broad as it has proposals, for each prompt. COPRO chooses on train; the best
    there so far meets validation. It knows no demonstrations, and what it proposes as the end of a prompt is left out.
    """

    def compile_with(program: MemoryProgram, author: dspy.LM) -> None:
        import dspy

        from optimizer.published.memory_program import examples_of, score_of

        settings = tuning.settings
        dspy.COPRO(
            prompt_model=author, metric=score_of, breadth=max(2, settings.proposals), depth=settings.rounds
        ).compile(
            program,
            trainset=examples_of(tuning.train),
            eval_kwargs={"num_threads": 1, "display_progress": False, "display_table": 0},
        )

    return _search(tuning, "copro", compile_with, "all depths of COPRO done")


def simba(tuning: Tuning) -> Stopped:
    """SIMBA: rules from what tells a better run from a worse one, and demonstrations of the better one.

    One step a round, with as many candidates as the loop's `proposals`, and one more. The system answers at its own
    temperature: runs of one candidate are equal, and what varies on a conversation is the candidate. SIMBA chooses on
    train; the best there so far meets validation.
    """

    def compile_with(program: MemoryProgram, author: dspy.LM) -> None:
        import dspy

        from optimizer.published.memory_program import examples_of, score_of

        settings = tuning.settings
        dspy.SIMBA(
            metric=score_of,
            bsize=min(MINIBATCH, len(tuning.train)),
            num_candidates=max(2, settings.proposals),
            max_steps=settings.rounds,
            max_demos=MOST_SHOWN,
            prompt_model=author,
            num_threads=1,
        ).compile(program, trainset=examples_of(tuning.train), seed=settings.seed)

    at_once = len(tuning.train) <= MINIBATCH
    return _search(tuning, "simba", compile_with, "all steps of SIMBA done", at_once=at_once)


def miprov2(tuning: Tuning) -> Stopped:
    """MIPROv2: instructions and demonstrations, chosen jointly by Bayesian optimization.

    As many instructions for each prompt as the loop's `proposals`, besides the baseline's own, and as many trials as
    rounds times proposals, each on all validation conversations (MIPROv2's minibatches begin above 50). Its sets of
    demonstrations come from passing train cases, in the layout of the prompt.
    """

    def compile_with(program: MemoryProgram, author: dspy.LM) -> None:
        import dspy

        from optimizer.published.memory_program import demo_of, examples_of, score_of

        settings = tuning.settings

        class WithOurDemonstrations(dspy.MIPROv2):  # type: ignore[misc]
            """Does not run the program to collect demonstrations: the baseline's train cases are recorded."""

            def _bootstrap_fewshot_examples(self, program: MemoryProgram, *args: Any, **more: Any) -> dict[int, Any]:
                drawn = random.Random(settings.seed)  # noqa: S311 (a draw, not a secret)
                sets = [drawn_sets(program.system.pools, drawn) for _ in range(settings.proposals)]

                def demos(demonstrations: Sequence[Demonstration]) -> list[dspy.Example]:
                    return [dspy.Example(augmented=True, **demo_of(demonstration)) for demonstration in demonstrations]

                return {
                    place: [[], *(demos(chosen.get(name, ())) for chosen in sets)]
                    for place, name in enumerate(program.system.prompts)
                }

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

    return _search(tuning, "miprov2", compile_with, "all trials of MIPROv2 done")


def _search(
    tuning: Tuning,
    name: str,
    compile_with: Callable[[MemoryProgram, dspy.LM], None],
    ending: str,
    *,
    at_once: bool = True,
) -> Stopped:
    if not tuning.settings.rounds:
        return Stopped("rounds")
    require_dspy()
    from optimizer.published.memory_program import search

    search(tuning, name, compile_with, at_once=at_once)
    return Stopped("own", ending)
