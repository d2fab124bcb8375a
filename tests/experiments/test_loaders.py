"""What a run reads: the right conversations, in the right split, with only questions that can be answered."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from experiments.data.data_check import problems_of_dataset
from experiments.data.data_settings import DataLimits
from experiments.data.dataset_reader import Reading
from experiments.data.loaders import limit_conversations, load_dataset, load_sealed, shorten
from experiments.data.published.locomo import NOT_TOLD, read_locomo
from experiments.data.splits import assign_splits
from experiments.runs.config_file import load_config
from tracing.errors import DataError
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn, write_conversations

_NEAR = (up / "shared" / "data" / "locomo" / "locomo7.json" for up in Path(__file__).resolve().parents)
LOCOMO = next((path for path in _NEAR if path.is_file()), Path("none"))


def conversation(name: str, *, split: Any = None, sessions: int = 2, questions: int = 2) -> Conversation:
    return Conversation(
        id=name,
        split=split,
        speakers=("Ana", "Bo"),
        sessions=tuple(
            DialogueSession(id=f"D{number}", turns=(Turn(id=f"D{number}:1", speaker="Ana", text="Hello."),))
            for number in range(1, sessions + 1)
        ),
        questions=tuple(
            Question(id=f"{name}-q{n}", question="?", answers=("a",), evidence=(f"D{n % sessions + 1}:1",))
            for n in range(questions)
        ),
    )


def locomo_row(name: str) -> dict[str, Any]:
    return {
        "sample_id": name,
        "event_summary": {},
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ana", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a red kite", "img_url": ["u"]},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "Since 2019 I have lived in Ulm."},
            ],
            "session_2_date_time": "9 am on 1 June, 2023",
            "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "I moved to Jena."}],
            "session_3_date_time": "never held",
        },
        "qa": [
            {"question": "Since when?", "answer": 2019, "evidence": ["D1:2"], "category": 2},
            {"question": "Where now?", "answer": "Jena", "evidence": ["D1:2; D2:1"], "category": 4},
            {"question": "What did Bo fly?", "adversarial_answer": "kite", "evidence": ["D1:1"], "category": 5},
            {
                "question": "Is it Bo's?",
                "adversarial_answer": "Yes",
                "answer": "No",
                "evidence": ["D:1:1"],
                "category": 5,
            },
            {"question": "Which?", "answer": "Ulm", "evidence": ["D7:7", "D1:2"], "category": 1},
            {"question": "Who knows?", "answer": "Bo", "evidence": [], "category": 3},
        ],
    }


@pytest.fixture
def locomo(tmp_path: Path) -> Path:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([locomo_row(f"conv-{n}") for n in range(3)]))
    return path


def test_locomo_rows_become_conversations(locomo: Path) -> None:
    reading = Reading()
    first, *_ = read_locomo(locomo, reading, (1, 2, 3, 4, 5))
    assert [turn.id for turn in first.turns()] == ["D1:1", "D1:2", "D2:1"]
    assert next(first.turns()).text == "Look! [shares an image: a red kite]"
    assert [session.time for session in first.sessions] == ["1:56 pm on 8 May, 2023", "9 am on 1 June, 2023"]
    asked = {question.question: question for question in first.questions}
    assert asked["Since when?"].answers == ("2019",)
    assert asked["Where now?"].evidence == ("D1:2", "D2:1")
    assert asked["What did Bo fly?"].answers == NOT_TOLD
    assert asked["Is it Bo's?"].answers == ("No",)
    assert asked["Is it Bo's?"].evidence == ("D1:1",)
    assert asked["Which?"].evidence == ("D1:2",)
    assert reading.omissions["conv-0"]["evidence ids that name no turn"] == 1
    assert [question.kind for question in first.questions][:2] == ["temporal", "single-hop"]


def test_adversarial_questions_are_asked_only_when_listed(locomo: Path) -> None:
    config = load_config(None, overrides={"dataset": "locomo", "data": locomo})
    dataset = load_dataset(config)
    asked = [q for group in dataset.splits.named().values() for c in group for q in c.questions]
    assert "adversarial" not in {question.kind for question in asked}
    assert "6 questions of categories not listed in locomo.categories left out" in dataset.notes


def test_questions_whose_evidence_is_cut_off_are_dropped_and_counted(locomo: Path) -> None:
    config = load_config(None, overrides={"dataset": "locomo", "data": locomo, "limits.sessions": 1})
    dataset = load_dataset(config)
    kept = [q.question for q in dataset.splits.test[0].questions]
    assert kept == ["Since when?", "Which?"]
    assert "6 questions whose evidence lies in sessions cut off left out" in dataset.notes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "Invalid JSON"),
        ("[", "not JSON"),
        ("[]", "holds no conversation"),
        ('[{"sample_id": "c", "qa": []}]', ": 0: conversation: Field required"),
        (
            '[{"sample_id": "c", "qa": [], "conversation": {"session_1": [{"speaker": "A", "text": "t"}]}}]',
            ": 0.conversation.session_1: 0.dia_id: Field required",
        ),
        ('[{"sample_id": "c", "qa": [{"question": "q", "category": 9}], "conversation": {}}]', ": 0: qa.0.category"),
        (json.dumps([locomo_row("a"), locomo_row("b"), locomo_row("a")]), ": 2: sample_id: 'a' is that of 0 too"),
        (
            '[{"sample_id": "c", "qa": [], "conversation": {"session_1": [%s, %s]}}]'
            % (('{"speaker": "A", "text": "t", "dia_id": "D1:1"}',) * 2),
            ": 0.conversation: two turns share the id 'D1:1'",
        ),
    ],
)
def test_a_file_that_is_not_locomo_is_refused_with_its_key(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "data.json"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        list(read_locomo(path, Reading(), (1,)))
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)


@pytest.mark.skipif(not LOCOMO.is_file(), reason="the LoCoMo file of the development data is not here")
def test_the_real_locomo_file_loads_whole() -> None:
    config = load_config(None, overrides={"dataset": "locomo", "data": LOCOMO})
    splits = load_dataset(config).splits
    assert [len(group) for group in splits.named().values()] == [2, 2, 3]
    for group in splits.named().values():
        for found in group:
            turns = {turn.id for turn in found.turns()}
            assert all(turns.issuperset(question.evidence) for question in found.questions)
            assert all(isinstance(answer, str) for question in found.questions for answer in question.answers)


@pytest.mark.skipif(not LOCOMO.is_file(), reason="the LoCoMo file of the development data is not here")
def test_limits_hold_on_the_real_file() -> None:
    limits = {"limits.conversations": 3, "limits.sessions": 4, "limits.questions": 30}
    config = load_config(None, overrides={"dataset": "locomo", "data": LOCOMO, **limits})
    splits = load_dataset(config).splits
    assert [len(group) for group in splits.named().values()] == [1, 1, 1]
    for group in splits.named().values():
        assert len(group[0].sessions) == 4
        assert 0 < len(group[0].questions) <= 30


def test_splits_depend_on_ids_alone() -> None:
    names = [f"c{n}" for n in range(24)]
    forward = assign_splits([conversation(name) for name in names], where="x")
    backward = assign_splits([conversation(name) for name in reversed(names)], where="x")
    for ours, theirs in zip(forward.named().values(), backward.named().values(), strict=True):
        assert {c.id for c in ours} == {c.id for c in theirs}
    assert [len(group) for group in forward.named().values()] == [8, 6, 10]


@pytest.mark.parametrize(("count", "sizes"), [(3, [1, 1, 1]), (4, [1, 1, 2]), (10, [3, 3, 4])])
def test_every_split_gets_a_conversation(count: int, sizes: list[int]) -> None:
    splits = assign_splits([conversation(f"c{n}") for n in range(count)], where="x")
    assert [len(group) for group in splits.named().values()] == sizes
    assert len({c.id for group in splits.named().values() for c in group}) == count


def test_too_few_or_half_split_conversations_are_refused() -> None:
    with pytest.raises(DataError, match="at least 3"):
        assign_splits([conversation("a"), conversation("b")], where="x")
    with pytest.raises(DataError, match="'b' has no split"):
        assign_splits([conversation("a", split="train"), conversation("b"), conversation("c")], where="x")
    with pytest.raises(DataError, match="no conversation with questions has the split 'test'"):
        assign_splits([conversation("a", split="train"), conversation("b", split="validation")], where="x")


def test_a_limit_on_conversations_counts_over_all_splits() -> None:
    splits = assign_splits([conversation(f"c{n}") for n in range(24)], where="x")
    assert [len(group) for group in limit_conversations(splits, 7).named().values()] == [3, 2, 2]
    assert limit_conversations(splits, 100) == splits


def test_questions_over_the_limit_are_left_out_evenly() -> None:
    dropped = Counter[str]()
    short = shorten(conversation("c", questions=10), DataLimits(questions=5), dropped)
    assert [question.id for question in short.questions] == ["c-q0", "c-q2", "c-q4", "c-q6", "c-q8"]
    assert dropped["questions over --limit-questions"] == 5


def test_questions_asked_after_a_session_that_is_cut_are_dropped_and_counted() -> None:
    whole = conversation("c", sessions=3, questions=3)
    rows = [question.model_dump() | {"after_session": 3, "evidence": ["D1:1"]} for question in whole.questions]
    whole = Conversation.model_validate(
        whole.model_dump() | {"questions": [rows[0] | {"after_session": "D1"}, *rows[1:]]}
    )
    dropped = Counter[str]()
    short = shorten(whole, DataLimits(sessions=2), dropped)
    assert [question.id for question in short.questions] == ["c-q0"]
    assert dropped["questions asked after sessions cut off"] == 2
    assert Conversation.model_validate(short.model_dump()) == short


def test_a_shortened_conversation_is_still_a_valid_one() -> None:
    for split in load_dataset(load_config(None)).splits.named().values():
        for found in split:
            short = shorten(found, DataLimits(sessions=1))
            assert Conversation.model_validate(short.model_dump()) == short


def test_sealed_conversations_are_read_only_when_asked_for(tmp_path: Path) -> None:
    names = ("train", "validation", "test", "sealed")
    path = tmp_path / "mine.jsonl"
    write_conversations(path, [conversation(f"c-{name}", split=name) for name in names])
    config = load_config(None, overrides={"dataset": "jsonl", "data": path})
    loaded = {c.id for group in load_dataset(config).splits.named().values() for c in group}
    assert loaded == {"c-train", "c-validation", "c-test"}
    assert [c.id for c in load_sealed(config)] == ["c-sealed"]


def test_a_sealed_conversation_without_questions_is_not_scored(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    write_conversations(path, [conversation(f"c{n}", questions=n, split="sealed") for n in range(2)])
    config = load_config(None, overrides={"dataset": "jsonl", "data": path})
    assert [c.id for c in load_sealed(config)] == ["c1"]
    write_conversations(path, [conversation("c0", questions=0, split="sealed")])
    with pytest.raises(DataError, match=r"mine\.jsonl: its sealed part has conversations and no question"):
        load_sealed(config)


def test_conversations_without_questions_take_up_no_room_in_the_splits(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    write_conversations(path, [conversation(f"c{n}", questions=2 if n >= 30 else 0) for n in range(40)])
    loaded = load_dataset(load_config(None, overrides={"dataset": "jsonl", "data": path, "limits.conversations": 9}))
    assert [len(group) for group in loaded.splits.named().values()] == [3, 3, 3]
    assert "30 conversations without questions left out" in loaded.notes
    write_conversations(path, [conversation(f"c{n}", questions=2 if n >= 38 else 0) for n in range(40)])
    (note,) = problems_of_dataset("jsonl", path).notes
    assert note.startswith(f"{path}: holds 2 conversations with questions; at least 3 are needed")


def test_the_bundled_sample_is_split_and_its_sealed_part_stays_out() -> None:
    config = load_config(None)
    splits = load_dataset(config).splits
    assert [len(group) for group in splits.named().values()] == [13, 11, 32]
    sealed = {c.id for c in load_sealed(config)}
    assert len(sealed) == 22
    assert not sealed & {c.id for group in splits.named().values() for c in group}
