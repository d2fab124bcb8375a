"""The text that a Python program puts together at a place: literals and fields, and how another is written there."""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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

_TELLS = re.compile(r"(?:.*\.)?(?:debug|info|warning|error|exception|critical|log|execute\w*)|print", re.DOTALL)
"""Calls whose texts are for people or databases."""
_FILLS = re.compile(r"format|format_map|(?:safe_)?substitute|render|replace|[lr]?strip|removesuffix|removeprefix")
"""Methods of a text that leave it the same prompt."""
_READS = re.compile(r"(?:.*\.)?(?:\w*Template|from_template|from_string|str|dedent|cleandoc)", re.DOTALL)
"""Calls that are given a prompt, and are one."""
_CONVERSIONS = {-1: "", 115: "!s", 114: "!r", 97: "!a"}
_TOKENS = re.compile(r"\{\{|\}\}|\{\w+\}|\w+|\s|.", re.DOTALL)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
Place = tuple[int, int]
_GROWS = ("append", "extend")
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FEWEST_LEFT = 3
FEWEST_WORDS = 4
"""What looks like a prompt has so many."""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
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
        return isinstance(self.node, ast.JoinedStr) or _is_text(self.node)

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
        text = "".join(str(value.value) for value in values if _is_text(value))  # type: ignore[union-attr]
        return textwrap.dedent(text) if self.is_dedented else text

    @property
    def words(self) -> list[str]:
        """The words that are written in it."""
        return re.findall(r"[^\W\d]{2,}", self.text)


_Parts = list[_Part]


@dataclass(slots=True)
class _Lines:
    """A list of texts."""

    elements: list[_Parts]


class PythonText:
    """A text of a program, with the places of its parts.

    Attributes:
        template: what is sent, as a template.
        places: line and column of each literal; left: those of other texts that look like prompts, with their words.
    """

    def __init__(self, parts: _Parts, content: str, left: Mapping[Place, str], *, is_template: bool) -> None:
        self._parts, self._content, self.left = _merged(parts), content, left
        self.places = frozenset(part.place for part in parts if part.is_literal)
        values = [part.text for part in self._parts if _is_text(part.node)]
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
                yield tuple(_pieces_of(part.node, taken))
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


@dataclass(slots=True)
class _Made:
    """Texts that are put together, with in how many branches and loops; `depth`: in how many the next one is."""

    texts: list[tuple[int, _Parts]] = field(default_factory=list)
    depth: int = 0


