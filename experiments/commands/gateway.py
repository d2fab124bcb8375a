"""`memtune gateway`: memtune's model access for programs with their own client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.commands.examples import examples
from experiments.commands.options import config_from, home_option, task_model_options
from experiments.display.terminal import say


@click.command(epilog=examples("gateway"))
@click.argument("config", required=False, metavar="[CONFIG.yaml]")
@task_model_options
@click.option("--budget-calls", type=int, metavar="N", help="Refuse model calls beyond this number.")
@click.option("--budget-minutes", type=float, metavar="M", help="Refuse model calls after this time.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1 [default: a free one].")
@click.option("--trace", "file", type=click.Path(path_type=Path), help="New file that records every call.")
@home_option
def gateway(config: str | None, port: int, file: Path | None, home: Path | None, **options: Any) -> None:
    """Serve the models of a configuration, OpenAI-compatible, with memtune's cache, budgets and recording.

    For other programs on this machine, until Ctrl-C; then it prints the number of calls.
    """
    import contextlib
    import threading
    from contextvars import copy_context

    from experiments.running.parts import home_folder, open_access
    from tracing.llm.serving.gateway import Gateway
    from tracing.recording.trace_context import trace

    settings = config_from(config, options)
    with (
        open_access(settings, home_folder(home)) as access,
        trace(file) if file is not None else contextlib.nullcontext(),
        contextlib.closing(Gateway(access, port=port, context=copy_context())) as server,
    ):
        server.start()
        try:
            # The token is valid only for this server; whoever starts it needs to see it.
            names = f"model {access.task.settings.model}, embeddings {access.embedding.settings.model}"
            say(f"{names}; Ctrl-C ends it", err=True)
            say(f"export OPENAI_BASE_URL={server.base_url} OPENAI_API_KEY={server.key}")
            threading.Event().wait()
        except KeyboardInterrupt:
            counts = access.meter.totals()
            say(f"\n{counts['calls_made']:,} calls made, {counts['calls_cached']:,} from the cache", err=True)
