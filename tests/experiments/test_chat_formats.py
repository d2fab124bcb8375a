"""Chats in OpenAI's message format are read in all their shapes; what nobody said is left out, counted and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from data_files import written

from experiments.command import main
from experiments.data.data_check import dataset_name_of, problems_of_dataset
from experiments.data.dataset_reader import Reading
from experiments.data.datasets import conversations_of
from tracing.errors import DataError
from tracing.interchange.speech import speech_of

THOUGHT = "pieces of a model's reasoning"
PICTURE = "data:image/png;base64,aGVsbG8="
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "name": "Ann", "content": "I am allergic to peanuts."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": '{"rain": true}'},
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "Noted."}, {"type": "refusal", "refusal": "No advice."}],
    },
    {
        "role": "user",
        "name": "Ann",
        "content": [
            {"type": "input_text", "text": "Here it is."},
            {"type": "image_url", "image_url": {"url": PICTURE}},
            {"type": "text", "text": "Is that one?"},
        ],
    },
    {"role": "assistant", "content": [{"type": "output_text", "text": "It is."}]},
    {"role": "assistant", "content": None},
]
SPOKEN = [
    "Ann: I am allergic to peanuts.",
    "assistant: Noted.\nNo advice.",
    "Ann: Here it is.\nIs that one?",
    "assistant: It is.",
]
TOLD = {
    "instructions to the model": 1,
    "tool calls": 1,
    "messages without a text": 2,
    "tool results": 1,
    "images": 1,
}


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("file", "document"),
    [
        ("chat.json", MESSAGES),
        ("chat.json", [{"messages": MESSAGES}]),
        ("chat.json", {"messages": MESSAGES}),
        ("chat.json", [MESSAGES]),
        ("chat.json", json.dumps({"messages": MESSAGES}, indent=2)),
        ("chat.json", json.dumps(MESSAGES, indent=2)),
        ("chat.jsonl", lines([{"messages": MESSAGES}])),
        ("chat.jsonl", lines(MESSAGES)),
        ("chat.jsonl", lines([{"id": "a", "conversations": MESSAGES}])),
    ],
)
def test_a_chat_is_read_in_every_shape_and_what_nobody_said_is_counted(
    tmp_path: Path, file: str, document: Any
) -> None:
    path = written(tmp_path / file, document)
    assert dataset_name_of(path) == "sharegpt"
    reading = Reading()
    (one,) = conversations_of("sharegpt", path, reading)
    assert [turn.spoken for turn in one.turns()] == SPOKEN
    assert one.speakers == ("Ann", "assistant")
    assert [turn.id for turn in one.turns()] == ["1:2", "1:5", "1:6", "1:7"]  # their places in the chat
    assert reading.omissions[one.id] == TOLD


SAID, REPLY = "I adopted a cat.", "Lovely."
HUMAN, AI = {"type": "human", "content": SAID}, {"type": "ai", "content": REPLY}
TURNS = [{"role": "user", "content": SAID}, {"role": "assistant", "content": REPLY}]


def dumped(message: dict[str, Any]) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain"], "kwargs": message}


@pytest.mark.parametrize(
    "document",
    [
        [HUMAN, {**AI, "type": "AIMessageChunk"}],
        {"messages": [HUMAN, {"type": "tool", "content": "42"}, AI]},
        [{"type": "human", "data": HUMAN}, {"type": "ai", "data": AI}],
        {"messages": [dumped(HUMAN), dumped({"type": "tool", "content": ["42"]}), dumped(AI)]},
        {"values": {"messages": [HUMAN, AI]}, "next": []},  # a state of LangGraph
        [{"uuid": "u", "chat_messages": [{"sender": "human", "text": SAID}, {"sender": "assistant", "text": REPLY}]}],
        {"contents": [{"role": "user", "parts": [{"text": SAID}]}, {"role": "model", "parts": [{"text": REPLY}]}]},
        {"object": "list", "data": [{**each, "type": "message"} for each in TURNS]},
        {"custom_id": "r", "url": "/v1/chat/completions", "body": {"model": "m", "messages": TURNS}},
        {"conversations": [{"id": "a", "messages": TURNS}]},
        {"data": [{"id": "a", "messages": TURNS}]},
        [{"conversations": [{"from": "prompter", "value": SAID}, {"from": "tool_response", "value": "42"}, TURNS[1]]}],
        [{"role": "user", "content": [[{"type": "text", "text": SAID}]]}, TURNS[1]],
        [{"role": "user", "content": [{"type": "text", "content": [{"text": SAID}]}]}, TURNS[1]],
    ],
)
def test_exports_of_other_tools_are_read(tmp_path: Path, document: Any) -> None:
    path = written(tmp_path / "chat.json", document)
    assert dataset_name_of(path) == "sharegpt"
    (one,) = conversations_of("sharegpt", path)
    assert [turn.spoken for turn in one.turns()] == [f"user: {SAID}", f"assistant: {REPLY}"]


@pytest.mark.parametrize("as_lines", [False, True])
def test_an_export_is_known_by_its_chats_wherever_they_stand(tmp_path: Path, as_lines: bool) -> None:
    chats = [{"uuid": "new", "chat_messages": []}, {"uuid": "old", "chat_messages": TURNS}]
    path = written(tmp_path / "export" / "conversations.json", lines(chats) if as_lines else chats)
    written(tmp_path / "export" / "about.json", [{"uuid": "a", "full_name": "Ann"}])
    written(tmp_path / "export" / "projects.json", [])
    assert (dataset_name_of(path), dataset_name_of(path.parent)) == ("sharegpt", "sharegpt")
    checked = problems_of_dataset("sharegpt", path.parent)
    assert (checked.problems, checked.conversations) == ((), 1)
    assert checked.notes[:2] == ("2 files without a chat left out", "1 chats without a message left out")


@pytest.mark.parametrize(
    ("document", "time"),
    [
        ([{"uuid": "u", "created_at": "2025-03-04T10:00:07.5Z", "chat_messages": TURNS}], "2025-03-04 10:00"),
        ({"data": {"messages": TURNS}, "timestamp": "2025-03-04"}, "2025-03-04"),
        ([{**TURNS[0], "ts": 0.5}, {**TURNS[1], "timestamp": 1741082407000}], "2025-03-04 10:00"),
        ({"messages": TURNS, "date": "04.03.2025"}, "04.03.2025"),
    ],
)
def test_a_session_has_the_time_of_its_chat_or_of_its_first_message(tmp_path: Path, document: Any, time: str) -> None:
    (one,) = conversations_of("sharegpt", written(tmp_path / "chat.json", document))
    assert one.sessions[0].time == time


def test_an_object_around_chats_has_several(tmp_path: Path) -> None:
    path = written(tmp_path / "all.json", {"chats": [{"id": "a", "messages": TURNS}, {"messages": TURNS[:1]}]})
    assert [one.id for one in conversations_of("sharegpt", path)] == ["a", "all-1"]


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ({"name": "  李雷 "}, "李雷"),
        ({"name": "O'Brien\n Jr"}, "O'Brien Jr"),
        ({"author": {"role": "user", "name": "José"}}, "José"),
        ({"author": "Łucja"}, "Łucja"),
        ({"username": "bo"}, "bo"),
        ({"display_name": "Мария", "from": "human"}, "Мария"),
        ({"from": "Flo"}, "Flo"),
        ({"from": "human"}, "user"),
        ({"name": 7}, "user"),
    ],
)
def test_a_message_is_said_by_whom_it_names(tmp_path: Path, message: dict[str, Any], name: str) -> None:
    path = written(tmp_path / "chat.json", [{"role": "user", "content": SAID, **message}])
    (one,) = conversations_of("sharegpt", path)
    assert one.speakers == (name,)


def test_validate_tells_what_was_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "chats.jsonl", lines([{"messages": MESSAGES}, {"messages": MESSAGES[1:2]}]))
    with pytest.raises(SystemExit) as ended:
        main(["data", "validate", str(path)])
    assert ended.value.code == 0
    said = capsys.readouterr()
    assert "chats.jsonl: sharegpt, 2 conversations, 0 questions, no problem" in said.out
    for what, count in TOLD.items():
        assert f"note: {count} {what} left out" in said.err


def test_lines_of_lists_are_chats_and_lines_of_messages_are_threads(tmp_path: Path) -> None:
    path = written(tmp_path / "lists.jsonl", lines([MESSAGES, MESSAGES[1:2]]))
    found = conversations_of("sharegpt", path)
    assert [(one.id, sum(1 for _ in one.turns())) for one in found] == [("lists-0", 4), ("lists-1", 1)]
    rows = [{"thread_id": name, "role": "user", "content": name} for name in ("x", "y", "x")]
    threads = conversations_of("sharegpt", written(tmp_path / "threads.jsonl", lines(rows)))
    assert [(one.id, [turn.text for turn in one.turns()]) for one in threads] == [("x", ["x", "x"]), ("y", ["y"])]


def test_a_message_without_a_content_or_speaker_is_still_a_mistake(tmp_path: Path) -> None:
    for message, problem in (
        ({"role": "user"}, r"messages\.1\.value: Field required"),
        ({"role": "user", "content": 5}, r"messages\.1\.value: Input should be a valid string"),
        ({"content": "Hello."}, r"messages\.1\.from: Field required"),
        ("Hello.", r"messages\.1: Input should be"),
    ):
        path = written(tmp_path / "chat.json", {"messages": [MESSAGES[1], message]})
        with pytest.raises(DataError, match=problem):
            conversations_of("sharegpt", path)


@pytest.mark.parametrize("named", ["folder", "file"])
@pytest.mark.parametrize("layout", ["sharegpt", "jsonl"])
def test_questions_beside_json_lines_are_asked(tmp_path: Path, layout: str, named: str) -> None:
    own = {
        "id": "c",
        "speakers": ["Ann"],
        "sessions": [{"id": "1", "turns": [{"id": "1:2", "speaker": "Ann", "text": "I am allergic to peanuts."}]}],
    }
    row: dict[str, Any] = {"id": "c", "messages": MESSAGES} if layout == "sharegpt" else own
    file = written(tmp_path / "chats.jsonl", lines([row]))
    written(
        tmp_path / "questions.csv", "conversation,question,answers,evidence\nc,What is Ann allergic to?,peanuts,1:2\n"
    )
    path = tmp_path if named == "folder" else file
    assert dataset_name_of(path) == layout
    (one,) = conversations_of(layout, path)
    assert [(asked.question, asked.answers, asked.evidence) for asked in one.questions] == [
        ("What is Ann allergic to?", ("peanuts",), ("1:2",))
    ]


def test_a_table_beside_a_file_may_be_about_others_or_somebody_elses(tmp_path: Path) -> None:
    file = written(tmp_path / "chats.jsonl", lines([{"id": "c", "messages": MESSAGES}]))
    table = written(tmp_path / "questions.csv", "conversation,question,answers\nd,Who?,Bo\n")
    checked = problems_of_dataset("sharegpt", file)
    assert checked.problems == ()
    assert "1 questions about other conversations left out" in checked.notes
    table.write_text("survey,score\nx,1\n")
    checked = problems_of_dataset("sharegpt", file)
    assert checked.problems == ()
    assert any(note.startswith("1 tables of questions beside it in another layout (") for note in checked.notes)
    assert problems_of_dataset("sharegpt", tmp_path).problems  # a folder's table is about its chats


@pytest.mark.parametrize(
    ("message", "text", "omitted"),
    [
        ("Hi.", "Hi.", {}),
        ({"role": "user", "content": ["a", {"text": "b"}, {"text": "c", "thought": True}]}, "a\nb", {THOUGHT: 1}),
        ({"role": "user", "content": [{"type": "text", "text": {"value": "v", "annotations": []}}]}, "v", {}),
        ({"role": "assistant", "content": "<think>hm</think>\nYes."}, "Yes.", {THOUGHT: 1}),
        ({"role": "assistant", "content": None, "refusal": "I can't."}, "I can't.", {}),
        ({"role": "assistant", "content": None, "audio": {"id": "a", "transcript": "Hello."}}, "Hello.", {}),
        ({"role": "assistant", "reasoning_content": "hm", "content": "Yes."}, "Yes.", {}),
        ({"role": "user", "content": "See.", "images": ["aGk="]}, "See.", {"images": 1}),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}, "", {THOUGHT: 1}),
        ({"role": "assistant", "content": [{"type": "tool_use", "input": {}}]}, "", {"tool calls": 1}),
        ({"role": "user", "content": [{"type": "tool_result", "content": "42"}]}, "", {"tool results": 1}),
        ({"role": "user", "content": [{"toolResult": {}}, {"image": {}}]}, "", {"tool results": 1, "images": 1}),
        ({"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}, "", {"recordings": 1}),
        ({"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}, "", {"files": 1}),
        ({"role": "user", "content": [{"type": "hologram", "text": "x"}]}, "", {"parts of the kind 'hologram'": 1}),
    ],
)  # fmt: skip
def test_only_texts_and_transcripts_are_speech(message: Any, text: str, omitted: dict[str, int]) -> None:
    speech = speech_of(message)
    assert (speech.text, dict(speech.omitted)) == (text, omitted)
