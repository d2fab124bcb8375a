"""`memtune ask`: a question about a trace, answered from the trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.commands.examples import examples
from experiments.commands.options import home_option, model_options
from experiments.display.terminal import say


@click.command(epilog=examples("ask"))
@click.argument("trace", type=click.Path(path_type=Path))
@click.argument("question")
@click.option("--steps", type=click.IntRange(min=1), default=12, show_default=True, help="Tool calls it may make.")
@model_options
@home_option
def ask(
    trace: Path,
    question: str,
    steps: int,
    home: Path | None,
    **helper: Any,
) -> int:
    """Let a model explore TRACE and answer QUESTION, citing the variables and operations that support the answer.

    Exit code 0, or 1 if it found no answer that the trace supports.
    """
    from attribution.agent.agent_method import Agent
    from attribution.agent.exploration import Exploration
    from attribution.recordings import operations_of
    from experiments.running.parts import home_folder, model_access
    from tracing.errors import ConfigError
    from tracing.interchange import read_memory

    if not question.strip():
        raise ConfigError('QUESTION is empty; ask something, such as "why was the answer wrong?"')
    graph, problem = read_memory(trace)
    if problem is not None:
        say(f"warning: {problem}", err=True)
    with model_access(home_folder(home), **helper) as access:
        finding = Agent(graph, access.task, operations=operations_of(graph), steps=steps).ask(question)
    cost = f"{finding.steps} steps, {finding.tokens:,} tokens"
    if finding.answer is None:
        say(f"no answer: {finding.abstained} ({cost})", err=True)
        return 1
    say(finding.answer)
    say("\nEvidence:")
    exploration = Exploration(graph)
    for element_id in finding.evidence:
        handles = exploration.handles
        handle = (handles.variable if element_id in graph.variables else handles.operation)(element_id)
        line = exploration.line(graph.variables.get(element_id) or graph.operations[element_id])
        say(f"  {element_id}{line.removeprefix(handle)}")
    say(f"\n{cost}", err=True)
    return 0
