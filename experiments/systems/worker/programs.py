"""Runs a program of memtune in the environment of a memory system, which has its library."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any

from experiments.systems.worker.environment import Environment
from tracing.errors import RunError
from tracing.llm.forwarding.errors import read
from tracing.recording.redaction import excerpt

_WITHIN_S = 600.0
_LONGEST = 300


def said_by(module: str, arguments: Sequence[str], environment: Environment) -> Any:
    """The `result` in the JSON object that a program prints last, or its `error` raised.

    Raises:
        ConfigError: the environment is not installed, or belongs to another memtune.
        RunError: the program failed otherwise.
        MemtuneError: what it says.
    """
    environment.require()
    try:
        process = subprocess.run(  # noqa: S603 - our own program, without a shell
            [environment.interpreter, "-I", "-X", "utf8", "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env={name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ},
            timeout=_WITHIN_S,
            check=False,
        )
        output = json.loads(process.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        raise RunError(f"{environment.name}: {module} did not end within {_WITHIN_S:.0f} s") from None
    except (IndexError, ValueError):
        last = excerpt(" ".join(process.stderr.split())[-_LONGEST:], _LONGEST)
        raise RunError(f"{environment.name}: {module} failed in its environment ({last})") from None
    if "error" in output:
        raise read(output["error"])
    return output["result"]
