"""Data sets are fetched whole, verified, and continued; a home that fails says how else to come by the data."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from experiments.command import main
from experiments.data.datasets import CARDS
from experiments.data.file_download import SUMS, RemoteFile, fetch
from tracing.errors import DataError

CONTENT = bytes(range(256)) * 9000
OTHERWISE = "get it from its home, and give its path with --data PATH"


class Home:
    """Serves CONTENT, with ranges; `cut` ends the connection after so many bytes, `code` refuses."""

    def __init__(self) -> None:
        self.content = CONTENT
        self.cut: int | None = None
        self.code = 0
        self.ranges = True
        self.asked: list[str | None] = []
        home = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.headers.get("Range")
                home.asked.append(asked)
                if home.code:
                    self.send_error(home.code)
                    return
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and home.ranges else 0
                if start >= len(home.content) > 0:
                    self.send_error(416)
                    return
                self.send_response(206 if start else 200)
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{len(home.content) - 1}/{len(home.content)}")
                self.send_header("Content-Length", str(len(home.content) - start))
                self.end_headers()
                self.wfile.write(home.content[start : None if home.cut is None else start + home.cut])

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def file(self, *, known: bool = True, size: bool = True) -> RemoteFile:
        digest = hashlib.sha256(CONTENT).hexdigest() if known else None
        return RemoteFile("d.json", f"{self.address}/d.json", len(CONTENT) if size else None, digest)


@pytest.fixture
def home() -> Iterator[Home]:
    found = Home()
    yield found
    found.server.shutdown()
    found.server.server_close()


def fetched(file: RemoteFile, folder: Path) -> Path:
    return fetch(file, folder, otherwise=OTHERWISE, arrived=lambda name, done, total: None)


def test_a_file_is_fetched_once_and_its_progress_told(home: Home, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    path = fetch(home.file(), tmp_path, otherwise=OTHERWISE, arrived=lambda *each: told.append(each))
    assert path.read_bytes() == CONTENT
    assert told[-1] == ("d.json", len(CONTENT), len(CONTENT))
    assert len(told) > 1
    assert fetched(home.file(), tmp_path) == path
    assert home.asked == [None]
    assert [each.name for each in tmp_path.iterdir()] == ["d.json"]


@pytest.mark.parametrize("ranges", [True, False], ids=["with ranges", "without"])
def test_a_download_that_was_cut_is_continued(home: Home, tmp_path: Path, ranges: bool) -> None:
    home.cut, home.ranges = 1_000_000, ranges
    with pytest.raises(DataError, match=r"d\.json: broke off after 1,000,000 of 2,304,000 bytes; start it again"):
        fetched(home.file(), tmp_path)
    assert not (tmp_path / "d.json").exists()
    home.cut = None
    assert fetched(home.file(), tmp_path).read_bytes() == CONTENT
    assert home.asked == [None, "bytes=1000000-"]


def test_two_that_fetch_a_file_at_once_share_one_download(home: Home, tmp_path: Path) -> None:
    halfway, both = threading.Event(), []

    def slowly(name: str, done: int, total: int) -> None:
        halfway.set()
        time.sleep(0.1)

    def first() -> None:
        both.append(fetch(home.file(), tmp_path / "d", otherwise=OTHERWISE, arrived=slowly))

    thread = threading.Thread(target=first)
    thread.start()
    assert halfway.wait(20)
    both.append(fetched(home.file(), tmp_path / "d"))
    thread.join()
    assert [path.read_bytes() for path in both] == [CONTENT] * 2
    assert home.asked == [None]


def test_one_that_ended_before_it_got_its_name_is_not_asked_for_again(home: Home, tmp_path: Path) -> None:
    (tmp_path / "d.json.part").write_bytes(CONTENT)
    assert fetched(home.file(), tmp_path).read_bytes() == CONTENT
    assert home.asked == []
    (tmp_path / "d.json").unlink()
    (tmp_path / "d.json.part").write_bytes(CONTENT)
    assert fetched(home.file(size=False), tmp_path).read_bytes() == CONTENT
    assert home.asked == [f"bytes={len(CONTENT)}-"], "where the size is not known, the home says that nothing is left"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (CONTENT[:-1] + b"?", r"wrong bytes: SHA-256 \w{16}… where \w{16}… is expected; nothing was kept; get it from"),
        (CONTENT + b"?", "sent 2,304,001 bytes where 2,304,000 are expected; nothing was kept; get it from"),
    ],
    ids=["other bytes", "more bytes"],
)
def test_other_bytes_than_expected_are_not_kept(home: Home, tmp_path: Path, content: bytes, problem: str) -> None:
    home.content = content
    with pytest.raises(DataError, match=problem):
        fetched(home.file(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_changed_here_is_fetched_again_where_its_hash_is_known(home: Home, tmp_path: Path) -> None:
    fetched(home.file(), tmp_path).write_bytes(b"changed")
    assert fetched(home.file(), tmp_path).read_bytes() == CONTENT


def test_the_first_fetch_of_an_unknown_file_is_trusted_and_later_ones_must_be_the_same(
    home: Home, tmp_path: Path
) -> None:
    path = fetched(home.file(known=False, size=False), tmp_path)
    assert (tmp_path / SUMS).read_text() == f"{hashlib.sha256(CONTENT).hexdigest()}  d.json\n"
    path.unlink()
    home.content = b"{}"
    with pytest.raises(DataError, match=r"wrong bytes: .* was fetched first \(.*SHA256SUMS\); nothing was kept"):
        fetched(home.file(known=False, size=False), tmp_path)
    assert not path.exists()
    path.write_bytes(b"changed here")
    with pytest.raises(
        DataError, match=r"differs from what was fetched first, by .*; delete the file to fetch it again"
    ):
        fetched(home.file(known=False, size=False), tmp_path)


@pytest.mark.parametrize("code", [404, 403, 500])
def test_a_home_that_refuses_says_how_else_to_get_the_file(home: Home, tmp_path: Path, code: int) -> None:
    home.code = code
    with pytest.raises(DataError, match=rf"/d\.json: HTTP {code} \(.*\); get it from its home, and give its path"):
        fetched(home.file(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_a_network_the_way_out_is_told(tmp_path: Path) -> None:
    nowhere = RemoteFile("d.json", "http://127.0.0.1:9/d.json")
    with pytest.raises(DataError, match=r"/d\.json: unreachable \(.*refused.*\); get it from its home"):
        fetched(nowhere, tmp_path)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def test_the_command_fetches_from_a_mirror_and_refuses_what_has_no_home(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", home.address)
    here = ("--home", str(tmp_path))
    home.code = 404
    assert run("data", "fetch", "longmemeval", "longmemeval_oracle.json", *here) == 2
    said = capsys.readouterr().err
    assert "licence: MIT" in said
    assert f"longmemeval_oracle.json: HTTP 404 (Not Found); get it from {CARDS['longmemeval'].home}" in said
    assert "give its path with --data PATH" in said
    home.code = 0
    assert run("data", "fetch", "longmemeval", "longmemeval_oracle.json", *here) == 2
    assert "sent 2,304,000 bytes where 15,388,478 are expected; nothing was kept" in capsys.readouterr().err
    for name, why in (
        ("beam", "beam: cannot be fetched; clone the repository, and give --data one of its folders"),
        ("memeval", "memeval: cannot be fetched; give --data the annotated graph that you were given"),
        ("jsonl", "jsonl: cannot be fetched; it has no public home; give its own path with --data PATH"),
    ):
        assert run("data", "fetch", name, *here) == 2
        assert why in capsys.readouterr().err
    assert run("data", "fetch", "locomo", "nine.json", *here) == 2
    assert "nine.json: is not a file of locomo; its files are locomo10.json" in capsys.readouterr().err
    assert run("data", "fetch", "nothing", *here) == 2
    assert "dataset: unknown: 'nothing'; choose one of sample, agent-traces" in capsys.readouterr().err


def test_what_was_fetched_is_listed_as_here(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    card = replace(CARDS["realmem"], files=(home.file(known=False), RemoteFile("e.json", "http://127.0.0.1:9/e")))
    monkeypatch.setattr("experiments.data.datasets.CARDS", {**CARDS, "realmem": card})
    monkeypatch.setenv("COLUMNS", "200")
    assert run("data", "fetch", "realmem", "d.json", "--home", str(tmp_path)) == 0
    assert str(tmp_path / "data" / "realmem" / "d.json") in capsys.readouterr().out
    assert run("data", "list", "--home", str(tmp_path)) == 0
    said = capsys.readouterr().out
    assert "1 of 2 files" in said
    assert "no: memtune data fetch locomo" in said
    for name in ("jsonl", "traces", "beam", "memeval"):
        assert re.search(rf"(?m)^{name} .*give its path with --data", said), "what cannot be fetched says how to be had"
    for licence in ("CC BY-NC 4.0", "MIT", "Apache-2.0", "CC BY-SA 4.0", "labels: none stated"):
        assert licence in said
