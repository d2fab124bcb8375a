"""A prompt template split into instructions and data, so that edits touch no placeholder and no literal brace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tracing.systems.prompts import escaped, placeholders_of

_LABEL = 60
"""Longest line, in characters, that counts as the label of the data under it or the cue of the reply after it."""

EXAMPLE, NOW = "Example:", "Now this one:"
"""Lines that open a demonstration and close the block of them."""

_OPENING, _CLOSING = re.compile(r"\s*<[^/<>{}]([^<>{}]*[^/<>{}])?>\s*"), re.compile(r"\s*</[^<>{}]+>\s*")
_QUOTE = re.compile(r"\s*(```|\"{3}|'{3})\w*\s*")
"""Lines of nothing but what encloses data."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The lines of a template in order: instructions, demonstrations, data with every placeholder, instructions, cue.

    Demonstrations run from the first line `EXAMPLE` to a line `NOW`. The label over a placeholder ("Memories:") and the
    tags or quotes that enclose it belong to the data. The cue is a short last line that the reply continues
    ("Answer:"), with the blank lines after it. Joined, the parts are the template, character for character.
    """

    head: tuple[str, ...]
    demonstrations: tuple[str, ...]
    data: tuple[str, ...]
    tail: tuple[str, ...] = ()
    cue: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The template."""
        return "\n".join((*self.head, *self.demonstrations, *self.data, *self.tail, *self.cue))

    @property
    def instructions(self) -> list[str]:
        """Every non-empty line of head and tail, in order."""
        return [line for line in (*self.head, *self.tail) if line.strip()]

    def with_instructions(self, lines: Sequence[str]) -> Parts:
        """The same demonstrations, data and cue under other instructions."""
        head = (*lines, "") if lines else ()
        return replace(self, head=head, data=without_blank_ends(self.data), tail=())

    def with_demonstrations(self, texts: Sequence[str]) -> Parts:
        """The same instructions and data with these demonstrations (template texts) in place of others."""
        block = [line for text in texts for line in (EXAMPLE, *text.split("\n"), "")]
        gap = ("",) if without_blank_ends(self.head) and self.head[-1].strip() else ()
        return replace(self, head=(*self.head, *gap), demonstrations=(*block, NOW), data=without_blank_ends(self.data))

    def with_filled(self, examples: Iterable[tuple[Mapping[str, str], str]]) -> Parts:
        """The same with demonstrations in the layout of the data, each of some values and the right reply to them."""
        return self.with_demonstrations([demonstration_text(self, values, reply) for values, reply in examples])


def take_apart(template: str) -> Parts:
    """The parts of a template; one without a placeholder, to which the system adds the data, is all instructions.

    Raises:
        ValueError: its braces are broken.
    """
    lines = template.split("\n")
    with_data = [number for number, line in enumerate(lines) if placeholders_of(line)]
    if not with_data:
        return Parts(tuple(lines), (), ())
    first, last = with_data[0], with_data[-1]
    while first and _encloses(lines[first - 1], _OPENING, lines[:first]):
        first -= 1
    while last + 1 < len(lines) and _encloses(lines[last + 1], _CLOSING, lines[first : last + 1]):
        last += 1
    if first and _is_label(lines[first - 1]) and lines[first - 1] != NOW:
        first -= 1
    start, stop = _demonstrations(lines[:first], lines[first].partition("{")[0])
    end = max(number for number, line in enumerate(lines) if line.strip())
    cue = end if end > last and _is_label(lines[end]) else len(lines)
    return Parts(
        tuple(lines[:start]),
        tuple(lines[start:stop]),
        tuple(lines[stop : last + 1]),
        tuple(lines[last + 1 : cue]),
        tuple(lines[cue:]),
    )


def _encloses(line: str, tag: re.Pattern[str], lines: Sequence[str]) -> bool:
    """Whether a line is such a tag alone, or a quote that opens or closes data: one of these `lines` is open then."""
    if quote := _QUOTE.fullmatch(line):
        return sum(other.lstrip().startswith(quote[1]) for other in lines) % 2 == 1
    return tag.fullmatch(line) is not None


def _demonstrations(before: Sequence[str], opening: str) -> tuple[int, int]:
    """Where the demonstrations among the lines before the data start and stop; both at the end if there are none.

    A prompt may have a line `EXAMPLE` of its own. A demonstration has the layout of the data, so the first that goes on
    as the data begin (`opening`) is one.
    """
    stop = max((number + 1 for number, line in enumerate(before) if line == NOW), default=0)
    starts = [number for number, line in enumerate(before[:stop]) if line == EXAMPLE]
    like_data = (number for number in starts if before[number + 1].startswith(opening))
    start = next(like_data, min(starts, default=None))
    return (len(before), len(before)) if start is None else (start, stop)


def without_blank_ends(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines without leading and trailing blank ones."""
    text_lines = [number for number, line in enumerate(lines) if line.strip()]
    return tuple(lines[text_lines[0] : text_lines[-1] + 1]) if text_lines else ()


def _is_label(line: str) -> bool:
    return line.rstrip().endswith(":") and len(line) <= _LABEL and not is_fixed(line)


def is_fixed(line: str, markers: Sequence[str] = ()) -> bool:
    """Whether a line must stay as it is: it holds a brace, or text the contract asks for."""
    return "{" in line or "}" in line or any(marker in line for marker in markers)


def sentences(lines: Sequence[str], markers: Sequence[str] = ()) -> list[str]:
    """Instruction lines as sentences, bullets and numbers stripped; a fixed line stays whole and unchanged."""
    parts: list[str] = []
    for line in lines:
        if is_fixed(line, markers):
            parts.append(line)
        else:
            plain = re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", line)
            parts += [part.strip() for part in re.split(r"(?<=[.!?])\s+(?=[A-Z\d'\"])", plain) if part.strip()]
    return parts


def add_instruction(template: str, instruction: str) -> str:
    """The template with one more instruction: after the others, before closing lines that show the reply's form."""
    parts = take_apart(template)
    in_tail = not without_blank_ends(parts.head) and bool(without_blank_ends(parts.tail))
    lines = list(parts.tail if in_tail else parts.head)
    place = len(lines)
    while place and not lines[place - 1].strip():
        place -= 1
    while place > 1 and "{" in lines[place - 1] and lines[place - 2].strip():
        place -= 1
    lines.insert(place, _in_style(instruction, lines[:place]))
    if not in_tail and place == len(lines) - 1:
        lines.append("")
    return (replace(parts, tail=tuple(lines)) if in_tail else replace(parts, head=tuple(lines))).text


def _in_style(instruction: str, before: Sequence[str]) -> str:
    """The instruction as the next item of the list it follows, or as it is."""
    last = before[-1] if before else ""
    if bullet := re.match(r"^(\s*[-*•]\s+)", last):
        return bullet.group(1) + instruction
    if number := re.match(r"^(\s*)(\d+)([.)]\s+)", last):
        return f"{number.group(1)}{int(number.group(2)) + 1}{number.group(3)}{instruction}"
    return instruction


def demonstration_text(parts: Parts, values: Mapping[str, str], reply: str) -> str:
    """The data with `values` in it and `reply` after the cue, as template text: every brace in it is literal."""
    text = "\n".join(without_blank_ends(parts.data)).format_map(values)
    cue = "\n".join(without_blank_ends(parts.cue)).format_map({})
    ending = f"{cue} {reply}" if cue else reply
    return escaped(f"{text}\n{ending}")
