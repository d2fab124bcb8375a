"""What a model thought before it answered, in the forms in which endpoints send it, apart from its answer."""

from __future__ import annotations

import re
from typing import NamedTuple

_TAGS = r"think|thinking|thought|thoughts|reasoning|reflection"
_OPENING = re.compile(
    rf"\s*(?:<(?P<tag>{_TAGS})>|(?P<mistral>\[THINK\])|(?P<cohere><\|START_THINKING\|>))", re.IGNORECASE
)
_CLOSED_ALONE = re.compile(r"</(?:think|thinking|thought|reasoning)>|\[/THINK\]|<\|END_THINKING\|>", re.IGNORECASE)
_RESPONSE = re.compile(r"<\|(?:START|END)_RESPONSE\|>")
_CHANNEL = re.compile(r"<\|channel\|>\s*(?P<channel>\w+)[^<]*<\|message\|>")
_CONTROL = re.compile(r"<\|(?:start|end|return|channel|message|call|constrain)\|>")


class SplitReply(NamedTuple):
    """A reply's answer, and what was thought before it; "" each for none."""

    answer: str
    thinking: str


def split_thinking(text: str) -> SplitReply:
    """Take apart what a model thought and what it answered.

    Read are tags at the beginning of a reply (`<think>`, `[THINK]` and the like), also without the opening one, which
    some chat templates write themselves, and the channels of gpt-oss ("harmony"). Thinking that was cut off is all of
    the reply, and the answer is empty.

    Example:
        >>> split_thinking("<think>It was Oslo.</think>\\nOslo")
        SplitReply(answer='Oslo', thinking='It was Oslo.')
    """
    if "<|channel|>" in text or "<|message|>" in text:
        return _channels(text)
    opening = _OPENING.match(text)
    start = opening.end() if opening else 0
    closed = _closing(opening).search(text, start) if opening else _closed_alone(text)
    if closed is not None:
        return SplitReply(_RESPONSE.sub("", text[closed.end() :]).strip(), text[start : closed.start()].strip())
    return SplitReply("", text[start:].strip()) if opening else SplitReply(text, "")


def _closing(opening: re.Match[str]) -> re.Pattern[str]:
    if opening["tag"]:
        return re.compile(rf"</{re.escape(opening['tag'])}>", re.IGNORECASE)
    return re.compile(re.escape("[/THINK]" if opening["mistral"] else "<|END_THINKING|>"), re.IGNORECASE)


def _closed_alone(text: str) -> re.Match[str] | None:
    """The end of what was thought where no tag opens it; a text that speaks of tags has both."""
    closed = _CLOSED_ALONE.search(text)
    opening = closed and re.search(re.escape(closed[0].replace("/", "", 1)), text[: closed.start()], re.IGNORECASE)
    return None if opening else closed


def _channels(text: str) -> SplitReply:
    """The last message of the channel `final` is the answer; those of others were thought."""
    answer, thinking = "", []
    marks = list(_CHANNEL.finditer(text))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        message = text[mark.end() : following.start() if following else len(text)]
        message = _CONTROL.split(message)[0].strip()
        if mark["channel"] == "final":
            answer = message
        else:
            thinking.append(message)
    if not marks:
        answer = _CONTROL.sub("", text).strip()
    return SplitReply(answer, "\n".join(thinking))
