"""A run's memory for programs that measure memories: it takes turns in, and answers from what it kept of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from experiments.data.published.benchd import FedTurn, sessions_of
from experiments.running.parts import check_endpoints, configured_system, open_access
from experiments.runs.config import BudgetSettings
from experiments.runs.config_file import load_config
from experiments.runs.folder import CHAMPION, CONFIG
from tracing.errors import ConfigError, DataError
from tracing.systems.calls import answer_question, build_memory
from tracing.systems.conversations import Conversation, Question, first_problem
from tracing.systems.protocol import ChecksItself, Memory

if TYPE_CHECKING:
    from pathlib import Path

    from experiments.runs.folder import RunFolder
    from tracing.llm.access import ModelAccess

_NOTHING = "nothing was told yet"


class TunedMemory:
    """The memory system of a run with its prompts and settings; what Bench'd calls an adapter.

    A memory is built when it is first asked, and again only where it was told something else. The run's budget does not
    count: the program that asks decides how much it asks.

    Args:
        folder: of the run.
        home: folder of its caches.
        prompts: `baseline` or `champion`.

    Raises:
        ConfigError, RunError: the run's system or prompts cannot be opened.
    """

    def __init__(self, folder: RunFolder, home: Path, prompts: str) -> None:
        self._config = load_config(str(folder.path / CONFIG)).model_copy(update={"budget": BudgetSettings()})
        tuned = folder.summary().settings if prompts == CHAMPION and folder.has_summary else {}
        self._system = configured_system(self._config, {name: change.after for name, change in tuned.items()})
        self._candidate = folder.prompts(prompts)
        self._home = home
        self.name = f"memtune {self._config.system}"
        self.version = f"{folder.id} {prompts}"
        self._turns: list[FedTurn] = []
        self._built: tuple[Conversation, Memory] | None = None
        self._open = ExitStack()
        self._access: ModelAccess | None = None

    def setup(self) -> None:
        """Open the models.

        Raises:
            ConfigError, ModelError, WeightsError: they cannot be used, or the library of the system is missing.
        """
        if isinstance(self._system, ChecksItself):
            self._system.require_library()
        self._access = self._open.enter_context(open_access(self._config, self._home))
        check_endpoints(self._config, self._access)

    def teardown(self) -> None:
        """Close the models."""
        self._open.close()
        self._access = None

    def reset(self) -> None:
        """Forget all that was told."""
        self._turns.clear()

    def ingest(self, turns: Iterable[Mapping[str, Any]]) -> None:
        """Take turns in, of `role`, `content`, and where they are known `timestamp` and `metadata`.

        Raises:
            DataError: one is something else; none of them is taken in.
        """
        taken = list[FedTurn]()
        try:
            for turn in turns:
                taken.append(FedTurn.model_validate(turn))
        except ValidationError as error:
            raise DataError(f"TunedMemory.ingest: turn {len(taken) + 1}: {first_problem(error)}") from None
        self._turns += taken

    def recall(self, query: str) -> str:
        """The answer to a question.

        Raises:
            ConfigError: it was not set up, or nothing was told.
            MemorySystemError, ModelError: the memory or its model failed.
        """
        if self._access is None:
            raise ConfigError("TunedMemory.recall: its models are not open; call setup() first")
        sessions = sessions_of(self._turns)
        if not sessions:
            raise ConfigError("TunedMemory.recall: nothing was told; call ingest(turns) first")
        speakers = tuple(dict.fromkeys(turn.speaker for session in sessions for turn in session.turns))
        told = Conversation(id="told", speakers=speakers, sessions=sessions)
        if self._built is None or self._built[0] != told:
            self._built = told, build_memory(self._system, told, self._candidate, self._access)
        question = Question(id="asked", question=query, answers=(_NOTHING,))
        return answer_question(self._system, self._built[1], question, self._candidate, self._access).text
