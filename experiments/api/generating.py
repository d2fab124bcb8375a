"""Data generated from a Python program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from experiments.api.starting import Model, conversations_in, settings_from
from experiments.data.dataset_reader import Reading
from experiments.data.generating.chats import Chats, open_chats
from experiments.data.generating.generating import Generated, plan_of
from experiments.running.parts import home_folder
from tracing.errors import ConfigError
from tracing.systems.conversations import Conversation


def generated_data(
    chats: str | Path | Iterable[Conversation],
    out: Path,
    *,
    model: Model | None,
    config: str | Path | None,
    home: Path | None,
    dataset: str | None,
    complaints: Path | None,
    kinds: Iterable[str] | None,
    per_session: int | None,
    progress: bool,
    settings: Mapping[str, Any],
) -> Generated:
    """A data set generated as `memtune.generate` says.

    Raises:
        MemtuneError: a setting is invalid, the conversations cannot be read, or the author cannot be asked.
    """
    from experiments.display.tables import run_view
    from experiments.running.generation import generate_data

    folder = home_folder(home)
    author = settings_from(folder, config=config, models={"task": model}, settings=settings)
    if model is not None:
        # A proposer of the configuration would come first.
        author = author.model_copy(update={"models": author.models.model_copy(update={"proposer": None})})
    plan = plan_of(kinds if kinds is None or isinstance(kinds, str) else list(kinds), per_session)
    if not isinstance(chats, str | Path):
        if dataset is not None or complaints is not None:
            raise ConfigError("dataset, complaints: say what a file or folder is; leave them out with conversations")
        conversations = Chats(conversations_in(chats, "chats"))
    else:
        conversations = open_chats(str(chats), Reading(), dataset=dataset, log=complaints)
    with run_view() if progress else nullcontext() as view:
        told = partial(view.progress, "drafting") if view is not None else None
        return generate_data(author, conversations, folder, out, plan, progress=told)
