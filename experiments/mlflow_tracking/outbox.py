"""What MLflow does not have yet: writes wait in the run's folder while the store is away, then are sent in order.

The file is JSON lines: a header that names the store, then one write per line. It exists only while something waits.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Annotated
from uuid import uuid4

from pydantic import Field, TypeAdapter, ValidationError

from experiments.mlflow_tracking import logged_datasets, prompt_versions, run_artifacts, trace_writes, writes
from experiments.mlflow_tracking.store import TIMEOUT_SECONDS, TrackingStore, in_words, is_refusal
from experiments.mlflow_tracking.writes import Write
from experiments.runs.folder import MLFLOW_KEY, RunFolder
from experiments.runs.summary import SummaryMlflow
from tracing.errors import RunError
from tracing.formats import read_stamped, stamped
from tracing.recording.credentials import without_credentials
from tracing.recording.redaction import Redaction
from tracing.strict_models import StrictModel
from tracing.systems.conversations import first_problem

OUTBOX = "mlflow-outbox.jsonl"

PAUSE_SECONDS = 60.0
"""How long to avoid a store that failed or was slow, so that it costs a run at most seconds per minute."""

SLOW_SECONDS = 5.0
"""How long writes may delay a run before the store counts as slow."""


class _Header(StrictModel):
    """The first line of the file: where the writes go."""

    uri: str
    experiment: str
    key: str


_AnyWrite = Annotated[
    writes.StartRun
    | writes.LogParams
    | writes.LogMetrics
    | writes.SetTag
    | writes.LogText
    | writes.LogFiles
    | writes.LogTable
    | writes.EndRun
    | writes.NameRun
    | prompt_versions.RegisterPrompt
    | prompt_versions.NameChampion
    | trace_writes.KeepTraces
    | trace_writes.LogTraces
    | run_artifacts.LogBlameChart
    | logged_datasets.LogDatasets
    | logged_datasets.LogEvaluationData,
    Field(discriminator="kind"),
]
_HEADER = TypeAdapter(_Header)
_READER: TypeAdapter[_AnyWrite] = TypeAdapter(_AnyWrite)
_REDACTION = Redaction()


def _redacted(write: Write) -> Write:
    """A write as it may be looked at: questions, answers and replies are the user's, and may hold credentials."""
    return _READER.validate_python(_REDACTION.value(write.model_dump(mode="json")))


