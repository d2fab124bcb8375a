"""`memtune` as a test calls it: in a folder of its own, with a configuration for the scripted server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.command import main

Command = Callable[..., tuple[int, str, str]]
"""Runs memtune with these arguments: exit code, standard output and standard error."""


class MemtuneCommand:
    """Runs memtune in this process.

    Args:
        capsys: pytest's.
        base_url: of the scripted server.
        tracking: the settings of MLflow, in YAML's short form without braces.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str], base_url: str, tracking: str) -> None:
        self._capsys, self._base_url, self._tracking = capsys, base_url, tracking

    def configure(self, file: str, lines: str, *, model: str = "", traces: int = 1) -> None:
        """Write a configuration: these lines, the scripted server's models, and the MLflow store that tests share.

        Args:
            model: further settings of the models, such as `, temperature: 0.5`.
            traces: cases that become traces in MLflow, which takes half as long as all else in a run of a test.
        """
        endpoint = f"base_url: '{self._base_url}', retries: 0{model}"
        Path(file).write_text(
            f"{lines}models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
            f"tracking: {{{self._tracking}, traces: {traces}}}\n"
        )

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        said = self._capsys.readouterr()
        assert isinstance(caught.value.code, int)
        return caught.value.code, said.out, said.err
