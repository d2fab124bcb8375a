"""Writes the pages of reference from the code: python docs/reference.py"""

from __future__ import annotations

import re
from pathlib import Path

import click

from experiments.command import cli
from experiments.runs.config_reference import ROLE, config_keys

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


PAGES = {"configuration.md": configuration, "commands.md": commands}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (HERE / name).write_text(make(), encoding="utf-8")
