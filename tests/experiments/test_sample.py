"""The bundled sample is what its description says, and its splits share no names, values or sentence patterns."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import experiments
from tracing.systems.conversations import Conversation, Question, read_conversations

SIZES = {"train": 13, "validation": 11, "test": 32, "sealed": 22}
FOLDER = Path(experiments.__file__).parent / "sample"
SAMPLE = {split: read_conversations(FOLDER / f"{split}.jsonl") for split in SIZES}
RUN = 7
"""Words in a row that two splits must not share; shorter ones are idiom."""

each_split = pytest.mark.parametrize("split", SIZES)
each_pair = pytest.mark.parametrize(("one", "other"), list(itertools.combinations(SIZES, 2)))


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def plain(value: str) -> str:
    return " ".join(word for word in words(value) if word not in ("a", "an", "the"))


def within(value: str, text: str) -> bool:
    return f" {plain(value)} " in f" {plain(text)} "


def questions(split: str) -> Iterator[tuple[Conversation, Question]]:
    return ((conversation, question) for conversation in SAMPLE[split] for question in conversation.questions)


@each_split
def test_every_split_has_its_size(split: str) -> None:
    assert len(SAMPLE[split]) == SIZES[split]
    assert {conversation.split for conversation in SAMPLE[split]} == {split}
    assert {len(conversation.questions) for conversation in SAMPLE[split]} == {10}


def test_ids_are_unique_across_splits() -> None:
    ids = Counter(question.id for split in SIZES for _, question in questions(split))
    ids.update(conversation.id for split in SIZES for conversation in SAMPLE[split])
    assert [name for name, times in ids.items() if times > 1] == []


@each_split
def test_conversations_are_two_or_three_short_sessions_of_two_speakers(split: str) -> None:
    for conversation in SAMPLE[split]:
        assert len(conversation.sessions) in (2, 3), conversation.id
        assert len(conversation.speakers) == 2, conversation.id
        for session in conversation.sessions:
            assert len(session.turns) <= 8, (conversation.id, session.id)
            assert {turn.speaker for turn in session.turns} == set(conversation.speakers), (conversation.id, session.id)


@each_split
def test_answers_are_one_to_four_words(split: str) -> None:
    long = [(q.id, answer) for _, q in questions(split) for answer in q.answers if not 1 <= len(answer.split()) <= 4]
    assert long == []


@each_split
def test_much_changes_and_little_is_about_time(split: str) -> None:
    kinds = Counter(question.kind for _, question in questions(split))
    assert set(kinds) == {"stable", "updated", "deleted", "temporal"}
    assert (kinds["updated"] + kinds["deleted"]) / kinds.total() >= 0.25
    assert kinds["temporal"] / kinds.total() <= 0.10


@each_split
def test_the_evidence_tells_the_answer_and_the_question_does_not(split: str) -> None:
    for conversation, question in questions(split):
        said = {turn.id: turn.text for turn in conversation.turns()}
        assert question.evidence, question.id
        if not question.unanswerable:
            told = " ".join(said[turn] for turn in question.evidence)
            assert any(within(answer, told) for answer in question.answers), question.id
            assert not any(within(answer, question.question) for answer in question.answers), question.id


@each_split
def test_every_question_has_a_near_miss_that_is_said_and_wrong(split: str) -> None:
    for conversation, question in questions(split):
        near = question.near_miss
        assert near is not None, question.id
        said = {turn.id: turn.text for turn in conversation.turns()}
        assert within(near.value, said[near.turn]), question.id
        for answer in question.answers:
            assert not within(near.value, answer), question.id
            assert not within(answer, near.value), question.id


@each_split
def test_what_was_deleted_is_unknown(split: str) -> None:
    for conversation, question in questions(split):
        fact = next(fact for fact in conversation.facts if fact.id == question.fact)
        assert (question.unanswerable) == (fact.action == "delete"), question.id
        assert ("unknown" in question.answers) == (question.unanswerable), question.id


@each_split
def test_questions_ask_what_holds_at_the_end(split: str) -> None:
    for conversation, question in questions(split):
        superseded = {fact.of for fact in conversation.facts}
        assert question.fact not in superseded, question.id


@each_pair
def test_no_speaker_is_named_in_another_split(one: str, other: str) -> None:
    def named(split: str) -> set[str]:
        return {word for c in SAMPLE[split] for turn in c.turns() for word in words(f"{turn.speaker} {turn.text}")}

    def speakers(split: str) -> set[str]:
        return {speaker.lower() for conversation in SAMPLE[split] for speaker in conversation.speakers}

    assert speakers(one) & named(other) == set()
    assert speakers(other) & named(one) == set()


@each_pair
def test_no_answer_is_right_in_two_splits(one: str, other: str) -> None:
    def values(split: str) -> set[str]:
        return {plain(answer) for _, q in questions(split) if not q.unanswerable for answer in q.answers}

    assert values(one) & values(other) == set()


@each_pair
def test_no_question_is_asked_in_the_same_pattern(one: str, other: str) -> None:
    assert _shared(one, other, lambda split: (_pattern(c, q) for c, q in questions(split))) == set()


@each_pair
def test_no_run_of_words_is_said_in_two_splits(one: str, other: str) -> None:
    def runs(split: str) -> Iterator[str]:
        for conversation in SAMPLE[split]:
            for turn in conversation.turns():
                said = words(turn.text)
                yield from (" ".join(said[start : start + RUN]) for start in range(len(said) - RUN + 1))

    assert _shared(one, other, runs) == set()


def _shared(one: str, other: str, texts: Callable[[str], Iterator[str]]) -> set[str]:
    return set(texts(one)) & set(texts(other))


def _pattern(conversation: Conversation, question: Question) -> str:
    """The question with every name masked, whether a speaker's or another's."""
    tokens = re.findall(r"[\w'’]+", question.question)
    names = set(conversation.speakers)
    masked = [
        "_" if (place and token[0].isupper()) or re.sub(r"['’]s$", "", token) in names else token.lower()
        for place, token in enumerate(tokens)
    ]
    return " ".join(masked)
