"""The source of a diagnosis: a run, whose failures are attributed now, or an attributions file."""

from __future__ import annotations

from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path

from attribution.attributor import SURVIVAL, AsksModel, bound, open_attributor
from attribution.recordings import recording_of
from attribution.survival.failure_picture import FailurePicture
from attribution.survival.matching.matcher import WORDS
from attribution.survival.survival_method import pictures_of
from experiments.attributing.attributions import Attributions, Header
from experiments.attributing.batch import Batch, Progress
from experiments.attributing.case_sources import run_sources
from experiments.data.own.feedback import traces_in
from experiments.data.own.histories import Histories
from experiments.diagnosis.findings import Diagnosis, diagnose
from experiments.display.pages import address_from
from experiments.running.parts import open_access
from experiments.runs.cases_file import page_of
from experiments.runs.config import RunConfig
from experiments.runs.config_file import load_config
from experiments.runs.folder import CONFIG, VERDICTS, RunFolder
from experiments.runs.measurement_files import LADDER, read_ladder
from experiments.runs.summary import Summary
from experiments.views.trace_page import question_anchor
from tracing.errors import RunError, TraceError
from tracing.interchange import read_memory


def diagnosis_of(
    source: str, home: Path, *, prompts: str, ladder: Path | None, progress: Progress
) -> tuple[Diagnosis, Path]:
    """The facts of a diagnosis, and the folder that the paths of its traces are relative to.

    The source is an attributions file, or a run by its id, `latest` (finished) or folder; of a run, `prompts` says
    whose failures: those of `baseline`, `champion` or `all` candidates.

    Raises:
        DataError, RunError: the source cannot be read.
    """
    path = Path(source)
    if path.is_file():
        attributions = Attributions.read(path)
        rungs = () if ladder is None else read_ladder(ladder)
        diagnosis = diagnose(attributions, title=path.name, subtitle="an attributions file", ladder=rungs)
        return diagnosis, path.resolve().parent
    folder = RunFolder.find(home, source, finished=True)
    config = load_config(str(folder.path / CONFIG))
    method, factory, aside = config.attribution, open_attributor(config.attribution), []
    if config.matcher != WORDS:
        aside = [
            f"The run matched texts by {config.matcher}. This page asks no model and goes by words; for the other, "
            f"give the file of `memtune attribute {folder.named} --matcher {config.matcher}`."
        ]
    if isinstance(factory, AsksModel):
        aside += [
            f"The run attributed with {method}. This page asks no model: {SURVIVAL} attributed; for the other, give "
            f"the file of `memtune attribute {folder.named} --method {method}`."
        ]
        method, factory = SURVIVAL, open_attributor(SURVIVAL)
    attributions = Attributions(Header(method=method))
    with nullcontext() if method == SURVIVAL else open_access(config, home, surely=False) as access:
        batch = Batch(bound(factory, access), attributions, attributions.add, folder=folder.path, access=access)
        batch.run(run_sources(folder, prompts), progress)
    beside = folder.path / LADDER
    chosen = ladder or (beside if beside.is_file() else None)
    rungs = () if chosen is None else read_ladder(chosen)
    title, subtitle, notes = _about(folder, config, prompts)
    return diagnose(attributions, title=title, subtitle=subtitle, ladder=rungs, notes=[*notes, *aside]), folder.path


def case_pictures(facts: Diagnosis, folder: Path) -> dict[str, FailurePicture]:
    """The picture of each case; none of a case whose trace no longer exists."""
    by_trace = defaultdict(list)
    for case in facts.cases:
        by_trace[case.line.trace].append(case)
    pictures: dict[str, FailurePicture] = {}
    histories: dict[Path, Histories] = {}
    for trace, cases in by_trace.items():
        path = (folder / trace).resolve()
        root = _outermost(path, folder.resolve())
        if root not in histories:
            histories[root] = Histories(traces_in(root), read=read_memory)
        beside = histories[root]
        try:
            graph = beside.whole(path, read_memory(path)[0])
        except TraceError:
            continue
        drawn = pictures_of(recording_of(graph, trace), [case.line.attribution() for case in cases])
        pictures |= {case.id: picture for case, picture in zip(cases, drawn, strict=True)}
    return pictures


def _outermost(trace: Path, folder: Path) -> Path:
    """The folder whose traces may be of one history with a trace: below `folder`, as it may have one for each day."""
    if folder not in trace.parent.parents or (folder / CONFIG).is_file():
        return trace.parent
    return folder / trace.relative_to(folder).parts[0]


def pages_of(facts: Diagnosis, folder: Path, place: Path) -> dict[str, str]:
    """The address of each case's trace page for a page in `place`; a run has those of baseline and champion."""
    files = {case.id: page_of(folder / case.line.trace) for case in facts.cases}
    return {
        case.id: f"{address_from(place, files[case.id])}{question_anchor(case.line.question_id)}"
        for case in facts.cases
        if files[case.id].is_file()
    }


def _about(folder: RunFolder, config: RunConfig, prompts: str) -> tuple[str, str, list[str]]:
    """Title, subtitle and notes of a run."""
    from attribution.judging.metrics import LLM_JUDGE
    from attribution.judging.words import METRICS

    candidates = "all candidates" if prompts == "all" else f"the {prompts} prompts"
    title = f"{config.system} on {config.dataset}: {candidates}"
    notes = []
    summary: Summary | None
    try:
        summary = folder.summary()
    except RunError:
        summary = None
    if summary is not None and summary.verdict is None:
        notes.append(f"The run has no verdict: {summary.stopped}.")
    if config.metric == LLM_JUDGE:
        notes.append(
            f"The verdicts are those of the run's judge, {config.metric}; words decide where it gave none."
            if (folder.path / VERDICTS).is_file()
            else f"The run was judged by {config.metric}, but has not kept its verdicts; words decide ({METRICS[0]})."
        )
    tuned = summary is not None and summary.settings
    if prompts == "champion" and not tuned and folder.prompts("baseline") == folder.prompts("champion"):
        notes.append("The champion is the baseline: no rewrite took its place.")
    return title, f"{folder.id} · model {config.models.task.model} · seed {config.seed}", notes
