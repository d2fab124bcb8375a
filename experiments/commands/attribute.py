"""`memtune attribute`: which operations caused wrong answers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.examples import examples
from experiments.commands.options import case_options, home_option, moment, traces_options
from experiments.display.terminal import say
from tracing.errors import ConfigError, DataError

if TYPE_CHECKING:
    from experiments.attributing.attributions import CaseLine
    from experiments.attributing.source import Complaint

DEFAULT_OUT, COMPLAINTS = "attributions.jsonl", "complaints.jsonl"


@click.command(epilog=examples("attribute"))
@click.argument("sources", nargs=-1, required=True, metavar="TRACE|FOLDER|RUN...")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File for the results, one line per case; cases it already holds are not attributed again "
    f"[default: {DEFAULT_OUT}, for complaints {COMPLAINTS}].",
)
@click.option(
    "--method",
    "--attribution",
    "method",
    metavar="NAME",
    default="survival",
    show_default=True,
    help="survival, which asks no model, or your own as module:Object.",
)
@click.option(
    "--matcher",
    metavar="NAME",
    default="words",
    show_default=True,
    help="What decides whether a text carries what the answer needs: words; llm asks the model; your own as "
    "module:Object.",
)
@click.option(
    "--replay",
    is_flag=True,
    help="For one run: check each blame by running its system again with the blamed output corrected.",
)
@traces_options
@click.option("--question", metavar="TEXT", help="Complain about one answer: its question, as it was asked.")
@click.option("--reply", metavar="TEXT", help="The wrong answer, if the trace has several.")
@click.option("--right", metavar="TEXT", help="The right answer, if you know it.")
@click.option(
    "--complaints",
    type=click.Path(path_type=Path),
    metavar="LOG",
    help="Look at the answers that users called wrong in a log (csv or jsonl: question, reply, answers, trace).",
)
@click.option(
    "--since",
    callback=moment,
    metavar="WHEN",
    help="Only what users said, or else what was answered, since then (1d, 12h, yesterday, or an ISO date). Older "
    "traces are read for what led to it. What an earlier run found is not reported again.",
)
@click.option("--again", is_flag=True, help="With --since, also report what an earlier run found.")
@click.option(
    "--threads", type=click.IntRange(min=1), default=2, show_default=True, help="Cases attributed in parallel."
)
@case_options
@home_option
def attribute(
    sources: tuple[str, ...],
    out: Path | None,
    method: str,
    matcher: str,
    replay: bool,
    traces_of: str,
    data: Path | None,
    question: str | None,
    reply: str | None,
    right: str | None,
    complaints: Path | None,
    since: float | None,
    again: bool,
    threads: int,
    timeout: float,
    home: Path | None,
    **helper: Any,
) -> int:
    """Find which operation caused each wrong answer.

    Give traces (memtune's own, or graphs of smartcomment and MemTraceBench), folders of traces, or runs. With
    --question you mark one answer of one trace as wrong. After an interruption, run the same command again to continue.
    Exit code 0, or 1 if a trace was damaged or a case failed; all other cases are attributed.
    """
    from attribution.attributor import SURVIVAL, AsksModel, bound, open_attributor
    from attribution.survival.matching.matcher import WORDS
    from experiments.attributing.attributions import AttributionsFile, Header, doubts_of
    from experiments.attributing.batch import Batch
    from experiments.attributing.case_sources import sources_of
    from experiments.attributing.replay_check import checked_by_replay
    from experiments.data.dataset_reader import Reading
    from experiments.display.tables import run_view
    from experiments.running.parts import home_folder, model_access

    factory = open_attributor(method, seconds=timeout, matcher=matcher)
    where = home_folder(home)
    complaint = _complaint(question, reply, right)
    if complaint is not None and complaints is not None:
        raise ConfigError("--question and --complaints: give one of them")
    target = out or Path(DEFAULT_OUT if complaint is None and complaints is None else COMPLAINTS)
    if replay and (len(sources) > 1 or traces_of == "all"):
        raise ConfigError("--replay: runs one system with one set of prompts; name one run, without --traces-of all")
    problems: list[str] = []
    trace_sources = sources_of(
        sources,
        where,
        traces_of=traces_of,
        data=data,
        complaint=complaint,
        complaints=complaints,
        since=since,
        reading=Reading(problems=problems),
    )
    if problems and not trace_sources:
        raise DataError(problems[0])
    with ExitStack() as stack:
        access = None
        if (method, matcher) == (SURVIVAL, WORDS):
            if helper["model"] is not None or helper["base_url"] is not None:
                say(f"note: {method} by {matcher} asks no model, whatever is named; add --matcher llm", err=True)
        else:
            surely = isinstance(factory, AsksModel)
            access = stack.enter_context(model_access(where, timeout=timeout, surely=surely, **helper))
        make = bound(factory, access)
        asked_model = access.task.settings.model if access else None
        header = Header(method=method, matcher=matcher, model=asked_model, replayed=replay)
        if replay:
            make, models = stack.enter_context(
                checked_by_replay(make, sources[0], where, traces_of, calls=helper["calls"])
            )
            access = access or models
        file = stack.enter_context(AttributionsFile.open(target, header))
        before = {} if since is None or again else dict(file.attributions.cases)
        view = stack.enter_context(run_view())
        batch = Batch(
            make, file.attributions, file.append, folder=target.resolve().parent, access=access, threads=threads
        )
        batch.tally.unmatched += len(problems)
        try:
            tally = batch.run(trace_sources, view.progress)
        except KeyboardInterrupt:
            again_too = "" if since is None else " with --again"
            say(f"{batch.tally.line()}; saved in {target}; run it again{again_too} to continue", err=True)
            raise
        names = (os.path.relpath(source.path, target.resolve().parent) for source in trace_sources)
        traces = [file.attributions.traces[name] for name in names if name in file.attributions.traces]
        looked_at = [case for key in batch.wrong if (case := file.attributions.cases.get(key)) and case.is_news(before)]
    for problem in (*problems, *(trace.problem for trace in traces if trace.problem is not None)):
        say(f"warning: {problem}", err=True)
    for trace in traces:
        for leak in trace.leaks:
            say(f"warning: {trace.trace}: {leak}", err=True)
    for doubt in doubts_of(traces):
        say(f"warning: {doubt}", err=True)
    if tally.incomplete or tally.failed:
        troubles = (case.failed or case.incomplete for case in file.attributions.cases.values())
        say(f"warning: {next(filter(None, troubles))}", err=True)
    if complaint is not None:
        for case in looked_at:
            say(_verdict(case))
    if since is not None:
        moment_text = datetime.fromtimestamp(since).astimezone().isoformat(" ", "seconds")
        say(f"since {moment_text}: {len(looked_at)} to report")
    if complaints is not None or since is not None:
        for line in _clusters(looked_at):
            say(line)
    say(f"{tally.line()}; see {target}, or: memtune diagnose {target}")
    return 0 if tally.complete else 1


def _complaint(question: str | None, reply: str | None, right: str | None) -> Complaint | None:
    from experiments.attributing.source import Complaint

    if question is None:
        if reply is not None or right is not None:
            raise ConfigError("--reply and --right are for a complaint; give its --question too")
        return None
    if not question.strip():
        raise ConfigError("--question is empty; give the question as it was asked")
    return Complaint(question, reply or "", (right,) if right and right.strip() else ())


def _clusters(cases: Sequence[CaseLine]) -> list[str]:
    """What went wrong in several cases, the most frequent first, with the surest case of each."""
    from experiments.diagnosis.case_clusters import case_clusters

    lines = []
    for cluster in case_clusters(cases):
        surest = cluster.cases[0]
        sure = surest.main.confidence if surest.main is not None else 0.0
        lines += [
            f"{len(cluster.cases)} × {cluster.error_type} at {cluster.operation}: {cluster.words}",
            f"  for example {surest.question!r} answered {surest.reply!r}, confidence {sure:.2f}",
            *([f"  {cluster.caveat}"] if cluster.caveat else []),
        ]
    return lines


def _verdict(case: CaseLine) -> str:
    """A case's verdict for people to read."""
    lines = [f"question: {case.question}", f"reply: {case.reply}"]
    for title, blames in (("blame", case.decisive), ("or else", case.alternatives)):
        for blame in blames:
            where = f"{blame.operation} ({blame.operation_id})" if blame.operation_id else blame.operation
            checked = f", {blame.verdict} by replay" if blame.verdict else ""
            lines += [
                f"{title}: {blame.error_type} at {where}, confidence {blame.confidence:.2f}{checked}",
                f"  {blame.reason}",
            ]
    if not any(case.answers):
        lines.append("the right answer is not known: give it with --right for a surer verdict")
    if not case.decisive:
        lines.append(f"no verdict: {case.failed or case.abstained}")
    return "\n".join(lines)
