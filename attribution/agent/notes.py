"""What an agent remembers of its steps: the latest in full, earlier ones in a line, the earliest not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BRIEF_CHARACTERS = 140


@dataclass(frozen=True, slots=True)
class Note:
    """One step: what was asked and what came of it."""

    request: str
    reply: str

    @property
    def whole(self) -> str:
        """The whole step."""
        return f"> {self.request}\n{self.reply}"

    @property
    def brief(self) -> str:
        """The step in one line."""
        line = f"> {self.request} => {' '.join(self.reply.split())}"
        return line if len(line) <= BRIEF_CHARACTERS else f"{line[: BRIEF_CHARACTERS - 1]}…"


def tokens_at_most(text: str) -> int:
    """Tokens of a text, on the high side: a token of English has about four bytes, a character of Chinese is one."""
    return len(text.encode("utf-8", "replace")) // 3 + 1


def remembered(notes: Sequence[Note], room: int) -> str:
    """As much of the notes as fits into `room` tokens, in their order.

    The latest are kept whole as long as all earlier ones can still have a line; what still does not fit is
    counted. The latest note is always included, cut if need be.
    """
    lines: list[str] = []
    room -= tokens_at_most("(000 earlier steps left out)\n")
    for place in range(len(notes) - 1, -1, -1):
        note = notes[place]
        reserved = sum(tokens_at_most(earlier.brief) for earlier in notes[:place])
        whole, brief = tokens_at_most(note.whole) + 1, tokens_at_most(note.brief) + 1
        if whole + reserved <= room or (not lines and whole <= room):
            lines.append(note.whole)
            room -= whole
        elif brief <= room:
            lines.append(note.brief)
            room -= brief
        elif not lines:
            lines.append(note.whole[: max(0, room)])
            room = 0
        else:
            break
    omitted = len(notes) - len(lines)
    first = [f"({omitted} earlier step{'s' if omitted > 1 else ''} left out)"] if omitted else []
    return "\n".join(first + lines[::-1])
