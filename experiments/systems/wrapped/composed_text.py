"""A text that a Python program puts together: its literals and fields, and how another is written in their places."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Any

from experiments.systems.wrapped.templates import (
    IS_UNNAMED,
    Field,
    Syntax,
    Template,
    field_name,
    syntax_of,
    syntax_of_template,
    template_of,
)
from tracing.errors import ContractError

_CONVERSIONS = {-1: "", 115: "!s", 114: "!r", 97: "!a"}
_TOKENS = re.compile(r"\{\{|\}\}|\{\w+\}|\w+|\s|.", re.DOTALL)
Place = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A literal (`node` is a constant or an f-string), what is filled in (any other node), or a separator (no node).

    Attributes:
        separator: between the elements of the list that it is an element of, or which it stands between itself.
        is_element: it is the whole of an element, or stands between two such.
        is_dedented: its indentation is taken from it.
    """

    node: ast.AST | None
    separator: str = ""
    is_element: bool = False
    is_dedented: bool = False
    others: tuple[ast.AST, ...] = ()
    """What is filled in directly after it."""
    beside: ast.AST | None = None
    """What is filled in where a literal can be added, before it or after it, and none is yet."""
    is_after: bool = False
    target: str = ""
    """Of what a branch or a loop adds to: the text's name."""

    @property
    def is_literal(self) -> bool:
        return isinstance(self.node, ast.JoinedStr) or is_text(self.node)

    @property
    def is_filled(self) -> bool:
        """Whether it is no literal, and filled in."""
        return self.node is not None and not self.is_literal

    @property
    def is_block(self) -> bool:
        """Whether it adds any number of elements to a list, with what stands between them."""
        return isinstance(self.node, ast.stmt | ast.Starred)

    @property
    def place(self) -> Place:
        """Line and column."""
        return getattr(self.node, "lineno", 0), getattr(self.node, "col_offset", 0)

    @property
    def text(self) -> str:
        """What is written in it."""
        values = self.node.values if isinstance(self.node, ast.JoinedStr) else [self.node]
        text = "".join(str(value.value) for value in values if is_text(value))  # type: ignore[union-attr]
        return textwrap.dedent(text) if self.is_dedented else text

    @property
    def words(self) -> list[str]:
        """The words that are written in it."""
        return re.findall(r"[^\W\d]{2,}", self.text)


Parts = list[Part]


