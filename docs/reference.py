"""Writes the pages of reference from the code: python docs/reference.py"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from experiments.command import cli
from experiments.runs.config_reference import ROLE, config_keys
from experiments.systems.exporting.exporter import HasDefaults, Proves, Reads, open_exporter
from experiments.systems.exporting.importing import own_form
from experiments.systems.libraries import Library
from experiments.systems.worker.isolated import environment_of
from tracing.systems.description import describe
from tracing.systems.registry import SYSTEMS, open_system

HERE = Path(__file__).parent
WRITTEN = "<!-- written by docs/reference.py -->"

_CONFIG = f"""{WRITTEN}
# Configuration

After this page you can write a configuration by hand.

`memtune run FILE.yaml` reads a YAML file; options of the command override it, and `memtune init` writes one with every
key. A dot stands for a section: `budget.minutes` is `minutes` under `budget`. `{ROLE}` is `task`, `proposer`, `judge`
or `embedding`. Relative paths are relative to the folder of the file. An unknown key is refused, with the nearest known
one.

| key | default | meaning |
|---|---|---|
"""

_VARIABLES = """
## Environment variables

| variable | meaning |
|---|---|
| `OPENAI_API_KEY` | Key of the endpoints; `models.ROLE.api_key_env` names another variable. |
| `MEMTUNE_HOME` | Folder of runs, MLflow store and caches, where `--home` is not given; `.memtune` by default. |
| `MEMTUNE_WEIGHTS` | Folder of the weights of embedded models; `memtune/weights` in your cache folder by default. |
| `MEMTUNE_SYSTEMS` | Folder of memory systems' environments; `memtune/systems` in your cache folder by default. |
| `MEMTUNE_STORAGE_PASSWORD` | Password of the database in `search.storage`. |
| `HF_ENDPOINT` | Mirror of the model hub that weights are fetched from. |
| `XDG_CACHE_HOME` | Your cache folder; `~/.cache` by default. |
"""

_COMMANDS = f"""{WRITTEN}
# Commands

After this page you can call any command: it is what `memtune COMMAND --help` says. Exit codes: 0 success, 1 a negative
result that the command's help explains, 2 an error, told in one line, 130 interrupted.
"""


def configuration() -> str:
    """The page of all keys of a configuration."""
    rows = []
    for key in config_keys():
        choices = f" One of {', '.join(f'`{one}`' for one in key.choices)}." if key.choices else ""
        default = f"`{key.default}`" if key.default else ""
        rows.append(f"| `{key.name}` | {default} | {key.meaning}{choices} |".replace("|  |", "| |"))
    return _CONFIG + "\n".join(rows) + "\n" + _VARIABLES


def commands() -> str:
    """The page of all commands."""
    return _COMMANDS + "".join(_help(cli, "memtune", None))


def _help(command: click.Command, name: str, parent: click.Context | None) -> list[str]:
    context = command.make_context(name, [], parent, resilient_parsing=True, max_content_width=110, terminal_width=110)
    text = re.sub(r"[ \t]+$", "", command.get_help(context), flags=re.MULTILINE)
    parts = [f"\n## {context.command_path}\n\n```\n{text}\n```\n"]
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None:
                parts += _help(found, inner, context)
    return parts


_TABLE = re.compile(r"(<!-- systems: written by docs/reference\.py -->\n).*?(<!-- end of systems -->\n)", re.DOTALL)

_COLUMNS = (
    *("system", "installed version", "run", "traced", "attributed on planted faults", "prompts", "settings"),
    *("export", "import", "isolation"),
)

_OTHERWISE: Mapping[str, Mapping[str, Any]] = {
    "rag": {"rerank": 6},
    "evermemos": {"rerank": 6},
    "mem0@2": {"tuned": "instructions"},
}
"""Settings with which a system has further prompts and operations."""


def systems() -> str:
    """The page of memory systems, with the table of what each is, declares and was measured to be."""
    page = (HERE / "systems.md").read_text(encoding="utf-8")
    planted = json.loads((HERE / "measured" / "planted-faults.json").read_text(encoding="utf-8"))["systems"]
    rows = [_COLUMNS, ("---",) * len(_COLUMNS), *(_system(name, planted.get(name)) for name in sorted(SYSTEMS.names()))]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return _TABLE.sub(lambda marks: f"{marks[1]}\n{table}\n{marks[2]}", page)


def _system(name: str, planted: Mapping[str, Any] | None) -> list[str]:
    system, otherwise = open_system(name), open_system(name, _OTHERWISE.get(name, {}))
    changed = f" (`{'`, `'.join(_OTHERWISE[name])}`)" if name in _OTHERWISE else ""
    library: Library | None = getattr(system, "generation", None) or getattr(system, "library", None)
    environment = environment_of(system)
    own = own_form(name) or ("rag" if set(system.prompts) == {"answer"} else None)
    form = None if own is None else open_exporter(own)
    written = f"`{own}`{', with `--verify`' * isinstance(form, Proves)}"
    sources = ["its library's texts" if isinstance(form, HasDefaults) else "memtune's texts"]
    sources += [f"`{own}`"] if isinstance(form, Reads) else []
    if environment is not None:
        run = f"`{environment.command}`, Python {' to '.join(environment.python)}"
        process = "workers"
    else:
        run = "as it is" if library is None else f"`{library.remedy}`"
        process = "memtune's process"
    return [
        f"`{name}`",
        "–" if library is None else f"{library.package} {library.release}",
        run,
        _with_others([spec.name for spec in system.operations], [spec.name for spec in otherwise.operations], changed),
        "not measured" if planted is None else _measured(planted),
        _with_others(system.prompts, otherwise.prompts, changed),
        ", ".join(describe(system).settings),
        "–" if own is None else written,
        ", ".join(sources),
        f"a memory for each conversation, in {process}",
    ]


def _with_others(names: Iterable[str], others: Iterable[str], changed: str) -> str:
    further = [f"{name}{changed}" for name in others if name not in set(names)]
    return ", ".join([*names, *further])


def _measured(figures: Mapping[str, Any]) -> str:
    low, high = figures["eta_ci"]
    return f"{figures['eta']:.2f} ({low:.2f}–{high:.2f}) of {figures['n']}"


_ENTRY = re.compile(r"^- \[[^\]]+\]\([^)#]+\.md\): .+$")


def llms() -> str:
    """The home page's list of pages in the form of llmstxt.org, for programs that read the documents."""
    title, *sections = (HERE / "index.md").read_text(encoding="utf-8").split("\n## ")
    name, summary = title.removeprefix("# ").split("\n\n", 1)
    parts = [f"# {name}", "> " + " ".join(summary.partition("\n\n")[0].split())]
    for section in sections:
        heading, *lines = section.splitlines()
        entries = [line for line in lines if _ENTRY.match(line)]
        if entries:
            parts.append("\n".join([f"## {heading}", "", *entries]))
    return "\n\n".join(parts) + "\n"


PAGES = {"configuration.md": configuration, "commands.md": commands, "systems.md": systems, "llms.txt": llms}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (HERE / name).write_text(make(), encoding="utf-8")
