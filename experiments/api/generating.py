"""Data generated from a Python program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from experiments.api.starting import Model, settings_from
from experiments.data.dataset_reader import Reading
from experiments.data.generating.chats import Chats, open_chats
from experiments.data.generating.generating import Generated, plan_of
from experiments.running.parts import home_folder
from tracing.systems.conversations import Conversation


def generated_data(
    chats: str | Path | Sequence[Conversation],
    out: Path,
    *,
    model: Model | None,
    config: str | Path | None,
    home: Path | None,
    dataset: str | None,
    complaints: Path | None,
    kinds: Sequence[str] | None,
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
    plan = plan_of(kinds, per_session)
    if isinstance(chats, str | Path):
        conversations = open_chats(str(chats), Reading(), dataset=dataset, log=complaints)
    else:
        conversations = Chats(chats)
    with run_view() if progress else nullcontext() as view:
        told = partial(view.progress, "drafting") if view is not None else None
        return generate_data(author, conversations, folder, out, plan, progress=told)
