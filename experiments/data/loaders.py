"""Data sets by name, cut to size and split into train, validation and test conversations."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

from experiments.data.data_settings import DataLimits, DataSettings
from experiments.data.dataset_reader import Progress, Reading, omission_lines
from experiments.data.datasets import LOCOMO, checked, conversations_of
from experiments.data.published.locomo import reader_of
from experiments.data.splits import FEWEST, assign_splits
from optimizer.evaluation.scores import Splits
from tracing.errors import DataError
from tracing.systems.conversations import Conversation, Question


@dataclass(frozen=True, slots=True)
class Dataset:
    """The conversations of a data set by their use in a run, and a line for each kind of thing left out."""

    splits: Splits
    notes: tuple[str, ...]


def load_dataset(config: DataSettings, *, progress: Progress | None = None) -> Dataset:
    """The data set of `config`, cut to its limits, never with conversations of the split `sealed`.

    Raises:
        DataError: the file is unusable, or leaves fewer than three conversations with questions.
    """
    reading = Reading(progress=progress)
    conversations = read_dataset(config, reading)
    if not any(conversation.questions for conversation in conversations):
        raise DataError(f"{_where(config)}: {no_questions(config.dataset, config.data)}")
    splits = assign_splits(conversations, where=_where(config))
    cut = limit_conversations(splits, config.limits.conversations)
    unasked = {c.id for c in conversations if not c.questions and c.split != "sealed"}
    dropped = Counter({"conversations without questions": len(unasked)})
    used_ids = {conversation.id for conversation in (*cut.train, *cut.validation, *cut.test)}
    unused_ids = {conversation.id for conversation in conversations} - used_ids - unasked
    for name, left_out in reading.omissions.items():
        if name not in unused_ids:
            dropped.update(left_out)

    def shortened(group: Sequence[Conversation]) -> tuple[Conversation, ...]:
        shortened_conversations = [shorten(conversation, config.limits, dropped) for conversation in group]
        return tuple(conversation for conversation in shortened_conversations if conversation.questions)

    tested = [_confirmed(conversation, dropped) for conversation in cut.test]
    result = Splits(shortened(cut.train), shortened(cut.validation), shortened(tested))
    for name, group in result.named().items():
        if not group and name == "test" and dropped[_UNCONFIRMED]:
            raise DataError(
                f"{_where(config)}: a test on questions that were generated and that nobody has confirmed proves "
                f"nothing, and the test split has {dropped[_UNCONFIRMED]} of these and no other; confirm some first: "
                f"memtune data review {shlex.quote(str(config.data))}"
            )
        if not group:
            raise DataError(
                f"{_where(config)}: no question is left in the {name} split; "
                "raise --limit-sessions or --limit-questions"
            )
    return Dataset(result, (*omission_lines(dropped), *_generated(result)))


def _generated(splits: Splits) -> list[str]:
    """How much of the data no person wrote."""
    questions = [question for group in splits.named().values() for c in group for question in c.questions]
    generated = [question for question in questions if question.source == "generated"]
    confirmed = sum(not question.unconfirmed for question in generated)
    share = f"{len(generated):,} of {len(questions):,} questions ({len(generated) / len(questions):.0%})"
    return [f"{share} were generated, {confirmed:,} of them confirmed by people"] if generated else []


_UNCONFIRMED = "generated questions of the test that nobody has confirmed"


def _confirmed(conversation: Conversation, dropped: Counter[str]) -> Conversation:
    """A conversation without the generated questions that nobody has confirmed, which are counted."""
    questions = tuple(question for question in conversation.questions if not question.unconfirmed)
    dropped[_UNCONFIRMED] += len(conversation.questions) - len(questions)
    return conversation.model_copy(update={"questions": questions})


def no_questions(dataset: str, data: Path | None) -> str:
    """What to do with conversations that have no questions: the command that lets a model draft them."""
    source = dataset if data is None else f"{shlex.quote(str(data))} --dataset {dataset}"
    return (
        "has conversations and no question, which a run needs; write some (docs/data-format.md), or let a model draft "
        f"them (docs/generating.md): memtune data generate {source} --out questions.jsonl"
    )


def read_dataset(config: DataSettings, reading: Reading) -> list[Conversation]:
    """Every conversation of the data set of `config`, neither split nor cut."""
    if config.dataset == LOCOMO:
        return checked(reader_of(config.locomo.categories).read(config.data, reading), f"dataset: {LOCOMO!r}")
    return conversations_of(config.dataset, config.data, reading)


def load_sealed(config: DataSettings) -> tuple[Conversation, ...]:
    """The sealed conversations of a data set, whole: only for a last, single scoring of prompts that are final.

    Raises:
        DataError: the data set has none with a question that counts.
    """
    sealed = [conversation for conversation in read_dataset(config, Reading()) if conversation.split == "sealed"]
    asked = [conversation for conversation in sealed if conversation.questions]
    confirmed = [_confirmed(conversation, Counter()) for conversation in asked]
    if usable := tuple(conversation for conversation in confirmed if conversation.questions):
        return usable
    if asked:
        raise DataError(
            f"{_where(config)}: its sealed questions were generated and nobody has confirmed them; confirm some first: "
            f"memtune data review {shlex.quote(str(config.data))}"
        )
    if sealed:
        raise DataError(f"{_where(config)}: its sealed part {no_questions(config.dataset, config.data)}")
    raise DataError(
        f'{_where(config)}: has no sealed conversations; leave out --sealed, or give conversations the split "sealed"'
    )


def limit_conversations(splits: Splits, limit: int | None) -> Splits:
    """At most `limit` conversations in all, taken in turn from train, validation and test, each from its start.

    Raises:
        DataError: the limit leaves a split empty.
    """
    if limit is None:
        return splits
    if limit < FEWEST:
        raise DataError(f"--limit-conversations {limit}: at least {FEWEST} are needed for train, validation and test")
    groups = splits.named()
    in_turn = zip_longest(*([name] * len(group) for name, group in groups.items()))
    room = Counter(list(filter(None, chain.from_iterable(in_turn)))[:limit])
    return Splits(splits.train[: room["train"]], splits.validation[: room["validation"]], splits.test[: room["test"]])


def shorten(conversation: Conversation, limits: DataLimits, dropped: Counter[str] | None = None) -> Conversation:
    """The first `limits.sessions` sessions, with `limits.questions` of the questions that they can answer.

    A question stays only if all its evidence does, and the session that it is asked after; one without evidence only
    if no session is cut, since otherwise it may be unanswerable. If more questions remain than allowed, they are taken
    evenly over the file's order, so that no category is lost by its position. `dropped` counts the questions left out,
    by reason.
    """
    sessions = conversation.sessions[: limits.sessions]
    turns = {turn.id for session in sessions for turn in session.turns}
    cut = len(sessions) < len(conversation.sessions)

    def answerable(question: Question) -> bool:
        return turns.issuperset(question.evidence) and bool(question.evidence or not cut)

    def asked(question: Question) -> bool:
        return question.after_session is None or conversation.sessions_before(question) <= len(sessions)

    in_time = [question for question in conversation.questions if asked(question)]
    usable = [question for question in in_time if answerable(question)]
    count = len(usable) if limits.questions is None else min(limits.questions, len(usable))
    chosen = [usable[place * len(usable) // count] for place in range(count)]
    if dropped is not None:
        dropped["questions asked after sessions cut off"] += len(conversation.questions) - len(in_time)
        dropped["questions whose evidence lies in sessions cut off"] += len(in_time) - len(usable)
        dropped["questions over --limit-questions"] += len(usable) - len(chosen)
    facts = tuple(fact for fact in conversation.facts if fact.turn in turns)
    fact_ids = {fact.id for fact in facts}
    questions = tuple(_within(question, turns, fact_ids) for question in chosen)
    return conversation.model_copy(update={"sessions": sessions, "facts": facts, "questions": questions})


def _within(question: Question, turns: set[str], facts: set[str]) -> Question:
    near = question.near_miss if question.near_miss and question.near_miss.turn in turns else None
    return question.model_copy(update={"near_miss": near, "fact": question.fact if question.fact in facts else None})


def _where(config: DataSettings) -> str:
    return str(config.data) if config.data is not None else f"data set {config.dataset!r}"