class Outbox:
    """Writes on their way to a store, in order; errors of the store are not raised.

    Attributes:
        store: where they go.
        refused: why writes that the store will never take were dropped, in words.
        trouble: why the last attempt failed, in words; None if it succeeded.
    """

    def __init__(self, store: TrackingStore, folder: RunFolder, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.store = store
        self.refused: list[str] = []
        self.trouble: str | None = None
        self._folder, self._clock = folder, clock
        self._waiting: list[Write] = []
        self._quiet_until = float("-inf")

    @classmethod
    def load(cls, folder: RunFolder, *, uri: str | None = None, timeout: int = TIMEOUT_SECONDS) -> Outbox:
        """What waits in a run's folder.

        Args:
            uri: of the store; the file keeps it without user and password.
            timeout: as for `TrackingStore`.

        Raises:
            RunError: nothing waits there, or the file is invalid.
        """
        path = folder.path / OUTBOX
        try:
            first, *lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
            header = read_stamped(OUTBOX, first, path, _HEADER)
            store = TrackingStore(uri or header.uri, header.experiment, header.key, timeout=timeout)
        except FileNotFoundError:
            raise RunError(f"{folder.path}: MLflow has everything of this run; there is nothing to send") from None
        except (OSError, ValidationError) as error:
            reason = error.strerror if isinstance(error, OSError) else first_problem(error)
            raise RunError(f"{path}: cannot be read ({reason}); delete it to discard its writes") from None
        box = cls(store, folder)
        for number, line in enumerate(lines, start=2):
            try:
                box._waiting.append(_redacted(_READER.validate_json(line)))
            except ValidationError:
                box.refused.append(f"{path}:{number}: is damaged, and was left out")
        if box.refused:
            box._keep()
        return box

    @property
    def waiting(self) -> int:
        """How many writes the store does not have."""
        return len(self._waiting)

    @property
    def link(self) -> SummaryMlflow | None:
        """Where the store keeps the parent run; None if it was not started or found there."""
        store, run = self.store, self.store.known_run()
        if run is None:
            return None
        uri = without_credentials(store.uri)
        return SummaryMlflow(tracking_uri=uri, experiment_id=store.experiment_id, run_id=run)

    def send(self, *writes: Write) -> None:
        """Write to the store; keep in the folder what it does not take, and everything after it.

        Raises:
            RunError: they cannot be kept either; they are still sent with the next ones.
        """
        self._waiting += map(_redacted, writes)
        if self._clock() >= self._quiet_until:
            self._pass_on(seconds=SLOW_SECONDS)
        self._keep()

    def queue(self, writes: Iterable[Write]) -> None:
        """Keep writes in the folder, to be sent by `flush`, which tells if what is left then cannot be kept."""
        self._waiting += map(_redacted, writes)
        with suppress(RunError):
            self._keep()

    def keep_off(self, error: BaseException) -> None:
        """Avoid the store for a while, since it failed."""
        self.trouble = in_words(error, self.store.uri)
        self._quiet_until = self._clock() + PAUSE_SECONDS

    def flush(self, *, seconds: float, progress: Callable[[int, int], None] | None = None) -> None:
        """Send what waits, in order, until the store fails or the time limit; then avoid the store for a while.

        Args:
            progress: told how much of how much is sent (`Write.size`).

        Raises:
            KeyboardInterrupt: Ctrl-C; what is not sent by then waits.
        """
        try:
            self._pass_on(seconds=seconds, progress=progress)
        finally:
            self._keep()

    def _pass_on(self, *, seconds: float, progress: Callable[[int, int], None] | None = None) -> None:
        begun, sent, sent_size = self._clock(), 0, 0
        total = sum(write.size for write in self._waiting)
        self.trouble = None
        try:
            for write in self._waiting:
                try:
                    with self.store.bounded():
                        write.apply(self.store, self._folder.path)
                except Exception as error:  # whatever a store raises
                    if not is_refusal(error):
                        self.keep_off(error)
                        break
                    self.refused.append(in_words(error, self.store.uri))
                sent += 1
                sent_size += write.size
                if progress is not None:
                    progress(sent_size, total)
                if self._clock() - begun > seconds:
                    self._quiet_until = self._clock() + PAUSE_SECONDS
                    break
        finally:
            del self._waiting[:sent]

    def _keep(self) -> None:
        """Write what waits to the file. It is small and rare, so it is always rewritten."""
        if self._waiting:
            store = self.store
            header = _Header(uri=without_credentials(store.uri), experiment=store.experiment, key=store.key)
            first = json.dumps(stamped(OUTBOX, header.model_dump()))
            lines = [first, *(line.model_dump_json() for line in self._waiting)]
            self._folder.write(OUTBOX, "".join(f"{line}\n" for line in lines))
        else:
            (self._folder.path / OUTBOX).unlink(missing_ok=True)


def open_outbox(folder: RunFolder, uri: str, experiment: str, *, resumed: bool) -> Outbox:
    """The outbox of a run that starts, with what waits from before; its store and experiment are made if needed.

    A server that cannot be reached is avoided for a while.

    Raises:
        ConfigError: the store cannot be used.
    """
    for noisy in ("mlflow.store.db.utils", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    if (folder.path / OUTBOX).exists():
        outbox = Outbox.load(folder, uri=uri)
    else:
        key = (run_key(folder) if resumed else None) or uuid4().hex
        folder.write(MLFLOW_KEY, key)
        outbox = Outbox(TrackingStore(uri, experiment, key), folder)
    unreachable = outbox.store.check(make=True)
    if unreachable is not None:
        outbox.keep_off(unreachable)
    return outbox


def run_key(folder: RunFolder) -> str | None:
    """The key that identifies the run among all others; None if it is missing or damaged."""
    path = folder.path / MLFLOW_KEY
    key = path.read_text(errors="replace") if path.is_file() else ""
    return key if re.fullmatch("[0-9a-f]{32}", key) else None
