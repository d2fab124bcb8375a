"""What a run would refuse before its first call, checked without calling a model or writing anything."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from experiments.data.loaders import Dataset
from experiments.mlflow_tracking.store import check_store
from experiments.running.parts import config_of_run, open_parts
from experiments.runs.config import RunConfig
from experiments.runs.fingerprint import check_fingerprint
from experiments.runs.folder import LEDGER, LOCK, RunFolder
from experiments.runs.lock import locked
from tracing.errors import ConfigError, RunError
from tracing.llm.accounting.ledger import Ledger


def check_run(
    config: RunConfig,
    dataset: Dataset,
    home: Path,
    *,
    out: Path | None = None,
    resume: RunFolder | None = None,
    by_hand: Path | None = None,
) -> None:
    """Refuse what `run_experiment` would refuse before its first call; the arguments are the same.

    Raises:
        MemtuneError: as `run_experiment`.
    """
    config = config_of_run(config, resume)
    with contextlib.ExitStack() as stack:
        # A cache that does not exist must not be created.
        has_cache = (home / "cache").exists()
        cache_home = home if has_cache else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        parts = open_parts(config, dataset, cache_home, stack, resume=resume, by_hand=by_hand)
        if resume is None:
            _check_place(home, "--home")
            if out is not None:
                _check_place(out, "--out")
                if out.is_dir() and any(out.iterdir()):
                    raise RunError(f"{out}: the folder is not empty; give --out a new one")
        else:
            stack.enter_context(locked(resume.path / LOCK))
            check_fingerprint(resume, parts.fingerprint)
            stack.enter_context(contextlib.closing(Ledger(resume.path / LEDGER, cache=cache_home / "cache")))
        check_store(config.tracking.uri, config.tracking.experiment, home)


def _check_place(folder: Path, option: str) -> None:
    """Refuse a path that is not a folder, or that cannot be made or written to."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise ConfigError(f"{there}: is not a folder; give {option} another one")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"{there}: cannot be written to; give {option} a writable folder")
