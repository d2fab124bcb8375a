"""`memtune model`: the weights of embedded models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from experiments.commands.examples import examples
from experiments.commands.output import download_bars
from experiments.commands.whole_summaries import WholeSummaries
from experiments.display.terminal import say
from tracing.llm import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from tracing.llm.serving.weights import Weights


@click.group(cls=WholeSummaries)
def model() -> None:
    """Fetch, list and serve the embedded models."""


@model.command("list", epilog=examples("model list"))
def list_() -> None:
    """List the available models, and which of them are on this machine."""
    from rich.table import Table

    from experiments.display.literal_console import LiteralConsole
    from tracing.llm.serving.weights import CATALOGUE, stored_path

    table = Table()
    for name in ("name", "model", "disk", "memory", "on this machine"):
        table.add_column(name, justify="right" if name in ("disk", "memory") else "left", overflow="fold")
    paths = []
    for weights in CATALOGUE.values():
        path = stored_path(weights)
        here = f"no: memtune model pull {weights.name}"
        if path.is_file():
            paths.append(path)
            here = "yes"
        table.add_row(weights.name, weights.title, f"{weights.size / 1e6:.0f} MB", _memory(weights), here)
    LiteralConsole().print(table)
    say(f"Memory is at the default context of {DEFAULT_CONTEXT} tokens.")
    for path in paths:  # whole lines, which can be copied
        say(path)


@model.command(epilog=examples("model pull"))
@click.argument("name", default="qwen2.5-coder-0.5b")
@click.option("--from", "source", type=click.Path(path_type=Path), help="Existing file with the weights.")
def pull(name: str, source: Path | None) -> None:
    """Fetch a model's weights once, and verify them by their SHA-256."""
    from tracing.llm.serving.weights import CATALOGUE
    from tracing.llm.serving.weights import pull as fetch

    with download_bars() as arrived:
        path = fetch(
            name,
            source=source,
            progress=lambda place, received, size: arrived(f"{name} from {place}", received, size),
        )
    say(f"{name}: {path}")
    memory = _memory(CATALOGUE[name])
    say(f"Serving it takes about {memory} of memory at the default context of {DEFAULT_CONTEXT} tokens.")


@model.command(epilog=examples("model serve"))
@click.argument("name", default="qwen2.5-coder-0.5b")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
@click.option("--context", type=click.IntRange(min=256), default=DEFAULT_CONTEXT, show_default=True, help="Tokens.")
def serve(name: str, port: int, context: int) -> None:
    """Serve an embedded model to other programs on this machine, OpenAI-compatible, until Ctrl-C."""
    import threading

    from tracing.llm.serving.embedded import EmbeddedModel, EmbeddedServer
    from tracing.llm.serving.weights import locate

    path = locate(name)
    server = EmbeddedServer({name: EmbeddedModel(name, lambda: path, context)}, port=port)
    server.start()
    try:
        # The token is valid only for this server; whoever starts it needs to see it.
        say(f"model {name}; Ctrl-C ends it", err=True)
        say(f"export OPENAI_BASE_URL={server.base_url} OPENAI_API_KEY={server.key}")
        threading.Event().wait()
    except KeyboardInterrupt:
        say("", err=True)
    finally:
        server.close()


def _memory(weights: Weights) -> str:
    from tracing.llm.serving.embedded import memory_needed

    return f"{memory_needed(weights, DEFAULT_CONTEXT) / 1e9:.1f} GB"
