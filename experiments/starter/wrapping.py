"""`memtune init --wrap`: the file that makes a memory system of an existing program, as far as that can be guessed."""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import module_from_spec, spec_from_file_location
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments.starter.global_stores import modules_of
from experiments.starter.program import Program
from experiments.starter.starter_files import CONFIG, starter_config, write_files
from experiments.systems.exporting.schema_replies import smallest
from experiments.systems.wrapped.places import KEYED_FILES, TEXT_FILES, PromptPlace
from experiments.systems.wrapped.python_texts import FEWEST_WORDS, python_texts
from experiments.systems.wrapped.running import BUILDING
from experiments.systems.wrapped.system import guessed_stage
from tracing.errors import ConfigError, ContractError
from tracing.recording.trace_context import trace
from tracing.systems.conformance import MemorySystemConformance
from tracing.systems.protocol import Stage
from tracing.systems.registry import open_system
from tracing.systems.suite.scripted_endpoint import ScriptedEndpoint, called_tool, last_text
from tracing.systems.suite.steps import SMALL_TALK

_GUARD = "let it store in `folder`, not where your program does; then remove this line"
_HOLDS = re.compile(
    r"(?:^|[._])(?:system|user|developer)$|prompt|instruct|template|messages?$|content$|description$", re.IGNORECASE
)
"""Names of what has a prompt, in a function or a dict."""
_SCHEMA = re.compile(r"(?:.*\.)?(?:\w*Model|TypedDict|Struct|\w*Schema)")
"""Classes of which a model is told the docstring."""

_TWICE = SMALL_TALK.model_copy(update={"sessions": SMALL_TALK.sessions * 2})
_END = re.compile(r"^(?!\{).*?(.{,80}\Z)", re.DOTALL)
"""Of a reply that is no JSON."""


@dataclass(frozen=True, slots=True)
class Wrapping:
    """What was written.

    Attributes:
        files: the paths.
        guesses: what was guessed, a line each, for the user to confirm.
        unknown: what could not be guessed, a line each.
        can_run: whether that leaves nothing out without which it cannot run.
    """

    files: list[Path]
    guesses: list[str]
    unknown: list[str]
    can_run: bool


def write_wrapping(name: str, folder: Path) -> Wrapping:
    """Write what makes a memory system of a program (`Program.named`), and a configuration, into a folder.

    Raises:
        ConfigError: there is no such program, nothing of it reads or answers, or a file is there already.
    """
    program = Program.named(name)
    module, here = program.module, program.here
    sources = {
        other: Path(inspect.getfile(other)).read_text(encoding="utf-8") for other in modules_of(sys.modules[module])
    }
    in_files = _in_files(sources, folder, program.unknown)
    places = chain(*(_in_source(other, source) for other, source in sources.items()), in_files)
    prompts = dict(_prompts(places, program.unknown))
    if not prompts:
        program.unknown.append("prompts: no text in the module looks like one; name their places")
    begins_build, several, reading = program.reading()
    begins_answer, answering = program.answering()
    package, _, last = module.rpartition(".")
    import_module = f"from {package} import {last}" if package else f"import {module}"
    lines = [
        "import memtune",
        f"from {module} import {', '.join(sorted(program.imported))}" if program.imported else import_module,
        *("", ""),
        f"{begins_build}def build(folder, conversation):",
        *([] if program.is_stored else [f"    raise NotImplementedError({json.dumps(_GUARD)})"]),
        *([f"    memory = {program.made}"] if program.is_made else []),
        "    for part in conversation.sessions:",
        *([f"        {reading}"] if several else ["        for turn in part.turns:", f"            {reading}"]),
        *("", ""),
        f"{begins_answer}def answer(folder, question):",
        f"    return {answering}",
        *("", ""),
        "system = memtune.system(",
        "    build=build,",
        "    answer=answer,",
        f"    prompts={json.dumps({key: place for key, (place, _) in prompts.items()})},",
        "    stages=STAGES,",
        *([f"    stores={json.dumps(program.stores)},"] if program.stores else []),
        *([f'    watched=memtune.watch({here}, retrieve="{program.found}"),'] if program.found is not None else []),
        ")",
    ]
    own, source = f"wrapped_{last}", "".join(f"{line}\n" for line in lines)
    can_run = bool(prompts) and program.is_stored and not program.has_gaps
    both = json.dumps({key: ["extract", "answer"] for key in prompts})
    seen = _seen_stages(folder / f"{own}_draft.py", source.replace("STAGES", both)) if can_run else None
    program.unknown += [
        f"prompt {key} ({place}): it is in none of the requests for small talk; unless longer conversations need it, "
        "leave it out of prompts, or name the place where the text that is sent is written"
        for key, (place, _) in prompts.items()
        if seen is not None and key not in seen
    ]
    stages = {key: _stages(guessed_stage(key, text), (seen or {}).get(key, [])) for key, (_, text) in prompts.items()}
    config = starter_config({"system": f"{own}:system"})
    files = write_files(folder, {CONFIG: config, f"{own}.py": source.replace("STAGES", json.dumps(stages))})
    found = f"{here}.{program.found}" if program.found is not None else "nothing"
    guesses = [f"reads: {here}.{program.build}; answers: {here}.{program.answer}; finds: {found}"]
    guesses += [f"store: {place}, in its place {name} in a memory's folder" for place, name in program.stores.items()]
    told = {key: stage if isinstance(stage, str) else " and ".join(stage) for key, stage in stages.items()}
    guesses += [f"prompt {key}, stage {told[key]}: {place}" for key, (place, _) in prompts.items()]
    return Wrapping(files, guesses, program.unknown, can_run)


