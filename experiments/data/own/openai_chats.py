"""ChatGPT exports: `conversations.json`, an array of chats whose messages are a tree.

An export is one person's history, so it is one conversation, and each chat is a session of it, in the order the chats
began. Of a chat, the branch that was shown last is taken; what was hidden, and what nobody said (tool calls and their
results, reasoning, instructions), is left out and counted. Exports have no questions: a folder with `questions.csv`,
and with an export of each person in a folder of its own, adds them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import Field

from experiments.data.dataset_reader import FileReader, Reading, build_conversation
from experiments.data.json_rows import FileLayout, json_rows
from experiments.data.own.tables import Questions
from tracing.interchange.speech import REASONING, TOOL_CALLS, TOOL_RESULTS, UNSPOKEN
from tracing.systems.conversations import Conversation, DialogueSession, Turn

OPENAI_CHATS = "openai-chats"

_EXPECTED = "the layout of a ChatGPT export is expected, see docs/data-format.md"
_FILES = "conversations*.json"
_SPOKEN = ("user", "assistant")
_SPOKEN_TYPES = ("text", "multimodal_text")
_TO_ALL = "all"
_AUDIO = "[shares an audio]"
_LAST_YEAR = 253_402_300_799
"""The last second that a date can name."""


class _Author(FileLayout):
    role: str


class _Content(FileLayout):
    content_type: str = "text"
    parts: tuple[Any, ...] = ()
    text: str | None = None


class _Message(FileLayout):
    id: str | None = None
    author: _Author
    content: _Content
    weight: float | None = None
    metadata: Mapping[str, Any] | None = None
    recipient: str | None = None


class _Node(FileLayout):
    message: _Message | None = None
    parent: str | None = None
    children: tuple[str, ...] = ()


class _Chat(FileLayout):
    id: str | None = None
    conversation_id: str | None = None
    title: str | None = None
    create_time: float | None = Field(default=None, ge=0, le=_LAST_YEAR)
    current_node: str | None = None
    mapping: Mapping[str, _Node]


def read_openai_chats(path: Path, reading: Reading) -> Iterator[Conversation | None]:
    """One conversation of each export: a file, or the files `conversations*.json` of a folder in and under `path`."""
    exports: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(path.rglob(_FILES)) if path.is_dir() else [path]:
        inside = file.parent.relative_to(path).as_posix() if path.is_dir() else "."
        exports[inside if inside != "." else file.stem if file == path else path.name].append(file)
    if not exports:
        reading.problem(f"{path}: holds no {_FILES}; give --data an export, see docs/data-format.md")
    questions = Questions(path, reading) if path.is_dir() else None
    for name, files in exports.items():
        chats = [(where, chat) for file in files for where, chat in json_rows(file, _Chat, reading, _EXPECTED)]
        yield _conversation(name, files[0], chats, questions, reading)
    if questions is not None:
        questions.unclaimed()


READER = FileReader(OPENAI_CHATS, read_openai_chats)


def _conversation(
    name: str, file: Path, chats: Sequence[tuple[str, _Chat]], questions: Questions | None, reading: Reading
) -> Conversation | None:
    sessions: dict[str, DialogueSession] = {}
    for where, chat in sorted(chats, key=lambda located_chat: located_chat[1].create_time or 0.0):
        key = chat.conversation_id or chat.id or f"chat-{len(sessions) + 1}"
        if key in sessions:
            reading.problem(f"{where}: id: {key!r} is that of another chat too; remove one of them")
            continue
        turns = _turns(where, name, key, chat, reading)
        if not turns:
            reading.left_out(name, "chats without a message")
            continue
        began = datetime.fromtimestamp(chat.create_time, UTC) if chat.create_time else None
        time = began.strftime("%Y-%m-%d %H:%M") if began else ""
        sessions[key] = DialogueSession(id=key, time=time, turns=turns)
    if not sessions:
        reading.problem(f"{file}: holds no chat with a message; {_EXPECTED}")
        return None
    turn_ids = frozenset(turn.id for session in sessions.values() for turn in session.turns)
    own_questions = questions.of(name, turn_ids) if questions is not None else ()
    dialogue = [*sessions.values()]
    return build_conversation(str(file), _EXPECTED, reading, name, dialogue, own_questions, speakers=_SPOKEN)


def _turns(where: str, name: str, key: str, chat: _Chat, reading: Reading) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    branch = _branch(where, chat, reading)
    for message in (node.message for node in branch if node.message is not None):
        text, unsaid = _text(message.content), _unsaid(message)
        if text and unsaid is None:
            turns.append(Turn(id=f"{key}:{len(turns) + 1}", speaker=message.author.role, text=text))
        elif text or unsaid in (None, REASONING):
            reading.left_out(name, unsaid or "messages without a text")
    branch_nodes = {id(node) for node in branch}
    others = (
        node.message for node in chat.mapping.values() if node.message is not None and id(node) not in branch_nodes
    )
    reading.left_out(name, "messages of branches not shown last", sum(_unsaid(message) is None for message in others))
    return tuple(turns)


def _unsaid(message: _Message) -> str | None:
    """What a message is that nobody sees said; None for one that is part of the dialogue."""
    if _is_hidden(message):
        return "hidden messages"
    role, kind = message.author.role, message.content.content_type
    if role not in _SPOKEN:
        return UNSPOKEN.get(role, TOOL_RESULTS)
    if message.recipient not in (None, _TO_ALL):
        return TOOL_CALLS
    if kind in ("thoughts", "reasoning_recap"):
        return REASONING
    return None if kind in (*_SPOKEN_TYPES, "code", "audio_transcription") else f"messages of the kind {kind!r}"


def _branch(where: str, chat: _Chat, reading: Reading) -> list[_Node]:
    """The nodes from the root to the current one; without a current one, to the end of the last branch."""
    at = chat.current_node
    if at is None or at not in chat.mapping:
        at = next((name for name, node in reversed(list(chat.mapping.items())) if not node.children), None)
    nodes: list[_Node] = []
    passed: set[str] = set()
    while at is not None and at in chat.mapping:
        if at in passed:
            reading.problem(f"{where}: mapping.{at}.parent: leads back to itself; {_EXPECTED}")
            return []
        passed.add(at)
        nodes.append(chat.mapping[at])
        at = chat.mapping[at].parent
    return nodes[::-1]


def _is_hidden(message: _Message) -> bool:
    return message.weight == 0 or bool((message.metadata or {}).get("is_visually_hidden_from_conversation"))


def _text(content: _Content) -> str:
    parts = [content.text or ""] if not content.parts else [_part(part) for part in content.parts]
    said = [part for part in parts if part.strip()]
    # What was spoken comes with its transcript.
    return "\n".join([part for part in said if part != _AUDIO] or said).strip()


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    text = part.get("text")
    if isinstance(text, str):
        return text
    kind = str(part.get("content_type") or "file")
    return _AUDIO if "audio" in kind else "[shares an image]" if "image" in kind else f"[shares a {kind.split('_')[0]}]"
