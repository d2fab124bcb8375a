"""`memtune bench`: measure optimizers, attribution methods and recorded answers of your own."""

from __future__ import annotations

import click

from experiments.commands.bench.attribution import attribution
from experiments.commands.bench.gate import gate
from experiments.commands.bench.moved import MOVED, moved
from experiments.commands.bench.optimize import optimize
from experiments.commands.whole_summaries import WholeSummaries


class _Bench(WholeSummaries):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, which may have moved since it measures memtune itself."""
        if cmd_name in MOVED:
            raise moved(f"bench {cmd_name}", cmd_name)
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Bench, commands=[optimize, attribution, gate])
def bench() -> None:
    """Measure on your own data: optimizers, an attribution method, what the gate would find."""