def _seen_stages(draft: Path, source: str) -> Mapping[str, list[Stage]] | None:
    """When the requests of a program hold each prompt, while it reads and answers small talk; None if it cannot."""
    seen = defaultdict[str, list[Stage]](list)
    # What is replied, and so stored, is short, that it holds no prompt itself.
    endpoint = ScriptedEndpoint(lambda request: _END.sub(r"\1", plausible_reply(request)))
    watched = None
    try:
        draft.write_text(source, encoding="utf-8")
        spec: Any = spec_from_file_location(draft.stem, draft)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        system, watched = module.system, module.system.watched
        baseline = {name: prompt.text for name, prompt in system.prompts.items()}
        with trace() as recorder:
            memory = system.build(SMALL_TALK, baseline, endpoint.access)
            for question in SMALL_TALK.questions:
                system.answer(memory, question, baseline, endpoint.access)
            with contextlib.suppress(Exception):  # what is asked only about what is stored already
                system.build(_TWICE, baseline, endpoint.access)
        for step in recorder.graph.operations.values():
            name, _, stage = step.name.rpartition("_")
            if name in baseline and stage not in seen[name]:
                seen[name].append(stage)  # type: ignore[arg-type]
    except Exception:  # the conformance suite tells it
        return None
    finally:
        endpoint.close()
        draft.unlink(missing_ok=True)
        if watched is not None:
            watched.undo()
    return seen


def _stages(guess: Stage, seen: list[Stage]) -> Stage | list[Stage]:
    """What is guessed by name and placeholders, as far as the requests agree."""
    kinds = [guess if (guess in BUILDING) == (stage in BUILDING) else stage for stage in seen] or [guess]
    return kinds if kinds[1:] else kinds[0]


def problems_of(name: str) -> list[str]:
    """What the conformance suite finds in what was written, a line each."""
    system = open_system(name)

    class TestWrapped(MemorySystemConformance):
        def system(self) -> Any:
            return system

        def reply(self, request: Mapping[str, Any]) -> str:
            return plausible_reply(request)

    suite = TestWrapped()
    try:
        checks = [problem.partition(": ") for problem in suite.problems()]
    finally:
        suite.teardown_class()
    by_reason = dict.fromkeys(reason for _, _, reason in checks)
    named = {reason: [check for check, _, other in checks if other == reason] for reason in by_reason}
    return [f"{reason} ({', '.join(listed[:2])}{', …' * (len(listed) > 2)})" for reason, listed in named.items()]


def plausible_reply(request: Mapping[str, Any]) -> str:
    """A reply in the form that a request asks for, by its schema or its example, with what it says last."""
    said = last_text(request)[-80:]
    texts = "\n".join(str(message["content"]) for message in request["messages"])
    tool = called_tool(request)
    if tool is not None or "json_schema" in (request.get("response_format") or {}):
        schema = tool["parameters"] if tool is not None else request["response_format"]["json_schema"]["schema"]
        return json.dumps(smallest(schema, schema, said))
    examples = re.findall(r"\{[^{}]*\}", texts)
    keys = re.findall(r'"(\w+)"\s*:\s*([^,}]*)', examples[-1]) if examples else []
    if not keys:
        return last_text(request)
    return json.dumps(
        {key: None if "null" in value else [said] if value.startswith("[") else said for key, value in keys}
    )