class ComposedText:
    """A text of a program, with the places of its parts.

    Attributes:
        template: what is sent, as a template.
        places: line and column of each literal; left: those of other texts that look like prompts, with their words.
    """

    def __init__(self, parts: Parts, content: str, left: Mapping[Place, str], *, is_template: bool) -> None:
        self._parts, self._content, self.left = _merged(parts), content, left
        self.places = frozenset(part.place for part in parts if part.is_literal)
        values = [part.text for part in self._parts if is_text(part.node)]
        raw = "".join(values)
        self._syntax: Syntax = (syntax_of_template(raw) if is_template else None) or syntax_of(raw)
        self._pieces = list(self._read())
        alone = self._parts[0].node if len(self._parts) == 1 else None
        syntax: Syntax = "f-string" if isinstance(alone, ast.JoinedStr) else self._syntax if alone else "composed"
        self.template = Template(syntax, tuple(piece for pieces in self._pieces for piece in pieces))

    def _read(self) -> Iterator[tuple[str | Field, ...]]:
        taken, unnamed = dict[str, str](), 0
        for part in self._parts:
            if part.node is None:
                yield (part.separator,)
            elif isinstance(part.node, ast.JoinedStr):
                own = _pieces_of(part.node, taken)
                yield tuple(_dedented(own) if part.is_dedented else own)
            elif part.is_literal:
                pieces: list[str | Field] = []
                for piece in template_of(part.text, self._syntax).pieces:
                    if isinstance(piece, Field) and IS_UNNAMED.fullmatch(piece.source):
                        unnamed += 1
                        piece = replace(piece, name=f"value{unnamed}")
                    pieces.append(piece)
                yield tuple(pieces)
            else:
                nodes = (part.node, *part.others)
                name = field_name(".".join(map(_told_by, nodes)), others := dict.fromkeys(taken, ""))
                taken |= {name: others[name]}
                yield (Field(name, "\n".join(map(ast.unparse, nodes))),)

    def written(self, changed: Template) -> str:
        """The content of the file with another template in the place of this one.

        Raises:
            ContractError: the place cannot hold it.
        """
        edits = [edit for run, text in self._runs(changed) for edit in self._edits(run, text)]
        content = self._content
        for start, end, source in sorted(edits, reverse=True):
            source = source.replace("\n", "\r\n") if "\r\n" in content else source
            content = content[:start] + source + content[end:]
        return content

    def _runs(self, changed: Template) -> Iterator[tuple[list[int], str]]:
        """Numbers of the parts between what the program fills in, and the text that is to stand there."""
        outer = [at for at, part in enumerate(self._parts) if part.is_filled]
        names = [piece.name for at in outer for piece in self._pieces[at] if isinstance(piece, Field)]
        texts = [""]
        kept = [piece.name for piece in changed.pieces if isinstance(piece, Field) and piece.name in names]
        if kept != names:
            raise ContractError(
                f"the program puts {', '.join(f'{{{name}}}' for name in names)} in this order, once each; keep it so"
            )
        for piece in changed.pieces:
            if isinstance(piece, Field) and piece.name in names:
                texts.append("")
            else:
                texts[-1] += Template("plain", (piece,)).text
        bounds = [-1, *outer, len(self._parts)]
        for number, text in enumerate(texts):
            yield list(range(bounds[number] + 1, bounds[number + 1])), text

    def _edits(self, run: list[int], text: str) -> Iterator[tuple[int, int, str]]:
        """What is replaced in the file so that these parts have a text: start, end, and source."""
        groups: list[list[int]] = self._groups(run)
        olds = ["".join(map(self._text, group)) for group in groups]
        if "".join(olds) == text:
            return
        for group, old, new in zip(groups, olds, self._divided(groups, olds, text), strict=True):
            first = self._parts[group[0]]
            if old == new:
                continue
            if first.is_element:
                yield from self._edited_lines([at for at in group if self._parts[at].node is not None], new)
            elif first.node is not None:
                yield (*self._extent(first.node), self._literal(first.node, new))
            elif first.beside is not None:
                start, end = self._extent(first.beside)
                literal = self._literal(first.beside, new)
                added = (
                    f"\n{' ' * self._column(first.beside)}{first.target} += {literal}"
                    if first.target
                    else f" + {literal}"
                )
                yield (end, end, added) if first.is_after else (start, start, f"{literal} + ")

    def _text(self, at: int) -> str:
        return Template("plain", self._pieces[at]).text

    def _groups(self, run: list[int]) -> list[list[int]]:
        """Elements of one list that follow each other, with what stands between them; or one part each."""
        groups: list[list[int]] = []
        for at in run:
            part, last = self._parts[at], self._parts[groups[-1][-1]] if groups else None
            if part.is_element and last is not None and last.is_element and None in (part.node, last.node):
                groups[-1].append(at)
            else:
                groups.append([at])
        return groups

    def _divided(self, groups: list[list[int]], olds: list[str], text: str) -> list[str]:
        """The new text of each group: as much stays where it was as can."""
        literal = [(part := self._parts[group[0]]).node is not None or part.beside is not None for group in groups]
        if not any(literal):
            raise ContractError("nothing is written there in the program that could hold the text")
        tokens, after = [_TOKENS.findall(old) for old in olds], _TOKENS.findall(text)
        starts = [0, *accumulate(map(len, after))]
        before = [token for group in tokens for token in group]
        blocks = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        bounds, place = [0], 0
        for number, group in enumerate(tokens[:-1]):
            place += len(group)
            at, moved = bounds[-1], starts[_moved(place, blocks)]
            if not literal[number]:  # the program puts it there itself
                at += len(olds[number])
            elif literal[number + 1]:
                at = max(at, moved)
            else:
                at = min(_found(olds[number + 1], text, at), key=lambda found: abs(found - moved))
            bounds.append(at)
        if not literal[-1]:
            bounds[-1] = len(text) - len(olds[-1])
        ends = [*bounds[1:], len(text)]
        news = [text[start:end] for start, end in zip(bounds, ends, strict=True)]
        for is_literal, old, new in zip(literal, olds, news, strict=True):
            if not is_literal and old != new:
                raise ContractError(f"the program puts {old!r} between its parts; keep it there")
        return news

    def _edited_lines(self, group: list[int], text: str) -> Iterator[tuple[int, int, str]]:
        """Elements of a list: as many as the text has lines, those that stay as they were written."""
        nodes = [node for at in group if (node := self._parts[at].node) is not None]
        olds, separator = [self._text(at) for at in group], self._parts[group[0]].separator
        news = text.split(separator) if separator else [text]
        extents = [self._extent(node) for node in nodes]
        between = self._content[extents[0][1] : extents[1][0]] if extents[1:] else ", "
        between = between if "#" not in between else f",\n{' ' * self._column(nodes[0])}"
        for kind, i1, i2, j1, j2 in SequenceMatcher(None, olds, news, autojunk=False).get_opcodes():
            sources = [self._literal(nodes[min(i1, len(nodes) - 1)], new) for new in news[j1:j2]]
            if kind == "replace":
                yield extents[i1][0], extents[i2 - 1][1], between.join(sources)
            elif kind == "insert" and i1 < len(nodes):
                yield extents[i1][0], extents[i1][0], "".join(source + between for source in sources)
            elif kind == "insert":
                yield extents[-1][1], extents[-1][1], "".join(between + source for source in sources)
            elif kind == "delete" and i2 < len(nodes):
                yield extents[i1][0], extents[i2][0], ""
            elif kind == "delete":
                yield extents[i1 - 1][1], extents[i2 - 1][1], ""

    def _literal(self, node: ast.AST, text: str) -> str:
        """A template of memtune's as a literal in the place of another."""
        pieces = self.template.pieces_of(text)
        own = {name for part, pieces in zip(self._parts, self._pieces, strict=True) for name in _names(pieces, part)}
        filled = {piece.name for piece in pieces if isinstance(piece, Field)}
        syntax: Syntax = "f-string" if isinstance(node, ast.JoinedStr) or filled & own else self._syntax
        is_made_one = syntax == "f-string" and not isinstance(node, ast.JoinedStr)
        if syntax == "f-string" and (filled - own or (is_made_one and self._syntax != "plain")):
            names = ", ".join(f"{{{name}}}" for name in sorted(filled))
            raise ContractError(f"{names} cannot be filled in where they stand now; let them be where they were")
        changed = Template(syntax, tuple(pieces))
        if syntax != "f-string":
            changed.check()
        start, end = self._extent(node)
        before = self._content[start:end] if isinstance(node, ast.Constant | ast.JoinedStr) else ""
        return _python_literal(changed, before, self._column(node))

    def _extent(self, node: Any) -> tuple[int, int]:
        end = _offset(self._content, node.end_lineno, node.end_col_offset)
        return _offset(self._content, node.lineno, node.col_offset), end

    def _column(self, node: ast.AST) -> int:
        start = self._extent(node)[0]
        return start - (self._content.rfind("\n", 0, start) + 1)


