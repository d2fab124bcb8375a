"""Chats in OpenAI's message format or the ShareGPT layout: an array or lines of `{id, messages: [{role, content}]}`.

Each is a conversation of one session. It may also be its messages alone: a list of them, or the whole file. What nobody
says in it (images, tool calls and their results, instructions, reasoning) is left out and counted. Exports have no
questions: a `questions.csv` beside them adds them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field, model_validator

from experiments.data.dataset_reader import FileReader, Ids, Reading, build_conversation
from experiments.data.json_rows import FileLayout, json_rows
from experiments.data.own.moments import time_in_log
from experiments.data.own.tables import QUESTIONS, Questions
from tracing.files.file_kinds import HOLDERS, MESSAGES, is_chat, is_message, kind_of
from tracing.interchange.speech import SPEAKERS, name_of, role_of, speech_of, unspoken, unwrapped
from tracing.systems.conversations import Conversation, DialogueSession, Turn

SHAREGPT = "sharegpt"

_EXPECTED = "the layout of ShareGPT or of OpenAI's messages is expected, see docs/data-format.md"
_CONTENTS = ("value", "content", "parts", "contents", "text")
_WITHOUT_CONTENT = ("tool_calls", "function_call", "refusal", "audio", "reasoning_content")
"""Keys that a message may have in place of a content."""
_THREAD = ("conversation_id", "thread_id", "session_id", "chat_id", "sessionId")
_IDS = ("id", *_THREAD, "uuid", "custom_id", "conversation_hash")
_TIMES = ("created_at", "create_time", "createdAt", "timestamp", "time", "datetime", "date", "ts")
_NO_TEXT = "messages without a text"


class _Message(FileLayout):
    """A message; `speaker` is its name or else its role, `time` when it was said if it tells."""

    speaker: str = Field(validation_alias="from")
    text: str = Field(validation_alias="value")
    time: str = ""
    omitted: Mapping[str, int] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _spoken(cls, raw: Any) -> Any:
        raw = unwrapped(raw)
        if not isinstance(raw, dict):
            return raw
        nobody = unspoken(raw)
        if nobody is not None:
            return {"from": "", "value": "", "omitted": {nobody: 1}}
        role = role_of(raw)
        speaker = name_of(raw) or SPEAKERS.get(role.lower(), role)
        read: dict[str, Any] = {"time": _time(raw), **({"from": speaker} if speaker else {})}
        key = next((key for key in _CONTENTS if key in raw), None)
        content = raw[key] if key is not None else None
        if isinstance(content, str | list | dict) or (content is None and (key or any(map(raw.get, _WITHOUT_CONTENT)))):
            speech = speech_of(raw)
            read |= {
                "value": speech.text,
                "omitted": speech.omitted if speech.text else {**speech.omitted, _NO_TEXT: 1},
            }
        elif key is not None:
            read["value"] = content
        return read


class _Chat(FileLayout):
    """A chat, or a message of one that is written message by message, whose `thread` is its id if it has one.

    Its `time` is when it began, if it tells; its `inner` ones are those of an export that is an object with a list of
    chats.
    """

    id: str | int | None = Field(default=None, validation_alias=AliasChoices(*_IDS))
    time: str = ""
    messages: tuple[_Message, ...] = Field(validation_alias=AliasChoices(*MESSAGES))
    is_message: bool = False
    inner: tuple[_Chat, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, raw: Any) -> Any:
        chat = _as_chat(raw)
        return {**chat, "time": _time(chat)} if isinstance(chat, dict) else chat


def _time(raw: Mapping[str, Any]) -> str:
    return next(filter(None, map(time_in_log, map(raw.get, _TIMES))), "")


def _as_chat(raw: Any) -> Any:
    """A row as the keys of a chat: out of an object around it, or as a message alone."""
    if isinstance(raw, list):
        return {"messages": raw}
    if not isinstance(raw, dict):
        return raw
    message = unwrapped(raw)
    if not any(key in message for key in MESSAGES) and (role_of(message) or unspoken(message)):
        thread = next((message[key] for key in _THREAD if message.get(key) is not None), None)
        return {"id": thread, "messages": [message], "is_message": True}
    for key in (*HOLDERS, *MESSAGES):
        inner = raw.get(key)
        if isinstance(inner, dict) and key in HOLDERS and is_chat(inner):
            return _as_chat({**{name: raw[name] for name in (*_IDS, *_TIMES) if name in raw}, **inner})
        if isinstance(inner, list) and inner and is_chat(inner[0]):
            return {**raw, "messages": inner} if is_message(inner[0]) else {"messages": (), "inner": inner}
    return raw


def read_sharegpt(path: Path, reading: Reading) -> Iterator[Conversation | None]:
    """The chats of a file, or of all `.json` and `.jsonl` files in a folder; empty ones are left out."""
    files = sorted(entry for entry in path.iterdir() if _is_export(entry)) if path.is_dir() else [path]
    if not files:
        reading.problem(f"{path}: holds no .json or .jsonl file; {_EXPECTED}")
    # Exports have files about themselves beside the chats, such as their users.
    chats = [file for file in files if (kind := kind_of(file)) is not None and kind.name != "json"]
    if path.is_dir() and chats:
        reading.left_out(path.name, "files without a chat", len(files) - len(chats))
        files = chats
    questions = Questions.beside(path, reading)
    ids = Ids(reading)
    for file in files:
        empty = True
        for name, where, time, messages in _chats(file, reading):
            empty = False
            if ids.new("conversation", name, "id", where, where):
                yield _conversation(where, name, time, messages, questions, reading)
        if empty:
            reading.problem(f"{file}: holds no chat; {_EXPECTED}")
    questions.unclaimed()


READER = FileReader(SHAREGPT, read_sharegpt)


def _is_export(path: Path) -> bool:
    return path.is_file() and path.suffix in (".json", ".jsonl") and path.stem != QUESTIONS


def _chats(file: Path, reading: Reading) -> Iterator[tuple[str, str, str, tuple[_Message, ...]]]:
    """Id, place, time and messages of each chat."""
    threads: dict[str, list[_Message]] = defaultdict(list)
    first = ""
    rows = json_rows(file, _Chat, reading, _EXPECTED)
    for place, (where, chat) in enumerate((where, chat) for where, row in rows for chat in row.inner or (row,)):
        if chat.is_message:
            threads[file.stem if chat.id is None else str(chat.id)] += chat.messages
            first = first or where
        else:
            yield str(chat.id) if chat.id is not None else f"{file.stem}-{place}", where, chat.time, chat.messages
    for name, messages in threads.items():
        yield name, first, "", tuple(messages)


def _conversation(
    where: str, name: str, time: str, messages: tuple[_Message, ...], questions: Questions, reading: Reading
) -> Conversation | None:
    for message in messages:
        for reason, count in message.omitted.items():
            reading.left_out(name, reason, count)
    # A turn keeps the place of its message, so that what is left out changes no id.
    turns = tuple(
        Turn(id=f"1:{number}", speaker=message.speaker, text=message.text)
        for number, message in enumerate(messages, start=1)
        if message.text
    )
    if not turns:
        reading.left_out(name, "chats without a message")
        return None
    time = time or next((message.time for message in messages if message.time), "")
    session = DialogueSession(id="1", time=time, turns=turns)
    own_questions = questions.of(name, frozenset(turn.id for turn in turns))
    return build_conversation(where, _EXPECTED, reading, name, [session], own_questions)
