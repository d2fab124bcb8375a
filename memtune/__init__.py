"""memtune's Python API: run an optimization, attribute wrong answers, generate data, and record your own system.

    import memtune

    result = memtune.run(system="fact-memory", data="mine.jsonl", model="http://127.0.0.1:8000/v1#my-model")
    result.verdict, result.prompts, result.blame

Recording needs the base dependencies only; `run`, `attribute`, `generate` and `load` need the extra `run`. Heavy
libraries are imported when they are first used. `memtune.systems` has what a memory system of your own needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attribution.attributor import AttributorFactory
    from attribution.cases import Case
    from attribution.survival.matching.matcher import MatcherFactory
    from experiments.api.attributed import Attributed
    from experiments.api.result import Result
    from experiments.api.starting import Model
    from experiments.data.generating.generating import Generated
    from tracing.graph.execution_graph import ExecutionGraph
    from tracing.systems.conversations import Conversation
    from tracing.systems.protocol import MemorySystem, Stage
    from tracing.trace_memory import TraceMemory

PACKAGES = ("tracing", "attribution", "optimizer", "experiments")
"""The packages that come with this one."""


def _shadowed() -> str | None:
    """An error message if Python would import one of our packages from elsewhere; None if all are ours."""
    here = Path(__file__).resolve().parents[1]
    for name in PACKAGES:
        loaded = sys.modules.get(name)
        spec = loaded.__spec__ if loaded is not None else find_spec(name)
        file = spec.origin if spec is not None else None
        if file is None:
            return f"memtune's package {name!r} is missing beside {__file__}; install memtune again"
        if Path(file).resolve() != here / name / "__init__.py":
            from importlib.metadata import packages_distributions

            owners = packages_distributions().get(name, []) if "site-packages" in file else []
            others = [owner for owner in owners if owner != "memtune"]
            remedy = f"uninstall {others[0]} or use another environment" if others else "rename it, or start elsewhere"
            return f"memtune's package {name!r} is hidden by {file}; {remedy}"
    return None


_HIDDEN = _shadowed()
if _HIDDEN is None:
    from tracing import operation as _operation
    from tracing import session, trace, traced, variable
elif Path(sys.argv[0] or "-").stem not in ("memtune", "-m"):  # the command reports it in one line, see `main`
    raise ImportError(_HIDDEN)

__all__ = [
    "TraceMemory",
    "attribute",
    "generate",
    "load",
    "operation",
    "run",
    "session",
    "system",
    "trace",
    "traced",
    "variable",
    "watch",
]


def __getattr__(name: str) -> object:
    """What needs more than recording by hand does, imported when it is first used."""
    if name == "TraceMemory":
        from tracing.trace_memory import TraceMemory

        return TraceMemory
    if name == "system":
        from experiments.systems.wrapped.system import system

        return system
    if name == "watch":
        from tracing.instrument.stages import watch

        return watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def operation(name: str | None = None, *, stage: Stage | None = None, **details: Any) -> Any:
    """Record a step: `with operation("answer") as op:`, or `@operation(stage="extract")` above a function as it is.

    With a stage, each call of the function is an operation: plain, async, a generator or an async generator. Its
    arguments are what it read, what it returns or yields is what it made: entries of the memory, what was found, the
    answer. Where an extract or update step returns none, it made what its models replied. Texts that it copies are
    known again, and what is linked by its text alone is marked as such (`linked`).

    Args:
        name: of the operation; the function's by default.
        stage: what it does with information: `extract` takes it in, `update` keeps it current, `retrieve` finds it
            again, `answer` uses it.
        details: without a stage, further arguments of `tracing.operation`; with one, attributes.

    Raises:
        ConfigError: there is no such stage.

    Example:
        >>> @operation(stage="retrieve")
        ... def search(query):
        ...     return ["Mara lives in Oslo."]
        >>> with trace() as recorder:
        ...     notes = search("Where does Mara live?")
        >>> [variable.kind for variable in recorder.graph.variables.values()]
        ['query', 'context']
    """
    if stage is None:
        if not isinstance(name, str):
            raise TypeError(f'write @operation("name") above {getattr(name, "__name__", "a function")}')
        return _operation(name, **details)
    from tracing.instrument.stages import staged

    return staged(stage, name, **details)


def run(
    *,
    system: str | MemorySystem | type[MemorySystem] | None = None,
    data: str | Path | Iterable[Conversation] | None = None,
    model: Model | None = None,
    config: str | Path | None = None,
    home: str | Path | None = None,
    out: str | Path | None = None,
    proposer: Model | None = None,
    judge: Model | None = None,
    embedding: Model | None = None,
    progress: bool = False,
    **settings: Any,
) -> Result:
    """Optimize the prompts of a memory system, as `memtune run` does.

    Args:
        system: a name (`fact-memory`, `rag`, `mem0`), `module:Object`, or your own class or object.
        data: `sample`, a file or folder, or conversations.
        model: the task model: the name of an embedded one, `http://host/v1#name` (the key comes from $OPENAI_API_KEY),
            or a mapping of `ModelSettings`.
        config: a YAML file; the arguments override its settings.
        home: folder of runs and caches; by default `$MEMTUNE_HOME`, else `.memtune`.
        out: folder of the run; by default a new one in the home.
        proposer, judge, embedding: models of these roles, if not the task model (or the embedded one).
        progress: show progress on stderr.
        settings: further keys of a configuration (`rounds=3`, `budget={"calls": 500}`) or options of `memtune run`
            (`limit_conversations=9`). A part of your own (`metric`, `dataset`, …) may be the object itself.

    Raises:
        MemtuneError: a setting is invalid, or the run failed; names the remedy.
        KeyboardInterrupt: the run's progress is saved.

    Example:
        >>> result = run(system="fact-memory", data="sample", rounds=1)  # doctest: +SKIP
        >>> result.verdict  # doctest: +SKIP
        'improved'
    """
    with _whole_installation("run"):
        from contextlib import nullcontext

        from experiments.api.result import Result
        from experiments.api.starting import settings_from
        from experiments.data.loaders import load_dataset
        from experiments.display.tables import run_view
        from experiments.running.parts import home_folder
        from experiments.running.run import run_experiment

        folder = home_folder(None if home is None else Path(home))
        models = {"task": model, "proposer": proposer, "judge": judge, "embedding": embedding}
        chosen = settings_from(folder, config=config, system=system, data=data, models=models, settings=settings)
        with run_view() if progress else nullcontext() as view:
            finished = run_experiment(
                chosen,
                load_dataset(chosen),
                folder,
                out=None if out is None else Path(out),
                observers=() if view is None else (view,),
            )
        return Result(finished.folder.path.resolve(), folder)


def attribute(
    source: str | Path | Result | ExecutionGraph,
    cases: Iterable[Case] | None = None,
    *,
    method: str | AttributorFactory = "survival",
    matcher: str | MatcherFactory = "words",
    model: Model | None = None,
    traces_of: str = "champion",
    data: str | Path | Iterable[Conversation] | None = None,
    home: str | Path | None = None,
) -> Attributed:
    """Find which operations caused wrong answers, as `memtune attribute` does.

    Args:
        source: a run (its result, id, folder or `latest`), a trace file or a folder of them, or a graph.
        cases: for a graph, its judged questions; by default those that judges in the graph found wrong.
        method: `survival`, which asks no model, or your own, as `module:Object` or itself.
        matcher: what decides whether a text carries what an answer needs: `words` or `llm`, or your own.
        model: the model to ask (see `run`).
        traces_of: for a run, whose answers: `baseline`, `champion` or `all`.
        data: for trace files, the conversations with the questions that were asked, or their JSONL file.
        home: folder of runs and caches (see `run`).

    Raises:
        MemtuneError: an argument is invalid or cannot be read; names the remedy.

    Example:
        >>> from attribution import Case, judge
        >>> question = Question(id="q1", question="Where does Mara live?", answers=("Oslo",), evidence=("D1:1",))
        >>> with trace() as recorder:
        ...     message = variable("Mara: I moved to Oslo.", name="D1:1", kind="message")
        ...     reply = answered(question.question, "unknown", context=[message])
        >>> case = Case("mara", question, "unknown", judge("unknown", question.answers), reply.id)
        >>> attribute(recorder.graph, [case]).cases["error_type"].to_list()
        ['ResponseError']
    """
    with _whole_installation("attribute"):
        from experiments.api.attributing import attributed
        from experiments.api.result import Result
        from experiments.running.parts import home_folder

        if isinstance(source, Result) and cases is None and data is None:
            return source.attribute(method=method, matcher=matcher, model=model, traces_of=traces_of)
        return attributed(
            source.path if isinstance(source, Result) else source,
            home_folder(None if home is None else Path(home)),
            cases=cases,
            method=method,
            matcher=matcher,
            model=model,
            traces_of=traces_of,
            data=data,
        )


def generate(
    chats: str | Path | Iterable[Conversation],
    out: str | Path,
    *,
    model: Model | None = None,
    config: str | Path | None = None,
    home: str | Path | None = None,
    dataset: str | None = None,
    complaints: str | Path | None = None,
    kinds: Iterable[str] | None = None,
    per_session: int | None = None,
    progress: bool = False,
    **settings: Any,
) -> Generated:
    """Make a data set from conversations without questions, as `memtune data generate` does.

    Args:
        chats: a file or folder of conversations or traces, the name of a data set (`sample`), or conversations.
        out: file of the data set (JSONL); a pass that was stopped goes on if it is called again.
        model: the author, which drafts and tests (see `run`); nothing is sent to another model.
        config: a YAML file; its author is the proposer, or else the task model.
        home: folder of caches (see `run`).
        dataset: what `chats` is, where that is not recognised.
        complaints: with traces, a log of answers that users called wrong.
        kinds: of questions, by default all: `fact`, `change`, `taken_back`, `time`, `several_turns`, `who`,
            `never_said`.
        per_session: facts of at most so many turns of a session, by default 4.
        progress: show progress on stderr.
        settings: further keys of a configuration (`budget={"calls": 500}`).

    Raises:
        MemtuneError: a setting is invalid, `out` is there already, or the author cannot be asked; names the remedy.

    Example:
        >>> generated = generate("chats/", "questions.jsonl", model="qwen2.5-coder-1.5b")  # doctest: +SKIP
        >>> generated.kept.total(), generated.dropped.most_common(1)  # doctest: +SKIP
        (212, [('other turns are nearer to the question', 96)])
    """
    with _whole_installation("generate"):
        from experiments.api.generating import generated_data

        return generated_data(
            chats,
            Path(out),
            model=model,
            config=config,
            home=None if home is None else Path(home),
            dataset=dataset,
            complaints=None if complaints is None else Path(complaints),
            kinds=kinds,
            per_session=per_session,
            progress=progress,
            settings=settings,
        )


def load(run: str | Path = "latest", *, home: str | Path | None = None) -> Result:
    """The result of an earlier run: by its id or a prefix of it, `latest` for the latest finished run, or its folder.

    Raises:
        RunError: there is no such run.

    Example:
        >>> load("latest").prompts["answer"]  # doctest: +SKIP
        'Answer from the memories, in a few words. …'
    """
    with _whole_installation("load"):
        from experiments.api.result import Result
        from experiments.running.parts import home_folder
        from experiments.runs.folder import RunFolder

        folder = home_folder(None if home is None else Path(home))
        found = RunFolder.find(folder, str(run), finished=True)
        return Result(found.path.resolve(), found.home or folder)


@contextmanager
def _whole_installation(function: str) -> Iterator[None]:
    """Keep libraries off the network, and say how to install one that is missing."""
    from tracing.errors import ConfigError

    try:
        from experiments.command import OFFLINE

        for name, value in OFFLINE.items():
            os.environ.setdefault(name, value)
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in PACKAGES:
            raise
        raise ConfigError(
            f"memtune.{function} needs {error.name}; install it with: pip install 'memtune[run]'"
        ) from None


def main() -> None:
    """The `memtune` command."""
    if _HIDDEN is not None:
        sys.stderr.write(f"memtune: {_HIDDEN}\n")
        sys.exit(2)
    from experiments.interrupts import own_process

    own_process()
    from experiments.command import main as command

    command()
