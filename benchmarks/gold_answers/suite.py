"""Drawing the benchmark's cases: gold answers of which some are spoiled, each with a reply that was judged wrong."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attribution.cases import Case
from attribution.judging.words import judge_reply
from attribution.recordings import Recording
from benchmarks.gold_answers.shifted_dates import moved_time, shifted
from benchmarks.gold_answers.spoiling import (
    NOT_MENTIONED,
    SPOILINGS,
    SpoilableTalk,
    Spoiled,
    Spoiling,
    can_be_spoiled,
    spoiled,
)
from experiments.data.data_check import dataset_name_of
from experiments.data.datasets import LOCOMO, SAMPLE, conversations_of
from experiments.data.published.locomo import CATEGORIES, reader_of
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, trace, variable
from tracing.systems.conversations import Conversation, Question
from tracing.systems.protocol import OperationSpec

Part = Literal["development", "held-out"]

_OPERATIONS = (OperationSpec("answer", "answer", "answer"),)
_TRUE_REPLIES = 2 / 3
_QUESTIONS_A_KIND = 16
_NEARBY = 2


@dataclass(frozen=True, slots=True)
class AnnotatedCase:
    """A wrong answer whose annotation is known to be spoiled, or taken to be sound.

    Attributes:
        case: with the annotation as the method is given it.
        recording: of a memory that was given the turns around the evidence.
        spoiling: how it was spoiled; None if it was not.
    """

    case: Case
    recording: Recording
    spoiling: Spoiling | None


def conversations_to_spoil(data: Path | None, dataset: str | None) -> list[Conversation]:
    """The conversations of a data set; without one, those of the sample that are not sealed.

    Args:
        data: file or folder; None for a data set that needs none.
        dataset: its name; None for what `data` is recognised as, or the sample.

    Raises:
        DataError, ConfigError: it cannot be read; the name is not one of a data set.
    """
    if data is None:
        return [one for one in conversations_of(dataset or SAMPLE, None) if one.split != "sealed"]
    name = dataset or dataset_name_of(data)
    # Adversarial questions name a wrong answer, which makes them annotations of another speaker or a false premise.
    return list(reader_of(CATEGORIES)(data)) if name == LOCOMO else conversations_of(name, data)


def part_of(conversations: Sequence[Conversation], part: Part) -> list[Conversation]:
    """The conversations of a part: every second one in the order of their ids, the first being held out."""
    ordered = sorted(conversations, key=lambda one: one.id)
    return ordered[1::2] if part == "development" else ordered[::2]


def annotated_cases(conversations: Sequence[Conversation], *, seed: int) -> list[AnnotatedCase]:
    """The cases of these conversations; equal seeds give equal cases.

    Of each conversation one question in sixteen, or one, is spoiled in each way (of small ones, in one way each by
    turns). All others that have an answer and evidence are sound. Two spoiled answers of three get the reply that the
    conversation supports; all other replies are wrong.
    """
    made: list[AnnotatedCase] = []
    for at, conversation in enumerate(conversations):
        donors = [question for other in conversations if other is not conversation for question in other.questions]
        source = SpoilableTalk(conversation, donors)
        chance = random.Random(f"{seed} {conversation.id}")  # noqa: S311 - a choice of examples, no secret
        found = dict(_spoiled(source, at, chance))
        asked: list[tuple[Question, str, Spoiling | None, tuple[str, ...]]] = []
        for question in conversation.questions:
            if question.id in found:
                kind, one = found[question.id]
                true = chance.random() < _TRUE_REPLIES
                reply = one.truth if true else _wrong(one.question, conversation, chance)
                asked.append((one.question, reply, kind, (*question.evidence, *one.question.evidence)))
            elif question.evidence and not question.unanswerable:
                asked.append((question, _wrong(question, conversation, chance), None, question.evidence))
        made += _recorded(conversation, asked)
    return made


def _spoiled(source: SpoilableTalk, at: int, chance: random.Random) -> Iterable[tuple[str, tuple[Spoiling, Spoiled]]]:
    questions = list(source.conversation.questions)
    chance.shuffle(questions)
    usable = sum(map(can_be_spoiled, questions))
    each = usable // _QUESTIONS_A_KIND
    wanted = dict.fromkeys(SPOILINGS, each) if each else {SPOILINGS[at % len(SPOILINGS)]: 1}
    used: set[str] = set()
    for kind, count in wanted.items():
        for question in questions:
            if not count:
                break
            if question.id in used:
                continue
            one = spoiled(kind, question, source, chance)
            if one is not None:
                used.add(question.id)
                count -= 1
                yield question.id, (kind, one)


def _wrong(question: Question, conversation: Conversation, chance: random.Random) -> str:
    """A wrong reply: not known, a near miss, another date, who or when it was not, or another answer."""
    others = [
        other.answers[0] for other in conversation.questions if other.id != question.id and not other.unanswerable
    ]
    near = question.near_miss.value if question.near_miss else None
    moved = shifted(question.answers[0], chance)
    named = SpoilableTalk(conversation, ()).named(question.question)
    other = next((name for name in conversation.speakers if named and name not in named), None)
    other_time = moved_time(shifted(question.question, chance) or "")
    corrections = [f"It was {what}." for what in (other, other_time) if what is not None]
    options = [
        NOT_MENTIONED,
        *(one for one in (near, moved) if one),
        *corrections,
        *chance.sample(others, min(2, len(others))),
    ]
    return chance.choice(options)


def _recorded(
    conversation: Conversation, asked: Iterable[tuple[Question, str, Spoiling | None, tuple[str, ...]]]
) -> list[AnnotatedCase]:
    """The cases with a graph: the messages, and each answer given from those around the evidence."""
    cases: list[tuple[Case, Spoiling | None]] = []
    with trace(prefix="") as recorder:
        turns = list(conversation.turns())
        place = {turn.id: at for at, turn in enumerate(turns)}
        messages = [variable(turn.spoken, name=turn.id, kind="message") for turn in turns]
        for question, reply, kind, evidence in asked:
            shown = sorted(
                {
                    near
                    for turn in evidence
                    for near in range(max(0, place[turn] - _NEARBY), min(len(turns), place[turn] + _NEARBY + 1))
                }
            )
            with session(question.id):
                query = variable(question.question, name=question.id, kind="query")
                context = [messages[near] for near in shown]
                with operation("answer", kind="llm", inputs={"query": query, "context": context}) as op:
                    prediction = op.output("prediction", reply, kind="prediction")
            judgement = judge_reply(question, reply)
            if judgement.score == 0:
                cases.append((Case(conversation.id, question, reply, judgement, prediction.id), kind))
    recording = Recording(recorder.graph, conversation, _OPERATIONS)
    return [AnnotatedCase(case, recording, kind) for case, kind in cases]
