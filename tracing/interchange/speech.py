"""What is said in a message of a chat: its texts, in whichever of the usual layouts they are written.

A message has a text, or a list of parts: OpenAI's chat, responses and threads, Anthropic's, Gemini's, Bedrock's and
Ollama's, OpenTelemetry's GenAI conventions and OpenInference's. Only texts and transcripts are speech. Images, files,
tool calls, their results and a model's reasoning are not: they are counted. What they are called is in `speech.toml`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracing.interchange.thinking import split_thinking
from tracing.package_data import packaged_tables

USER, ASSISTANT = "user", "assistant"

_TABLES = packaged_tables("tracing.interchange", "speech.toml")
_NOUNS: Mapping[str, str] = _TABLES["nouns"]
INSTRUCTIONS, REASONING, TOOL_CALLS, TOOL_RESULTS, IMAGES = (
    _NOUNS[key] for key in ("instructions", "reasoning", "tool_calls", "tool_results", "images")
)

SPEAKERS: Mapping[str, str] = {role: who for who, roles in _TABLES["speakers"].items() for role in roles}
"""Role in lower case → who speaks."""

UNSPOKEN: Mapping[str, str] = {role: _NOUNS[key] for key, roles in _TABLES["unspoken"].items() for role in roles}
"""Role in lower case of a message that nobody says → what such messages are."""

_OF_A_TOOL = re.compile(_TABLES["of_a_tool"])
_AROUND, _NAMES, _SPEAKING, _CONTENTS, _TEXTS = (
    tuple(_TABLES["keys"][key]) for key in ("around", "names", "speaking", "contents", "texts")
)
_KINDS = [(re.compile(pattern), _NOUNS[key]) for key, pattern in _TABLES["kinds"].items()]
_LONGEST_KIND = 40


@dataclass(frozen=True, slots=True)
class Speech:
    """What a message says.

    Attributes:
        text: its texts, one per line; empty if it says nothing.
        omitted: what else it holds and how often, such as `images`.
    """

    text: str
    omitted: Mapping[str, int] = field(default_factory=dict)


def speech_of(message: Any) -> Speech:
    """What a message, or its content alone, says: a text, a list of parts, or an object with either."""
    omitted: Counter[str] = Counter()
    if not isinstance(message, Mapping):
        return Speech(_joined(_texts(message, omitted)), omitted)
    content = next((message[key] for key in _CONTENTS if message.get(key) not in (None, "", [])), None)
    texts = [*_texts(content, omitted), *_texts(message.get("refusal"), omitted)]
    sound = message.get("audio")
    if isinstance(sound, Mapping):
        texts += _part({**sound, "type": "audio"}, omitted)
    for key, noun in (("tool_calls", TOOL_CALLS), ("function_call", TOOL_CALLS), (IMAGES, IMAGES)):
        listed = message.get(key)
        omitted[noun] += len(listed) if isinstance(listed, list) else bool(listed)
    text = _joined(texts)
    if SPEAKERS.get(role_of(message).lower()) == ASSISTANT:
        text, thinking = split_thinking(text)
        omitted[REASONING] += bool(thinking)
    return Speech(text.strip(), +omitted)


def unspoken(message: Mapping[str, Any]) -> str | None:
    """What a message is that nobody says, such as `tool results`; None for one that somebody says."""
    role = role_of(message).lower()
    if role:
        return UNSPOKEN.get(role) or (_known_noun(role) if _OF_A_TOOL.fullmatch(role) else None)
    kind = message.get("type")
    return _known_noun(kind.lower()) if isinstance(kind, str) else None


def role_of(message: Mapping[str, Any]) -> str:
    """Whose message it is, as its layout names it; empty if it does not say."""
    author, kind = message.get("author"), message.get("type")
    named = [message.get(key) for key in ("role", "from", "speaker", "sender")]
    named.append(author.get("role") if isinstance(author, Mapping) else author)
    named.append(kind if isinstance(kind, str) and kind.lower() in (*SPEAKERS, *UNSPOKEN) else None)
    return next((role.strip() for role in named if isinstance(role, str) and role.strip()), "")


def name_of(message: Mapping[str, Any]) -> str:
    """The name of who says a message, where it has one beside the role; empty otherwise."""
    author = message.get("author")
    holders = (message, author if isinstance(author, Mapping) else {})
    named = [holder.get(key) for holder in holders for key in _NAMES]
    if isinstance(message.get("role"), str):
        named += [name for key in _SPEAKING if str(name := message.get(key)).lower() not in (*SPEAKERS, *UNSPOKEN)]
    return next((" ".join(name.split()) for name in named if isinstance(name, str) and name.strip()), "")


def unwrapped(message: Any) -> Any:
    """A message out of the object around it, as LangChain's dumps and the logs of agents have it."""
    if not isinstance(message, Mapping) or any(key in message for key in _CONTENTS):
        return message
    inner = next((inner_message for key in _AROUND if isinstance(inner_message := message.get(key), Mapping)), None)
    whole = {**message, **inner} if inner is not None and any(key in inner for key in _CONTENTS) else {}
    return whole if whole and (role_of(whole) or name_of(whole)) else message


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(text for text in texts if text.strip())


def _texts(content: Any, omitted: Counter[str]) -> list[str]:
    if isinstance(content, list | tuple):
        return [text for part in content for text in _part(part, omitted)]
    return _part(content, omitted)


def _part(part: Any, omitted: Counter[str]) -> list[str]:
    """The text of a part, in a list; anything else is counted."""
    if isinstance(part, str):
        return [part]
    if isinstance(part, list | tuple):
        return _texts(part, omitted)
    if not isinstance(part, Mapping):
        return []
    inner = part.get("message_content")
    if isinstance(inner, Mapping):
        part = inner
    kind = _kind(part)
    if kind in _TEXTS:
        text = next((part[key] for key in ("text", "content", "refusal", "value") if part.get(key) is not None), None)
        return _texts(text.get("value") if isinstance(text, Mapping) else text, omitted)
    for holder in (part, part.get("audio"), part.get("input_audio")):
        transcript = holder.get("transcript") if isinstance(holder, Mapping) else None
        if isinstance(transcript, str) and transcript.strip():
            return [transcript]
    omitted[_noun(kind, part)] += 1
    return []


def _kind(part: Mapping[str, Any]) -> str:
    """What a part is; one that does not say is a text if it has one, else what its first key names."""
    if part.get("thought") is True:
        return "thought"
    part_kind = part.get("type") or part.get("content_type") or part.get("part_kind")
    if isinstance(part_kind, str):
        return part_kind.lower()
    return "text" if isinstance(part.get("text"), str) else str(next(iter(part), "")).lower()


def _noun(kind: str, part: Mapping[str, Any]) -> str:
    described = " ".join(str(part[key]).lower() for key in ("modality", "mime_type", "media_type") if part.get(key))
    return _known_noun(described) or _known_noun(kind) or f"parts of the kind {kind[:_LONGEST_KIND]!r}"


def _known_noun(words: str) -> str | None:
    return next((noun for pattern, noun in _KINDS if pattern.search(words)), None)
