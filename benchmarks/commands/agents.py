"""How often the operation at fault is named in traces of agents with plain memory tools, of five frameworks."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.output import write_output


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks agents --json agents.json
  python -m benchmarks agents --verdicts
"""
)
@click.option("--verdicts", is_flag=True, help="Say for each trace what was found.")
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
def agents(verdicts: bool, target: Path | None) -> None:
    """Attribute the last answer of each recorded trace, given the right one, and compare with the planted fault.

    The traces are of real packages with a scripted model: benchmarks/agent_traces. A trace without a fault counts as
    right where its reply is. With a leak it does where the entry of another person is told.
    """
    import json

    from benchmarks.agent_traces.scoring import agent_traces, told
    from benchmarks.agent_traces.story import FAULTS
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table

    rows: dict[str, dict[str, list[bool]]] = {}
    lines: dict[str, str] = {}
    with agent_traces() as traces:
        for trace in traces:
            right, line = told(trace)
            rows.setdefault(f"{trace.agent} {trace.door}", {}).setdefault(trace.fault, []).append(right)
            lines[f"{trace.path.stem}{', mapped' if trace.mapping else ''}"] = (
                f"{'right' if right else 'wrong'}: {line}"
            )
    table = plain_table("faults named right", gap=2)
    table.add_column("trace", no_wrap=True)
    for fault in (*FAULTS, "all"):
        table.add_column(fault.replace("_", " "), justify="right", no_wrap=True)
    for name, by_fault in rows.items():
        everything = [right for rights in by_fault.values() for right in rights]
        counted = (*(by_fault.get(fault, []) for fault in FAULTS), everything)
        table.add_row(name, *(f"{sum(rights)}/{len(rights)}" for rights in counted))
    if target is not None:
        figures = {
            name: {fault: {"right": sum(rights), "n": len(rights)} for fault, rights in by_fault.items()}
            for name, by_fault in rows.items()
        }
        write_output(target, json.dumps({"figures": figures, "verdicts": lines}, indent=2) + "\n", "--json")
    console = LiteralConsole()
    console.print(table)
    for name, line in lines.items() if verdicts else ():
        console.print(f"{name}: {line}", soft_wrap=True)
