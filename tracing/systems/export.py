"""Tuned prompts in the form of the system that is to use them, with a manifest that says where they come from."""

from __future__ import annotations

import hashlib
import json
import os
import string
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracing.errors import ContractError, RunError
from tracing.systems.description import describe
from tracing.systems.mem0_memory import native as mem0
from tracing.systems.prompts import Candidate, PromptSpec, check_candidate, placeholders_of, render
from tracing.systems.registry import open_system

MANIFEST = "manifest.json"
FORMAT, VERSION = "memtune-export", 1


@dataclass(frozen=True, slots=True)
class Target:
    """A form prompts can be exported to.

    Attributes:
        prompts: names of the prompts it holds; None takes whatever a system has.
        write: writes a candidate into a folder and returns `{prompt name: file}`.
        render: reads one prompt back from that folder and renders it as the user of the export will.
        prove: loads the folder in the library it is for and says where the prompts are in what that sends; None where
            there is no such library.
    """

    prompts: frozenset[str] | None
    write: Callable[[Candidate, Path], dict[str, str]]
    render: Callable[[str, Mapping[str, str], Path], str]
    prove: Callable[[Path], list[str]] | None = None


def export(
    system_name: str,
    candidate: Candidate,
    target: str,
    out: Path,
    manifest: Mapping[str, Any],
    *,
    verify: bool = False,
    model: str | None = None,
) -> Path:
    """Write `candidate` to the new folder `out` in the form of `target`, with `manifest.json` beside it.

    What was written is read back and rendered with awkward values, and must give what the candidate gives: only then
    does the folder appear, all at once.

    Args:
        manifest: the origin of the prompts (run, models, scores, caveats); hashes, format, version and warnings are
            added.
        verify: load what was written in the library it is for, and add to the manifest where that sends the prompts.
        model: what the prompts will be used with; None where that is not known.

    Raises:
        ContractError: a prompt breaks its contract, reads back differently, or is not sent by the library.
        RunError: the target is unknown, does not fit the system's prompts or has no library to verify it in, or `out`
            cannot be written.
        ConfigError: no such system, or the library to verify in is not installed.
    """
    system = open_system(system_name)
    form = target_for(system_name, system.prompts, target)
    if verify and form.prove is None:
        raise RunError(f"--verify: {target} is for no library that could be asked; export without it")
    check_candidate(system.prompts, candidate)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError(f"{out}: exists already; give --out a new folder")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as scratch:
            folder = Path(scratch) / "export"
            folder.mkdir()
            files = form.write(candidate, folder)
            _verify(candidate, form, folder)
            prompts = {
                name: {"file": files[name], "sha256": hashlib.sha256(text.encode()).hexdigest()}
                for name, text in candidate.items()
            }
            origin = {
                **manifest,
                "format": FORMAT,
                "version": VERSION,
                "target": target,
                "system": system_name,
                "system_version": describe(system).version,
                "prompts": prompts,
                "warnings": _warnings(manifest, model),
                "verified": form.prove(folder) if verify and form.prove else [],
            }
            _write(folder / MANIFEST, json.dumps(origin, indent=2, ensure_ascii=False) + "\n")
            if out.exists():
                out.rmdir()
            os.replace(folder, out)
    except OSError as error:
        raise RunError(
            f"{error.filename or out}: cannot be written ({error.strerror}); give --out another folder"
        ) from None
    return out


def target_for(system_name: str, prompts: Mapping[str, PromptSpec], target: str) -> Target:
    """The target named `target`, where it can hold exactly these prompts.

    Raises:
        RunError: it is unknown or cannot; says which targets fit.
    """
    fitting = [name for name, form in TARGETS.items() if form.prompts is None or form.prompts == set(prompts)]
    if target not in TARGETS:
        raise RunError(f"--to {target}: unknown target; {system_name} can be exported to: {', '.join(fitting)}")
    if target not in fitting:
        held = ", ".join(sorted(TARGETS[target].prompts or ()))
        raise RunError(
            f"--to {target}: holds the prompts {held}, but {system_name} has {', '.join(prompts)}; "
            f"{system_name} can be exported to: {', '.join(fitting)}"
        )
    return TARGETS[target]


def _warnings(manifest: Mapping[str, Any], model: str | None) -> list[str]:
    warnings = list(manifest.get("caveats", ()))
    tuned = manifest.get("model")
    if tuned and model != tuned:
        used = "another model" if model is None else model
        warnings.append(
            f"These prompts were tuned on {tuned}: with {used}, measure them again before you rely on them."
        )
    return warnings


def _verify(candidate: Candidate, form: Target, folder: Path) -> None:
    for name, text in candidate.items():
        values = {place: f"${place} {{{place}}} $$ \\ % é\n" for place in placeholders_of(text)}
        if form.render(name, values, folder) != render(text, values):
            raise ContractError(
                f"{name}: the exported prompt reads back differently; report the prompt as a fault of memtune"
            )


def _write_text(candidate: Candidate, folder: Path) -> dict[str, str]:
    for name, text in candidate.items():
        _write(folder / f"{name}.txt", text)
    return {name: f"{name}.txt" for name in candidate}


def _render_text(name: str, values: Mapping[str, str], folder: Path) -> str:
    return render((folder / f"{name}.txt").read_bytes().decode(), values)


RAG_FILE = "rag.json"


def _write_rag(candidate: Candidate, folder: Path) -> dict[str, str]:
    template = as_string_template(candidate["answer"])
    _write(folder / RAG_FILE, json.dumps({"answer_template": template}, indent=2, ensure_ascii=False) + "\n")
    return {"answer": RAG_FILE}


def _render_rag(name: str, values: Mapping[str, str], folder: Path) -> str:
    settings = json.loads((folder / RAG_FILE).read_bytes())
    return string.Template(settings[f"{name}_template"]).substitute(values)


def as_string_template(text: str) -> str:
    """A prompt in the syntax of `string.Template`: `$question` for a placeholder, `$$` for a dollar, braces plain."""
    parts: list[str] = []
    pieces = list(string.Formatter().parse(text))
    for place, (literal, name, _, _) in enumerate(pieces):
        parts.append(literal.replace("$", "$$"))
        if name is not None:
            after = pieces[place + 1][0] if place + 1 < len(pieces) else ""
            # Where a letter follows, the name must be fenced off.
            parts.append(f"${{{name}}}" if after[:1].isidentifier() or after[:1].isdigit() else f"${name}")
    return "".join(parts)


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)


TARGETS: Mapping[str, Target] = {
    "text": Target(None, _write_text, _render_text),
    "rag": Target(frozenset({"answer"}), _write_rag, _render_rag),
    "mem0@1.0": Target(frozenset({"extract", "update", "answer"}), mem0.write, mem0.read_back, mem0.prove),
}