def _moved(place: int, blocks: Sequence[tuple[str, int, int, int, int]]) -> int:
    """Where a place between tokens is after a change; what is put in at it comes before it."""
    places = [0]
    for kind, i1, i2, j1, j2 in blocks:
        if i1 <= place <= i2:
            places.append(j1 + place - i1 if kind == "equal" else j1 if i1 == place < i2 else j2)
    return max(places)


def _found(separator: str, text: str, start: int) -> list[int]:
    places = [match.start() for match in re.finditer(re.escape(separator), text) if match.start() >= start]
    if not places:
        raise ContractError(f"the program puts {separator!r} between its parts; keep it there")
    return places


def is_text(node: Any) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _names(pieces: Iterable[str | Field], part: Part) -> Iterator[str]:
    """The fields of an f-string."""
    if isinstance(part.node, ast.JoinedStr):
        yield from (piece.name for piece in pieces if isinstance(piece, Field))


def _told_by(node: ast.AST) -> str:
    """An expression that says what is filled in: of a block, what it goes through or asks."""
    told = getattr(node, "iter", getattr(node, "test", getattr(node, "subject", node)))
    return ast.unparse(getattr(told, "value", told) if isinstance(told, ast.Starred) else told)


def _merged(parts: Parts) -> Parts:
    """What is filled in side by side is one field: nothing that is sent would tell its parts apart."""
    merged: Parts = []
    for part in parts:
        if part.is_filled and merged and merged[-1].is_filled:
            others = (*merged[-1].others, *filter(None, [part.node]))
            merged[-1] = replace(merged[-1], others=others, target=part.target)
        else:
            merged.append(part)
    whole: Parts = []
    for part, before, after in zip(merged, [None, *merged], [*merged[1:], None], strict=False):
        last = (part.node, *part.others)[-1]
        can_grow = part.is_filled and (part.target != "" or not isinstance(last, ast.stmt | ast.Starred))
        if can_grow and not part.is_block and (before is None or not before.is_literal):
            whole.append(Part(None, beside=part.node))
        whole.append(part)
        if can_grow and (after is None or not after.is_literal):
            whole.append(Part(None, beside=last, is_after=True, target=part.target))
    return whole


