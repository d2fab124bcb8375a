"""A bad row is refused in one line that names file, line and key; a good file comes back as it was written."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracing.errors import DataError
from tracing.systems.conversations import Conversation, Question, read_conversations, write_conversations

ROW: dict[str, Any] = {
    "id": "pets",
    "split": "train",
    "speakers": ["Aurel", "Birte"],
    "sessions": [
        {
            "id": "D1",
            "time": "2024-03-04 10:00",
            "turns": [
                {"id": "D1:1", "speaker": "Aurel", "text": "My boat is green."},
                {"id": "D1:2", "speaker": "Birte", "text": "Mine is “grün”."},
            ],
        },
        {"id": "D2", "turns": [{"id": "D2:1", "speaker": "Aurel", "text": "It is blue now."}]},
    ],
    "facts": [
        {"id": "f1", "turn": "D1:1", "text": "Aurel's boat is green."},
        {"id": "f2", "turn": "D2:1", "text": "Aurel's boat is blue.", "action": "update", "of": "f1"},
        {"id": "f3", "turn": "D1:2", "text": "Birte's boat is grün."},
    ],
    "questions": [
        {
            "id": "q1",
            "question": "Which colour is Aurel's boat?",
            "answers": ["blue"],
            "kind": "updated",
            "evidence": ["D2:1"],
            "fact": "f2",
            "near_miss": {"turn": "D1:1", "value": "green"},
        }
    ],
}


def row(change: Callable[[dict[str, Any]], object]) -> str:
    changed = copy.deepcopy(ROW)
    change(changed)
    return json.dumps(changed)


def late_near_miss() -> dict[str, str]:
    return {"turn": "D2:1", "value": "blue"}


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    question = ROW["questions"][0]
    conversations = [
        Conversation.model_validate({**ROW, "id": name, "questions": [{**question, "id": f"{name}-q1"}]})
        for name in ("pets", "boats")
    ]
    path = tmp_path / "data.jsonl"
    write_conversations(path, conversations)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2
    assert read_conversations(path) == conversations


def test_a_fact_holds_at_the_end_unless_updated_or_deleted() -> None:
    conversation = Conversation.model_validate(ROW)
    assert [fact.id for fact in conversation.facts_at_end()] == ["f2", "f3"]
    forgotten = {"id": "f4", "turn": "D2:1", "text": "Forget it.", "action": "delete", "of": "f2"}
    conversation = Conversation.model_validate({**ROW, "facts": [*ROW["facts"], forgotten]})
    assert [fact.id for fact in conversation.facts_at_end()] == ["f3"]


def test_a_kind_means_something_only_where_the_keys_for_it_are_absent() -> None:
    def read(**given: object) -> tuple[bool, bool]:
        question = Question.model_validate({"id": "q", "question": "?", "answers": ["a"], **given})
        return question.supersedes, question.unanswerable

    assert read(kind="moved house", supersedes=True) == (True, False)
    assert read(kind="trick", unanswerable=True) == (False, True)
    assert read(kind="updated", supersedes=False) == (False, False)
    assert read(kind="deleted", unanswerable=False) == (False, False)
    assert (read(kind="updated"), read(kind="deleted"), read()) == ((True, False), (False, True), (False, False))


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("{", "JSON"),
        ('"pets"', "object"),
        (row(lambda r: r.pop("id")), "id: "),
        (row(lambda r: r.update(color="red")), "color: unknown key; known here: id, split, speakers"),
        (
            row(lambda r: r["questions"][0].update(evidnce=r["questions"][0].pop("evidence"))),
            "did you mean 'evidence'?",
        ),
        (
            row(lambda r: r["sessions"][1]["turns"][0].update(speeker=r["sessions"][1]["turns"][0].pop("speaker"))),
            "sessions.1.turns.0.speeker: unknown key; did you mean 'speaker'?",
        ),
        (
            row(lambda r: r["questions"][0]["near_miss"].update(valu="x")),
            "near_miss.valu: unknown key; did you mean 'value'?",
        ),
        (row(lambda r: r.update(split="dev")), "split: "),
        (row(lambda r: r.update(sessions=[])), "sessions: "),
        (row(lambda r: r["sessions"][0]["turns"][1].pop("speaker")), "sessions.0.turns.1.speaker: "),
        (row(lambda r: r["sessions"][1]["turns"][0].update(text=7)), "sessions.1.turns.0.text: "),
        (row(lambda r: r["sessions"][1]["turns"][0].update(id="D1:1")), "two turns share the id 'D1:1'"),
        (row(lambda r: r["sessions"][1].update(id="D1")), "two sessions share the id 'D1'"),
        (row(lambda r: r["questions"][0].update(question=" ")), "questions.q1.question has a text that is empty"),
        (row(lambda r: r["questions"][0].update(answers=["x", ""])), "questions.q1.answers has a text that is empty"),
        (row(lambda r: r["facts"][1].update(id="f1", of=None)), "two facts share the id 'f1'"),
        (row(lambda r: r["facts"][0].update(turn="D9:1")), "facts.f1.turn names the unknown turn 'D9:1'"),
        (row(lambda r: r["facts"][1].update(of="f9")), "facts.f2.of names the unknown fact 'f9'"),
        (row(lambda r: r["facts"][1].update(action="forget")), "facts.1.action: "),
        (row(lambda r: r["questions"][0].update(answers=[])), "questions.0.answers: "),
        (row(lambda r: r["questions"][0].update(evidence=["D9:1"])), "questions.q1 names the unknown turn 'D9:1'"),
        (row(lambda r: r["questions"][0].update(fact="f9")), "questions.q1.fact names the unknown fact 'f9'"),
        (row(lambda r: r["questions"][0]["near_miss"].update(turn="D9:1")), "questions.q1 names the unknown turn"),
        (
            row(lambda r: r["questions"][0].update(after_session="D7")),
            "questions.q1.after_session names the unknown session 'D7'; give the id of a session, or its place, 1 to 2",
        ),
        (row(lambda r: r["questions"][0].update(after_session=3)), "after_session names the unknown session '3'"),
        (row(lambda r: r["questions"][0].update(after_session=0)), "after_session names the unknown session '0'"),
        (
            row(lambda r: r["questions"][0].update(after_session="D1")),
            "questions.q1.evidence names the turn 'D2:1', which comes after the session 'D1' that it is asked after",
        ),
        (
            row(lambda r: r["questions"][0].update(after_session=1, evidence=[])),
            "questions.q1.fact names the turn 'D2:1', which comes after",
        ),
        (
            row(
                lambda r: r["questions"][0].update(after_session=1, evidence=[], fact=None, near_miss=late_near_miss())
            ),
            "questions.q1.near_miss names the turn 'D2:1', which comes after",
        ),
        (row(lambda r: r["questions"].append(r["questions"][0])), "two questions share the id 'q1'"),
        (json.dumps(ROW), "id: 'pets' is that of line 1 too; give each conversation its own id"),
        (
            row(lambda r: r.update(id="boats")),
            "questions.0.id: 'q1' is that of line 1 too; give each question its own id",
        ),
    ],
)
def test_a_bad_row_is_named_in_one_line(tmp_path: Path, line: str, key: str) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_conversations(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:3: ")
    assert key in message
    assert "\n" not in message


@pytest.mark.parametrize("text", [json.dumps([ROW]), json.dumps([ROW], indent=1), json.dumps(ROW, indent=1)])
def test_one_json_text_is_told_from_lines_once(tmp_path: Path, text: str) -> None:
    path = tmp_path / "data.json"
    path.write_text(text, encoding="utf-8")
    problems: list[str] = []
    assert read_conversations(path, problems.append) == []
    (problem,) = problems
    assert "data.json: is one JSON text, a list or an object over several lines; write each" in problem


def test_a_missing_file_and_an_empty_one_are_told_apart(tmp_path: Path) -> None:
    missing, empty = tmp_path / "missing.jsonl", tmp_path / "empty.jsonl"
    empty.write_text("\n \n", encoding="utf-8")
    with pytest.raises(DataError, match=r"missing\.jsonl: no such file"):
        read_conversations(missing)
    with pytest.raises(DataError, match=r"empty\.jsonl: holds no conversation"):
        read_conversations(empty)


def test_a_file_that_is_not_utf8_is_a_data_error(tmp_path: Path) -> None:
    path = tmp_path / "latin.jsonl"
    path.write_bytes(json.dumps(ROW, ensure_ascii=False).encode("cp1252"))
    with pytest.raises(DataError, match=r"latin\.jsonl"):
        read_conversations(path)


def test_a_question_sees_the_sessions_that_took_place_before_it_alone() -> None:
    early = {"id": "q0", "question": "Which colour?", "answers": ["green"], "evidence": ["D1:1"], "after_session": 1}
    late = {**early, "id": "q2", "after_session": "D2"}
    pets = Conversation.model_validate({**ROW, "questions": [*ROW["questions"], early, late]})
    asked = [([s.id for s in part.sessions], [q.id for q in part.questions]) for part in pets.stretches()]
    assert asked == [(["D1"], ["q0"]), (["D2"], ["q1", "q2"])]
    before = pets.until(pets.questions[1])
    assert [turn.id for turn in before.turns()] == ["D1:1", "D1:2"]
    assert [fact.id for fact in before.facts_at_end()] == ["f1", "f3"]
    assert [question.id for question in before.questions] == ["q0"]
    assert pets.until(pets.questions[0]) is pets


def test_the_id_of_a_session_goes_before_the_place_of_another() -> None:
    sessions = [{**session, "id": name} for session, name in zip(ROW["sessions"], ("2", "1"), strict=True)]
    question = {**ROW["questions"][0], "after_session": 1}
    pets = Conversation.model_validate({**ROW, "sessions": sessions, "questions": [question]})
    assert pets.sessions_before(pets.questions[0]) == 2
