"""The examples of the commands, which stand in a file beside this one."""

from __future__ import annotations

from tracing.package_data import packaged_tables


def examples(command: str) -> str:
    """The end of a command's help, by the words of the command without `memtune`."""
    return f"\b\nExamples:\n{packaged_tables('experiments.commands', 'examples.toml')[command]}"