def _pieces_of(node: ast.JoinedStr, taken: dict[str, str]) -> Iterator[str | Field]:
    is_filled_later = syntax_of("".join(str(value.value) for value in node.values if is_text(value))) == "format"  # type: ignore[attr-defined]
    for value in node.values:
        if isinstance(value, ast.Constant):
            for piece in template_of(str(value.value), "format" if is_filled_later else "plain").pieces:
                yield piece if isinstance(piece, str) else replace(piece, source=f"{{{piece.source}}}")
        elif isinstance(value, ast.FormattedValue):
            expression = ast.unparse(value.value)
            spec = f":{ast.unparse(value.format_spec)[2:-1]}" if value.format_spec is not None else ""
            source = f"{{{expression}{_CONVERSIONS[value.conversion]}{spec}}}"
            yield Field(field_name(expression, taken, source[len(expression) + 1 : -1]), source)


def _dedented(pieces: Iterable[str | Field]) -> Iterator[str | Field]:
    listed = list(pieces)
    fields = (piece for piece in listed if isinstance(piece, Field))
    text = textwrap.dedent("".join(piece if isinstance(piece, str) else "\0" for piece in listed))
    yield from (next(fields) if part == "\0" else part for part in re.split("(\0)", text))


def _python_literal(template: Template, before: str, column: int) -> str:
    """A text in Python's syntax: with triple quotes or a line for each line if it was so, else in one line."""
    prefix = "f" if template.syntax == "f-string" else ""
    if prefix and any('"' in field.source or "\\" in field.source for field in template.fields.values()):
        raise ContractError("its fields have quotes or backslashes in them, which an f-string cannot hold")
    source = template.source.replace("\\", "\\\\").replace("\r", "\\r")
    if before.lstrip("rRfFbBuU").startswith(('"""', "'''")):
        body = source.replace('"""', '\\"\\"\\"')
        body = f'{body[:-1]}\\"' if body.endswith('"') else body
        return f'{prefix}"""{body}"""'
    several = "\n" in before and "\\\n" not in before
    lines = re.findall(r"[^\n]*\n|[^\n]+", source) if several else [source]
    literals = [prefix + '"' + line.replace('"', '\\"').replace("\n", "\\n") + '"' for line in lines]
    return f"\n{' ' * column}".join(literals or ['""'])


def _offset(content: str, line: int, column: int) -> int:
    """Where a place of Python's parser, which counts bytes, is in the text."""
    lines = content.split("\n")
    return sum(len(before) + 1 for before in lines[: line - 1]) + len(lines[line - 1].encode()[:column].decode())
