"""`memtune export` and `import-prompts`: tuned prompts to the system that uses them, and its own prompts back."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.earlier_names import RenamedOption
from experiments.commands.examples import examples
from experiments.commands.options import home_option
from experiments.display.terminal import say
from tracing.package_data import packaged_tables

if TYPE_CHECKING:
    from experiments.runs.folder import RunFolder
    from tracing.systems.protocol import MemorySystem


def _pairs(context: click.Context, option: click.Option, texts: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        prompt, equals, name = text.partition("=")
        if not (prompt and equals and name):
            raise click.BadParameter(f"{text!r}: give {option.metavar}", context, option)
        if prompt in pairs:
            raise click.BadParameter(f"{text!r}: {prompt} is given twice", context, option)
        pairs[prompt] = name
    return pairs


def _settings(context: click.Context, option: click.Option, texts: Sequence[str]) -> dict[str, Any]:
    import yaml

    from tracing.files.yaml_text import load_yaml

    try:
        return {name: load_yaml(value) for name, value in _pairs(context, option, texts).items()}
    except (yaml.YAMLError, ValueError) as error:
        message = " ".join(str(error).split())
        raise click.BadParameter(f"no value as in a configuration ({message})", context, option) from None


@click.command(epilog=examples("export"))
@click.argument("run", metavar="RUN")
@click.option(
    "--to",
    "target",
    required=True,
    metavar="SYSTEM[@VERSION]",
    help="Memory systems: mem0@0.1, mem0@1.0, mem0@2, everos@1.5, memori@3.3, rag. Libraries and services: "
    f"{', '.join(packaged_tables('experiments.systems.exporting', 'library_targets.toml'))}. Forms for any system: "
    "text, json, dotenv, python, dspy, mlflow. A program of memtune.system: source. Or your own exporter as "
    "module:Object.",
)
@click.option("--out", type=click.Path(path_type=Path), help="New folder to write; all targets but source need it.")
@click.option(
    "--patch",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="With --to source: write a patch that `git apply` takes, without FILE to stdout.",
)
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Your own configuration of the target, JSON or YAML: a copy with the prompts in goes into --out.",
)
@click.option(
    "--map",
    "mapping",
    multiple=True,
    callback=_pairs,
    metavar="PROMPT=PLACE",
    help="The target's place for a prompt, instead of the one by name or stage; may be repeated.",
)
@click.option(
    "--verify", is_flag=True, help="Load it in the real library and find the prompts in the requests that it sends."
)
@click.option(
    "--target-model",
    "model",
    cls=RenamedOption,
    earlier="--model",
    metavar="NAME",
    help="Model the prompts will be used with.",
)
@home_option
def export(run: str, target: str, out: Path | None, patch: str | None, home: Path | None, **options: Any) -> None:
    """Write the champion's prompts for use elsewhere, with a manifest of where they come from.

    RUN: a run's id or a prefix of it, `latest` for the latest finished run, or the path of its folder.
    """
    patched = target == "source"
    if (patch is None) == patched or (out is not None) == patched or (patched and options["into"]):
        raise click.UsageError(
            "--to source needs --patch, and no --out or --into" if patched else "give --out, and no --patch"
        )
    from experiments.running.parts import home_folder
    from experiments.runs.config_file import read_config
    from experiments.runs.export_manifest import manifest_of, system_settings
    from experiments.runs.folder import BASELINE, CHAMPION, CONFIG, RunFolder
    from experiments.systems.exporting.export import MANIFEST, origin_warnings
    from experiments.systems.exporting.export import export as write
    from tracing.errors import RunError
    from tracing.systems.registry import open_system

    folder = RunFolder.find(home_folder(home), run, finished=True)
    summary = None
    try:
        summary = folder.summary()
    except RunError as error:
        if not (folder.path / CONFIG).is_file():
            raise
        say(f"warning: {error}", err=True)
    if run == "latest" and summary is not None:
        if not summary.finished:
            raise RunError(
                f"no run has finished ({folder.id}: {summary.stopped}); "
                f"go on with it: memtune run --resume {folder.id}, or name it to export what it has found so far"
            )
        say(f"latest finished run: {folder.id}", err=True)
    origin = manifest_of(folder, summary)
    system = read_config(str(folder.path / CONFIG)).system if summary is None else summary.system
    if out is None:
        settings = system_settings(folder, summary)
        _write_patch(folder, open_system(system, settings), str(patch), origin_warnings(origin, options["model"]))
        return
    written = write(
        system,
        folder.prompts(CHAMPION),
        target,
        out,
        origin,
        settings=system_settings(folder, summary),
        baseline=folder.prompts(BASELINE) if origin["tuned"] is not None else None,
        **options,
    )
    manifest = json.loads((written / MANIFEST).read_text(encoding="utf-8"))
    for warning in manifest["warnings"]:
        say(f"warning: {warning}", err=True)
    for check in manifest["verified"]:
        say(f"verified: {check}")
    say(
        f"exported to {written}"
        if origin["tuned"] != []
        else f"exported the BASELINE prompts, which are not tuned, to {written}"
    )


def _write_patch(folder: RunFolder, system: MemorySystem, file: str, warnings: Sequence[str]) -> None:
    """The tuned prompts of a run as a patch of the program in the current folder."""
    from experiments.runs.folder import BASELINE, CHAMPION
    from experiments.systems.exporting.written_files import write_text
    from experiments.systems.wrapped.source_patch import source_patch

    patch, left = source_patch(system, folder.prompts(CHAMPION), folder.prompts(BASELINE), Path.cwd())
    for warning in [*left, *warnings]:
        say(f"warning: {warning}", err=True)
    if not patch:
        say("no prompt was tuned: there is nothing to patch", err=True)
    elif file == "-":
        sys.stdout.write(patch)  # byte by byte, for `git apply`
    else:
        write_text(Path(file), patch)
        say(f"written: {file}; apply it here with: git apply {file}")


@click.command("import-prompts", epilog=examples("import-prompts"))
@click.argument("system", metavar="SYSTEM")
@click.option(
    "--from",
    "source",
    metavar="PATH|URI",
    help="Your configuration or prompts: a file, a folder or an MLflow store [default: what the library itself uses].",
)
@click.option(
    "--format",
    "form",
    metavar="NAME",
    help="Form of --from, by the name of its exporter (mem0@1.0, json, dspy, …) [default: recognised].",
)
@click.option(
    "--map",
    "mapping",
    multiple=True,
    callback=_pairs,
    metavar="PROMPT=NAME",
    help="The name that a prompt has there, if it is another one; may be repeated.",
)
@click.option(
    "--setting",
    "settings",
    multiple=True,
    callback=_settings,
    metavar="NAME=VALUE",
    help="A setting of the system, as in system_settings, such as tuned=instructions; may be repeated.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="New folder to write NAME.txt files to.")
def import_prompts(system: str, source: str | None, out: Path, **options: Any) -> None:
    """Read the prompts that a memory system uses today, for a run to start from.

    SYSTEM: the name of a memory system, as in a configuration.
    """
    from experiments.systems.exporting.importing import import_prompts as read
    from experiments.systems.exporting.importing import write_prompts

    imported = read(system, source, **options)
    write_prompts(imported, out)
    for name in imported.candidate:
        there = imported.names.get(name)
        say(f"{name}: {there}" if there is not None else f"{name}: the system's own baseline prompt")
    say(f"imported to {out}; start from them with: memtune run --start {out}")
