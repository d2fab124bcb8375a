"""The file of a trace is written behind the program's back, and whatever happens to it the program goes on."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracing import (
    Operation,
    Redaction,
    Session,
    TraceError,
    Variable,
    current_recorder,
    load_trace,
    operation,
    records_of,
    trace,
    traced,
    variable,
)
from tracing.files.loading import graph_of
from tracing.files.trace_file import TraceFile
from tracing.files.trace_lines import Lines, record_of


@traced()
def shout(text):
    return text.upper()


def test_everything_ended_is_in_the_file_after_a_flush(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with trace(path) as recorder:
        for number in range(3):
            with operation("step") as op:
                op.output("n", f"output {number}")
            recorder.flush()
            assert len(load_trace(path).graph.operations) == number + 1


def test_without_a_flush_it_gets_there_by_itself(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with trace(path):
        for round_ in range(1, 4):  # the writer falls asleep in between
            shout(f"text {round_}")
            deadline = time.monotonic() + 20
            while len(load_trace(path).graph.operations) < round_ and time.monotonic() < deadline:
                time.sleep(0.01)
            assert len(load_trace(path).graph.operations) == round_


def test_the_end_of_an_operation_gets_there_though_nothing_follows_it(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with trace(path):
        with operation("long") as op:
            time.sleep(0.2)  # the writer falls asleep
            op.output("reply", "text")
        deadline = time.monotonic() + 20
        while not load_trace(path).graph.operations and time.monotonic() < deadline:
            time.sleep(0.01)
        (ended,) = load_trace(path).graph.operations.values()
        assert (ended.status, len(ended.outputs)) == ("ok", 1)


BUSY = """
import sys, threading
from pathlib import Path
from tracing import operation, trace, bind
def work(most):
    for n in range(most):
        with operation('step', inputs={'n': f'input {n}', 'list': [n]}) as op:
            op.output('m', f'output {n % 7}' * 200)
