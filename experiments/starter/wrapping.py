"""`memtune init --wrap`: the file that makes a memory system of an existing class, as far as that can be guessed."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from experiments.starter.starter_files import CONFIG, starter_config, write_files
from experiments.systems.wrapped.places import KEYED_FILES, TEXT_FILES, PromptPlace
from experiments.systems.wrapped.system import guessed_stage
from tracing.errors import ConfigError, ContractError
from tracing.plugins import PluginRegistry
from tracing.systems.conformance import MemorySystemConformance
from tracing.systems.registry import open_system
from tracing.systems.suite.scripted_endpoint import last_text

_OBJECTS = PluginRegistry(kind="programs", key="--wrap", built_in={})
_BUILDS = re.compile(r"add|remember|ingest|observe|take_notes|save|store|insert|chat", re.IGNORECASE)
_ANSWERS = re.compile(r"answer|reply|respond|ask|chat|query", re.IGNORECASE)
_FINDS = re.compile(r"search|retriev|recall|find|lookup|memories", re.IGNORECASE)
_STORES = re.compile(r"path|file|db|database|folder|dir|store", re.IGNORECASE)
_FOLDERS = re.compile(r"folder|dir", re.IGNORECASE)
_SEVERAL = re.compile(r"turns|messages|texts|chat|dialogue|conversation|list|sequence", re.IGNORECASE)
_OF_GRAPHS = re.compile(r"state|runtime|config|request|event", re.IGNORECASE)
"""The first parameter of a step that a framework calls."""
_MESSAGES = re.compile(r"dict|mapping", re.IGNORECASE)
_GUARD = "let it store in `folder`, not where your program does; then remove this line"
_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Wrapping:
    """What was written.

    Attributes:
        files: the paths.
        guesses: what was guessed, a line each, for the user to confirm.
        unknown: what could not be guessed, a line each.
    """

    files: list[Path]
    guesses: list[str]
    unknown: list[str]


def write_wrapping(name: str, folder: Path) -> Wrapping:
    """Write what makes a memory system of a class, `module:Class`, and a configuration, into a folder.

    Raises:
        ConfigError: there is no such class, nothing of it reads or answers, or a file is there already.
    """
    program = _OBJECTS.open(name)
    if not inspect.isclass(program):
        raise ConfigError(f"--wrap: {name!r} is no class; for functions, write the lines of docs/extending.md yourself")
    module, _, path = name.partition(":")
    steps = {
        step: function
        for step, function in inspect.getmembers(program, inspect.isfunction)
        if step[0] != "_" and not any(_OF_GRAPHS.fullmatch(parameter.name) for parameter in _parameters(function)[:1])
    }
    build, answer = _first(_BUILDS, steps), _first(_ANSWERS, steps)
    missing = [verb for verb, step in (("reads what is said", build), ("answers", answer)) if step is None]
    if build is None or answer is None:
        raise ConfigError(f"--wrap: no method of {name} seems to be what {missing[0]}; it has {', '.join(steps)}")
    found = _first(_FINDS, {step: steps[step] for step in steps if step not in (build, answer)})
    file = Path(inspect.getfile(program)).resolve()
    made, is_stored, unknown = _made(program, path)
    source = file.read_text(encoding="utf-8")
    places = chain(_in_source(module, file, source), _in_files(module, file, source, folder, unknown))
    prompts = dict(_prompts(places))
    if not prompts:
        unknown.append("prompts: no text in the module looks like one; name their places")
    stages = {key: guessed_stage(key, text) for key, (_, text) in prompts.items()}
    first = str(next(iter(_parameters(steps[build])), ""))
    several = _SEVERAL.search(first) is not None
    turn = '{"role": "user", "content": turn.spoken}' if _MESSAGES.search(first) else "turn.spoken"
    said = f"[{turn} for turn in part.turns]" if several else turn
    if turn != "turn.spoken":
        unknown.append(f"{path}.{build}: what a message holds is not seen; it is told role and content")
    (begins_build, awaits_build), (begins_answer, awaits_answer) = _keywords(steps[build]), _keywords(steps[answer])
    reading = f"{awaits_build}memory.{build}({said})"
    lines = [
        "import memtune",
        f"from {module} import {path.partition('.')[0]}",
        *("", ""),
        f"{begins_build}def build(folder, conversation):",
        *([] if is_stored else [f"    raise NotImplementedError({json.dumps(_GUARD)})"]),
        f"    memory = {made}",
        "    for part in conversation.sessions:",
        *([f"        {reading}"] if several else ["        for turn in part.turns:", f"            {reading}"]),
        *("", ""),
        f"{begins_answer}def answer(folder, question):",
        f"    return {awaits_answer}{made}.{answer}(question)",
        *("", ""),
        "system = memtune.system(",
        "    build=build,",
        "    answer=answer,",
        f"    prompts={json.dumps({key: place for key, (place, _) in prompts.items()})},",
        f"    stages={json.dumps(stages)},",
        *([f'    watched=memtune.watch({path}, retrieve="{found}"),'] if found is not None else []),
        ")",
    ]
    own = f"wrapped_{module.rpartition('.')[2]}"
    config = starter_config({"system": f"{own}:system"})
    files = write_files(folder, {CONFIG: config, f"{own}.py": "\n".join(lines) + "\n"})
    guesses = [f"reads: {path}.{build}; answers: {path}.{answer}; finds: {f'{path}.{found}' if found else 'nothing'}"]
    guesses += [f"prompt {key}, stage {stages[key]}: {place}" for key, (place, _) in prompts.items()]
    return Wrapping(files, guesses, unknown)


def problems_of(name: str) -> list[str]:
    """What the conformance suite finds in what was written, a line each."""
    system = open_system(name)

    class TestWrapped(MemorySystemConformance):
        def system(self) -> Any:
            return system

        def reply(self, request: Mapping[str, Any]) -> str:
            return plausible_reply(last_text(request))

    suite = TestWrapped()
    try:
        checks = [problem.partition(": ") for problem in suite.problems()]
    finally:
        suite.teardown_class()
    by_reason = dict.fromkeys(reason for _, _, reason in checks)
    named = {reason: [check for check, _, other in checks if other == reason] for reason in by_reason}
    return [f"{reason} ({', '.join(listed[:2])}{', …' * (len(listed) > 2)})" for reason, listed in named.items()]


def plausible_reply(request: str) -> str:
    """A reply in the form that a request asks for: an object with the keys of its example, else what it says last."""
    example = re.findall(r"\{[^{}]*\}", request)
    keys = re.findall(r'"(\w+)"\s*:\s*([^,}]*)', example[-1]) if example else []
    if not keys:
        return request
    return json.dumps({key: None if "null" in value else request[-80:] for key, value in keys})


def _first(pattern: re.Pattern[str], steps: Mapping[str, Any]) -> str | None:
    """The step whose name says it first, in the order of the pattern's words."""
    for word in pattern.pattern.split("|"):
        for step, function in steps.items():
            if re.search(word, step, re.IGNORECASE) and (_parameters(function) or pattern is _FINDS):
                return step
    return None


