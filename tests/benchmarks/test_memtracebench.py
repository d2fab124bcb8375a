"""The public suite is downloaded whole and once, from a hub on loopback."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from benchmarks.attribution_measuring import fetched
from experiments.data.published.memtracebench import NAME, REPOSITORY
from tracing.errors import DataError

FILES = {"mem0/a.json": b'{"data": {}}', "rag/b c.json": b"{}", "README.md": b"# about", "../../out.json": b"{}"}


class Hub:
    """Serves FILES as the hub serves a data set; `cut` files are sent short."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.cut: set[str] = set()
        self.hashes: dict[str, str] = {}
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                from urllib.parse import unquote

                path = unquote(self.path)
                hub.asked.append(path)
                name = path.removeprefix(f"/datasets/{REPOSITORY}/resolve/main/")
                if path.startswith(f"/api/datasets/{REPOSITORY}/tree/main"):
                    rows = [
                        {"type": "file", "oid": "0", "path": one, "size": len(x)}
                        | ({"lfs": {"oid": hub.hashes[one]}} if one in hub.hashes else {})
                        for one, x in FILES.items()
                    ]
                    content = json.dumps([{"type": "directory", "path": "mem0", "size": 0}, *rows]).encode()
                else:
                    content = FILES[name][: -1 if name in hub.cut else None]
                self.send_response(200)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    found = Hub()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{found.server.server_address[1]}")
    yield found
    found.server.shutdown()
    found.server.server_close()


def progress(phase: str, done: int, total: int) -> None:
    assert done < total == 2


def test_graphs_are_fetched_once_a_stopped_download_goes_on_and_nothing_leaves_the_folder(
    hub: Hub, tmp_path: Path
) -> None:
    hub.cut = {"rag/b c.json"}
    with pytest.raises(DataError, match="broke off after 1 of 2 bytes; start it again to continue"):
        fetched(tmp_path, progress)
    hub.cut.clear()
    hub.asked.clear()
    folder = fetched(tmp_path, progress)
    assert folder == tmp_path / "data" / NAME
    assert not any("mem0/a.json" in path for path in hub.asked), "what is there is not fetched again"
    assert {str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*.json")} == {
        f"data/{NAME}/{name}" for name in ("mem0/a.json", "rag/b c.json")
    }
    hub.asked.clear()
    assert fetched(tmp_path, progress) == folder
    assert hub.asked == []


def test_what_is_not_what_the_hub_lists_is_refused(hub: Hub, tmp_path: Path) -> None:
    hub.hashes["mem0/a.json"] = "0" * 64
    with pytest.raises(DataError, match=r"a\.json: wrong bytes: SHA-256 .* where 0{16}… is expected; nothing was kept"):
        fetched(tmp_path, progress)
    assert not list(tmp_path.rglob("*.json"))


def test_without_a_hub_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DataError, match=r"unreachable .*give --suite its folder"):
        fetched(tmp_path, progress)
