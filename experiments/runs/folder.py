"""A run's folder: what it holds and where.

config.yaml       the settings of the run, complete
summary.json      the result, rewritten after every round
report.html       what the run did, as a page (`memtune diagnose` writes the diagnosis: why answers are wrong)
rewrites.jsonl    every rewrite that was tried: its text, its screening and the gate's decision
fingerprint.json  what the run depends on: it is resumed only if that is the same
ledger.jsonl      the calls it paid for, so that a resumed run counts them as its own
mlflow-key        identifies the run in MLflow
lock              held by the process that works on the run
progress.json     the phase that the run is in, or was in last, and what it has cost
home              where the cache and the MLflow store are, for a run that `--out` put elsewhere
prompts/baseline/ one text file a prompt, as the system ships it
prompts/champion/ the same, tuned
prompts/by-hand/  the rewrites of `--rewrites`, for a resumed run
study.log         the joint choices as Optuna studies in a journal (`optuna-dashboard` shows them), unless
                  `search.storage` names a database
cases.jsonl       every question asked under the baseline prompts and the champion: replies, scores and blame
traces/           what was recorded of every evaluated conversation, and of these two also as pages
verdicts.jsonl    the judge's verdict on each reply, if the judge is a model
mlflow-outbox.jsonl   what MLflow has not received yet; present only after an outage
"""

from __future__ import annotations

import errno
import json
import re
import shlex
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from experiments.runs.earlier_names import first_folder
from experiments.runs.lock import holder
from experiments.runs.summary import Summary
from tracing.errors import RunError
from tracing.files.opening import read_text
from tracing.files.whole_files import write_whole
from tracing.formats import stamped
from tracing.recording.redaction import Redaction
from tracing.suggestions import did_you_mean
from tracing.systems.conversations import first_problem

