"""A path that leads to a pipe or a device is read to its end, or refused in one line where there is none."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from experiments.command import main
from tracing.files import opening
from tracing.files.opening import open_file, read_file

RUN = ("run", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--dry-run")
READERS = [
    ("run", "{}"),
    ("doctor", "{}"),
    ("run", "demo", "--start", "{folder}"),
    (*RUN, "--rewrites", "{}"),
    (*RUN, "--rewrites", "{folder}"),
    ("run", "--dataset", "jsonl", "--data", "{}"),
    ("run", "--dataset", "locomo", "--data", "{}"),
    ("data", "show", "--dataset", "jsonl", "--data", "{}"),
    ("data", "show", "--dataset", "locomo", "--data", "{}"),
    ("trace", "show", "{}"),
    ("trace", "import", "{}", "--from", "mlflow", "--out", "out.jsonl"),
    ("attribute", "{}", "--method", "survival"),
    ("diagnose", "{}"),
    ("import-prompts", "--from", "text", "{folder}", "--out", "out"),
    ("import-prompts", "--from", "mem0@1", "{}", "--out", "out"),
    ("annotate", "{}", "--labels", "labels.db"),
    ("bench", "attribution", "--method", "survival", "--suite", "{}"),
]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A short wait for writers."""
    monkeypatch.setattr(opening, "_WAIT_S", 0.2)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("arguments", READERS, ids=" ".join)
def test_what_has_no_end_is_refused_in_one_line(
    arguments: tuple[str, ...], kind: str, quick: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("answer.txt", "update.txt", "chats.jsonl"):
        if kind == "pipe":
            os.mkfifo(folder / name)
        else:
            (folder / name).symlink_to("/dev/zero")
    path = folder / ("chats.jsonl" if "--rewrites" not in arguments else "answer.txt")
    begun = time.monotonic()
    with pytest.raises(SystemExit) as ended:
        main([argument.format(path, folder=folder) for argument in arguments])
    assert time.monotonic() - begun < 60
    assert ended.value.code not in (0, None)
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert "chats.jsonl" in error or ".txt" in error or "folder" in error


def test_a_pipe_is_read_however_slowly_it_is_written(quick: None, tmp_path: Path) -> None:
    path = tmp_path / "p"
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb", buffering=0) as file:
            for _ in range(3):
                time.sleep(0.3)
                file.write(b"x" * 100_000)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    assert read_file(path) == b"x" * 300_000
    writer.join()


def test_ordinary_devices_and_files_are_read(tmp_path: Path) -> None:
    assert read_file(Path("/dev/null")) == b""
    (tmp_path / "f").write_bytes(b"a\nb\n")
    with open_file(tmp_path / "f") as file:
        assert list(file) == [b"a\n", b"b\n"]
    for path, error in ((tmp_path, IsADirectoryError), (tmp_path / "none", FileNotFoundError)):
        with pytest.raises(error):
            read_file(path)


def test_a_configuration_may_come_from_a_pipe(quick: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"systen: rag\n")
    os.close(writing)
    try:
        with pytest.raises(SystemExit):
            main(["run", f"/dev/fd/{reading}", "--dry-run"])
    finally:
        os.close(reading)
    assert "systen" in capsys.readouterr().err, "what the pipe said was lost"
