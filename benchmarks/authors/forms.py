"""The ways in which authors are asked for texts: our own, and those of published optimizers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from benchmarks.phases import Phases
from optimizer.evaluation.scores import Splits
from optimizer.proposers.author import CASES_SHOWN, Author
from optimizer.proposers.bank import BankProposer
from optimizer.proposers.reflection import ReflectionProposer
from optimizer.proposers.turns import going_round
from optimizer.proposers.whole_rewrites import Reflector, record_of, request_for, rewritten
from optimizer.published.bootstrap import drawn_sets
from optimizer.published.carried_prompt import CarriedPrompt
from optimizer.tuning.results import LoopSettings
from optimizer.tuning.tuning import Tuning
from tracing.errors import BudgetExceededError, in_one_line
from tracing.recording.operations import operation
from tracing.recording.redaction import excerpt
from tracing.recording.trace_context import trace

if TYPE_CHECKING:
    import dspy

    from benchmarks.authors.langmem_optimizers import Kind
    from optimizer.evaluation.evaluator import Evaluator, Outcome
    from optimizer.objectives.objective import Objective
    from optimizer.proposers.rewrites import RewriteRequest
    from optimizer.published.memory_program import MemoryProgram
    from optimizer.tuning.failures import Failures
    from tracing.systems.prompts import PromptSpec

_LONGEST_REASON = 80


class Draft(NamedTuple):
    """A text that an author wrote.

    Attributes:
        text: the whole prompt.
        reason: what was changed, where that is told.
        problems: what makes it unusable, besides its contract.
    """

    text: str
    reason: str = ""
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the baseline did: the author learns from `shown`, and its texts are measured on inputs of `unseen`.

    Attributes:
        prompts: name → the prompt, with the contract that texts have in a run that learns from `shown`.
        failures: the attributions of wrong answers.
    """

    evaluator: Evaluator
    prompts: Mapping[str, PromptSpec]
    objectives: Mapping[str, Objective]
    shown: Sequence[Outcome]
    unseen: Sequence[Outcome]
    failures: Failures


def _lines(recorded: Recorded, request: RewriteRequest) -> Iterator[Draft]:
    return itertools.starmap(Draft, ReflectionProposer(recorded.evaluator.access.proposer).texts(request))


def _bank(recorded: Recorded, request: RewriteRequest) -> Iterator[Draft]:
    return (Draft(rewrite.text, rewrite.reason) for rewrite in BankProposer().propose(request))


def _whole(recorded: Recorded, request: RewriteRequest) -> Iterator[Draft]:
    for reflector, failures in _reflections(recorded, request):
        yield Draft(rewritten(reflector, request.text, request_for(request.prompt), failures))


def _gepa(recorded: Recorded, request: RewriteRequest) -> Iterator[Draft]:
    """As `optimizer.published.plain_gepa` asks: gepa's own request for an instruction, and the contract."""
    from gepa.strategies.instruction_proposal import InstructionProposalSignature

    carried = CarriedPrompt(request.prompt, request.text)
    template = f"{InstructionProposalSignature.default_prompt_template}\n\n{carried.request}"
    for reflector, failures in _reflections(recorded, request):
        yield _carried(carried, rewritten(reflector, carried.instruction, template, failures))


def _reflections(recorded: Recorded, request: RewriteRequest) -> Iterator[tuple[Reflector, list[Mapping[str, Any]]]]:
    reflector = Reflector(Author(recorded.evaluator.access.proposer), request.seed)
    return ((reflector, failures) for failures in _shown(request))


def _shown(request: RewriteRequest) -> Iterator[list[Mapping[str, Any]]]:
    """As many requests as texts are wanted, each with other failures."""
    for number in range(request.count if request.failed else 0):
        yield list(map(record_of, going_round(request.failed, number * CASES_SHOWN, CASES_SHOWN)))


def _langmem(kind: Kind, recorded: Recorded, request: RewriteRequest) -> Iterator[Draft]:
    """As LangMem's prompt optimizers ask, with what GEPA is shown; the contract is their instruction for updates."""
    from benchmarks.authors.langmem_optimizers import optimized

    carried, author = CarriedPrompt(request.prompt, request.text), recorded.evaluator.access.proposer
    for number, failures in enumerate(_shown(request), 1):
        try:
            with trace(), operation("reflect", kind="llm"):  # the meter counts by operation
                sample = request.seed * 1000 + number
                instruction = optimized(author, kind, carried.instruction, carried.request, failures, sample=sample)
        except BudgetExceededError:
            raise
        except Exception as error:
            # LangMem raises what it cannot use, in whatever form that fails first.
            yield Draft("", problems=[f"no text: {excerpt(in_one_line(error), _LONGEST_REASON)}"])
        else:
            yield _carried(carried, instruction)


def _miprov2(recorded: Recorded, request: RewriteRequest) -> Iterator[Draft]:
    """As `optimizer.published.dspy_optimizers` asks, without its search: instructions of MIPROv2's proposer."""
    import dspy
    from dspy.propose import GroundedProposer

    from optimizer.published.memory_program import demo_of, examples_of, search

    evaluator, name = recorded.evaluator, request.prompt.name
    train, validation = (tuple(outcome.conversation for outcome in part) for part in (recorded.shown, recorded.unseen))
    tuning = Tuning(
        evaluator,
        Splits(train, validation, ()),
        request.candidate,
        LoopSettings(seed=request.seed, tune=(name,)),
        evaluator.access,
        recorded.failures,
        cast("Any", None),
        Phases(lambda *progress: None, ""),
    )
    instructions: list[str] = []

    def propose(program: MemoryProgram, author: dspy.LM) -> None:
        drawn = random.Random(request.seed)  # noqa: S311 (a draw, not a secret)
        sets = [drawn_sets(program.system.pools, drawn).get(name, ()) for _ in range(request.count - 1)]
        shown = [
            [dspy.Example(augmented=True, **demo_of(chosen)) for chosen in demonstrations] for demonstrations in sets
        ]
        examples = examples_of(train)
        proposer = GroundedProposer(
            author,
            program,
            examples,
            program_aware=False,
            use_instruct_history=False,
            set_history_randomly=False,
            rng=drawn,
        )
        proposed = proposer.propose_instructions_for_program(
            examples, program, {0: [[], *shown]}, trial_logs={}, N=request.count
        )
        instructions.extend(proposed[0])

    search(tuning, "miprov2", propose)
    carried = CarriedPrompt(request.prompt, request.text)
    return (_carried(carried, instruction) for instruction in instructions)


def _carried(carried: CarriedPrompt, instruction: str) -> Draft:
    return Draft(carried.text(instruction), problems=carried.problems(instruction))


FORMS: Mapping[str, Callable[[Recorded, RewriteRequest], Iterator[Draft]]] = {
    "lines": _lines,
    "whole": _whole,
    "gepa": _gepa,
    "miprov2": _miprov2,
    "langmem-metaprompt": partial(_langmem, "metaprompt"),
    "langmem-gradient": partial(_langmem, "gradient"),
    "langmem-prompt-memory": partial(_langmem, "prompt_memory"),
    "bank": _bank,
}
"""Changes of lines and whole templates as the product asks for them, instructions of GEPA, of MIPROv2 and of LangMem's
three optimizers, and the lines that people wrote, without an author. Each is asked when the next text is wanted."""
