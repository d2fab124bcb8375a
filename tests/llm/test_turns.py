"""Programs on one machine take turns: one at a time, each of them in the end, and nobody waits for a dead one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tracing.errors import ConfigError
from tracing.llm.serving import shared_cores
from tracing.llm.serving.shared_cores import Turns

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys, time
from pathlib import Path
from tracing.llm.serving.shared_cores import Turns
taken, folder, name, count, seconds = Turns(Path(sys.argv[1])), Path(sys.argv[1]), *sys.argv[2:]
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(count)):
    with taken.turn():
        with (folder / "log").open("a") as log:
            log.write(f"+{name} ")
        time.sleep(float(seconds))
        with (folder / "log").open("a") as log:
            log.write(f"-{name} ")
"""


@contextmanager
def program(folder: Path, name: str, count: int, seconds: float) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PROGRAM, str(folder), name, str(count), str(seconds)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline() == "ready\n"
            yield started
        finally:
            started.kill()


def begin(*programs: subprocess.Popen[str]) -> None:
    for one in programs:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()


def logged(folder: Path) -> list[str]:
    log = folder / "log"
    return log.read_text().split() if log.exists() else []


def wait_until_logged(folder: Path, entry: str) -> None:
    until = time.monotonic() + 20
    while entry not in logged(folder):
        assert time.monotonic() < until, f"{entry} is not in {logged(folder)}"
        time.sleep(0.01)


def test_two_programs_compute_one_at_a_time_and_neither_overtakes_the_other_for_long(tmp_path: Path) -> None:
    with program(tmp_path, "a", 12, 0.05) as one, program(tmp_path, "b", 12, 0.05) as other:
        begin(one, other)
        assert (one.wait(30), other.wait(30)) == (0, 0)
    entries = logged(tmp_path)
    holders = [entry[1:] for entry in entries[::2]]
    assert entries == [f"{sign}{name}" for name in holders for sign in "+-"]
    together = holders[: min(len(holders) - holders[::-1].index(name) for name in "ab")]
    first = next(n for n, name in enumerate(together) if name != together[0])
    runs = "".join(together[first:]).replace("ab", "a b").replace("ba", "b a").split()
    assert max(map(len, runs)) <= 2, holders


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_turn_of_a_program_that_dies_ends_with_it(tmp_path: Path, number: int) -> None:
    with program(tmp_path, "dying", 1, 60) as one:
        begin(one)
        wait_until_logged(tmp_path, "+dying")
        os.kill(one.pid, number)
        one.wait(10)
    started = time.monotonic()
    with Turns(tmp_path).turn():
        assert time.monotonic() - started < 5


def test_a_suspended_program_is_waited_for_less_each_time_and_taken_turns_with_again_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_cores, "LONGEST_WAIT_S", 0.5)
    ours, waits = Turns(tmp_path), []
    with program(tmp_path, "suspended", 1, 0.1) as one:
        begin(one)
        wait_until_logged(tmp_path, "+suspended")
        os.kill(one.pid, signal.SIGSTOP)
        for _ in range(2):
            started = time.monotonic()
            with ours.turn():
                waits.append(time.monotonic() - started)
        os.kill(one.pid, signal.SIGCONT)
        assert one.wait(10) == 0
    assert waits[0] >= 0.5 > waits[1]
    with ours.turn(), program(tmp_path, "other", 1, 0) as another:
        begin(another)
        time.sleep(0.3)
        assert "+other" not in logged(tmp_path)


def test_after_a_turn_that_was_too_long_to_wait_for_a_live_program_is_taken_turns_with_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_cores, "LONGEST_WAIT_S", 1.0)
    ours = Turns(tmp_path)
    with program(tmp_path, "slow", 3, 1.2) as one:
        begin(one)
        wait_until_logged(tmp_path, "+slow")
        with ours.turn():
            assert logged(tmp_path) == ["+slow"]
        with ours.turn():
            time.sleep(0.3)
            assert logged(tmp_path) == ["+slow", "-slow"]


def test_whoever_waits_for_long_is_told_once_that_another_program_uses_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shared_cores, "TOLD_AFTER_S", 0.2)
    monkeypatch.setattr(shared_cores, "LONGEST_WAIT_S", 1.0)
    ours = Turns(tmp_path)
    with ours.turn():
        assert not caplog.records
    with program(tmp_path, "busy", 1, 60) as one:
        begin(one)
        wait_until_logged(tmp_path, "+busy")
        for _ in range(2):
            with ours.turn():
                pass
    (told,) = caplog.messages
    assert told == "another memtune process on this machine is using the embedded model; this one waits for its turn"


def test_a_wait_ends_when_there_is_no_reason_to_go_on(tmp_path: Path) -> None:
    def check() -> None:
        raise ConfigError("closed")

    with program(tmp_path, "busy", 1, 60) as one:
        begin(one)
        wait_until_logged(tmp_path, "+busy")
        with pytest.raises(ConfigError, match="closed"), Turns(tmp_path).turn(check):
            pass


def test_without_a_place_for_locks_the_work_is_done_all_the_same(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    with Turns(occupied).turn():
        pass
