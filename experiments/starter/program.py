"""What `memtune init --wrap` guesses of a program: which of its functions reads, which answers, and where it stores."""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import sys
import textwrap
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from experiments.starter.global_stores import READ, SQLITE, STORES, global_stores
from tracing.errors import ConfigError
from tracing.plugins import PluginRegistry

_OBJECTS = PluginRegistry(kind="programs", key="--wrap", built_in={})
_BUILDS = re.compile(
    r"add|remember|ingest|observe|take_notes|save|store|insert|memorize|learn|note|record|process|listen|hear|write|"
    r"read|feed|update|chat",
    re.IGNORECASE,
)
_ANSWERS = re.compile(r"answer|reply|respond|ask|chat|query|tell", re.IGNORECASE)
_FINDS = re.compile(r"search|retriev|recall|find|look_?up|relevant|memories|known", re.IGNORECASE)
_FOLDERS = re.compile(r"folder|dir|home|root", re.IGNORECASE)
_PATHS = re.compile(r"\b(?:str|Any|\w*Path(?:Like)?)\b")
"""Annotations of what may be a path."""
_SEVERAL = re.compile(r"turns|messages|texts|lines|sessions|chat|dialogue|conversation|list|sequence", re.IGNORECASE)
_TOLD = re.compile(_SEVERAL.pattern + "|text|message|content|said|input|utterance", re.IGNORECASE)
_QUESTIONS = re.compile("question|query", re.IGNORECASE)
_ASKED = re.compile("question|query|prompt|message|text|input|content", re.IGNORECASE)
_ANY_TEXT = re.compile(r"(?:\w*_)?(?:user|id|session|thread|agent|tenant|namespace|name|owner)\b.*|\w+: '?str\b.*")
"""Parameters that need a text, with what they are annotated with."""
_OF_TURN = {
    re.compile(r"(?:speaker|author|sender|who)\b(?!: (?!'?str\b)).*"): "turn.speaker",
    re.compile(r"role\b.*"): '"user"',
    re.compile(r"(?:when|time|date|timestamp)\b(?!: (?!'?str\b)).*"): "part.time",
}
"""Parameters beside the text of a message, with what they are annotated with, and what they are given."""
_OF_GRAPHS = re.compile(r"state|runtime|config|request|event", re.IGNORECASE)
"""The first parameter of a step that a framework calls."""
_REPLIES = re.compile("answer|content|message|reply|response|text", re.IGNORECASE)
"""Fields of what a function returns."""
_MESSAGES = re.compile(r"dict|mapping", re.IGNORECASE)
_PAIRS = re.compile(r"tuple\[str, str\]", re.IGNORECASE)
_WORKERS = re.compile(r"(?:max_|num_)?(?:workers|threads)")