class PythonTexts:
    """The texts that the statements of a module make.

    Args:
        content: its source.

    Raises:
        SyntaxError: it is not Python.
    """

    def __init__(self, content: str) -> None:
        self._content, self._tree = content, ast.parse(content)
        nodes = list(ast.walk(self._tree))
        self._uses = Counter(
            ast.unparse(node)
            for node in nodes
            if isinstance(node, ast.Name | ast.Subscript) and isinstance(node.ctx, ast.Load)
        )
        self._uses -= Counter(
            ast.unparse(node.value) for node in nodes if isinstance(node, ast.Attribute) and node.attr in _GROWS
        )
        self._globals = {name for name, _ in _named(self._tree)}
        self._constants: dict[str, Any] = {}
        self._constants = self._after(self._tree.body, {}, _Made())[0]

    def names(self) -> Iterator[tuple[str, ast.AST, ast.AST]]:
        """Dotted name, node and what it is named in, of what can have a text: functions, names, keys of dicts."""
        scopes: list[tuple[str, ast.AST]] = [("", self._tree)]
        for before, scope in scopes:
            for name, node in _first_named(scope).items():
                yield before + name, node, scope
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Dict | ast.Call):
                    scopes.append((f"{before}{name}.", node))

    def at(self, key: str) -> PythonText | None:
        """The text at a dotted name: the longest that is put together there; None if none is, or lines are not joined.

        Raises:
            KeyError: there is no such name.
            ContractError: the text has marks that memtune does not read.
        """
        owner: ast.AST = self._tree
        node: ast.AST = self._tree
        for last in key.split("."):
            owner, node = node, _first_named(node)[last]
        made = _Made()
        if isinstance(node, ast.stmt):
            self._after(_without_docstring(node), {}, made)
        else:
            self._visit(node, {}, made)
        value: Any = None
        if isinstance(owner, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            values, _ = self._after(owner.body, {}, _Made())
            value = values.get(last, values.get(f"self.{last}"))
        if isinstance(value, _Lines):
            separator = self._separator(last)
            if separator is None and sum(element[0].is_literal for element in value.elements) > 1:
                return None
            value = self._joined(value, separator) if separator is not None else None
        chosen = value or _longest(made.texts)
        if chosen is None:
            return None
        inside = {part.place for part in chosen}
        others = [part for _, parts in made.texts for part in parts if part.is_literal and part.place not in inside]
        left = {part.place: " ".join(part.words) for part in others if len(part.words) >= _FEWEST_LEFT}
        calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
        is_template = any("Template" in ast.unparse(call.func) for call in calls)
        return PythonText(chosen, self._content, left, is_template=is_template)

    def _after(self, body: Iterable[ast.stmt], values: dict[str, Any], made: _Made) -> tuple[dict[str, Any], bool]:
        """The texts and lists of texts that names have after some statements, and whether these go on to the next.

        Args:
            body: the statements.
            values: what they have before.
            made: every text that is put together is added to it, with how many branches and loops it is in.
        """
        values, goes_on = dict(values), True
        for statement in body:
            goes_on = goes_on and not isinstance(statement, _LEAVES)
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self._after(_without_docstring(statement), values, made)
                case (
                    ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value)
                ):
                    values[ast.unparse(target)] = self._value_of(value, values)
                    self._visit(value, values, made)
                case ast.AugAssign(target=target, op=ast.Add(), value=value):
                    self._add(values, ast.unparse(target), value, is_several=True)
                    self._visit(value, values, made)
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr=attr), args=[value])) if (
                    attr in _GROWS
                ):
                    self._add(values, ast.unparse(target), value, is_several=attr == "extend")
                    self._visit(value, values, made)
                case ast.With(body=inner) | ast.AsyncWith(body=inner):
                    for item in statement.items:
                        self._visit(item.context_expr, values, made)
                    values, goes_on = self._after(inner, values, made)
                case ast.If() | ast.For() | ast.AsyncFor() | ast.While() | ast.Try() | ast.Match():
                    values = self._after_branches(statement, values, made)
                case _:
                    self._visit(statement, values, made)
        made.texts += [(made.depth, value) for value in values.values() if isinstance(value, list)]
        return values, goes_on

    def _after_branches(self, statement: Any, values: dict[str, Any], made: _Made) -> dict[str, Any]:
        """What a branch or a loop adds to a text is one field of it; what it makes anew is not known after it."""
        for name in ("test", "iter", "subject"):
            if hasattr(statement, name):
                self._visit(getattr(statement, name), values, made)
        inner = [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]
        bodies = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        made.depth += 1
        ends = [self._after(body, values, made) for body in [*bodies, *(branch.body for branch in inner)] if body]
        made.depth -= 1
        after = dict(values)
        for key in dict.fromkeys(key for end, _ in ends for key in end):
            before = values.get(key)
            others = [end.get(key) for end, goes_on in ends if goes_on and end.get(key) is not before]
            if not others:
                continue
            start, block = _elements(before), [_Part(statement, target=key if isinstance(before, list) else "")]
            if start is None or not all(_begins_with(_elements(other), start) for other in others):
                after[key] = None
            else:
                after[key] = _Lines([*start, block]) if isinstance(before, _Lines) else [*start, *block]
        return after

    def _add(self, values: dict[str, Any], key: str, value: ast.expr, *, is_several: bool) -> None:
        """What `+=`, `append` and `extend` make of a text or a list of texts."""
        before, added = values.get(key), self._value_of(value, values)
        if isinstance(before, _Lines):
            more = added.elements if is_several and isinstance(added, _Lines) else None
            starred = ast.Starred(value, ast.Load()) if is_several else value
            values[key] = _Lines([*before.elements, *(more or [self._element(starred, values)])])
        elif isinstance(before, list):
            values[key] = [*before, *(added if isinstance(added, list) else [_Part(value)])]

    def _element(self, node: ast.expr, values: dict[str, Any]) -> _Parts:
        parts = self._text_of(node, values) or [_Part(node)]
        return [replace(parts[0], is_element=True)] if len(parts) == 1 and parts[0].is_literal else parts

    def _value_of(self, node: ast.expr, values: dict[str, Any]) -> Any:
        if isinstance(node, ast.List | ast.Tuple):
            return _Lines([self._element(element, values) for element in node.elts])
        return self._text_of(node, values) or self._known(node, values)

    def _known(self, node: ast.expr, values: dict[str, Any]) -> Any:
        """What a name has: in these statements, or as a constant of the module that nothing else uses."""
        source = ast.unparse(node)
        if self._uses[source] != 1 and (isinstance(node, ast.Subscript) or source in self._globals):
            return None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            owner = _first_named(self._tree).get(ast.unparse(node.value))
            value = _first_named(owner).get(str(node.slice.value)) if isinstance(owner, ast.Dict) else None
            return self._text_of(value, {}) if isinstance(value, ast.expr) else None
        return values.get(source, self._constants.get(source) if isinstance(node, ast.Name) else None)

    def _text_of(self, node: ast.expr, values: dict[str, Any]) -> _Parts | None:
        """The parts of a text; None of what is none, or filled in as a whole."""
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr():
                return [_Part(node)]
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                first, second = self._text_of(left, values), self._text_of(right, values)
                if first is None and second is None:
                    return None
                return [*(first or [_Part(left)]), *(second or [_Part(right)])]
            case ast.BinOp(op=ast.Mod(), left=left):
                return self._text_of(left, values)
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(separator)), attr="join"), args=[joined]):
                lines = self._value_of(joined, values)
                return self._joined(lines, separator) if isinstance(lines, _Lines) else None
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if _FILLS.fullmatch(attr):
                return self._text_of(inner, values)
            case ast.Call(func=func, args=[inner, *_]) if _READS.fullmatch(ast.unparse(func)):
                parts = self._text_of(inner, values)
                if parts is not None and ast.unparse(func).rpartition(".")[2] in ("dedent", "cleandoc"):
                    is_whole = len(parts) == 1 and _is_text(parts[0].node)
                    return [replace(parts[0], is_dedented=True)] if is_whole else None
                return parts
            case ast.Name() | ast.Subscript() | ast.Attribute():
                known = self._known(node, values)
                return known if isinstance(known, list) else None
        return None

    @staticmethod
    def _joined(lines: _Lines, separator: str) -> _Parts:
        """The elements of a list with what stands between them; what a block adds has that in it."""
        parts: _Parts = []
        for element in lines.elements:
            first = replace(element[0], separator=separator) if element[0].is_element else element[0]
            if parts and separator and not (first.is_block or parts[-1].is_block):
                parts.append(_Part(None, separator, is_element=first.is_element and parts[-1].is_element))
            parts += [first, *element[1:]]
        return parts

    def _separator(self, name: str) -> str | None:
        """That with which a list is joined somewhere in the module."""
        for call in ast.walk(self._tree):
            match call:
                case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(separator)), attr="join"), args=[joined]):
                    if ast.unparse(joined).rpartition(".")[2] == name:
                        return separator
        return None

    def _visit(self, node: ast.AST, values: dict[str, Any], made: _Made) -> None:
        """Add what is put together in an expression, or in a statement of expressions."""
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and _TELLS.fullmatch(ast.unparse(node.func))):
            return
        parts = self._text_of(node, values) if isinstance(node, ast.expr) else None
        if parts is not None:
            made.texts.append((made.depth, parts))
        for inner in ast.iter_child_nodes(node) if parts is None or isinstance(node, ast.Call) else ():
            self._visit(inner, values, made)


