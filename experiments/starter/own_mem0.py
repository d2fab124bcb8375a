"""`memtune init --mem0`: a configuration that begins with the user's own Mem0, and what of that a run takes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from experiments.starter.starter_files import CONFIG, starter_config, write_files
from experiments.systems.mem0.library import V1
from experiments.systems.mem0.own_config import OF_SEARCH, generation_of, read_own_config


def write_for_mem0(file: Path, folder: Path) -> tuple[list[Path], list[str]]:
    """Write a configuration that tunes the Mem0 of this file; the files, and what a user should know of them.

    Raises:
        ConfigError: the file is no configuration of Mem0, or there is a file already.
    """
    generation, seen_by = generation_of(file)
    own = read_own_config(str(file.resolve()), generation)
    without = [part for part in OF_SEARCH if getattr(own, part)]
    settings = {"config": os.path.relpath(file, folder), **({"without": without} if without else {})}
    is_here = generation is V1 and generation.is_here()
    name = "mem0" if is_here else f"mem0@{generation.generation.rstrip('.')}"
    files = write_files(folder, {CONFIG: starter_config({"system": name, "system_settings": json.dumps(settings)})})
    its_own = [key for key in generation.keys.values() if key not in own.texts]
    stays = [*own.model_options, *own.store_options]
    stays += [f"vector_store {own.local_store}"] if own.local_store == own.vector_store.provider else []
    return files, [
        f"system: {name}, seen by {seen_by}" + ("" if is_here else f"; to be installed: memtune system install {name}"),
        f"tuned: {', '.join(own.texts) or 'none of its own prompts'}"
        + (f"; as the library has it: {', '.join(its_own)}" if its_own else ""),
        f"stays: {', '.join(stays) or 'nothing else'}; memories are those of user_id memtune (system_settings.ids)",
        *(f"left out: {part} ({getattr(own, part).provider}): {OF_SEARCH[part]}" for part in without),
        *(f"told in each report: {caveat}" for caveat in own.caveats()),
    ]
