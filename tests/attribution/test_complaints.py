"""Complaints alone: what the reply asserts is wrong, so who says it tells where to look and how sure a verdict is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from scripted_memory import RAG, ScriptedMemory

from attribution.cases import Blame
from attribution.failures import NOT_KNOWN
from attribution.survival.survival_method import Survival
from benchmarks.labelled_cases import as_complaints
from benchmarks.labelled_suites import load_suite
from tracing.systems.conversations import Conversation, Question

LABELLED = Path(__file__).parents[3] / "shared/data/memeval"
SAID = (
    "My sister Agata adopted a grey parrot last week.",
    "The bus was late again.",
    "Agata calls the parrot Bruno.",
    "It rains a lot here.",
    "My neighbour has a cat named Minka.",
)


def talk() -> Conversation:
    turns = [{"id": f"D1:{at}", "speaker": ("Mara", "Ilya")[at % 2], "text": text} for at, text in enumerate(SAID)]
    session = {"id": "D1", "time": "2024-05-01", "turns": turns}
    return Conversation.model_validate({"id": "mara", "speakers": ["Mara", "Ilya"], "sessions": [session]})


def blamed(facts: dict[str, str], hits: list[str], reply: str, asked: str = "What is Agata's parrot called?") -> Blame:
    question = Question(id="q", question=asked, answers=(NOT_KNOWN,))
    with ScriptedMemory(talk()) as memory:
        for turn, fact in facts.items():
            memory.remember((turn,), fact)
        return memory.blame(memory.answer(question, hits, reply))


TOLD = {"D1:0": "Agata adopted a grey parrot.", "D1:2": "Agata calls the parrot Bruno.", "D1:4": "Minka is a cat."}


def test_what_the_memory_says_and_nobody_said_was_garbled_where_it_was_first_said() -> None:
    blame = blamed(TOLD | {"D1:2": "Agata calls the parrot Oswald."}, ["m2"], "Oswald")
    assert (blame.operation, blame.error_type) == ("extract_facts", "ExtractionError")
    assert blame.confidence >= 0.8
    assert "nobody said 'Oswald'" in blame.reason


def test_a_store_that_wrote_what_its_fact_does_not_say_garbled_it() -> None:
    question = Question(id="q", question="What is Agata's parrot called?", answers=(NOT_KNOWN,))
    with ScriptedMemory(talk()) as memory:
        (fact,) = memory.extract(("D1:2",), ["Agata calls the parrot Bruno."])
        memory.store(fact, write="Agata calls the parrot Oswald.")
        blame = memory.blame(memory.answer(question, ["m1"], "Oswald"))
    assert (blame.operation, blame.error_type) == ("store", "UpdateError")


def test_a_chunk_that_was_changed_is_told_by_the_reply_alone() -> None:
    question = Question(id="q", question="What is Agata's parrot called?", answers=(NOT_KNOWN,))
    with ScriptedMemory(talk(), RAG) as memory:
        memory.chunk(("D1:0", "D1:1"))
        memory.chunk(("D1:2", "D1:3"), "Mara: Agata calls the parrot Oswald.\nIlya: It rains a lot here.")
        blame = memory.blame(memory.answer(question, ["m2"], "Oswald"))
    assert (blame.operation, blame.error_type) == ("chunk", "ExtractionError")


def test_what_nothing_in_the_context_says_was_made_up() -> None:
    blame = blamed(TOLD, ["m1", "m2"], "Rumpelstiltskin")
    assert (blame.operation, blame.error_type) == ("answer", "ResponseError")
    assert "nothing that answer was given" in blame.reason


def test_the_turn_that_says_the_wrong_reply_is_not_the_one_that_was_needed() -> None:
    blame = blamed(TOLD, ["m3"], "Minka", "What is the name of the pet that Agata calls hers?")
    assert blame.error_type in ("RetrievalError", "ExtractionError")
    assert "Minka" not in blame.reason.replace("but the reply is 'Minka'", "")


def test_an_answer_that_does_not_know_is_not_blamed_for_a_context_on_the_subject() -> None:
    blame = blamed(TOLD | {"D1:2": "Agata calls the parrot something nice."}, ["m2"], "I don't know")
    assert "does not tell it" in blame.reason
    assert blame.error_type == "ExtractionError"


def test_confidence_varies_with_what_was_seen() -> None:
    garbled = blamed(TOLD | {"D1:2": "Agata calls the parrot Oswald."}, ["m2"], "Oswald")
    missed = blamed(TOLD, ["m3"], "I don't know")
    told = blamed(TOLD, ["m1", "m2", "m3"], "Minka")
    assert len({garbled.confidence, missed.confidence, told.confidence}) == 3
    assert garbled.confidence > missed.confidence > told.confidence


@pytest.mark.skipif(not LABELLED.is_dir(), reason="the labelled data are not here")
def test_on_labelled_failures_complaints_alone_are_right_more_often_than_the_most_frequent_type() -> None:
    cases = as_complaints(load_suite(LABELLED).cases)
    methods: dict[int, Survival] = {}
    right = 0
    for one in cases:
        recording = one.recording
        method = methods.setdefault(
            id(recording), Survival(recording.graph, recording.conversation, recording.operations)
        )
        main = method.attribute(one.case).main
        right += main is not None and main.error_type == one.error_type
    assert all(not one.case.knows_answer and not one.case.question.evidence for one in cases)
    assert right > Counter(one.error_type for one in cases).most_common(1)[0][1]
