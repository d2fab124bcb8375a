"""Killed at any moment, a run goes on where it was; several at once in a new home do not disturb each other."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copy
from typing import Any, NamedTuple

import pytest
from bench import Endpoint, Tried, conversations, key_in, leaks
from gold_runs import OUTPUT, PEAK, curves, killed, latest, live, outcome, started, without_costs
from misbehaviour import KEY, LARGE, Misbehaviour
from scripted_server import ScriptedServer

from experiments.runs.folder import RunFolder
from tracing.systems.conversations import write_conversations

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
INTERRUPTED = 130

MOST_MORE_KB = 400_000
"""Of memory that the largest reply may cost a run."""


class Place:
    """A folder with a home that does not exist yet, and a configuration for its runs."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self.folder, self.server, self.home = folder, server, folder / "home"
        self.endpoint = Endpoint(server)
        write_conversations(folder / "data.jsonl", conversations())
        reached = f"base_url: '{server.base_url}', retries: 1, api_key: {KEY}"
        (folder / "run.yaml").write_text(
            "dataset: jsonl\ndata: data.jsonl\nsystem_settings: {near: 0.0}\nrounds: 1\nproposals: 2\n"
            f"tracking: {{traces: 1}}\nmodels:\n  task: {{model: m, {reached}}}\n  embedding: {{model: e, {reached}}}\n"
        )

    @property
    def runs(self) -> list[RunFolder]:
        return RunFolder.all(self.home)

    def said(self, name: str = "") -> str:
        path = self.folder / f"{name}{OUTPUT}"
        return path.read_text() if path.exists() else ""

    @property
    def requests(self) -> int:
        return self.server.asked + sum(body["input"] != ["hello"] for body in self.server.embedding_requests)


@pytest.fixture
def place(tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path, server)


RUN = ["run", "run.yaml", "--home", "home"]
RESUME = [*RUN, "--resume", "latest"]


class Whole(NamedTuple):
    """A run that nobody disturbed: what it ended with, its points in MLflow, its requests, and the home it is in."""

    outcome: dict[str, Any]
    curves: dict[str, list[tuple[str, int, float]]]
    requests: int
    home: Path


_WHOLE: list[Whole] = []


@pytest.fixture
def whole(place: Place, store: Path) -> Whole:
    """Run once for all tests."""
    if not _WHOLE:
        before, home = place.requests, place.folder / "undisturbed"
        home.mkdir()
        copy(store, home)
        assert live([*RUN[:-1], home.name], None) == 0, place.said()
        (run,) = RunFolder.all(home)
        _WHOLE.append(Whole(outcome(run), curves(run), place.requests - before, home))
        (place.folder / OUTPUT).unlink()
    return _WHOLE[0]


def moments(place: Place, draw: random.Random, requests: int) -> Iterator[tuple[str, Callable[[], bool], float]]:
    """When to kill: a name, what is waited for, and seconds after it; in the order of a run's life."""
    store = lambda: any(place.home.glob("*mlflow*"))  # noqa: E731
    yield "before the store", place.home.exists, draw.uniform(0, 0.2)
    for _ in range(3):
        yield "while the store is made", store, draw.uniform(0, 0.5)
    yield "while the store is made", store, draw.uniform(0.5, 4.0)
    yield "at the beginning", lambda: bool(place.runs), draw.uniform(0, 0.05)
    for share in sorted(draw.random() for _ in range(3)):
        before = place.requests
        yield "between calls", lambda n=before, s=share: place.requests >= n + s * requests / 2, draw.uniform(0, 0.01)
    yield "at the end", lambda: any(place.runs[-1].path.glob("report.html")), draw.uniform(0, 0.5)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(("seed", "few"), [(0, True), *((seed, False) for seed in (1, 2, 3))])
