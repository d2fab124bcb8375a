"""The options of commands that measure on a suite of labelled cases, which they may have to make first."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.options import home_option, setup_options, several

suite_options = several(
    setup_options,
    click.option(
        "--cases",
        "count",
        type=click.IntRange(min=1),
        default=180,
        show_default=True,
        metavar="N",
        help="At most N injected faults per system.",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed for choosing cases and for intervals."),
    click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here."),
    home_option,
)
"""What to make the cases with and how many, the seed, and where the figures go."""
