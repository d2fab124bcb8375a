"""Changes of a prompt by the line: one instruction is added, replaced or dropped, and all else stays as it is.

Itemised changes keep a prompt short and tell what each line brings, as in ACE (Zhang et al. 2025, arXiv 2510.04618).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from optimizer.proposers.template import add_instruction, is_fixed, sentences, take_apart

_ITEM_MARK = re.compile(r"\s*(?:[-*•]|\d+[.)])?\s*")


@dataclass(frozen=True, slots=True)
class LineChange:
    """One instruction of a prompt, changed.

    Attributes:
        before: the instruction that is replaced or dropped; empty if one is added.
        after: the new one; empty if one is dropped.

    Example:
        >>> LineChange("Be polite.", "Answer in one word.").applied("Be polite.\\n\\n{question}")
        'Answer in one word.\\n\\n{question}'
    """

    before: str
    after: str

    def applied(self, template: str) -> str | None:
        """The template with this change; None if it lacks the instruction, or has it twice."""
        if not self.before:
            return add_instruction(template, self.after)
        parts = take_apart(template)
        head, tail = _replaced(parts.head, self.before, self.after), _replaced(parts.tail, self.before, self.after)
        if (head is None) == (tail is None):
            return None
        return replace(parts, head=parts.head if head is None else head, tail=parts.tail if tail is None else tail).text

    def __str__(self) -> str:
        if not self.before:
            return f"added: {self.after}"
        return f"replaced: {self.before} → {self.after}" if self.after else f"dropped: {self.before}"


def free_instructions(template: str, markers: Sequence[str] = ()) -> list[str]:
    """The instructions of a template that may be changed, in order: those that hold nothing the contract asks for."""
    return [text for text in sentences(take_apart(template).instructions, markers) if not is_fixed(text, markers)]


def changes_between(template: str, other: str) -> list[LineChange]:
    """The changes that make one template of another; none where they differ in more than instructions, or one is none.

    Example:
        >>> changes_between("Be brief.\\n\\n{question}", "Be brief.\\nBe exact.\\n\\n{question}")
        [LineChange(before='', after='Be exact.')]
    """
    try:
        before, after = free_instructions(template), free_instructions(other)
    except ValueError:  # braces that do not balance
        return []
    changes = list(_differences(before, after))
    return changes if all_applied(changes, template) == other else []


def all_applied(changes: Sequence[LineChange], template: str) -> str | None:
    """The template with all changes, in order; None if one of them does not apply."""
    text: str | None = template
    for change in changes:
        text = change.applied(text) if text is not None else None
    return text


def _differences(before: Sequence[str], after: Sequence[str]) -> Iterator[LineChange]:
    for _, first, last, start, stop in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        old, new = before[first:last], after[start:stop]
        if old != new:
            for number in range(max(len(old), len(new))):
                yield LineChange(*("".join(side[number : number + 1]) for side in (old, new)))


def _replaced(lines: Sequence[str], before: str, after: str) -> tuple[str, ...] | None:
    """The lines with one piece of one of them replaced; None if it is in none or in several."""
    holding = [number for number, line in enumerate(lines) if before in line]
    if len(holding) != 1 or lines[holding[0]].count(before) != 1:
        return None
    number = holding[0]
    line = lines[number].replace(before, after)
    if not after:
        indent = line[: len(lines[number]) - len(lines[number].lstrip())]
        line = indent + re.sub(r"(?<=\S) {2,}", " ", line).strip()
    above, below = lines[:number], lines[number + 1 :]
    if not _ITEM_MARK.fullmatch(line):
        return (*above, line, *below)
    alone = below and not below[0].strip() and not (above and above[-1].strip())
    return (*above, *below[1 if alone else 0 :])
