"""Two versions of a prompt as the lines of one comparison, for a page."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tracing.recording.redaction import redact

CONTEXT_LINES = 4
"""Unchanged lines shown around a change; a longer stretch is folded."""

FEWEST_FOLDED = 3
"""Hidden lines that are too few to fold."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a comparison; `parts` are pieces of it with whether they differ, `fold` counts lines left out here."""

    kind: Literal["same", "removed", "added", "fold"]
    parts: tuple[tuple[str, bool], ...] = ()
    fold: int = 0


def difference(before: str, after: str) -> list[DiffLine]:
    """The lines of both texts in order, without credentials, changed words marked in lines that changed in place."""
    # A word-for-word comparison would split a credential.
    return list(_lines(redact(before).splitlines(), redact(after).splitlines()))


def _lines(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    for tag, first, last, start, end in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from _fold(old[first:last], opening=first == 0, closing=last == len(old))
            continue
        removed, added = old[first:last], new[start:end]
        pairs = [_words(old_line, new_line) for old_line, new_line in zip(removed, added, strict=False)]
        for place, line in enumerate(removed):
            yield DiffLine("removed", pairs[place][0] if place < len(pairs) else ((line, False),))
        for place, line in enumerate(added):
            yield DiffLine("added", pairs[place][1] if place < len(pairs) else ((line, False),))


def _fold(lines: Sequence[str], *, opening: bool, closing: bool) -> Iterator[DiffLine]:
    head = 0 if opening and not closing else CONTEXT_LINES
    tail = 0 if closing and not opening else CONTEXT_LINES
    is_whole = (opening and closing) or len(lines) <= head + tail + FEWEST_FOLDED
    for place, line in enumerate(lines):
        if is_whole or place < head or place >= len(lines) - tail:
            yield DiffLine("same", ((line, False),))
        elif place == head:
            yield DiffLine("fold", fold=len(lines) - head - tail)


def _words(old_line: str, new_line: str) -> tuple[tuple[tuple[str, bool], ...], tuple[tuple[str, bool], ...]]:
    old, new = re.findall(r"\w+|\W", old_line), re.findall(r"\w+|\W", new_line)
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    # Lines with little in common read better without marks on nearly every word.
    if matcher.ratio() < 0.4:
        return ((old_line, False),), ((new_line, False),)
    removed, added = [], []
    for tag, first, last, start, end in matcher.get_opcodes():
        if first < last:
            removed.append(("".join(old[first:last]), tag != "equal"))
        if start < end:
            added.append(("".join(new[start:end]), tag != "equal"))
    return tuple(removed), tuple(added)
