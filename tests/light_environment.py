"""An environment made in a moment: our own `tracing` in it, and everything else from the environment of the tests."""

from __future__ import annotations

import subprocess
import sys
import sysconfig

from experiments.systems.worker.environment import Environment
from experiments.systems.worker.installing import _copy_code, _marked


def make_light(environment: Environment) -> None:
    """What `memtune system install` makes, without pip."""
    folder = environment.folder
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    (packages / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    _copy_code(folder)
    _marked(environment, folder, "3")