def test_a_run_killed_at_any_moment_of_set_up_and_run_ends_as_the_undisturbed_one(
    place: Place, whole: Whole, tried: Tried, seed: int, few: bool
) -> None:
    draw = random.Random(seed)  # noqa: S311
    before, arguments = place.requests, RUN
    for nth, (name, moment, more) in enumerate(moments(place, draw, whole.requests)):
        if few and nth % 3 != 1:
            continue
        number = SIGNALS[(nth + seed) % 3]
        tried(f"{number.name} {name}")
        code = killed(arguments, number, moment, more)
        assert code in (0, -signal.SIGKILL, INTERRUPTED), place.said()[-3000:]
        assert "Traceback" not in place.said(), place.said()[-3000:]
        # A run that has a folder can be gone on with, and one that has none has left nothing.
        arguments = RESUME if place.runs else RUN
    assert live(arguments, None) == 0, place.said()[-3000:]
    assert len(place.runs) == 1
    assert outcome(place.runs[-1]) == whole.outcome
    # An interrupted run tells MLflow what it had reached.
    assert latest(curves(place.runs[-1])) == latest(whole.curves)
    # What was under way when the process was killed is paid again, and nothing else.
    assert place.requests - before <= whole.requests + 12
    assert live(RUN, None) == 0, place.said()[-3000:]
    assert _result(place.runs[-1]) == _result_of(whole.outcome)
    assert not leaks(place.home)


@pytest.mark.slow
@pytest.mark.parametrize("kills", [3, pytest.param(15, marks=pytest.mark.thorough)])
def test_an_export_killed_at_any_moment_is_whole_or_can_be_made_again(
    place: Place, whole: Whole, tried: Tried, kills: int
) -> None:
    export = ["export", "latest", "--home", str(whole.home), "--to", "text", "--out"]
    began = time.monotonic()
    assert live([*export, "reference"], None) == 0
    lasts, draw = time.monotonic() - began, random.Random(5)  # noqa: S311
    files = {path.name: path.read_bytes() for path in Path("reference").iterdir()}
    for number in range(kills):
        tried("kill of an export")
        out = Path(f"out{number}")
        kill = SIGNALS[number % 3]
        code = killed([*export, str(out)], kill, lambda: True, draw.uniform(0.3, 1.0) * lasts)
        assert code in (0, -signal.SIGKILL, INTERRUPTED), place.said()
        if not out.exists():
            assert live([*export, str(out)], None) == 0, place.said()
        assert {path.name: path.read_bytes() for path in out.iterdir()} == files


def _result_of(found: dict[str, Any]) -> dict[str, Any]:
    """An outcome without what depends on which of several runs paid for a call."""
    return {**without_costs(found), "calls": found["calls"]["without_reuse"]}


def _result(run: RunFolder) -> dict[str, Any]:
    return _result_of(outcome(run))


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_first_runs_at_once_in_a_new_home_end_alike(place: Place, whole: Whole, tried: Tried, count: int) -> None:
    tried(f"{count} runs at once in a new home", count)
    processes = [started(RUN, str(number)) for number in range(count)]
    for number, process in enumerate(processes):
        process.join()
        assert process.exitcode == 0, place.said(str(number))[-3000:]
        assert "warning" not in place.said(str(number))
    assert len(place.runs) == count
    for run in place.runs:
        assert _result(run) == _result_of(whole.outcome)
        assert set(curves(run)) == set(whole.curves)
    assert live(RUN, None) == 0, place.said()
    assert _result(place.runs[-1]) == _result_of(whole.outcome)


@pytest.mark.slow
@pytest.mark.parametrize("role", ["chat", pytest.param("embedding", marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "kind",
    [LARGE[0], *(pytest.param(kind, marks=pytest.mark.thorough) for kind in LARGE[1:])],
    ids=lambda kind: kind.name,
)
def test_no_reply_fills_the_memory(place: Place, whole: Whole, tried: Tried, kind: Misbehaviour, role: str) -> None:
    tried(f"{kind.name}, {role}, lasting")
    place.endpoint.misbehave(kind, role, after=1)
    assert live(RUN, None) == 2, place.said()
    assert place.said().rstrip().rpartition("\n")[2].startswith("memtune: ")
    assert not key_in(place.said().encode())
    most = int((place.folder / PEAK).read_text())
    place.endpoint.behave()
    assert live(RESUME, None) == 0, place.said()
    assert outcome(place.runs[-1]) == whole.outcome
    assert most - int((place.folder / PEAK).read_text()) < MOST_MORE_KB