@dataclass(slots=True)
class Program:
    """A program, as far as it can be guessed.

    Attributes:
        module: its name; path: of the class in it, empty for functions of the module itself.
        owner: the class or the module; functions: what it has of them.
        build, answer, found: names of those that read, answer, and find what is stored.
        made: how an object of the class is made, with its store in `folder`, or its name if the module has the one;
            imported: what that needs of the module.
        stores: global stores, with the name of the file or folder that takes their place.
        is_stored: whether it stores in a memory's folder, as far as is seen.
        has_gaps: whether something that it is to be given is left open, as `...`.
        unknown: what could not be guessed, a line each.
    """

    module: str
    path: str
    owner: Any
    functions: Mapping[str, Any]
    build: str
    answer: str
    found: str | None = None
    made: str = ""
    imported: set[str] = field(default_factory=set)
    stores: dict[str, str] = field(default_factory=dict)
    is_stored: bool = False
    has_gaps: bool = False
    unknown: list[str] = field(default_factory=list)

    @classmethod
    def named(cls, name: str) -> Program:
        """That of a `module`, a `module:Class`, or of functions: `module:answer`, or both, `module:build,answer`.

        Raises:
            ConfigError: there is no such thing, or nothing of it reads or answers.
        """
        module, _, path = name.partition(":")
        first, *second = path.split(",")
        owner = _OBJECTS.open(f"{module}:{first}" if first else f"{module}:__name__")
        told: list[str] = []
        if not inspect.isclass(owner):
            path, _, last = first.rpartition(".")
            told = [last, *second] if first else []
            owner = _OBJECTS.open(f"{module}:{path}") if path else sys.modules[module]
        functions = {
            step: function
            for step, function in inspect.getmembers(owner, inspect.isfunction)
            if step[0] != "_"
            and (inspect.isclass(owner) or function.__module__.startswith(module))
            and not any(_OF_GRAPHS.fullmatch(parameter.name) for parameter in _parameters(function)[:1])
        }
        answer = told[-1] if told else _only(functions, _QUESTIONS) or _first(_ANSWERS, functions)
        others = {step: function for step, function in functions.items() if not told or step != answer}
        build = told[0] if told[1:] else _first(_BUILDS, others) or _only(others, _TOLD, answer)
        for verb, step in (("reads what is said", build), ("answers", answer)):
            if step not in functions:
                raise ConfigError(
                    f"--wrap: no function of {name} seems to be what {verb}; it has {', '.join(functions) or 'none'}. "
                    f"Name both: --wrap {module}:{path and f'{path}.'}READS,ANSWERS"
                )
        program = cls(module, path, owner, functions, str(build), str(answer))
        program.found = _first(_FINDS, {step: functions[step] for step in functions if step not in (build, answer)})
        program._see_store()
        return program

    @property
    def here(self) -> str:
        """What has the functions, as a program that imports it names it."""
        return self.path or self.module.rpartition(".")[2]

    @property
    def is_made(self) -> bool:
        """Whether an object is made anew, and is not the one that the module has."""
        return self.made.endswith(")")

    def reading(self) -> tuple[str, bool, str]:
        """What stands before the function that builds, whether it reads a session at once, and how it reads."""
        function, step = self.functions[self.build], f"{self.here}.{self.build}"
        told = str(_text_parameter(function, _TOLD) or "")
        several = _SEVERAL.search(told) is not None
        beside = {
            parameter.name: value
            for parameter, (pattern, value) in product(_parameters(function), _OF_TURN.items())
            if pattern.fullmatch(str(parameter)) and not (several and value.startswith("turn."))
        }
        turn = "turn.text" if "turn.speaker" in beside.values() else "turn.spoken"
        if message := self._message(function):
            turn = message
        elif _MESSAGES.search(told):
            turn = '{"role": "user", "content": turn.spoken}'
            self.unknown.append(f"{step}: what a message holds is not seen; it is told role and content")
        if _PAIRS.search(told):
            turn = "(turn.speaker, turn.text)"
            self.unknown.append(f"{step}: what a pair holds is not seen; it is told speaker and text")
        call = self._call(
            function,
            f"{'memory' if self.is_made else self.made or self.here}.{self.build}",
            _TOLD,
            self._several(function, turn) if several else turn,
            beside,
        )
        if inspect.isasyncgenfunction(function):
            return "async ", several, f"[piece async for piece in {call}]"
        if inspect.iscoroutinefunction(function):
            return "async ", several, f"await {call}"
        return "", several, f"list({call})" if inspect.isgeneratorfunction(function) else call

    @staticmethod
    def _message(function: Any) -> str | None:
        """A message as a dict with the keys that a function reads; None if it reads none, or any that says nothing."""
        keys = _keys(function, getattr(_text_parameter(function, _TOLD), "name", ""))
        values = {key: value for key in keys for pattern, value in _OF_TURN.items() if pattern.fullmatch(key)}
        values |= {key: "turn.speaker" for key in keys if key in ("name", "user", "from")}
        text = "turn.text" if "turn.speaker" in values.values() else "turn.spoken"
        values |= {key: text for key in keys if _TOLD.fullmatch(key)}
        listed = ", ".join(f'"{key}": {values.get(key)}' for key in keys)
        return f"{{{listed}}}" if text in values.values() and len(values) == len(keys) else None

    @staticmethod
    def _several(function: Any, turn: str) -> str:
        """All turns of a session: a text, one argument each, or a list."""
        parameter = _text_parameter(function, _TOLD)
        is_text = turn[0] != "{" and _is_one_text(function, str(parameter))
        if is_text or re.fullmatch(r"\w+: '?str\b.*", str(parameter)):
            return f'"\\n".join({turn} for turn in part.turns)'
        return f"{'*' * str(parameter).startswith('*')}[{turn} for turn in part.turns]"

    def answering(self) -> tuple[str, str]:
        """What stands before the function that answers, and how it answers."""
        function = self.functions[self.answer]
        call = self._call(function, f"{self.made or self.here}.{self.answer}", _ASKED, "question", {})
        fields = _fields(_hints(function).get("return"))
        text = min((name for name in fields if _REPLIES.fullmatch(name)), default="")
        begins, call = ("async ", f"await {call}") if inspect.iscoroutinefunction(function) else ("", call)
        return begins, f"({call}).{text}" if text else call

    def _call(self, function: Any, name: str, pattern: re.Pattern[str], text: str, beside: Mapping[str, str]) -> str:
        given, last, is_named = list[str](), _text_parameter(function, pattern), False
        for parameter in _parameters(function):
            if last is not None and parameter.name == last.name:
                value = text
            elif _WORKERS.fullmatch(parameter.name):  # threads would ask in another order each time
                given.append(f"{parameter.name}=1")
                is_named = True
                continue
            elif parameter.default is not parameter.empty or parameter.kind in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            ):
                continue
            else:
                value = beside.get(parameter.name, '"me"' if _ANY_TEXT.fullmatch(str(parameter)) else "...")
            is_named = is_named or value == "..." or parameter.kind is parameter.KEYWORD_ONLY
            given.append(f"{parameter.name}={value}" if is_named else value)
            if value == "...":
                self._leave_open(f"{self.here}.{function.__name__}({given[-1]})")
        return f"{name}({', '.join(given)})"

    def _leave_open(self, call: str) -> None:
        self.has_gaps = True
        self.unknown.append(f"{call}: put in what your program gives it")

    def _made(self) -> str:
        """An object as its class makes it."""
        given = []
        for parameter in _parameters(self.owner.__init__) if inspect.isfunction(self.owner.__init__) else []:
            stored = _place(self.module, self.owner.__init__, parameter)
            if stored is not None and not self.is_stored:
                self._store_by(stored)
                given.append(f"{parameter.name}={stored}")
            elif parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                value = '"me"' if _ANY_TEXT.fullmatch(str(parameter)) else "..."
                given.append(f"{parameter.name}={value}")
                if value == "...":
                    self._leave_open(f"{self.path}({given[-1]})")
        return f"{self.path}({', '.join(given)})"

    def _provided(self) -> str | None:
        """An object as a function of the module gives it, which is told where to store and makes what it needs."""
        for name, function in vars(sys.modules[self.module]).items():
            if not inspect.isfunction(function) or _hints(function).get("return") is not self.owner:
                continue
            needed = [item for item in _parameters(function) if item.default is item.empty]
            stored = [_place(self.module, function, parameter) for parameter in needed]
            if len(stored) == 1 and stored[0] is not None and not inspect.iscoroutinefunction(function):
                self._store_by(stored[0])
                self.imported.add(name)
                if self.found is None:
                    self.imported.remove(self.path.partition(".")[0])
                return f"{name}({stored[0]})"
        return None

    def _store_by(self, stored: str) -> None:
        self.is_stored = True
        self.imported |= set(re.findall(r"^(\w+)\(", stored))

    def _see_store(self) -> None:
        """How an object is made with its store in a folder, or which variables of the module are the store."""
        stores, lasting = global_stores(self.module)
        here = [place.partition(":")[2] for place in stores if place.startswith(f"{self.module}:")]
        own = (name for name in here if type(_OBJECTS.open(f"{self.module}:{name}")) is self.owner)
        self.made = next(own, "")
        if self.made or self.path:
            self.imported |= {name.partition(".")[0] for name in (self.made, self.path) if name}
        if self.path and not self.made:
            self.made = self._provided() or self._made()
        self.unknown += lasting
        if self.is_stored:
            self.unknown += [
                f"{store}: lasts from one memory to the next; if it keeps any, add it to stores" for store in stores
            ]
        else:
            self.stores, self.is_stored = stores, bool(stores)
            if not self.is_stored:
                self.unknown.append(f"{self.here}: where it stores is not seen; its store must be in `folder`")


