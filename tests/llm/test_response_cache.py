"""The response cache: whole entries or none, shared by threads and processes."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tracing.errors import ConfigError
from tracing.llm.cache import ResponseCache, request_key

WRITER = """
import sys
from pathlib import Path
from tracing.llm.cache import ResponseCache
cache = ResponseCache(Path(sys.argv[1]))
for n in range(200):
    cache.put(f"{sys.argv[2]}-{n}", b"x" * 1000)
    print(n, flush=True)
"""


def test_what_was_put_is_found_by_a_later_process(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path)
    cache.put_many({str(n): b"value %d" % n for n in range(1200)})
    cache.close()
    found = ResponseCache(tmp_path).get_many([str(n) for n in range(1300)])
    assert (len(found), found["1199"]) == (1200, b"value 1199")


def test_the_first_reply_stored_for_a_key_stays(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path)
    cache.put("k", b"first")
    cache.put("k", b"second")
    assert cache.get("k") == b"first"


def test_threads_and_processes_write_together(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, name], stdout=subprocess.DEVNULL) for name in "ab"]
    cache = ResponseCache(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: cache.put(f"c-{n}", b"y"), range(200)))
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len(cache) == 600


def test_a_writer_killed_in_the_middle_leaves_whole_entries(tmp_path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), "a"], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    told = [writer.stdout.readline() for _ in range(50)]
    writer.kill()
    writer.wait()
    writer.stdout.close()
    cache = ResponseCache(tmp_path)
    assert len(cache) >= len(told)
    assert cache.get("a-49") == b"x" * 1000


def test_a_file_that_is_no_cache_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "responses.sqlite").write_text("something else entirely\n" * 100)
    with pytest.raises(ConfigError, match=r"responses\.sqlite"):
        ResponseCache(tmp_path)


def test_a_cache_that_cannot_be_written_costs_the_reuse_not_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ResponseCache(tmp_path)
    with sqlite3.connect(cache.path) as other:
        other.execute("DROP TABLE responses")
    with caplog.at_level(logging.WARNING):
        cache.put("k", b"v")
        cache.put("k", b"v")
        assert cache.get("k") is None
    assert len(caplog.records) == 1


def test_keys_depend_on_every_part_and_on_the_order_within_parts() -> None:
    key = request_key(a=1, b={"x": 1, "y": 2})
    assert key == request_key(b={"x": 1, "y": 2}, a=1)
    others = [request_key(a=1, b={"y": 2, "x": 1}), request_key(a=2, b={"x": 1, "y": 2}), request_key(a=1)]
    assert len({key, *others}) == 4


def test_a_cache_that_another_process_is_about_to_make_is_waited_for(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "responses.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE another (x)")
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.2, other.execute, ["COMMIT"]).start()
    cache = ResponseCache(tmp_path)
    cache.put("key", b"value")
    assert cache.get("key") == b"value"
    cache.close()
    other.close()
