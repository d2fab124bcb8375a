"""What a prompt can do without: its instructions and demonstrations, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from optimizer.proposers.line_changes import LineChange, free_instructions
from optimizer.proposers.template import EXAMPLE, NOW, Parts, take_apart
from tracing.systems.prompts import tokens_of


def removable(template: str, markers: Sequence[str] = ()) -> list[str]:
    """The demonstrations and instructions that can be taken out, the longest first.

    Example:
        >>> removable("Be polite, whatever was said.\\nBe exact.\\n\\nMemories: {context}\\nQuestion: {question}")
        ['Be polite, whatever was said.', 'Be exact.']
    """
    pieces = [*_demonstrations(take_apart(template)), *free_instructions(template, markers)]
    return sorted((piece for piece in pieces if without(template, [piece])), key=lambda piece: -tokens_of(piece))


def without(template: str, pieces: Iterable[str]) -> str | None:
    """The template with none of these instructions and demonstrations; None if one of them cannot be taken out."""
    text: str | None = template
    for piece in pieces:
        text = text and _without(text, piece)
    return text


def _without(template: str, piece: str) -> str | None:
    parts = take_apart(template)
    shown = _demonstrations(parts)
    if piece not in shown:
        return LineChange(piece, "").applied(template)
    rest = [text.removeprefix(f"{EXAMPLE}\n") for text in shown if text != piece]
    return (parts.with_demonstrations(rest) if rest else replace(parts, demonstrations=())).text


def _demonstrations(parts: Parts) -> list[str]:
    """Each with the line that opens it."""
    block = "\n".join(parts.demonstrations).removesuffix(NOW).rstrip()
    return [f"{EXAMPLE}\n{text.strip()}" for text in block.split(f"{EXAMPLE}\n") if text.strip()]