def _first(pattern: re.Pattern[str], steps: Mapping[str, Any]) -> str | None:
    """The step whose name says it first, in the order of the pattern's words."""
    for word in pattern.pattern.split("|"):
        for step, function in steps.items():
            if re.search(word, step, re.IGNORECASE) and (_parameters(function) or pattern is _FINDS):
                return step
    return None


def _only(steps: Mapping[str, Any], pattern: re.Pattern[str], *but: str | None) -> str | None:
    """The only step that takes what a pattern names, and does not find what is stored."""
    taking = [
        step
        for step, function in steps.items()
        if step not in but
        and not _FINDS.search(step)
        and any(pattern.search(item.name) for item in _parameters(function))
    ]
    return taking[0] if len(taking) == 1 else None


def _parameters(function: Any) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    return parameters[1:] if [parameter.name for parameter in parameters[:1]] == ["self"] else parameters


def _text_parameter(function: Any, pattern: re.Pattern[str]) -> inspect.Parameter | None:
    """The parameter that takes what is said or asked: by its name, or else the last that must be given."""
    parameters = _parameters(function)
    named = [parameter for parameter in parameters if pattern.search(parameter.name)]
    needed = [
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    return next(iter([*named, *needed[::-1], *parameters]), None)


def _keys(function: Any, parameter: str) -> list[str]:
    """The keys of a parameter, or of its items, that a function reads."""
    tree: ast.AST = ast.Pass()
    items, whole = {parameter}, re.compile(rf"(?:(?:enumerate|reversed|list)\()*{parameter}\)*")
    with contextlib.suppress(OSError, SyntaxError):
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension) and whole.fullmatch(ast.unparse(node.iter)):
            items |= {name.id for name in ast.walk(node.target) if isinstance(name, ast.Name)}
    read = rf"\b(?:{'|'.join(items)})(?:\[|\.get\()'(\w+)'"
    return list(dict.fromkeys(re.findall(read, ast.unparse(tree))))


