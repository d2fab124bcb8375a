"""A bank of instructions keyed by stage and error type: what people write into such prompts, without an author model.

Every text is general (no value, name or phrase of any data set), short (a small model pays for every token), and free
of braces, so it may be anywhere in a template.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optimizer.proposers.examples import Symptom, symptoms_of
from optimizer.proposers.proposals import Proposal, ProposalRequest, is_new
from optimizer.proposers.structure import format_lines, with_format_line
from optimizer.proposers.template import add_instruction, is_fixed, sentences, take_apart

if TYPE_CHECKING:
    from attribution.cases import ErrorType
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


def _extract(
    id_: str, topic: str, text: str, *symptoms: Symptom, also: Sequence[ErrorType] = (), task: bool = False
) -> Instruction:
    return Instruction(id_, topic, "extract", text, frozenset({"ExtractionError", *also}), frozenset(symptoms), task)


def _update(id_: str, topic: str, text: str, errors: Sequence[ErrorType], *symptoms: Symptom) -> Instruction:
    return Instruction(id_, topic, "update", text, frozenset(errors), frozenset(symptoms))


def _answer(id_: str, topic: str, text: str, *symptoms: Symptom) -> Instruction:
    return Instruction(id_, topic, "answer", text, frozenset({"ResponseError"}), frozenset(symptoms))


INSTRUCTIONS: tuple[Instruction, ...] = (
    _extract("x-one", "one", "Write one fact per sentence.", "lost value"),
    _extract("x-two", "one", "When a turn tells two things, write two facts.", "lost value"),
    _extract(
        "x-name",
        "name",
        "Start each fact with the name of the person it is about. Never write I, he, she or they.",
        "nameless facts",
        also=("RetrievalError",),
    ),
    _extract(
        "x-third", "name", "Turn I and my into the name of the speaker.", "nameless facts", also=("RetrievalError",)
    ),
    _extract(
        "x-alone",
        "name",
        "Each fact must be understood alone: name the person and the thing.",
        "nameless facts",
        also=("RetrievalError",),
    ),
    _extract(
        "x-clause",
        "clause",
        "Include facts said in passing, after words like since, which, who or because.",
        "lost value",
    ),
    _extract("x-aside", "clause", "Small remarks in the middle of a sentence are facts too.", "lost value"),
    _extract(
        "x-exact", "exact", "Keep exact names, numbers, colours, foods, places and dates.", "lost value", "lost change"
    ),
    _extract("x-words", "exact", "Use the words of the conversation for every name, number and thing.", "lost value"),
    _extract("x-both", "both", "List facts about every speaker, not only the first.", "lost value"),
    _extract(
        "x-turns",
        "both",
        "Go through the turns one by one and write down every concrete detail.",
        "lost value",
        "lost change",
    ),
    _extract(
        "x-kin", "kin", "For relatives, friends and pets, say whose they are and what they are called.", "lost value"
    ),
    _extract(
        "x-now",
        "change",
        "When something has changed, write what holds now: NAME's THING is now VALUE.",
        "lost change",
        also=("UpdateError",),
    ),
    _extract(
        "x-new",
        "change",
        "Write changes as facts with the word now and the new value.",
        "lost change",
        also=("UpdateError",),
    ),
    _extract(
        "x-forget",
        "forget",
        "When someone takes something back or asks to forget it, write: NAME wants THING forgotten.",
        "lost retraction",
        also=("DeletionError",),
    ),
    _extract(
        "x-drop",
        "forget",
        "A request to forget something is a fact too: write who wants what forgotten.",
        "lost retraction",
        also=("DeletionError",),
    ),
    # A small model copies with fewer mistakes than it rephrases, and what it copies keeps its words.
    _extract(
        "x-copy",
        "task",
        "Copy the sentences in which the speakers tell something, each with the speaker's name in front.",
        "lost value",
        "nameless facts",
        "lost change",
        "lost retraction",
        also=("RetrievalError", "DeletionError"),
        task=True,
    ),
    _extract(
        "x-turn",
        "task",
        "Rewrite each turn as one fact about its speaker, with the speaker's name instead of I.",
        "lost value",
        "nameless facts",
        "lost change",
        also=("RetrievalError",),
        task=True,
    ),
    _extract("x-skip", "skip", "Skip greetings, jokes and opinions."),
    _update(
        "u-same",
        "same",
        "Same person and same thing with a new value: UPDATE that memory.",
        ("UpdateError",),
        "missed update",
    ),
    _update(
        "u-now", "same", "Words like now, instead or no longer point to UPDATE.", ("UpdateError",), "missed update"
    ),
    _update(
        "u-forget",
        "forget",
        "If the fact says that something is to be forgotten: DELETE the memory about that thing.",
        ("DeletionError",),
        "missed delete",
    ),
    _update(
        "u-back",
        "forget",
        "Someone takes something back: DELETE the memory that tells it.",
        ("DeletionError",),
        "missed delete",
    ),
    _update(
        "u-other",
        "other",
        "Different person or different thing: ADD.",
        ("UpdateError", "DeletionError"),
        "wrong overwrite",
    ),
    _update("u-unsure", "other", "If unsure, choose ADD.", ("UpdateError", "DeletionError"), "wrong overwrite"),
    _update(
        "u-check",
        "other",
        "UPDATE only when both the person and the thing are the same. Otherwise ADD.",
        ("UpdateError",),
        "wrong overwrite",
    ),
    _update(
        "u-none", "none", "Choose NONE only when a memory tells exactly the same.", ("UpdateError",), "wrong overwrite"
    ),
    _update(
        "u-id",
        "id",
        "The id is the number in front of the memory about the same person and thing.",
        ("UpdateError", "DeletionError"),
        "missed update",
        "missed delete",
    ),
    _update(
        "u-order",
        "order",
        "Check in this order: to be forgotten, DELETE; same person and thing but new value, UPDATE; "
        "same content, NONE; anything else, ADD.",
        ("UpdateError", "DeletionError"),
        "missed update",
        "missed delete",
        "wrong overwrite",
    ),
    _answer("a-value", "short", "Reply with only the value, in one to four words.", "long reply"),
    _answer(
        "a-bare",
        "short",
        "Do not write a sentence. Write only the name, number, colour, place or thing asked for.",
        "long reply",
    ),
    _answer("a-copy", "copy", "Copy the answer word for word from the memories.", "wrong value", "long reply"),
    _answer(
        "a-recent",
        "recent",
        "When memories disagree, the last change counts: prefer the one that says now.",
        "near miss",
    ),
    _answer("a-latest", "recent", "If a thing has two values, give the new one, not the old one.", "near miss"),
    _answer(
        "a-person", "person", "Use only memories about the person named in the question.", "near miss", "wrong value"
    ),
    _answer(
        "a-whose", "person", "Check whose thing the question asks about before you answer.", "near miss", "wrong value"
    ),
    _answer(
        "a-thing",
        "thing",
        "Use the memory about the very thing asked, not about a similar one.",
        "near miss",
        "wrong value",
    ),
    _answer("a-unknown", "unknown", "If no memory tells the answer, reply: unknown", "missed unknown"),
    _answer(
        "a-forgotten", "forgotten", "If a memory says that it is to be forgotten, reply: unknown", "missed unknown"
    ),
    _answer("a-back", "forgotten", "What a person wants forgotten is unknown.", "missed unknown"),
    _answer(
        "a-known",
        "known",
        "The answer is usually in one of the memories: read them all first.",
        "false unknown",
        "wrong value",
    ),
    _answer(
        "a-try",
        "known",
        "Reply unknown only if no memory mentions what is asked. Otherwise give the value.",
        "false unknown",
    ),
)


def ranked(request: ProposalRequest) -> list[Instruction]:
    """The instructions for the request's stage, best first; topics already in the text are left out.

    An instruction's weight is the number of failed executions with a symptom it treats, plus, at a quarter, the
    failures of an error type it treats. Equal ones are ordered by the request's seed.
    """
    symptoms = Counter(symptom for example in request.failed for symptom in symptoms_of(example, request.stage))
    errors = dict(request.signal.error_types) if request.signal else {}
    present = {
        instruction.topic
        for instruction in INSTRUCTIONS
        if instruction.stage == request.stage and instruction.text in request.text
    }

    def weight(instruction: Instruction) -> float:
        failures = sum(symptoms[symptom] for symptom in instruction.symptoms)
        return failures + 0.25 * sum(errors.get(error, 0) for error in instruction.errors)

    usable = [
        instruction
        for instruction in INSTRUCTIONS
        if instruction.stage == request.stage and instruction.topic not in present
    ]
    random.Random(request.seed).shuffle(usable)  # noqa: S311 (order among equals)
    return sorted(usable, key=lambda instruction: -weight(instruction))


def one_a_topic(instructions: Sequence[Instruction]) -> list[Instruction]:
    """The first wording of each topic."""
    topics: dict[str, Instruction] = {}
    for instruction in instructions:
        topics.setdefault(instruction.topic, instruction)
    return list(topics.values())


def recomposed(template: str, instructions: Sequence[Instruction], markers: Sequence[str] = ()) -> str:
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

    def propose(self, request: ProposalRequest) -> list[Proposal]:
        """At most `request.count` new texts; those that treat the most frequent faults come first."""
        proposals: dict[str, Proposal] = {}
        for text, reason in self._texts(request):
            if len(proposals) == request.count:
                break
            if text not in proposals and is_new(text, request):
                proposals[text] = Proposal(request.prompt.name, text, self.name, reason)
        return list(proposals.values())

    def _texts(self, request: ProposalRequest) -> Iterator[tuple[str, str]]:
        order = ranked(request)
        best = one_a_topic(order)
        markers = request.prompt.contract.markers
        for text in request.prompt.alternatives:
            yield text, "another whole text for the task"
        bundle = best[:3]
        if bundle:
            # Alone first: every further instruction takes some of a small model's attention from the others.
            yield recomposed(request.text, bundle[:1], markers), f"rules rewritten: {bundle[0].id}"
            names = ", ".join(instruction.id for instruction in bundle)
            yield recomposed(request.text, bundle, markers), f"rules rewritten: {names}"
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
            yield (
                recomposed(request.text, group, markers),
                (f"rules rewritten: {', '.join(instruction.id for instruction in group)}"),
            )
