"""Prompts in the syntax of a program: literal texts and fields, read from it and written in it again."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tracing.errors import ContractError
from tracing.systems.prompts import escaped

Syntax = Literal["plain", "format", "replace", "percent", "dollar", "f-string", "jinja", "composed"]
"""No fields; `str.format`; marks such as {name} or [[name]] that are replaced, where braces stand for themselves; the
operator `%`; `string.Template`; Jinja2; several texts, each in its own."""

_WORD = re.compile(r"[^\W\d]\w*")
_MARKED = re.compile(r"\[\[ ?([^\W\d]\w*) ?\]\]|<<([^\W\d]\w*)>>|\{\$([^\W\d]\w*)\}|\b__([A-Z]+(?:_[A-Z]+)*)__\b")
_REPLACED = re.compile(rf"\{{([^\W\d]\w*)\}}|{_MARKED.pattern}")
_PERCENT = re.compile(r"%(?:%|(?:\((\w+)\))?[-#0+]*\d*(?:\.\d+)?[sdrifg])")
IS_UNNAMED = re.compile(r"%[^(]*|\{(?:[!:][^}]*)?\}")
"""A field that is known by its place alone."""
_DOLLAR = re.compile(r"\$(?:\$|([a-z_]\w*)|\{([a-z_]\w*)\})", re.ASCII | re.IGNORECASE)
_DOUBLED = {"percent": "%", "dollar": "$"}
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_BLOCKS = {"for": "endfor", "if": "endif"}
_KEYED = re.compile(r"""(?:\[|\.get\()\s*(['"])([^\W\d]\w*)\1""")
_NO_FIELDS = frozenset(("in", "not", "and", "or", "is", "if", "else", "self", "join", "len", "str", "for"))


@dataclass(frozen=True, slots=True)
class Field:
    """What a program fills in.

    Attributes:
        name: of the placeholder.
        source: as it stands in the program, such as `{{ notes | join }}`.
    """

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt of a program.

    Attributes:
        syntax: in which it stands there.
        pieces: literal texts, as they are sent, and fields.
    """

    syntax: Syntax
    pieces: tuple[str | Field, ...]

    @property
    def text(self) -> str:
        """The same as a template of memtune's."""
        return "".join(f"{{{piece.name}}}" if isinstance(piece, Field) else escaped(piece) for piece in self.pieces)

    @property
    def fields(self) -> dict[str, Field]:
        """By the names of their placeholders; of `$name` and `${name}` the one that letters may follow."""
        fields = [piece for piece in self.pieces if isinstance(piece, Field)]
        return {field.name: field for field in sorted(fields, key=lambda field: len(field.source))}

    @property
    def shape(self) -> tuple[str, ...]:
        """Literal texts and sources of fields in turn, without spaces around the whole; names do not matter."""
        shape = [""]
        for piece in self.pieces:
            if isinstance(piece, Field):
                shape += [f"${piece.name}" if self.syntax == "dollar" else piece.source, ""]
            else:
                shape[-1] += piece
        return (shape[0].lstrip(), *shape[1:-1], shape[-1].rstrip()) if shape[1:] else (shape[0].strip(),)

    def with_text(self, text: str) -> Template:
        """Another template of memtune's with the same placeholders, in this syntax.

        Raises:
            ContractError: the syntax cannot hold it.
        """
        changed = Template(self.syntax, tuple(self.pieces_of(text)))
        if (order := _positions(self)) and _positions(changed) != order:
            raise ContractError("what fills its %s stands in an order, which the text does not keep")
        changed.check()
        return changed

    def pieces_of(self, text: str) -> list[str | Field]:
        """Those of a template of memtune's, whose placeholders are fields of this one."""
        pieces: list[str | Field] = []
        for literal, name, _, _ in string.Formatter().parse(text):
            pieces += [literal] if literal else []
            if name is not None:
                pieces.append(self.fields[name])
        return pieces

    def check(self) -> None:
        """Raises ContractError if its syntax cannot hold it."""
        is_checked = self.syntax not in ("f-string", "composed")
        if is_checked and template_of(self.source, self.syntax).shape != self.shape:
            raise ContractError(f"the text cannot be written as {self.syntax}, whose marks stand in it")

    @property
    def source(self) -> str:
        """As it stands in the program; of an f-string, without its quotes."""
        return "".join(piece.source if isinstance(piece, Field) else self._literal(piece) for piece in self.pieces)

    def _literal(self, text: str) -> str:
        mark = _DOUBLED.get(self.syntax)
        if mark is not None:
            return text.replace(mark, 2 * mark)
        is_filled_later = self.syntax == "f-string" and any(field.source[:2] == "{{" for field in self.fields.values())
        text = escaped(text) if is_filled_later else text
        return escaped(text) if self.syntax in ("format", "f-string") else text


def template_of(source: str, syntax: Syntax | None = None) -> Template:
    """The template that a text of a program is; its syntax is seen by its marks.

    Raises:
        ContractError: it has marks that memtune does not read.

    Example:
        >>> template = template_of("Notes:\\n{{ notes }}\\n")
        >>> template.syntax, template.text
        ('jinja', 'Notes:\\n{notes}\\n')
        >>> template.with_text("Known: {notes} {{}}").source
        'Known: {{ notes }} {}'
    """
    syntax = syntax or syntax_of(source)
    if syntax == "jinja":
        return Template(syntax, tuple(_jinja_pieces(source)))
    if syntax == "replace":
        return Template(syntax, tuple(_marked_pieces(source, _REPLACED)))
    if syntax == "format":
        return Template(syntax, tuple(_format_pieces(source)))
    if syntax in ("percent", "dollar"):
        return Template(syntax, tuple(_marked_pieces(source, _PERCENT if syntax == "percent" else _DOLLAR)))
    return Template("plain", (source,))


def syntax_of_template(source: str) -> Syntax | None:
    """The syntax of a text that a class `Template` is made with, Jinja2's or that of `string`; None without fields."""
    if "{{" not in source and "{%" not in source and _has_fields(source, _DOLLAR):
        return "dollar"
    return "jinja" if "{" in source else None


def field_name(expression: str, taken: dict[str, str], form: str = "") -> str:
    """A name for what an expression gives: the key that it reads, or its first word that is none of the language.

    `taken` keeps them apart, and so what one gives in several forms.
    """
    keys = [key for _, key in _KEYED.findall(expression)]
    words = keys[-1:] or [
        word for word in _WORD.findall(re.sub(r"'[^']*'|\"[^\"]*\"", "", expression)) if word not in _NO_FIELDS
    ]
    plain = re.fullmatch(r"[\w.]+", expression)
    name = "_".join(words) if plain else words[0] if words else "value"
    free, number = name, 1
    while taken.setdefault(free, expression + form) != expression + form:
        free, number = f"{name}{number + 1}", number + 1
    return free


def syntax_of(source: str) -> Syntax:
    """The syntax of a text, by its marks."""
    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(source) if name is not None]
    except ValueError:
        fields = []
    if fields and all(_WORD.match(name) for name in fields) and "{%" not in source and not _MARKED.search(source):
        return "format"
    if re.search(r"\{\{\s*[^\W\d][\w.]*\s*(\|[^}]*)?\}\}|\{%", source):
        return "jinja"
    if _MARKED.search(source) and not re.search(r"\{\{|\}\}", source):
        return "replace"
    if _has_fields(source, _PERCENT) and "%" not in _PERCENT.sub("", source):
        return "percent"
    # Numbers that do not begin at 0 stand for themselves.
    numbers = {int(number) for number in fields if number.isdecimal()}
    is_counted = all(re.match(r"\w*(?:[.[]|$)", name) for name in fields) and numbers == set(range(len(numbers)))
    if fields and is_counted and not _has_fields(source, _DOLLAR):
        return "format"
    if _REPLACED.search(source):
        return "replace"
    return "dollar" if _has_fields(source, _DOLLAR) else "plain"


def _has_fields(source: str, marks: re.Pattern[str]) -> bool:
    """Whether there are marks that are no doubled sign."""
    return any(len(set(mark[0])) > 1 for mark in marks.finditer(source))


def _marked_pieces(source: str, marks: re.Pattern[str]) -> Iterator[str | Field]:
    """A doubled sign stands for itself; fields without a name are numbered."""
    at, literal, unnamed = 0, "", 0
    for mark in marks.finditer(source):
        literal += source[at : mark.start()]
        at = mark.end()
        if len(set(mark[0])) == 1:
            literal += mark[0][0]
            continue
        if literal:
            yield literal
        name = next(filter(None, mark.groups()), None)
        unnamed += name is None
        yield Field(name or f"value{unnamed}", mark[0])
        literal = ""
    if literal + source[at:]:
        yield literal + source[at:]


def _positions(template: Template) -> list[str]:
    """The fields that are known by their order alone."""
    return [piece.name for piece in template.pieces if isinstance(piece, Field) and IS_UNNAMED.fullmatch(piece.source)]


def _format_pieces(source: str) -> Iterator[str | Field]:
    taken, unnamed = dict[str, str](), 0
    for literal, name, spec, conversion in string.Formatter().parse(source):
        if literal:
            yield literal
        if name is not None:
            form = f"{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}"
            unnamed += name == ""
            number = re.match(r"\d*(?=[.[]|$)", name)
            told = name if number is None else f"value{int(number[0] or unnamed - 1) + 1}{name[number.end() :]}"
            yield Field(field_name(told, taken, form), f"{{{name}{form}}}")


def _jinja_pieces(source: str) -> Iterator[str | Field]:
    """What stands side by side is one field: nothing that is sent would tell its parts apart."""
    fields: list[tuple[int, int, str]] = []
    for start, end, expression in _jinja_fields(source):
        before = fields.pop() if fields and fields[-1][1] >= start else (start, end, "")
        fields.append((before[0], end, f"{before[2]}.{expression}" if before[2] else expression))
    at, taken = 0, dict[str, str]()
    for start, end, expression in fields:
        if start > at:
            yield source[at:start]
        if expression:
            yield Field(field_name(expression, taken), source[start:end])
        at = end
    if at < len(source):
        yield source[at:]


def _jinja_fields(source: str) -> Iterator[tuple[int, int, str]]:
    """Where a field begins and ends, and what fills it: nothing if it is a comment.

    A block, with all that is in it, is a field: what it makes is filled in. So is white space that Jinja leaves out:
    by a mark's hyphens, and around blocks if its environment trims them (`trim_blocks`, `lstrip_blocks`).
    """
    at = 0
    for mark in _JINJA.finditer(source):
        if mark.start() < at:
            continue
        closing, block = mark, mark[0].startswith("{%")
        expression = "" if mark[0].startswith("{#") else mark[0][2:-2].strip("-+ \n")
        if block:
            word, _, expression = expression.partition(" ")
            if word not in _BLOCKS:
                raise ContractError(f"{mark[0]} is no part of a prompt that memtune can read; let it fill a variable")
            closing = _end_of_block(word, source, mark.end())
            expression = expression.rpartition(" in ")[2] if word == "for" else expression
        before, after = source[: mark.start()], source[closing.end() :]
        if mark[0][2] == "-":
            before = before.rstrip()
        elif block and before.rstrip(" \t")[-1:] in ("", "\n"):
            before = before.rstrip(" \t")
        if closing[0][-3] == "-":
            after = after.lstrip()
        elif block:
            after = after.removeprefix("\n")
        at = len(source) - len(after)
        yield len(before), at, expression.partition("|")[0].strip()


def _end_of_block(word: str, source: str, start: int) -> re.Match[str]:
    depth = 1
    for mark in _JINJA.finditer(source, start):
        first = mark[0][2:-2].strip("-+ \n").partition(" ")[0] if mark[0].startswith("{%") else ""
        depth += (first == word) - (first == _BLOCKS[word])
        if depth == 0:
            return mark
    raise ContractError(f"{{% {word} %}} has no {{% {_BLOCKS[word]} %}}")
