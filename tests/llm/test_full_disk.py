"""A call that was paid is paid once, also where the disk is full when its reply arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from full_disk import Disk, mounted
from scripted_server import Reply, ScriptedServer

from tracing.errors import RunError
from tracing.llm.access import ModelAccess
from tracing.llm.accounting.ledger import Ledger
from tracing.llm.settings import Limits, ModelSettings, Role

ASKED = 12


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted(tmp_path / "disk", 16) as disk:
        yield disk


@pytest.fixture
def live(disk: Disk, scripted_server: ScriptedServer) -> Callable[[], int]:
    """One life of a run: it asks everything it has to, and gives the number of calls booked as its own."""
    settings = ModelSettings(model="m", base_url=scripted_server.base_url, retries=0)

    def run() -> int:
        folder, cache = disk.path / "run", disk.path / "cache"
        folder.mkdir(exist_ok=True)
        roles: dict[Role, ModelSettings] = {"task": settings, "embedding": settings}
        with (
            ModelAccess.open(roles, cache_dir=cache, limits=Limits()) as opened,
            closing(Ledger(folder / "ledger.jsonl", cache=cache)) as ledger,
        ):
            access = opened.with_ledger(ledger)
            for n in range(ASKED):
                access.embedding.embed([f"text {n}", f"text {n + 1}"])
                access.task.chat([{"role": "user", "content": f"Question {n}? {'x' * 9000}"}], max_tokens=9)
            return int(access.meter.totals()["calls_made"])

    return run


@pytest.mark.parametrize("leave", [0, 4096, 30_000, 200_000])
@pytest.mark.parametrize("kind", ["chat", "embedding"])
def test_a_call_whose_reply_meets_a_full_disk_is_paid_once(
    disk: Disk, live: Callable[[], int], scripted_server: ScriptedServer, leave: int, kind: str
) -> None:
    def paid() -> int:
        return scripted_server.count + len(scripted_server.embedding_requests)

    def fill(body: dict[str, Any]) -> Reply:
        if paid() >= 6 and not disk.full:
            disk.fill(leave)
        return Reply("y" * 50_000)

    if kind == "chat":
        scripted_server.script = fill
    else:
        scripted_server.script = lambda body: "y" * 50_000
        scripted_server.embed_reply = fill
    with pytest.raises(RunError, match=r"make room, then go on with: memtune run --resume"):
        live()
    assert paid() < 2 * ASKED
    disk.empty()
    scripted_server.script = lambda body: "y" * 50_000
    scripted_server.embed_reply = None
    assert live() == paid() == 2 * ASKED


def test_no_call_is_paid_where_the_disk_is_full_at_the_start(
    disk: Disk, live: Callable[[], int], scripted_server: ScriptedServer
) -> None:
    (disk.path / "cache").mkdir()
    disk.fill(leave=1 << 20)
    with pytest.raises(RunError, match="No space left on device"):
        live()
    assert scripted_server.count == len(scripted_server.embedding_requests) == 0


def test_room_held_back_leaves_nothing_behind(disk: Disk, live: Callable[[], int]) -> None:
    live()
    assert {path.name for path in (disk.path / "run").iterdir()} == {"ledger.jsonl"}
    assert {path.name for path in (disk.path / "cache").iterdir()} == {"responses.sqlite"}
