from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scripted_server import ScriptedServer

from attribution.cases import Case
from attribution.evidence_index import EvidenceIndex
from attribution.judging.words import judge
from benchmarks.evidence_recall import EmbeddedEvidence, recall, recall_at
from benchmarks.labelled_suites import load_suite
from tracing.llm.access import ModelAccess
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn

CONV_26 = Path(__file__).parents[3] / "shared" / "data" / "memeval" / "conv-26.json"


def case(question: str, answer: str = "", reply: str = "no idea") -> Case:
    return Case("pets", Question(id="q", question=question, answers=(answer,)), reply, judge(reply, (answer,)))


def test_turns_are_ranked_by_rare_words_of_the_question(pets: Conversation) -> None:
    assert EvidenceIndex(pets).search(case("What does the gecko eat?"), top=1) == ["D1:2"]


def test_the_gold_answer_finds_what_the_question_does_not_and_a_reply_stands_in_for_it(pets: Conversation) -> None:
    index = EvidenceIndex(pets)
    assert "D1:4" not in index.search(case("Who is in the family?", "a farrier"))
    assert index.search(case("Who is in the family?", "a farrier"), query="gold")[0] == "D1:4"
    assert index.search(case("Who is in the family?", "", "a farrier"), query="gold")[0] == "D1:4"
    assert index.search(case("Who is in the family?", "", "a farrier"), query="prediction")[0] == "D1:4"


def test_embeddings_rank_and_are_made_once_a_conversation(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    index = EmbeddedEvidence(pets, open_access(cache=False).embedding, by_words=False)
    text = "My gecko won't touch anything but mashed papaya."
    found = index.search(case(f"Ilya: {text}"), top=1)
    first = len(scripted_server.embedding_requests)
    assert found == ["D1:2"]
    index.search(case("What does the gecko eat?"))
    assert len(scripted_server.embedding_requests) == first + 1


def talk(*said: str) -> Conversation:
    turns = [
        {"id": f"D1:{at}", "speaker": speaker, "text": text}
        for at, (speaker, _, text) in enumerate((one.partition(": ") for one in said), start=1)
    ]
    return Conversation.model_validate(
        {"id": "talk", "speakers": ["Ana", "Ben"], "sessions": [{"id": "D1", "turns": turns}]}
    )


def test_what_was_said_at_the_time_asked_about_or_soon_after_comes_first() -> None:
    visits = [("D1", "2023-03-02"), ("D2", "2023-05-09"), ("D3", "2023-05-29")]
    sessions = [
        {"id": name, "time": day, "turns": [{"id": f"{name}:1", "speaker": "Ana", "text": "I went to see the doctor."}]}
        for name, day in visits
    ]
    index = EvidenceIndex(Conversation.model_validate({"id": "v", "speakers": ["Ana"], "sessions": sessions}))
    assert index.search(case("Why did Ana see the doctor in April?"), top=1) == ["D1:1"]
    assert index.search(case("Why did Ana see the doctor on 7 May 2023?"), top=1) == ["D2:1"]
    assert index.search(case("Why did Ana see the doctor at the end of May 2023?"), top=1) != ["D1:1"]


def test_what_the_person_asked_about_says_comes_before_what_is_said_to_them() -> None:
    index = EvidenceIndex(talk("Ben: Ana, do you keep geese?", "Ana: I keep nine geese, by the mill up the river."))
    assert index.search(case("How many geese does Ana keep?"))[0] == "D1:2"
    assert index.search(case("Do Ana and Ben keep geese?"))[0] == "D1:1"


def test_of_like_turns_the_one_beside_a_likely_turn_comes_first_and_none_for_that_alone() -> None:
    said = ["Ana: A goose lays.", "Ben: Fog again.", "Ben: Which goose lays in winter?", "Ana: A goose lays."]
    found = EvidenceIndex(talk(*said)).search(case("Which goose lays in winter?"))
    assert found == ["D1:3", "D1:4", "D1:1"]


def test_by_both_a_turn_with_the_words_and_the_meaning_comes_before_one_with_either(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    embedding = open_access(cache=False).embedding
    asked = "Which goose lays in winter?"
    said = ["Ana: Winter is long.", *[f"Ben: Fog number {n}." for n in range(3)], f"Ben: {asked}"]
    index = EmbeddedEvidence(talk(*said), embedding, by_words=True)
    assert index.search(case(f"Ben: {asked}"), top=1) == ["D1:5"]
    # By meaning every turn is ranked, by words only those that share one.
    assert len(index.search(case(asked))) == len(said) > len(EvidenceIndex(talk(*said)).search(case(asked)))


def test_recall_is_the_part_of_the_evidence_that_was_found() -> None:
    assert recall(["a", "b"], ["b", "c"]) == 0.5


@pytest.mark.skipif(not CONV_26.is_file(), reason="needs ../shared/data/memeval/conv-26.json")
def test_annotated_evidence_is_found_on_a_real_run() -> None:
    table = recall_at(load_suite(CONV_26), (1, 8))
    assert table["question"][1] < table["question"][8] < table["gold"][8]
    assert table["gold"][8] > 0.8


@pytest.mark.parametrize(
    ("speakers", "question", "named"),
    [
        (("Mara", ""), "Where does Mara live?", "Mara"),
        (("Mara", ""), "Which city is it?", None),
        (("玛拉", "李雷"), "玛拉住在哪里？", "玛拉"),
        (("Ann", "Anna"), "Where does Anna live?", "Anna"),
    ],
)
def test_a_question_asks_about_the_one_speaker_that_it_names(
    speakers: tuple[str, ...], question: str, named: str | None
) -> None:
    turns = tuple(Turn(id=str(at), speaker=speaker, text="Noted.") for at, speaker in enumerate(speakers))
    talk = Conversation(id="c", speakers=("Mara",), sessions=(DialogueSession(id="D", turns=turns),))
    assert EvidenceIndex(talk)._asked_about(question) == named