RUNS = "runs"
PROMPTS, TRACES = "prompts", "traces"
BY_HAND = f"{PROMPTS}/by-hand"
REPORT, SUMMARY, CONFIG, REWRITES = "report.html", "summary.json", "config.yaml", "rewrites.jsonl"
FINGERPRINT, LEDGER, LOCK, MLFLOW_KEY = "fingerprint.json", "ledger.jsonl", "lock", "mlflow-key"
HOME, PROGRESS = "home", "progress.json"
BASELINE: Final = "baseline"
CHAMPION: Final = "champion"
VERDICTS, STUDY, CASES = "verdicts.jsonl", "study.log", "cases.jsonl"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run; its name is the run's id."""

    path: Path

    @classmethod
    def create(
        cls, home: Path, *, system: str, now: datetime, files: Mapping[str, str], out: Path | None = None
    ) -> RunFolder:
        """A new folder with `files` (name → text) in it: `out`, or one under `home/runs` named by time and system.

        It is made elsewhere and moved in place, so that an interruption leaves a complete folder or none. An `out`
        has a link under `home/runs`, by which it is listed and found as any other.

        Raises:
            RunError: `out` holds something already, or the folder cannot be made.
        """
        runs = home / RUNS
        try:
            if out is not None:
                files = {**files, HOME: str(home.resolve())}
                if not (_fill_folder(out, files) if out.is_dir() else _make_folder(out, files)):
                    raise RunError(f"{out}: the folder is not empty; give --out a new one")
            # Of `module:Object` no colon is left: to some file systems, and to scp, it is more than a letter.
            slug = re.sub(r"[^\w.-]", "-", system)
            name = f"{now:%Y%m%d-%H%M%S}-{slug}"
            for place in (runs / name, *(runs / f"{name}-{number}" for number in range(2, 100))):
                if _make_folder(place, files) if out is None else _linked(place, out):
                    return cls(out or place)
        except OSError as error:
            raise RunError(
                f"{out or runs}: cannot be made ({error.strerror}); give --out or --home a writable folder with room"
            ) from None
        raise RunError(f"{runs}: a hundred runs started in this second; start again")

    @classmethod
    def find(cls, home: Path, name: str, *, finished: bool = False) -> RunFolder:
        """The run named by its id, by a unique prefix of it, by `latest`, or by the path of its folder.

        Args:
            home: where runs are kept.
            name: as given on the command line.
            finished: whether `latest` is the latest finished run; if none has finished, or by default, it is the
                latest started.

        Raises:
            RunError: the name fits no run, or more than one.
        """
        path = Path(name)
        if _is_run(path):
            return cls(path)
        runs = cls.all(home)
        if name == "latest" and runs:
            return _latest_finished(runs) if finished else runs[-1]
        matches = [run for run in runs if run.id == name] or [run for run in runs if run.id.startswith(name)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise RunError(
                f"{name}: {len(matches)} runs start like this ({matches[0].named}, {matches[1].named}, …); "
                "give more of the id, or the folder"
            )
        suggestion = did_you_mean(name, ["latest", *(run.id for run in runs)]) if runs else ""
        raise RunError(f"{name}: no such run under {home / RUNS}{suggestion}; `memtune runs` lists them")

    @classmethod
    def all(cls, home: Path) -> list[RunFolder]:
        """Every run under a home, oldest first."""
        root = home / RUNS
        places = sorted(root.iterdir()) if root.is_dir() else []
        return [cls(path.resolve() if path.is_symlink() else path) for path in places if _is_run(path)]

    @property
    def id(self) -> str:
        """The run's id."""
        return self.path.resolve().name

    @property
    def process(self) -> str | None:
        """Id of the process that works on the run; None if none does."""
        return holder(self.path / LOCK)

    @property
    def named(self) -> str:
        """The run as a command line names it: by its id in a home, and elsewhere by its folder."""
        return shlex.quote(str(self.path)) if (self.path / HOME).exists() else self.id

    @property
    def resume_command(self) -> str:
        """The command that goes on with the run, wherever its folder is."""
        return f"memtune run --resume {shlex.quote(str(self.path))}"

    @property
    def home(self) -> Path | None:
        """The home it was begun in; None if unknown or no longer there."""
        folder = self.path.resolve()
        try:
            home = Path((folder / HOME).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return folder.parents[1] if folder.parent.name == RUNS else None
        except (OSError, ValueError):
            return None
        return home if home.is_dir() else None

    def write(self, name: str, text: str) -> Path:
        """Write a file so that a reader sees the old one or the new one, never half of one.

        Raises:
            RunError: it cannot be written.
        """
        path = self.path / name
        try:
            write_whole(path, text)
        except OSError as error:
            raise RunError(
                f"{path}: cannot be written ({error.strerror}); make room, then go on with: {self.resume_command}"
            ) from None
        return path

    def write_summary(self, summary: Summary) -> Path:
        """Write `summary.json`."""
        redacted = Redaction().value(stamped(SUMMARY, summary.as_json()))
        return self.write(SUMMARY, json.dumps(redacted, indent=2, ensure_ascii=False) + "\n")

    @property
    def has_summary(self) -> bool:
        """Whether the run has come as far as its first summary; it may be damaged."""
        return (self.path / SUMMARY).exists()

    def summary(self) -> Summary:
        """The run's summary.

        Raises:
            RunError: it is missing, not a summary, or that of a later memtune.
        """
        path = self.path / SUMMARY
        try:
            return Summary.from_json(path.read_bytes(), path)
        except OSError:
            raise RunError(f"{path}: no such file, the run did not get far; run it again") from None
        except ValidationError as error:
            raise RunError(f"{path}: {first_problem(error)}; run the experiment again") from None

    def write_prompts(self, which: str, candidate: Mapping[str, str]) -> None:
        """Write the prompts `baseline` or `champion`."""
        for name, text in candidate.items():
            self.write(f"{PROMPTS}/{which}/{name}.txt", text)

    def prompts(self, which: str) -> dict[str, str]:
        """The prompts `baseline` or `champion`.

        Raises:
            RunError: there are none.
        """
        return read_prompts(self.prompts_folder(which))

    def prompts_folder(self, which: str) -> Path:
        """Where the prompts `baseline` or `champion` are."""
        return first_folder((self.path / PROMPTS).joinpath, which)


def read_prompts(folder: Path, names: Collection[str] | None = None) -> dict[str, str]:
    """The prompts in a folder, one text file each; `names` are those wanted.

    Raises:
        RunError: a wanted prompt is missing, the folder has none, or one cannot be read.
    """
    remedy = "write the prompt there as UTF-8 text"
    prompts = {path.stem: read_text(path, remedy) for path in sorted(folder.glob("*.txt"))}
    missing = sorted(set(names or ()) - set(prompts))
    if missing or not prompts:
        what = f"{missing[0]}.txt is missing" if missing else "holds no prompts (*.txt)"
        raise RunError(f"{folder}: {what}; give the prompts folder of a run or of an export `--to text`")
    return prompts if names is None else {name: prompts[name] for name in names}


def _is_run(path: Path) -> bool:
    return (path / CONFIG).is_file() or (path / SUMMARY).is_file()


def _latest_finished(runs: Sequence[RunFolder]) -> RunFolder:
    """The latest finished run; if none finished, the latest, which may already have something to show."""
    for run in reversed(runs):
        # One with a damaged summary may have finished: better to say so than to take an older one.
        if (run.path / SUMMARY).is_file() and run.summary().finished:
            return run
    return runs[-1]


def _linked(place: Path, folder: Path) -> bool:
    """Have a run's folder listed under `place`, unless it lies beside it; False if something is there."""
    if folder.resolve().parent == place.parent.resolve():
        return True
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(folder.resolve(), target_is_directory=True)
    except FileExistsError:
        return False
    except OSError:
        # A file system without links. Its path still names the run.
        return True
    return True


def _make_folder(place: Path, files: Mapping[str, str]) -> bool:
    """Make a folder that holds files; False if something is there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", suffix=".part", dir=place.parent) as scratch:
        aside = Path(scratch) / "run"
        for name, text in files.items():
            write_whole(aside / name, text)
        try:
            aside.rename(place)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise
    return True


def _fill_folder(folder: Path, files: Mapping[str, str]) -> bool:
    """Write files into an empty folder, which may be a link or a mount; False if something is there."""
    if any(folder.iterdir()):
        return False
    try:
        # What makes it a run comes last.
        for name in sorted(files, key=lambda name: name == CONFIG):
            write_whole(folder / name, files[name])
    except OSError:
        for name in files:
            (folder / name).unlink(missing_ok=True)
        raise
    return True
