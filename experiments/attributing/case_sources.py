"""Where wrong answers come from: a trace that was judged or annotated, or one whose questions a data set has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from attribution.attributor import survival_in
from attribution.cases import Attribution, Case
from attribution.judging.words import by_words
from experiments.attributing.attributions import is_attributions
from experiments.attributing.run_traces import run_traces
from experiments.attributing.source import Complaint, Judging, Source
from experiments.data.dataset_reader import Reading
from experiments.data.own.feedback import Feedback, complaints_in, has_feedback, traces_in
from experiments.data.own.histories import Histories
from experiments.data.own.traces import answers_of
from experiments.runs.cases_file import read_verdicts
from experiments.runs.config_file import load_config
from experiments.runs.folder import CONFIG, TRACES, RunFolder
from optimizer.evaluation.file_names import file_name
from tracing.errors import DataError, MemtuneError, TraceError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import read_memory
from tracing.systems.conversations import Conversation


def sources_of(
    names: Sequence[str],
    home: Path,
    *,
    traces_of: str = "champion",
    data: Path | None = None,
    complaint: Complaint | None = None,
    complaints: Path | None = None,
    since: float | None = None,
    reading: Reading | None = None,
) -> list[Source]:
    """The named traces: files, folders of them, and runs by id, `latest` (finished) or folder.

    Args:
        names: as given on the command line.
        home: where runs are kept.
        traces_of: for a run, the traces of `baseline`, `champion` or `all` candidates.
        data: conversations with the questions that were asked, for traces outside of a run.
        complaint: about one answer in the one named trace; only this answer is attributed.
        complaints: a log of answers that users called wrong; only these are attributed.
        since: in epoch seconds; what is from before is left out, but for the histories of what is not.
        reading: receives the problems of rows of complaints and feedback; by default the first one is raised.

    In a folder, the log and what `memtune attribute` wrote there are no traces.

    A folder with `feedback.csv` or `feedback.jsonl` gives the traces that have feedback.

    Raises:
        DataError, RunError: a name is unknown, a complaint does not say which trace it is about, or a row of feedback
            is invalid.
    """
    from experiments.data.datasets import JSONL, conversations_of

    reading = reading or Reading()
    by_data = None if data is None else Judging(_by_file(conversations_of(JSONL, data)))
    log = complaints.resolve() if complaints is not None else None
    runs: dict[Path, Judging] = {}
    sources: dict[Path, Source] = {}
    beside: dict[Path, Path] = {}

    def judged_source(path: Path) -> Source:
        return Source(path, by_data or _judging_around(path.resolve(), runs))

    for name in names:
        path = Path(name)
        if path.is_file():
            chosen = [judged_source(path)]
            beside[path.resolve()] = path
        elif path.is_dir() and not (path / CONFIG).is_file():
            files = [file for file in traces_in(path) if file.resolve() != log and not is_attributions(file)]
            beside |= {file.resolve(): file for file in files}
            chosen = [judged_source(file) for file in files]
            if has_feedback(path):
                feedback = Feedback(path, reading)
                feedback.unknown(files)
                chosen = [replace(source, feedback=rows) for source in chosen if (rows := feedback.on(source.path))]
        elif data is not None and len(names) == 1:
            raise DataError(f"{name}: is a run, which has its own questions; leave out the data")
        else:
            chosen = run_sources(RunFolder.find(home, name, finished=True), traces_of)
        if not chosen:
            raise DataError(f"{name}: holds no traces; give trace files, a folder of them, or a run")
        sources |= {source.path.resolve(): source for source in chosen}
    histories = Histories(beside.values(), read=read_memory)  # but for runs, whose traces hold all that they need
    sources = {key: replace(source, histories=histories, since=since) for key, source in sources.items()}
    # Of what was never read, nobody would tell that it is damaged.
    damaged = [Source(path, since=since, damage=problem) for path, problem in histories.damaged.items()]
    if complaints is not None:
        paths = [source.path for source in sources.values()]
        by_trace = complaints_in(complaints, paths, cache(answers_of), reading)
        chosen = [source for source in sources.values() if source.path in by_trace]
        sources = {source.path.resolve(): replace(source, feedback=by_trace[source.path]) for source in chosen}
    damaged = [source for source in damaged if source.path.resolve() not in sources]
    if complaint is None:
        return [*damaged, *sources.values()]
    matches = [source for source in sources.values() if len(sources) == 1 or complaint.is_in(source.path)]
    if len(matches) != 1:
        raise DataError(
            f"{', '.join(names)}: {len(matches)} of {len(sources)} traces have an answer to {complaint.question!r}; "
            "a complaint is of one, so name its file, or give the question as it was recorded"
        )
    return [*damaged, *(replace(source, complaint=complaint) for source in matches)]


def judged_in(graph: ExecutionGraph, path: Path) -> list[tuple[Case, Attribution | None]]:
    """The judged questions of a trace, each wrong one attributed by `survival`; none if nothing judged it.

    Questions and gold answers are those of the run in whose folder the trace is, of its annotations, or of its judge.
    """
    try:
        content = Source(path, _judging_around(path.resolve(), {})).read_in(graph, None)
    except TraceError:
        return []
    method = survival_in(content.recording)
    return [(case, None if case.passed else method.attribute(case)) for case in content.judged().values()]


def run_sources(folder: RunFolder, prompts: str) -> list[Source]:
    """The traces of a run's candidate, `baseline` or `champion`, or of `all` it tried."""
    paths = run_traces(folder, prompts)
    if not paths:
        has_others = prompts != "all" and bool(run_traces(folder, "all"))
        remedy = "give --traces-of baseline or all" if has_others else f"go on with it: {folder.resume_command}"
        raise DataError(f"{folder.path}: has no traces of its {prompts} prompts; {remedy}")
    judging = _judging_of(folder)
    return [Source(path, judging) for path in paths]


def _judging_of(folder: RunFolder) -> Judging:
    from experiments.data.loaders import load_dataset
    from tracing.systems.registry import open_system

    config = load_config(str(folder.path / CONFIG))
    splits = load_dataset(config).splits.named()
    conversations = [conversation for group in splits.values() for conversation in group]
    operations = tuple(open_system(config.system, config.system_settings).operations)
    return Judging(_by_file(conversations), by_words(config.metric), operations, read_verdicts(folder))


def _judging_around(path: Path, runs: dict[Path, Judging]) -> Judging:
    """By the run whose folder a trace is in, if there is one. `runs` are those seen before."""
    folder = path.parent.parent.parent
    if path.parent.parent.name != TRACES or not (folder / CONFIG).is_file():
        return Judging({})
    if folder not in runs:
        try:
            runs[folder] = _judging_of(RunFolder(folder))
        except MemtuneError:
            runs[folder] = Judging({})
    return runs[folder]


def _by_file(conversations: Sequence[Conversation]) -> dict[str, Conversation]:
    """By the name that a run gives a conversation's trace, and by its id, for which users name theirs."""
    by_id = {conversation.id: conversation for conversation in conversations}
    return by_id | {file_name(name): conversation for name, conversation in by_id.items()}