def _parameters(function: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())[1:]


def _keywords(function: Any) -> tuple[str, str]:
    """What stands before the definition of a step and before its calls."""
    return ("async ", "await ") if inspect.iscoroutinefunction(function) else ("", "")


def _made(program: Any, path: str) -> tuple[str, bool, list[str]]:
    """How an object of the class is made, whether with its store in a folder, and what of that is unknown."""
    parameters = _parameters(program.__init__) if "__init__" in vars(program) else []
    given, unknown, stored = [], [], False
    for parameter in parameters:
        if not stored and _STORES.search(parameter.name):
            stored = True
            place = "folder" if _FOLDERS.search(parameter.name) else 'folder / "memory.db"'
            given.append(f"{parameter.name}={place}")
        elif parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            given.append(f"{parameter.name}=...")
            unknown.append(f"{path}({parameter.name}=...): put in what your program gives it")
    if not stored:
        unknown.append(f"{path}: where it stores is not seen; its store must be in `folder`")
    return f"{path}({', '.join(given)})", stored, unknown


def _prompts(places: Iterator[tuple[str, PromptPlace]]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Name → place and text of what looks like a prompt: texts of several words."""
    names: set[str] = set()
    for dotted, place in places:
        try:
            text = place.template().text
        except (ConfigError, ContractError):
            continue
        if len(re.findall(r"[^\W\d]{2,}", re.sub(r"\{\w+\}", "", text))) >= _FEWEST_WORDS:
            last, whole = (name.strip("_").lower() for name in (dotted.rpartition(".")[2], dotted.replace(".", "_")))
            name = whole if last in names else last
            names.add(name)
            yield name, (place.name, text)


def _in_source(module: str, file: Path, source: str) -> Iterator[tuple[str, PromptPlace]]:
    """The constants of a module, and its functions in which a text is filled."""
    values = vars(sys.modules[module])
    for dotted, node in _scopes(ast.parse(source)):
        value = values.get(dotted)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not any(map(_is_filled, ast.walk(node))):
            continue
        if not isinstance(value, Collection) or isinstance(value, str):
            yield dotted, PromptPlace(f"{module}:{dotted}", file, dotted)


def _in_files(
    module: str, file: Path, source: str, folder: Path, unread: list[str]
) -> Iterator[tuple[str, PromptPlace]]:
    """The files near a module that it names or has read: each text file, and the texts of each with keys."""
    names = {text.strip(): name for name, text in vars(sys.modules[module]).items() if isinstance(text, str)}
    for path in sorted([*file.parent.glob("*"), *file.parent.glob("*/*")]):
        if not path.is_file() or path.suffix not in (*TEXT_FILES, *KEYED_FILES):
            continue
        place = PromptPlace(os.path.relpath(path, folder.resolve()), path, "")
        is_named = re.search(rf"\b{re.escape(path.name)}\b", source) is not None
        if path.suffix in TEXT_FILES:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            if is_named or text in names:
                yield names.get(text, path.stem), place
        elif is_named:
            try:
                keys = list(place.text_keys())
            except ConfigError as error:
                unread.append(str(error))
                continue
            for key in keys:
                yield key.replace(".", "_"), replace(place, name=f"{place.name}:{key}", key=key)


def _is_filled(node: ast.AST) -> bool:
    """Whether a text that is written here is filled: an f-string, or one before `%` or `.format`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        node = node.left
    elif isinstance(node, ast.Attribute) and node.attr == "format":
        node = node.value
    else:
        return isinstance(node, ast.JoinedStr)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _scopes(node: ast.AST, before: str = "") -> Iterator[tuple[str, ast.AST]]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.ClassDef):
            yield from _scopes(inner, f"{before}{inner.name}.")
        elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield before + inner.name, inner
        elif isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Name):
            yield before + inner.targets[0].id, inner
