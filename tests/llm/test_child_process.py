"""A child process ends with its parent, however that ends, and is otherwise as if it had been started directly."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tracing.llm.serving.child_process import start_child

ROOT = Path(__file__).resolve().parents[2]
PARENT = """
import subprocess, sys, time
from tracing.llm.serving.child_process import start_child
child = start_child(["sh", "-c", "trap '' TERM INT; sleep 60 & echo $$ $!; wait"], output=subprocess.PIPE)
print(child.stdout.readline().decode(), flush=True)
time.sleep(60)
"""


def alive(number: int) -> bool:
    status = Path(f"/proc/{number}/stat")
    if status.parent.parent.joinpath("self").exists():
        try:
            return status.read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False
    return not subprocess.run(["ps", "-p", str(number)], capture_output=True, check=False).returncode


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_child_and_what_it_started_end_with_the_parent_though_they_ignore_being_asked_to(number: int) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        started = [int(word) for word in parent.stdout.readline().split()]
        assert len(started) == 2
        assert all(alive(one) for one in started)
        os.kill(parent.pid, number)
    until = time.monotonic() + 10
    while any(alive(one) for one in started) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(alive(one) for one in started)


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 128 + signal.SIGKILL)])
def test_its_output_and_exit_code_are_the_commands(script: str, code: int) -> None:
    with start_child(["sh", "-c", f"echo out; echo err >&2; {script}"], output=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.read() == b"out\nerr\n"
        assert child.wait() == code


def test_a_command_that_ends_in_its_own_time_when_asked_to_is_waited_for(tmp_path: Path) -> None:
    script = "trap 'sleep 0.3; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    with start_child(["sh", "-c", script], output=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        os.killpg(child.pid, signal.SIGTERM)
        assert child.wait() == 0
        # A shell may also say that the `sleep` it was waiting for was terminated.
        assert child.stdout.read().endswith(b"saved\n")
