"""`memtune annotate`: people label whose fault wrong answers are, in a browser."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.examples import examples
from experiments.commands.options import case_options, home_option, traces_options
from experiments.display.terminal import say

if TYPE_CHECKING:
    from experiments.annotating.annotator_agreement import AgreementReport
    from experiments.annotating.page_server import PageServer
    from tracing.llm.access import ModelAccess

DEFAULT_LABELS = "labels.sqlite"


@click.command(epilog=examples("annotate"))
@click.argument("sources", nargs=-1, required=True, metavar="TRACE|FOLDER|RUN...")
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    default=DEFAULT_LABELS,
    show_default=True,
    help="File of all annotators' labels; made if need be, and only ever added to.",
)
@click.option("--annotator", metavar="NAME", default="", help="Your name; the page asks for it otherwise.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port on 127.0.0.1 [default: 5100, or a free one].")
@click.option("--no-open", is_flag=True, help="Print the address without opening a browser.")
@click.option(
    "--export",
    "target",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write the labels as annotated graphs (MemTraceBench's form) and end; with --annotator only theirs.",
)
@click.option("--agreement", is_flag=True, help="Print how well the annotators agree, and end.")
@traces_options
@case_options
@home_option
def annotate(
    sources: tuple[str, ...],
    labels: Path,
    annotator: str,
    port: int | None,
    no_open: bool,
    target: Path | None,
    agreement: bool,
    traces_of: str,
    data: Path | None,
    timeout: float,
    home: Path | None,
    **helper: Any,
) -> None:
    """Label whose fault wrong answers are, on a page on this machine, until Ctrl-C.

    Give traces (memtune's own, or graphs of smartcomment and MemTraceBench), folders of traces, or runs. Several people
    may work at once. A label is on the disk when the page says so. The model of --helper-model is asked only where
    somebody runs a method that needs one.
    """
    from experiments.annotating.annotation_server import AnnotationServer
    from experiments.annotating.annotator_agreement import agreement_of
    from experiments.annotating.attribution_methods import Methods
    from experiments.annotating.label_export import export
    from experiments.annotating.labels import LabelStore
    from experiments.annotating.page_server import server_key
    from experiments.annotating.workspace import Workspace
    from experiments.attributing.case_sources import sources_of
    from experiments.running.parts import home_folder, model_access
    from tracing.errors import ConfigError, DataError
    from tracing.files.file_kinds import likeness
    from tracing.interchange import is_trace

    where = home_folder(home)
    trace_sources = sources_of(sources, where, traces_of=traces_of, data=data)
    if not any(is_trace(source.path) for source in trace_sources):
        raise DataError(
            f"{trace_sources[0].path}: is not a trace; {likeness(trace_sources[0].path) or 'give the path of one'}"
        )
    workspace = Workspace(trace_sources)
    if (agreement or target is not None) and not labels.is_file():
        raise ConfigError(f"--labels {labels}: no such file; label something first, or name the file with the labels")
    store = LabelStore(labels)
    if agreement or target is not None:
        in_force = store.in_force()
        if agreement:
            _print_agreement(agreement_of(in_force, workspace.traces))
        if target is not None:
            workspace.read()
            written = export(workspace, [label for label in in_force if annotator in ("", label.annotator)], target)
            say(f"{written.line()}; see {target}")
        return

    def access(stack: ExitStack) -> ModelAccess:
        return stack.enter_context(model_access(where, timeout=timeout, **helper))

    with ExitStack() as stack:
        methods = Methods(
            workspace, stack, home=where, prompts=traces_of, access=access, calls=helper["calls"], seconds=timeout
        )
        exports = labels.with_suffix(".annotated")
        server = AnnotationServer(
            workspace, store, methods, exports=exports, port=port, key=server_key(where), annotator=annotator
        )
        serve(server, f"labels in {labels}", no_open)


def serve(server: PageServer, about: str, no_open: bool) -> None:
    """Serve a page until Ctrl-C, and open it in a browser, unless nobody sees it."""
    import sys
    import threading
    import webbrowser

    server.start()
    try:
        say(f"{server.address}  ({about}; Ctrl-C ends it)")
        if not no_open and sys.stdout.isatty():
            webbrowser.open(server.address)
        threading.Event().wait()
    except KeyboardInterrupt:
        say("", err=True)
    finally:
        server.close()


def _print_agreement(report: AgreementReport) -> None:
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table

    for name, count in report.labelled.items():
        say(f"{name}: {count:,} labelled")
    if report.pairs:
        table = plain_table("Cohen's kappa", gap=2)
        for title in ("annotators", "cases", "error type", "operations"):
            table.add_column(title, justify="left" if title == "annotators" else "right")
        for pair in report.pairs:
            kappas = (_figure(pair.error_type), _figure(pair.operations))
            table.add_row(f"{pair.first}, {pair.second}", str(pair.cases), *kappas)
        LiteralConsole().print(table)
    say(
        f"{report.shared:,} cases labelled by several; Krippendorff's alpha {_figure(report.error_type)} (error type), "
        f"{_figure(report.operations)} (operations); {len(report.disputed):,} disputed"
    )
    for method, (accepted, judged) in report.accepted.items():
        say(f"{method}: {accepted:,} of {judged:,} verdicts accepted")
    if report.elsewhere:
        labels = "label" if report.elsewhere == 1 else "labels"
        say(f"left out: {report.elsewhere:,} {labels} of traces that are not open")


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