def _prompts(places: Iterator[tuple[str, PromptPlace]], unknown: list[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Name → place and text of what looks like a prompt: texts of several words, none of them a part of another."""
    listed: list[tuple[str, PromptPlace, str]] = []
    for dotted, place in places:
        with contextlib.suppress(ConfigError, ContractError):
            listed.append((dotted, place, place.template().text))
    long = [(*entry, *entry[1].parts()) for entry in listed if _has_words(entry[2])]
    names: set[str] = set()
    seen: set[frozenset[Any]] = set()
    kept: dict[Any, str] = {}
    for dotted, place, text, parts, left in long:
        if parts in seen or any(parts < other for _, _, _, other, _ in long):
            continue
        seen.add(parts)
        kept |= left
        words = [word.strip("_").lower() for word in dotted.split(".")]
        longer = ("_".join(words[at:]) for at in reversed(range(len(words))))
        name = next((name for name in longer if name not in names), f"{'_'.join(words)}{len(names)}")
        names.add(name)
        yield name, (place.name, text)
    tuned = {part for parts in seen for part in parts}
    unknown += [line for part, line in kept.items() if part not in tuned]


def _has_words(text: str) -> bool:
    words = re.findall(r"[^\W\d]{2,}", re.sub(r"\{\w+\}", "", text))
    return len(words) >= FEWEST_WORDS and re.fullmatch(r"[!-~]+", text) is None  # an address, or a model's name


def _in_source(module: ModuleType, source: str) -> Iterator[tuple[str, PromptPlace]]:
    """Constants of a module, functions in which a text is filled, and what is named like a prompt in these."""
    file = Path(inspect.getfile(module)).resolve()
    for dotted, node, scope in python_texts(source).names():
        place, value = PromptPlace(f"{module.__name__}:{dotted}", file, dotted), vars(module).get(dotted)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.List | ast.Tuple):
            with contextlib.suppress(ConfigError, ContractError):
                template = place.template()
                if template.syntax == "composed" or (template.fields and not isinstance(node, ast.List | ast.Tuple)):
                    yield dotted, place
        elif isinstance(scope, ast.Module | ast.ClassDef) and not isinstance(node, ast.ClassDef):
            if dotted.endswith("__doc__") and not _describes_a_reply(scope):
                continue
            if isinstance(value, str) or not isinstance(value, Collection):
                yield dotted, place
        elif not isinstance(node, ast.ClassDef) and _HOLDS.search(dotted) and not dotted.endswith("__doc__"):
            is_example = dotted.endswith(".user") and (isinstance(scope, ast.List) or dotted == "main.user")
            yield from () if is_example else [(dotted, place)]


def _describes_a_reply(scope: ast.Module | ast.ClassDef) -> bool:
    """Whether the docstring is one that a schema of replies has; any other is for people."""
    bases = scope.bases if isinstance(scope, ast.ClassDef) else []
    return any(_SCHEMA.fullmatch(ast.unparse(base)) for base in bases)


def _in_files(sources: Mapping[ModuleType, str], folder: Path, unread: list[str]) -> Iterator[tuple[str, PromptPlace]]:
    """The files near modules that these name or have read: each text file, and the texts of each with keys."""
    values = [item for module in sources for item in vars(module).items()]
    values += [item for _, value in values if isinstance(value, dict) for item in value.items()]
    names = {text.strip(): str(name) for name, text in values if isinstance(text, str)}
    source = "\n".join(sources.values())
    near = {Path(inspect.getfile(module)).resolve().parent for module in sources}
    for path in sorted({path for parent in near for path in (*parent.glob("*"), *parent.glob("*/*"))}):
        if not path.is_file() or path.suffix not in (*TEXT_FILES, *KEYED_FILES):
            continue
        place = PromptPlace(os.path.relpath(path, folder.resolve()), path, "")
        is_named = re.search(rf"\b{re.escape(path.name)}\b", source) is not None
        # By its first name only where that is put before its suffix, or all files of a folder are read.
        if not is_named and re.search(
            rf"(?:[}}\"'*]|%s)(?:{re.escape(path.suffix)}\b|\.\*)|\b(?:iter|list)dir\(", source
        ):
            is_named = re.search(rf"[\"']{re.escape(path.stem)}[\"']", source) is not None
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
