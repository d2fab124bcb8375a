"""`memtune data review`: people confirm, correct and drop generated questions, in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.annotate import serve
from experiments.commands.examples import examples
from experiments.commands.options import home_option
from experiments.display.terminal import say


@click.command(epilog=examples("data review"))
@click.argument("data", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--annotator", metavar="NAME", default="", help="Your name; the page asks for it otherwise.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port on 127.0.0.1 [default: 5100, or a free one].")
@click.option("--no-open", is_flag=True, help="Print the address without opening a browser.")
@click.option("--agreement", is_flag=True, help="Print how well the annotators agree, and end.")
@home_option
def review(data: Path, annotator: str, port: int | None, no_open: bool, agreement: bool, home: Path | None) -> None:
    """Review the generated questions of the data set DATA, on a page on this machine, until Ctrl-C.

    Several people may work at once. With each decision DATA is written anew: confirmed and corrected questions are
    marked, dropped ones are gone. DATA.before-review has it as it was, DATA.reviews.jsonl who decided what.
    """
    from experiments.annotating.page_server import server_key
    from experiments.annotating.review_server import ReviewServer
    from experiments.annotating.row_reviews import RowReviews
    from experiments.running.parts import home_folder

    reviews = RowReviews(data)
    if agreement:
        report = reviews.agreement()
        figure = "–" if report.alpha is None else f"{report.alpha:.3f}"
        rows = len(report.disputed)
        say(f"{report.shared} rows reviewed by several; Krippendorff's alpha {figure}; {rows} disputed")
        for first, second, count, kappa in report.pairs:
            say(f"{first}, {second}: {count} rows, Cohen's kappa {'–' if kappa is None else f'{kappa:.3f}'}")
        for row in report.disputed:
            say(f"disputed: {row}")
        return
    server = ReviewServer(reviews, port=port, key=server_key(home_folder(home)), annotator=annotator)
    serve(server, f"{len(reviews.rows)} generated questions", no_open)
