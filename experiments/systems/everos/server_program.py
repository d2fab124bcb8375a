"""Runs the real EverOS server on loopback. It is started as a script, by the Python that has EverOS.

The first line of its input is JSON with the folder of the prompt slots; its first line of output has the port. It ends
when its input ends, so with the process that started it. Beside EverOS's own routes it has these under `/memtune`:
`entries` (what the markdown files hold), `write` (put entries into them) and `idle` (wait until no strategy runs).

What is changed of EverOS: where it reads prompt slots, how it counts tokens (its table would be downloaded), and the
ids of its memory cells, which count up instead of being random.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import threading
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

_DAY = date(2000, 1, 1)
_BYTES_A_TOKEN = 4
_KINDS = {"ep": "episode", "af": "atomic_fact"}


class ApproximateTokens:
    """Counts a token for four bytes; only where EverOS splits what is too long for one memory cell depends on it."""

    def encode(self, text: str) -> list[bytes]:
        data = text.encode("utf-8", "replace")
        return [data[at : at + _BYTES_A_TOKEN] for at in range(0, len(data), _BYTES_A_TOKEN)]

    def decode(self, tokens: list[bytes]) -> str:
        return b"".join(tokens).decode("utf-8", "replace")


def _module(name: str) -> Any:
    return import_module(name)


def _change(slots: Path) -> None:
    # The package has a function of the name `memorize` too, which hides the module.
    names = ("everalgo._tokenize", "everos.service._boundary", "everos.service.memorize")
    tokens, boundary, memorize = (_module(name) for name in names)
    numbers = itertools.count(1)
    tokens._tokenizer_cache = ApproximateTokens()
    boundary._mint_memcell_id = lambda: f"mc_{next(numbers):012x}"
    memorize._config_root = lambda: slots


def _application() -> Any:
    from everos.core.persistence import MemoryRoot
    from everos.core.persistence.markdown import MarkdownReader
    from everos.entrypoints.api.app import create_app
    from everos.infra.persistence.markdown import AtomicFactWriter, EpisodeWriter

    engine = _module("everos.service.memorize")._get_engine
    app = create_app()
    root = MemoryRoot.resolve()

    async def entries(request: dict[str, Any]) -> dict[str, Any]:
        rows = []
        for path in sorted(root.users_dir(request["app"]).rglob("*.md")):
            for entry in (await MarkdownReader.read(path)).entries:
                read = entry.as_structured()
                written = {"inline": dict(read.inline), "sections": dict(read.sections)}
                rows.append({"kind": _KINDS[entry.id[:2]], "id": entry.id, **written})
        return {"entries": rows}

    async def write(request: dict[str, Any]) -> dict[str, Any]:
        writer = {"episode": EpisodeWriter, "atomic_fact": AtomicFactWriter}[request["kind"]](root)
        items = [(item["inline"], item["sections"]) for item in request["items"]]
        new_ids = await writer.append_entries(request["owner"], items, date=_DAY)
        return {"ids": [new_id.format() for new_id in new_ids]}

    async def idle(request: dict[str, Any]) -> dict[str, Any]:
        return {"idle": await engine().wait_idle(timeout=request["seconds"])}

    for route in (entries, write, idle):
        app.post(f"/memtune/{route.__name__}")(route)
    return app


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Serve until the input ends."""
    import uvicorn

    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    settings = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _change(Path(settings["slots"]))
    app = _application()
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    output.write(json.dumps({"port": bound.getsockname()[1]}) + "\n")
    output.flush()
    uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run(sockets=[bound])


if __name__ == "__main__":
    main()