@functools.lru_cache(maxsize=8)
def python_texts(content: str) -> PythonTexts:
    """Those of a module with this source.

    Raises:
        SyntaxError: it is not Python.
    """
    return PythonTexts(content)


def _longest(made: Sequence[tuple[int, _Parts]]) -> _Parts | None:
    """The longest text; of those with parts in common that which is in the fewest branches."""
    longest = max(made, key=_length, default=None)
    if longest is None:
        return None
    inside = {id(part.node) for part in longest[1]}
    related = [text for text in made if any(id(part.node) in inside for part in text[1] if part.is_literal)]
    least = min(depth for depth, _ in related or [longest])
    return max((text for text in related or [longest] if text[0] == least), key=_length)[1]


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


def _named(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Name and node of what is in another: functions, classes, values of names, of a dict and of what a call is told.

    Texts in a function have the name of what takes them, or of their message's role.
    """
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), value
        return
    if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
        yield "__doc__", node.body[0].value  # type: ignore[attr-defined]
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for inner in ast.walk(node) if is_function else ast.iter_child_nodes(node):
        if inner is node:
            continue
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield inner.name, inner
        elif isinstance(inner, ast.Assign | ast.AnnAssign) and inner.value is not None:
            targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
            for target in targets:
                yield ast.unparse(target).removeprefix("self."), inner.value
        elif isinstance(inner, ast.keyword) and inner.arg is not None:
            yield inner.arg, inner.value
        elif is_function and isinstance(inner, ast.Dict):
            message = _first_named(inner)
            if _is_text(message.get("role")) and "content" in message:
                yield message["role"].value, message["content"]  # type: ignore[attr-defined]


def _first_named(node: ast.AST) -> dict[str, ast.AST]:
    named = [*_named(node)]
    return dict(named) | dict(named[::-1])


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _length(made: tuple[int, _Parts]) -> tuple[int, int]:
    return sum(len("".join(part.words)) for part in made[1]), len(made[1])


def _names(pieces: Iterable[str | Field], part: _Part) -> Iterator[str]:
    """The fields of an f-string."""
    if isinstance(part.node, ast.JoinedStr):
        yield from (piece.name for piece in pieces if isinstance(piece, Field))


def _told_by(node: ast.AST) -> str:
    """An expression that says what is filled in: of a block, what it goes through or asks."""
    told = getattr(node, "iter", getattr(node, "test", getattr(node, "subject", node)))
    return ast.unparse(getattr(told, "value", told) if isinstance(told, ast.Starred) else told)


def _merged(parts: _Parts) -> _Parts:
    """What is filled in side by side is one field: nothing that is sent would tell its parts apart."""
    merged: _Parts = []
    for part in parts:
        if part.is_filled and merged and merged[-1].is_filled:
            others = (*merged[-1].others, *filter(None, [part.node]))
            merged[-1] = replace(merged[-1], others=others, target=part.target)
        else:
            merged.append(part)
    whole: _Parts = []
    for part, before, after in zip(merged, [None, *merged], [*merged[1:], None], strict=False):
        last = (part.node, *part.others)[-1]
        can_grow = part.is_filled and (part.target != "" or not isinstance(last, ast.stmt | ast.Starred))
        if can_grow and not part.is_block and (before is None or not before.is_literal):
            whole.append(_Part(None, beside=part.node))
        whole.append(part)
        if can_grow and (after is None or not after.is_literal):
            whole.append(_Part(None, beside=last, is_after=True, target=part.target))
    return whole


def _elements(value: Any) -> list[Any] | None:
    return value.elements if isinstance(value, _Lines) else value if isinstance(value, list) else None


def _begins_with(value: list[Any] | None, start: list[Any]) -> bool:
    return value is not None and len(value) >= len(start) and all(map(lambda one, other: one is other, value, start))


def _without_docstring(node: Any) -> list[ast.stmt]:
    body: list[ast.stmt] = node.body
    return body[1:] if ast.get_docstring(node, clean=False) is not None else body


def _pieces_of(node: ast.JoinedStr, taken: dict[str, str]) -> Iterator[str | Field]:
    for value in node.values:
        if isinstance(value, ast.Constant):
            yield str(value.value)
        elif isinstance(value, ast.FormattedValue):
            expression = ast.unparse(value.value)
            spec = f":{ast.unparse(value.format_spec)[2:-1]}" if value.format_spec is not None else ""
            source = f"{{{expression}{_CONVERSIONS[value.conversion]}{spec}}}"
            yield Field(field_name(expression, taken), source)


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
