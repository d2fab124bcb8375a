"""A bank of instructions keyed by stage and error type: what people write into such prompts, without an author model.

Every text is general (no value, name or phrase of any data set), short (a small model pays for every token), and free
of braces, so it may be anywhere in a template.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from attribution.cases import ErrorType
from optimizer.proposers.examples import Symptom, symptoms_of
from optimizer.proposers.rewrites import ANOTHER_TEXT, Means, Rewrite, RewriteRequest, new_rewrites
from optimizer.proposers.structure import TEXTS, format_lines, with_format_line
from optimizer.proposers.template import add_instruction, is_fixed, sentences, take_apart
from tracing.systems.protocol import Stage


@dataclass(frozen=True, slots=True)
class Instruction:
    """One wording of one piece of advice.

    Attributes:
        id: short and unique.
        topic: what it is about; a prompt gets at most one wording of a topic.
        stage: the stage it is for.
        text: the sentence or two that goes into the prompt.
        errors: error types it treats.
        symptoms: visible faults it treats, which decide between instructions for the same error type.
        task: whether it states the whole task, and so replaces the prompt's first sentence.
    """

    id: str
    topic: str
    stage: Stage
    text: str
    errors: frozenset[ErrorType]
    symptoms: frozenset[Symptom] = frozenset()
    task: bool = False


INSTRUCTIONS = TypeAdapter(tuple[Instruction, ...]).validate_python(TEXTS["instructions"])


def ranked_instructions(request: RewriteRequest) -> list[Instruction]:
    """The instructions for the request's stage, best first; topics already in the text are left out.

    An instruction's weight is the number of failed executions with a symptom it treats, plus, at a quarter, the
    failures of an error type it treats. Equal ones are ordered by the request's seed.
    """
    symptoms = Counter(symptom for example in request.failed for symptom in symptoms_of(example, request.stage))
    errors = dict(request.signal.error_types) if request.signal else {}
    for_stage = [instruction for instruction in INSTRUCTIONS if instruction.stage == request.stage]
    present = {instruction.topic for instruction in for_stage if instruction.text in request.text}

    def weight(instruction: Instruction) -> float:
        failures = sum(symptoms[symptom] for symptom in instruction.symptoms)
        return failures + 0.25 * sum(errors.get(error, 0) for error in instruction.errors)

    usable = [instruction for instruction in for_stage if instruction.topic not in present]
    random.Random(request.seed).shuffle(usable)  # noqa: S311 (order among equals)
    return sorted(usable, key=lambda instruction: -weight(instruction))


def first_of_each_topic(instructions: Sequence[Instruction]) -> list[Instruction]:
    """The first wording of each topic."""
    topics: dict[str, Instruction] = {}
    for instruction in instructions:
        topics.setdefault(instruction.topic, instruction)
    return list(topics.values())


def with_rules_replaced(template: str, instructions: Sequence[Instruction], markers: Sequence[str] = ()) -> str:
    """The template with its first sentence, what the contract asks for, and these instructions instead of others.

    An instruction that states the whole task comes first and replaces the first sentence too.
    """
    parts = take_apart(template)
    rules = sentences(parts.instructions, markers)
    ordered = sorted(instructions, key=lambda instruction: not instruction.task)
    says_task = any(instruction.task for instruction in ordered)
    task = [rule for rule in rules[:1] if not is_fixed(rule, markers) and not says_task]
    fixed = [rule for rule in rules if is_fixed(rule, markers)]
    forms = [rule for rule in fixed if "{" in rule]
    named = [rule for rule in fixed if "{" not in rule]
    return parts.with_instructions([*task, *named, *(instruction.text for instruction in ordered), *forms]).text


class BankProposer:
    """The prompt's alternatives, and instructions from the bank: the best for all rules, a bundle, each added alone."""

    name = "bank"

    def propose(self, request: RewriteRequest) -> list[Rewrite]:
        """At most `request.count` new texts; those that treat the most frequent faults come first."""
        return new_rewrites(request, self.name, self._texts(request))

    def _texts(self, request: RewriteRequest) -> Iterator[tuple[str, str]]:
        order = ranked_instructions(request)
        best = first_of_each_topic(order)
        markers = request.prompt.contract.markers
        for text in request.prompt.alternatives:
            yield text, ANOTHER_TEXT
        bundle = best[:3]
        if bundle:
            # Alone first: every further instruction takes some of a small model's attention from the others.
            yield with_rules_replaced(request.text, bundle[:1], markers), f"rules rewritten: {bundle[0].id}"
            names = ", ".join(instruction.id for instruction in bundle)
            yield with_rules_replaced(request.text, bundle, markers), f"rules rewritten: {names}"
            added = request.text
            for instruction in bundle:
                added = add_instruction(added, instruction.text)
            yield added, f"instructions added: {names}"
            for line in format_lines(request)[:1]:
                closed = with_format_line(add_instruction(request.text, bundle[0].text), line)
                if closed:
                    yield closed, f"instruction added: {bundle[0].id}; a closing format line"
        for instruction in order:
            yield add_instruction(request.text, instruction.text), f"instruction added: {instruction.id}"
        for start in range(1, max(len(best) - 2, 1)):
            group = best[start : start + 3]
            names = ", ".join(instruction.id for instruction in group)
            yield with_rules_replaced(request.text, group, markers), f"rules rewritten: {names}"


def bank(means: Means) -> BankProposer:
    """Instructions from the bank."""
    return BankProposer()