def _is_one_text(function: Any, name: str) -> bool:
    """Whether a parameter that nothing is said of is called like a single thing, and no items of it are taken."""
    with contextlib.suppress(OSError):
        items = rf"\bin {name}\b|join\({name}\b|\*{name}\b|\b{name}\["
        return name in ("chat", "dialogue", "conversation") and not re.search(items, inspect.getsource(function))
    return False


def _place(module: str, function: Any, parameter: inspect.Parameter) -> str | None:
    """What a parameter is given so that the store is in `folder`: its place, or settings with a field for that."""
    told = "" if parameter.annotation is parameter.empty else inspect.formatannotation(parameter.annotation)
    if not READ.search(parameter.name) and (
        (STORES.search(parameter.name) and (not told or _PATHS.search(told))) or re.search(r"\bPath\b", told)
    ):
        return _in_folder(parameter.name, parameter.default)
    hint = _hints(function).get(parameter.name)
    for kind in (hint, *typing.get_args(hint)):
        fields = _fields(kind)
        stored = next((name for name in fields if STORES.search(name)), None)
        if stored is not None and kind.__module__ == module:
            return f"{kind.__name__}({stored}={_in_folder(stored, getattr(fields[stored], 'default', None))})"
    return None


def _hints(function: Any) -> Mapping[str, Any]:
    with contextlib.suppress(NameError, TypeError):
        return typing.get_type_hints(function)
    return {}


def _fields(kind: Any) -> Mapping[str, Any]:
    """Those of a dataclass or a model of pydantic."""
    fields: Mapping[str, Any] = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "model_fields", {})
    return fields


def _in_folder(name: str, default: Any) -> str:
    if _FOLDERS.search(name):
        return "folder"
    if isinstance(default, str) and default.startswith(SQLITE):
        return f'f"{SQLITE}{{folder}}/{Path(default.removeprefix(SQLITE)).name}"'
    return f'folder / "{Path(default).name if isinstance(default, str | Path) and str(default) else "memory.db"}"'
