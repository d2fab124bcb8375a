"""Published data sets as conversations: what their annotations say is kept where memtune uses it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from data_files import CITIES, SOUND, beam, beam_chat, longmemeval, realmem, written

from experiments.data.conformance import DatasetConformance
from experiments.data.data_check import dataset_name_of, problems_of_dataset
from experiments.data.dataset_reader import Reading
from experiments.data.datasets import DATASETS, DatasetLoader, conversations_of
from experiments.data.loaders import load_dataset
from experiments.data.published.locomo import NOT_TOLD
from experiments.runs.config_file import load_config
from tracing.errors import DataError
from tracing.systems.conversations import moment_of

SHARED = next(
    (up / "shared" / "data" for up in Path(__file__).resolve().parents if (up / "shared" / "data").is_dir()), None
)
here = pytest.mark.skipif(SHARED is None, reason="the development data is not here")


@pytest.mark.parametrize("name", [name for name in DATASETS.built_in if name in SOUND])
def test_every_data_set_keeps_the_contract(name: str, tmp_path: Path) -> None:
    path = SOUND[name](tmp_path)

    class TestOne(DatasetConformance):
        def loader(self) -> DatasetLoader:
            return DATASETS.open_callable(name, "path")

        def path(self) -> Path:
            return path

    tests = [each for each in dir(TestOne) if each.startswith("test_")]
    assert tests
    for each in tests:
        getattr(TestOne(), each)()
    assert problems_of_dataset(name, path).problems == ()


@pytest.mark.parametrize("name", [name for name in DATASETS.built_in if name in SOUND])
def test_a_data_set_is_ready_for_a_run_and_every_split_has_a_question(name: str, tmp_path: Path) -> None:
    splits = load_dataset(load_config(None, overrides={"dataset": name, "data": SOUND[name](tmp_path)})).splits
    assert [len(group) for group in splits.named().values()] == [1, 1, 1]
    assert all(group[0].questions for group in splits.named().values())


def test_longmemeval_marks_evidence_and_says_the_day_it_asks(tmp_path: Path) -> None:
    first, update, never = conversations_of("longmemeval", SOUND["longmemeval"](tmp_path))
    assert [session.id for session in first.sessions] == ["s_filler", "answer_0", "s_filler#2"]
    (asked,) = first.questions
    assert asked.question == "Today is 2023/05/30 (Tue) 23:40. Where did I move?"
    assert (asked.answers, asked.evidence, asked.kind) == (("Oslo",), ("answer_0:1",), "single-session-user")
    assert [turn.text for turn in first.turns() if turn.id in asked.evidence] == ["I moved to Oslo."]
    assert update.questions[0].supersedes
    assert never.questions[0].unanswerable
    assert never.questions[0].kind == "abstention"
    assert set(NOT_TOLD) < set(never.questions[0].answers)


def test_longmemeval_is_refused_by_place_and_key_and_the_rest_is_still_read(tmp_path: Path) -> None:
    rows = longmemeval()
    del rows[0]["answer"]
    rows[1]["haystack_sessions"][1][0]["content"] = 7
    rows[1]["haystack_dates"] = 3
    path = written(tmp_path / "lme.json", rows)
    with pytest.raises(DataError, match=r"lme\.json: 0: answer: Field required; the layout of LongMemEval is expected"):
        conversations_of("longmemeval", path)
    found = problems_of_dataset("longmemeval", path)
    assert [
        problem.removeprefix(f"{path}: ").partition(":; ")[0].partition(" Input")[0] for problem in found.problems
    ] == [
        "0: answer: Field required; the layout of LongMemEval is expected, see docs/data-format.md",
        "1: haystack_dates:",
        "1: haystack_sessions.1.0.content:",
    ]
    assert found.conversations == 1


def test_large_files_are_read_row_by_row(tmp_path: Path) -> None:
    rows = []
    for number in range(300):
        row = longmemeval()[0] | {"question_id": f"q{number}"}
        row["haystack_sessions"][0][0]["content"] = "x" * 40_000
        rows.append(row)
    path = written(tmp_path / "lme.json", rows)
    told: list[tuple[int, int]] = []
    gives = conversations_of("longmemeval", path, Reading(progress=lambda done, total: told.append((done, total))))
    assert len(gives) == 300
    assert len(told) >= 2
    assert all(done <= total == path.stat().st_size for done, total in told)


def test_beam_keeps_batches_updates_and_what_has_an_answer(tmp_path: Path) -> None:
    reading = Reading()
    first, second, tenth = conversations_of("beam", beam(tmp_path), reading)
    assert [one.id for one in (first, second, tenth)] == ["1", "2", "10"]
    assert [(one.id, one.time) for one in first.sessions] == [("batch-1", "March-15-2024"), ("batch-2", "")]
    assert next(first.turns()).text == "My deadline is May 2."
    asked = {question.kind: question for question in first.questions}
    assert "instruction_following" not in asked
    assert asked["knowledge_update"].evidence == ("4",)
    assert asked["knowledge_update"].supersedes
    assert asked["contradiction_resolution"].evidence == ("2", "4")
    assert asked["information_extraction"].evidence == ("0",)
    assert asked["abstention"].unanswerable
    assert asked["summarization"].answers == ("Commits until May 2.",)
    assert reading.omissions["1"] == {
        "questions that have a rubric but no answer": 1,
        "evidence ids that name no turn": 1,
    }
    assert len(tenth.sessions) == 1, "the shortened chat was not taken"


def test_halumem_asks_between_sessions_and_keeps_what_must_not_be_stored(tmp_path: Path) -> None:
    reading = Reading()
    ann = conversations_of("halumem", SOUND["halumem"](tmp_path), reading)[0]
    assert ann.speakers == ("Ann Li", "assistant")
    asked = [(question.answers[0], question.evidence, question.after_session) for question in ann.questions]
    assert asked == [(CITIES[0], ("D1:1",), "D1"), ("Unknown.", (), "D1"), ("Bergen", ("D2:1",), "D2")]
    assert [question.unanswerable for question in ann.questions] == [False, True, False]
    assert [question.supersedes for question in ann.questions] == [False, False, True]
    actions = [(fact.id, fact.turn, fact.action, fact.of) for fact in ann.facts]
    assert actions == [
        ("D1:m1", "D1:1", "add", None),
        ("D1:m2", "D1:2", "ignore", None),
        ("D2:m1", "D2:1", "update", "D1:m1"),
    ]
    assert [fact.id for fact in ann.facts_at_end()] == ["D2:m1"]
    assert moment_of(ann.sessions[0].time) == datetime(2025, 9, 4, 10, 44, 31)
    assert reading.omissions["u0"]["memory points that no turn of their session says"] == 1


@here
def test_the_real_halumem_file_loads_whole() -> None:
    assert SHARED is not None
    problems: list[str] = []
    path = SHARED / "halumem" / "pilot_slice_user12.jsonl"
    (user,) = conversations_of("halumem", path, Reading(problems=problems))
    assert problems == []
    assert dataset_name_of(path) == "halumem"
    assert (len(user.sessions), len(user.questions), len(user.stretches())) == (62, 161, 43)
    assert sum(fact.action == "ignore" for fact in user.facts) > 100


def test_mobilemem_has_its_own_categories_and_leaves_out_what_only_images_show(tmp_path: Path) -> None:
    reading, path = Reading(), SOUND["mobilemem"](tmp_path)
    first = conversations_of("mobilemem", path, reading)[0]
    assert dataset_name_of(path) == dataset_name_of(tmp_path) == "mobilemem"
    assert [(question.kind, question.unanswerable) for question in first.questions] == [
        ("single-hop", False),
        ("abstention", True),
    ]
    assert moment_of(first.sessions[0].time) == datetime(2025, 1, 1, 8, 30)
    assert reading.omissions["uuid_0"] == {
        "questions on images, of which the file has no captions": 1,
        "evidence that is told in words and names no turn": 2,
    }


def test_beam_of_ten_million_tokens_is_refused_by_its_key(tmp_path: Path) -> None:
    path = beam(tmp_path)
    written(path / "1" / "chat.json", [{"plan-0": beam_chat()}])
    with pytest.raises(DataError, match=r"1/chat\.json: 0\.batch_number: Field required; the layout of BEAM"):
        conversations_of("beam", path)
    assert problems_of_dataset("beam", path).conversations == 2


def test_gold_memories_of_realmem_are_facts_of_the_turn_they_were_taken_from(tmp_path: Path) -> None:
    reading = Reading()
    path = SOUND["realmem"](tmp_path)
    found = conversations_of("realmem", path, reading)
    assert [one.id for one in found] == [f"Ann_Li/Travel_{n}" for n in range(3)]
    first = found[0]
    turns = {turn.id: turn for turn in first.turns()}
    assert [(fact.id, turns[fact.turn].text, fact.text) for fact in first.facts] == [
        ("Travel_0-1", "I fly to Oslo in May.", "The user flies to Oslo in May."),
        ("Travel_0-2", "By night?", '{"by": "night"}'),
    ]
    (asked,) = first.questions
    assert (asked.question, asked.answers) == ("When do I fly?", ("In May, by night.",))
    assert asked.evidence == (first.facts[0].turn,)
    assert reading.omissions[first.id] == {
        "memories merged from several turns": 1,
        "memories whose turn is not in the dialogue": 1,
        "queries that use memories of another project, or none": 1,
    }


def test_a_folder_of_realmem_holds_all_its_personas(tmp_path: Path) -> None:
    for name in ("Ann_Li", "Bo_Ek"):
        written(tmp_path / f"{name}_dialogues_256k.json", realmem())
    assert len({one.id for one in conversations_of("realmem", tmp_path)}) == 2 * len(CITIES)


def test_labelled_graphs_give_the_dialogue_and_the_labelled_questions(tmp_path: Path) -> None:
    first, *_ = conversations_of("memeval", SOUND["memeval"](tmp_path))
    (asked,) = first.questions
    assert (first.id, asked.id, asked.answers, asked.evidence) == ("g0", "g0/q0", ("Oslo",), ("D1:1",))
    document = json.loads((tmp_path / "g0.json").read_text())
    del document["data"]["annotations"]
    path = written(tmp_path / "no.json", document)
    with pytest.raises(DataError, match=r"no\.json: data\.annotations: has no label; give a smartcomment file"):
        conversations_of("memeval", path)


@pytest.mark.parametrize("evidence", [["D1:1", "D9:9"], "D1:1"])
def test_evidence_of_a_labelled_graph_that_names_no_message_is_a_problem(tmp_path: Path, evidence: object) -> None:
    path = SOUND["memeval"](tmp_path)
    document = json.loads((tmp_path / "g0.json").read_text())
    document["data"]["annotations"][0]["source_evidence_ids"] = evidence
    (tmp_path / "g0.json").write_text(json.dumps(document))
    with pytest.raises(
        DataError, match=r"g0\.json: data\.annotations\.0\.source_evidence_ids: .*(correct it|give a list)"
    ):
        conversations_of("memeval", path)


@here
def test_the_real_files_are_read_whole_and_without_a_problem() -> None:
    assert SHARED is not None
    counts = {}
    for name, file in (
        ("locomo", "locomo/locomo7.json"),
        ("realmem", "realmem/Lin_Wanyu_dialogues_256k.json"),
        ("memeval", "memeval/conv-26.json"),
    ):
        found = problems_of_dataset(name, SHARED / file)
        assert found.problems == (), name
        counts[name] = (found.conversations, found.questions)
    assert counts == {"locomo": (7, 1145), "realmem": (5, 96), "memeval": (1, 81)}


@here
def test_nearly_every_gold_memory_of_the_real_persona_has_its_turn() -> None:
    assert SHARED is not None
    reading = Reading()
    found = conversations_of("realmem", SHARED / "realmem" / "Lin_Wanyu_dialogues_256k.json", reading)
    facts = sum(len(one.facts) for one in found)
    lost = sum(counts["memories whose turn is not in the dialogue"] for counts in reading.omissions.values())
    merged = sum(counts["memories merged from several turns"] for counts in reading.omissions.values())
    assert (facts, lost, merged) == (391, 7, 45)
    assert facts + lost + merged == 443
