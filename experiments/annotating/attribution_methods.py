"""Running a method of attribution on one case, step by step; models and replay are opened when they are first asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from attribution.attributor import ATTRIBUTORS, SURVIVAL, bound, checked_attribution, open_attributor
from attribution.explanations import Explained, explained
from experiments.annotating.labels import CaseId
from experiments.runs.folder import CONFIG, TRACES
from tracing.errors import ConfigError

if TYPE_CHECKING:
    from attribution.attributor import Attributor
    from experiments.annotating.workspace import GraphInUse, Workspace
    from experiments.attributing.batch import Make
    from tracing.llm.access import ModelAccess

REPLAY = "replay"


class Methods:
    """The methods of attribution that the page offers."""

    def __init__(
        self,
        workspace: Workspace,
        stack: ExitStack,
        *,
        home: Path,
        prompts: str,
        access: Callable[[ExitStack], ModelAccess],
        calls: int | None,
        seconds: float,
    ) -> None:
        """Nothing is opened yet; `stack` closes what will be, and `access` opens the model that methods ask.

        `prompts` are those of a run whose traces are open, `calls` the most that replay may make, `seconds` limit a
        model's time per case.
        """
        self._workspace, self._stack, self._home, self._prompts = workspace, stack, home, prompts
        self._open, self._calls, self._seconds = access, calls, seconds
        self._access: ModelAccess | None = None
        self._replays: dict[Path, Make] = {}
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """The methods, survival first; replay where a trace belongs to a run."""
        names = [SURVIVAL, *(name for name in ATTRIBUTORS.names() if name != SURVIVAL)]
        runs = any(_run_of(trace.source.path) is not None for trace in self._workspace.traces.values())
        return [*names, REPLAY] if runs and self._prompts != "all" else names

    def explain(self, case: CaseId, name: str) -> Explained:
        """A method's verdict on a case, with its steps.

        Raises:
            ConfigError: there is no such method, or what it needs is not there.
            MemtuneError: it fails on this case.
        """
        used = self._workspace.graph(case.trace)
        method = self._method(used, name, self._workspace.traces[case.trace].source.path)
        attributed_case = self._workspace.case(case)
        explanation = explained(method, attributed_case)
        return Explained(checked_attribution(explanation.attribution, attributed_case), explanation.steps)

    def _method(self, used: GraphInUse, name: str, path: Path) -> Attributor:
        with used.lock:
            if name not in used.methods:
                used.methods[name] = self._set_up(used, name, path)
            return used.methods[name]

    def _set_up(self, used: GraphInUse, name: str, path: Path) -> Attributor:
        if name == REPLAY:
            return self._replayed(path)(used.recording)
        factory = open_attributor(name, seconds=self._seconds)
        return bound(factory, None if name == SURVIVAL else self._models())(used.recording)

    def _models(self) -> ModelAccess:
        with self._lock:
            if self._access is None:
                self._access = self._open(self._stack)
            return self._access

    def _replayed(self, path: Path) -> Make:
        from experiments.attributing.replay_check import checked_by_replay

        run = _run_of(path)
        if run is None:
            raise ConfigError("replay: runs the system of a run again; this trace is in no run's folder")
        with self._lock:
            if run not in self._replays:
                survival = bound(open_attributor(SURVIVAL), None)
                checked = checked_by_replay(survival, str(run), self._home, self._prompts, calls=self._calls)
                self._replays[run] = self._stack.enter_context(checked)[0]
            return self._replays[run]


def _run_of(path: Path) -> Path | None:
    """The run's folder that a trace is in."""
    folder = path.resolve().parent.parent
    return folder.parent if folder.name == TRACES and (folder.parent / CONFIG).is_file() else None
