"""Reads what texts a Python program puts together, and where."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.systems.wrapped.composed_text import ComposedText, Part, Parts, is_text

_TELLS = re.compile(r"(?:.*\.)?(?:debug|info|warning|error|exception|critical|log|execute\w*)|print", re.DOTALL)
"""Calls whose texts are for people or databases."""
_FILLS = re.compile(r"format|format_map|(?:safe_)?substitute|render|replace|[lr]?strip|removesuffix|removeprefix")
"""Methods of a text that leave it the same prompt."""
_READS = re.compile(r"(?:.*\.)?(?:\w*Template|from_template|from_string|str|dedent|cleandoc)", re.DOTALL)
"""Calls that are given a prompt, and are one."""
_TEMPLATE = re.compile(r"(?:.*\.)?(?:Rich\w*)?Template|.*\.from_string", re.DOTALL)
"""Those of Jinja2 and `string`; what else is called so formats its texts."""
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_GROWS = ("append", "extend")
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (*_DOCUMENTED, ast.Dict, ast.Call, ast.List, ast.Tuple)
_FEWEST_LEFT = 3
FEWEST_WORDS = 4
"""What looks like a prompt has so many."""


@dataclass(slots=True)
class _Lines:
    """A list of texts."""

    elements: list[Parts]


@dataclass(slots=True)
class _Made:
    """Texts that are put together, with in how many branches and loops; `depth`: in how many the next one is."""

    texts: list[tuple[int, Parts]] = field(default_factory=list)
    depth: int = 0


class PythonTexts:
    """The texts that the statements of a module make.

    Args:
        content: its source.

    Raises:
        SyntaxError: it is not Python.
    """

    def __init__(self, content: str) -> None:
        self._content, self._tree = content, parsed(content)
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
                if isinstance(node, _SCOPES):
                    scopes.append((f"{before}{name}.", node))

    def imported(self, name: str) -> tuple[str, str] | None:
        """The module, which may be relative, and the name there of what is imported under a name; None if it is not."""
        if name in self._globals:
            return None
        for node in (node for node in self._tree.body if isinstance(node, ast.ImportFrom)):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return "." * node.level + (node.module or ""), alias.name
        return None

    def at(self, key: str) -> ComposedText | None:
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
            self._visit(getattr(node, "args", ast.Pass()), {}, made)
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
        is_template = any(_TEMPLATE.fullmatch(ast.unparse(call.func)) for call in calls)
        return ComposedText(chosen, self._content, left, is_template=is_template)

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
                    self._visit(value, values, made)
                    values[ast.unparse(target)] = self._value_of(value, values)
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
            start, block = _elements(before), [Part(statement, target=key if isinstance(before, list) else "")]
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
            values[key] = [*before, *(added if isinstance(added, list) else [Part(value)])]

    def _element(self, node: ast.expr, values: dict[str, Any]) -> Parts:
        parts = self._text_of(node, values) or [Part(node)]
        return [replace(parts[0], is_element=True)] if len(parts) == 1 and parts[0].is_literal else parts

    def _value_of(self, node: ast.expr, values: dict[str, Any]) -> Any:
        if isinstance(node, ast.List | ast.Tuple):
            return _Lines([self._element(element, values) for element in node.elts])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            sides = [(side, self._value_of(side, values)) for side in (node.left, node.right)]
            if any(isinstance(value, _Lines) for _, value in sides):
                listed = [getattr(value, "elements", [[Part(ast.Starred(side, ast.Load()))]]) for side, value in sides]
                return _Lines([element for elements in listed for element in elements])
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

    def _text_of(self, node: ast.expr, values: dict[str, Any]) -> Parts | None:
        """The parts of a text; None of what is none, or filled in as a whole."""
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr():
                return [Part(node)]
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                first, second = self._text_of(left, values), self._text_of(right, values)
                if first is None and second is None:
                    return None
                return [*(first or [Part(left)]), *(second or [Part(right)])]
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
                    return [replace(parts[0], is_dedented=True)] if len(parts) == 1 else None
                return parts
            case ast.Name() | ast.Subscript() | ast.Attribute():
                known = self._known(node, values)
                return known if isinstance(known, list) else None
        return None

    @staticmethod
    def _joined(lines: _Lines, separator: str) -> Parts:
        """The elements of a list with what stands between them; what a block adds has that in it."""
        parts: Parts = []
        for element in lines.elements:
            first = replace(element[0], separator=separator) if element[0].is_element else element[0]
            if parts and separator and not (first.is_block or parts[-1].is_block):
                parts.append(Part(None, separator, is_element=first.is_element and parts[-1].is_element))
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


@functools.lru_cache(maxsize=64)
def parsed(content: str) -> ast.Module:
    """A module with this source; raises as `python_texts`."""
    return ast.parse(content)


@functools.lru_cache(maxsize=8)
def python_texts(content: str) -> PythonTexts:
    """Those of a module with this source.

    Raises:
        SyntaxError: it is not Python.
    """
    return PythonTexts(content)


def _longest(made: Sequence[tuple[int, Parts]]) -> Parts | None:
    """The longest text; of those with parts in common that which is in the fewest branches."""
    longest = max(made, key=_length, default=None)
    if longest is None:
        return None
    inside = {id(part.node) for part in longest[1]}
    related = [text for text in made if any(id(part.node) in inside for part in text[1] if part.is_literal)]
    least = min(depth for depth, _ in related or [longest])
    return max((text for text in related or [longest] if text[0] == least), key=_length)[1]


def _named(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Name and node of what is in another: functions, classes, values of names, of a dict and of what a call is told.

    Texts in a function have the name of what takes them, or of their message's role, as those in a list; tools in a
    list have their own.
    """
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), value
        return
    if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
        yield "__doc__", node.body[0].value  # type: ignore[attr-defined]
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    is_list = isinstance(node, ast.List | ast.Tuple)
    for inner in ast.walk(node) if is_function or is_list else ast.iter_child_nodes(node):
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
        elif (is_function or is_list) and isinstance(inner, ast.Dict):
            held = _first_named(inner)
            if is_text(held.get("role")) and "content" in held:
                yield held["role"].value, held["content"]  # type: ignore[attr-defined]
            elif is_list and is_text(held.get("name")):
                yield held["name"].value, inner  # type: ignore[attr-defined]


def _first_named(node: ast.AST) -> dict[str, ast.AST]:
    named = [*_named(node)]
    return dict(named) | dict(named[::-1])


def _length(made: tuple[int, Parts]) -> tuple[int, int]:
    return sum(len("".join(part.words)) for part in made[1]), len(made[1])


def _elements(value: Any) -> list[Any] | None:
    return value.elements if isinstance(value, _Lines) else value if isinstance(value, list) else None


def _begins_with(value: list[Any] | None, start: list[Any]) -> bool:
    return value is not None and len(value) >= len(start) and all(map(lambda one, other: one is other, value, start))


def _without_docstring(node: Any) -> list[ast.stmt]:
    body: list[ast.stmt] = node.body
    return body[1:] if ast.get_docstring(node, clean=False) is not None else body