with trace(Path(sys.argv[1])) as recorder:
    work(40)
    recorder.flush()
    print(40, flush=True)
    threads = [threading.Thread(target=bind(work), args=(10**9,)) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


def test_a_killed_writer_leaves_all_that_was_flushed_and_nothing_broken(tmp_path: Path):
    """Killed fifty times, at moments that differ."""

    def one(number: int) -> None:
        path = tmp_path / f"{number}.jsonl"
        with subprocess.Popen([sys.executable, "-c", BUSY, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            flushed = int(process.stdout.readline())
            time.sleep(number * 7 % 50 / 500)
            process.send_signal(signal.SIGKILL)
        content = path.read_bytes()
        loaded = load_trace(path)
        assert len(loaded.graph.operations) >= flushed
        graph = loaded.graph
        assert len(graph.operations) + len(graph.variables) == content.count(b"\n") - 1
        assert (loaded.problem is None) == content.endswith(b"\n")

    for first in range(0, 50, 5):
        threads = [threading.Thread(target=one, args=(first + more,)) for more in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(list(tmp_path.iterdir())) == 50


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_on_a_full_disk_the_program_goes_on_and_the_loss_is_counted_and_told_once(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, "tracing"), trace(Path("/dev/full")) as recorder:
        for _ in range(3):
            assert shout("text") == "TEXT"
            recorder.flush()
    assert recorder.lost == len(recorder.records()) == 7
    told = [record.getMessage() for record in caplog.records]
    assert [("cannot be written" in line, "7 records were lost" in line) for line in told] == [
        (True, False),
        (False, True),
    ]
    assert "/dev/full" in told[0]
    assert "No space left" in told[0]


def test_in_a_read_only_folder_the_program_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # Tests may run as root, whom no permission stops.
    monkeypatch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(OSError(30, "Read-only file system")))
    with trace(tmp_path / "t.jsonl") as recorder:
        assert shout("text") == "TEXT"
    assert recorder.lost == 3


def test_a_path_that_can_be_no_file_is_refused_at_once(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(TraceError, match="cannot be opened for a trace"), trace(tmp_path / "file" / "t.jsonl"):
        pass


LIMITED = """
import resource, signal, sys
from pathlib import Path
from tracing import *
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
with trace(path) as recorder:
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
    for n in range(40):
        variable(f'text {n}' * 10, name=f'v{n}')
    recorder.flush()
    full = recorder.lost
    partial = load_trace(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    variable('more', name='last')
print(full, len(partial.graph.variables), partial.problem, recorder.lost, len(load_trace(path).graph.variables))
"""


def test_a_disk_that_fills_up_leaves_whole_records_and_what_was_held_is_written_when_there_is_room(tmp_path: Path):
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "t.jsonl")], capture_output=True, text=True, check=True
    )
    full, there, problem, lost, finally_there = ran.stdout.split()
    assert int(full) > 0
    assert int(full) + int(there) == 40
    assert (problem, lost, finally_there) == ("None", "0", "41")
    assert ran.stderr.count("cannot be written") == 1


def test_what_is_held_for_a_full_disk_is_bounded(monkeypatch: pytest.MonkeyPatch):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    monkeypatch.setattr("tracing.recording.trace_writer.MOST_HELD", 1000)
    with trace("/dev/full") as recorder:
        for number in range(20):
            variable(f"{number}" * 200, name="v")
            recorder.flush()
        assert recorder._writer is not None
        assert sum(map(len, recorder._writer._held)) <= 2000
    assert recorder.lost == 20


def test_a_line_that_got_in_by_half_is_taken_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = TraceFile(tmp_path / "t.jsonl")
    real, room = os.write, [25]

    def write(number: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        sent = real(number, bytes(data)[: room[0]])
        room[0] -= sent
        return sent

    monkeypatch.setattr(os, "write", write)
    lines = [b"0123456789\n"] * 4
    assert file.append(lines)[0] == 2
    assert (tmp_path / "t.jsonl").read_bytes() == b"".join(lines[:2])
    room[0] = 100
    assert file.append(lines[2:]) == (2, None)
    assert (tmp_path / "t.jsonl").read_bytes() == b"".join(lines)


def test_a_large_value_is_in_the_file_once_and_comes_back_for_all(tmp_path: Path):
    path, large, other = tmp_path / "t.jsonl", "large " * 1000, {"texts": ["other " * 1000]}
    with trace(path) as recorder:
        for number in range(5):
            variable(large + "", name=f"text {number}")
            variable({**other}, name=f"dict {number}")
            variable("small", name="small")
    content = path.read_text()
    assert content.count(large) == 1
    assert content.count("other " * 1000) == 1
    assert content.count('"small"') == 10
    assert load_trace(path).graph.variables == recorder.graph.variables


@pytest.mark.parametrize("holder", ["ghost", [1], None])
def test_a_value_held_by_nobody_ends_the_reading(tmp_path: Path, holder: object):
    path = tmp_path / "t.jsonl"
    with trace(path, prefix=""):
        variable("text", name="v")
    record = {"type": "variable", "id": "v9", "name": "n", "kind": "k", "value_of": holder}
    path.write_bytes(path.read_bytes() + json.dumps(record).encode() + b"\n")
    loaded = load_trace(path)
    assert list(loaded.graph.variables) == ["v1"]
    assert "v9 has the value of the unknown" in str(loaded.problem)


def test_files_of_the_first_version_load(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with trace() as recorder:
        shout("text")
    lines = [{"type": "header", "format": "memtune-trace", "version": 1}, *recorder.records()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    loaded = load_trace(path)
    assert loaded.problem is None
    assert loaded.graph.operations == recorder.graph.operations


TEXTS = st.text(st.characters(), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
FACTS = st.dictionaries(TEXTS, JSON, max_size=2)
LINKS = st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple)
MAYBE = st.none() | TEXTS
AMOUNTS = st.floats(min_value=0, allow_nan=False, allow_infinity=False)


@given(
    st.builds(Session, TEXTS, TEXTS, FACTS)
    | st.builds(Variable, TEXTS, TEXTS, TEXTS, JSON, st.integers(1, 9), MAYBE, MAYBE, FACTS)
    | st.builds(
        Operation,
        *(TEXTS, TEXTS, TEXTS, LINKS, LINKS, MAYBE, MAYBE, AMOUNTS, st.none() | AMOUNTS),
        *(st.sampled_from(["open", "ok", "error"]), MAYBE, MAYBE, st.integers(0), st.integers(0), st.integers(0)),
        *(st.integers(0), AMOUNTS, FACTS),
    )
)
def test_a_line_is_the_json_of_its_record(item: Session | Variable | Operation):
    line = Lines().line(item)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == record_of(item)
    assert list(json.loads(line)) == list(record_of(item))


def test_a_thread_that_notes_more_than_may_wait_writes_it_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracing.recording.trace_writer.NAP_S", 3600.0)
    monkeypatch.setattr("tracing.recording.trace_writer.MOST_NOTES", 100)
    with trace(tmp_path / "t.jsonl") as recorder:
        for _ in range(2000):
            shout("text")
            assert len(recorder.builder.notes) <= 110
    assert len(load_trace(tmp_path / "t.jsonl").graph.operations) == 2000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_neither_hangs_nor_writes(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with trace(path) as recorder:
        made = variable("parent", name="p")
        child = os.fork()
        if child == 0:
            with operation("child"):
                same = made.value == "parent"
            recorder.end()
            os._exit(0 if same and current_recorder() is None else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        shout("after")
    graph = load_trace(path).graph
    assert [one.name for one in graph.operations.values()] == ["shout"]
    assert graph_of(records_of(graph)).variables == recorder.graph.variables


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_threads_that_fork_at_once_do_not_hold_each_other_up(tmp_path: Path):
    """As where several conversations are read at once by a program that starts processes."""
    code = f"""
import os, threading
from tracing.recording.trace_context import trace

def fork(number):
    with trace({str(tmp_path)!r} + f"/{{number}}.jsonl"):
        for _ in range(50):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)

threads = [threading.Thread(target=fork, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_an_interrupt_at_the_end_of_a_trace_leaves_its_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracing.recording.trace_writer.NAP_S", 60)
    interrupts = [KeyboardInterrupt()]

    def clean(text):
        if interrupts:
            raise interrupts.pop()
        return text

    path = tmp_path / "t.jsonl"
    with pytest.raises(KeyboardInterrupt), trace(path, redaction=Redaction(function=clean)):
        shout("text")
    assert [one.value for one in load_trace(path).graph.variables.values()] == ["text", "TEXT"]


def test_a_trace_that_is_never_left_is_written_when_the_process_ends(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    code = (
        "import sys; from tracing import *\n"
        "kept = trace(sys.argv[1]); kept.__enter__()\n"
        "variable('text', name='v'); current_recorder().builder  # nothing is flushed by hand\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert [one.value for one in load_trace(path).graph.variables.values()] == ["text"]
