"""Where a run keeps its Optuna studies: in memory, or in a journal file of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tracing.errors import RunError

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage


class Studies:
    """Studies in memory, where nobody looks at them."""

    def create(self, name: str) -> Study:
        """A new study, which maximizes.

        Raises:
            RunError: it cannot be written.
        """
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with self.written():
            return optuna.create_study(study_name=name, storage=self._storage(), direction="maximize")

    def _storage(self) -> BaseStorage | None:
        return None

    @contextmanager
    def written(self) -> Iterator[None]:
        """Inside, a failure to write a study of these is a `RunError` with its place and remedy."""
        yield


class StudyJournal(Studies):
    """Studies in a journal file, which begins anew: one that was cut off while it was written cannot be read.

    Args:
        file: the journal; it is made with the first study.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        file.unlink(missing_ok=True)

    def _storage(self) -> BaseStorage:
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        return JournalStorage(JournalFileBackend(str(self._file)))

    @contextmanager
    def written(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"{self._file}: the joint choice cannot be recorded ({error.strerror}); make room and continue with "
                "--resume"
            ) from None
