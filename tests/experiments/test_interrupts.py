"""Ctrl-C says at once what is waited for, a second one waits for nothing, and what was done is kept."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripted_server import CHECK, Reply, ScriptedServer

from experiments.mlflow_tracking.sqlite_store import store_uri

pytestmark = pytest.mark.slow

PATIENCE_S = 60.0


Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def said(tmp_path: Path) -> Path:
    """What the commands write to stderr."""
    return tmp_path / "said.txt"


@pytest.fixture
def start(mlflow_home: Path, tmp_path: Path, said: Path, scripted_server: ScriptedServer) -> Iterator[Start]:
    """Starts the command in a process of its own, on a model that answers only the check before the start."""
    scripted_server.script = lambda body: Reply("hello", delay=0 if body["messages"] == CHECK else 600)
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"
    (tmp_path / "run.yaml").write_text(
        "system: rag\nlimits: {conversations: 3, questions: 1}\nrounds: 0\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
        f"tracking: {{uri: '{store_uri(mlflow_home)}', experiment: {tmp_path.name}, traces: 1}}\n"
    )
    begun: list[subprocess.Popen[bytes]] = []

    def started(*arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "experiments.command", *arguments]
        with said.open("a") as err:
            begun.append(subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=err))
        return begun[-1]

    yield started
    for process in begun:
        process.kill()
        process.wait()


def interrupted(process: subprocess.Popen[str], server: ScriptedServer, said: Path) -> None:
    """Press Ctrl-C once a call is under way, and see what is said while the call goes on."""
    until(lambda: server.asked > 0)
    process.send_signal(signal.SIGINT)
    until(lambda: "finishing the calls under way; press Ctrl-C again to stop now\n" in said.read_text())
    assert process.poll() is None, "it waits for the call"


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_second_ctrl_c_ends_a_run_at_once_and_the_run_can_be_resumed(
    start: Start, scripted_server: ScriptedServer, said: Path
) -> None:
    process = start("run", "run.yaml", "--home", "home")
    interrupted(process, scripted_server, said)
    process.send_signal(signal.SIGINT)
    assert process.wait(5) == 130
    assert said.read_text().endswith("memtune run --resume RUN\n")
    scripted_server.script = lambda body: "unknown"
    assert start("run", "run.yaml", "--home", "home", "--resume", "latest").wait(PATIENCE_S) == 0


@pytest.mark.slow
def test_ctrl_c_ends_an_evaluation_when_its_calls_have_ended(
    start: Start, scripted_server: ScriptedServer, said: Path
) -> None:
    release = threading.Event()

    def script(body: dict[str, object]) -> str:
        if body["messages"] != CHECK:
            release.wait(PATIENCE_S)
        return "unknown"

    scripted_server.script = script
    process = start("eval", "run.yaml", "--prompts", "baseline", "--home", "home")
    interrupted(process, scripted_server, said)
    release.set()
    assert process.wait(PATIENCE_S) == 130
    assert said.read_text().endswith("memtune: interrupted\n")


PAUSED = {
    "while it is imported": """
class Paused:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            pause()

sys.meta_path.insert(0, Paused())
""",
    "while it ends": "atexit.register(pause)",
}
"""Parts of a process's life outside of the command, in which it stops until it is told to go on."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("moment", "code"), [("while it is imported", 130), ("while it ends", 0)])
def test_a_signal_before_the_command_ends_the_process_and_one_after_it_changes_nothing(
    moment: str, code: int, number: signal.Signals
) -> None:
    lines = f"""
import atexit, sys
def pause():
    print("here", flush=True)
    sys.stdin.readline()
{PAUSED[moment]}
import memtune
sys.argv = ["memtune", "runs", "--help"]
memtune.main()
"""
    command, pipe = [sys.executable, "-c", lines], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert any(line == b"here\n" for line in process.stdout)
        process.send_signal(number)
        time.sleep(0.2)
        _, said = process.communicate(b"\n", timeout=PATIENCE_S)
    assert (process.returncode, said) == (code, b"")


SWALLOWING = """
import signal, time
from experiments.interrupts import interruptible

class Held:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.01)

try:
    with interruptible():
        Held()
        time.sleep(20)
        print("went on")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_that_reaches_a_finalizer_is_not_lost() -> None:
    ran = subprocess.run([sys.executable, "-c", SWALLOWING], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout, ran.stderr) == ("interrupted\n", "")


TOGETHER = """
import ctypes, os, signal, threading
from experiments.interrupts import interruptible
from tracing.llm.threads import THREAD

class Held:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

threading.Thread(target=threading.Event().wait, name=THREAD, daemon=True).start()
again = threading.Timer(0.06, lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    with interruptible():
        again.start()
        Held()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGALRM})
        ctypes.CDLL(None).usleep(120_000)
except KeyboardInterrupt:
    print("went on finishing")
"""
"""The second Ctrl-C comes after the first reached a finalizer, and in code that no signal leaves."""


def test_a_second_ctrl_c_beside_a_first_that_reached_a_finalizer_still_ends_at_once() -> None:
    ran = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (130, "")
    assert ran.stderr.endswith("memtune run --resume RUN\n")


EMBEDDED = """
import os, signal, threading, time
from experiments.interrupts import interruptible
from tracing.llm.serving.request_groups import Groups

begun = threading.Event()

def answer(model, requests):
    begun.set()
    time.sleep(60)

groups = Groups(answer, 1)
threading.Thread(target=groups.ask, args=("m", {}), daemon=True).start()
begun.wait()
with interruptible():
    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
"""
"""An embedded model computes a reply that no thread of a run waits for, as one for a proposer."""


def test_whoever_interrupts_an_embedded_model_is_told_what_is_waited_for_and_may_end_it() -> None:
    ran = subprocess.run([sys.executable, "-c", EMBEDDED], capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode == 130
    waits, stopped = ran.stderr.splitlines()
    assert waits == "memtune: finishing the calls under way; press Ctrl-C again to stop now"
    assert stopped.startswith("memtune: stopped; ")
