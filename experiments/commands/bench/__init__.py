"""`memtune bench`: measure optimizers, attribution methods and recorded answers of your own."""

from __future__ import annotations

import click

from experiments.commands.bench.attribution import attribution
from experiments.commands.bench.gate import gate
from experiments.commands.bench.moved import MOVED, moved
from experiments.commands.bench.optimize import optimize
from experiments.commands.whole_summaries import WholeSummaries


class _Bench(WholeSummaries):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names, which may have moved since it measures memtune itself."""
        if args[0] in MOVED:
            raise moved(f"bench {args[0]}", args[0])
        return super().resolve_command(ctx, args)


@click.group(cls=_Bench)
def bench() -> None:
    """Measure on your own data: optimizers, an attribution method, what the gate would find."""


for _command in (optimize, attribution, gate):
    bench.add_command(_command)
