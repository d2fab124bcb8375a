"""What the tests of faults share, and the count of what was tried: `--faults FILE` writes it as JSON.

A test names what it tries, and how many of it, by `tried`; a test that does not counts once, by its own name.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(Path(__file__).parent), *(str(TESTS / name) for name in ("optimizer", "experiments", "tracing"))]

from bench import Bench, Tried  # noqa: E402
from impatience import wait_little  # noqa: E402
from scripted_server import ScriptedServer  # noqa: E402

from tracing.llm.http import endpoint  # noqa: E402

LONGEST_S = 300.0
"""How long a test may take before it is ended as hanging."""

_counts: dict[str, dict[str, int]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults", metavar="FILE", type=Path, help="write how many faults of each kind were tried")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" and not report.failed:
        return
    tried = [given for name, given in report.user_properties if name == "tried"]
    if not tried:
        tried = [(report.location[2].partition("[")[0].removeprefix("test_").replace("_", " "), 1)]
    for kind, times in tried:
        counts = _counts.setdefault(str(kind), {"tried": 0, "failed": 0})
        counts["tried"] += times
    if report.failed:
        # What a test tried last is what it failed on.
        _counts[str(tried[-1][0])]["failed"] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--faults", default=None)
    # Reports of parallel workers come together in the process that started them.
    if path is not None and not hasattr(session.config, "workerinput"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(dict(sorted(_counts.items())), indent=1, ensure_ascii=False) + "\n")


@pytest.fixture
def tried(request: pytest.FixtureRequest) -> Tried:
    """Counts what a test tries, before it does: a kind, and how many of it."""

    def count(kind: str, times: int = 1) -> None:
        request.node.user_properties.append(("tried", (kind, times)))

    return count


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """Nothing hangs: a test that takes too long fails."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"not done after {LONGEST_S:.0f} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def server() -> Iterator[ScriptedServer]:
    """Whoever uses it sets its script."""
    server = ScriptedServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def store(mlflow_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow store to copy into a home, where making one is not what is tested."""
    return Path(shutil.copy(mlflow_home / "mlflow.db", tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="session")
def shared_bench(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    server = ScriptedServer()
    yield Bench(server, store, tmp_path_factory.mktemp("bench"))
    server.close()


@pytest.fixture
def bench(shared_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Where runs are disturbed one after the other; they wait little before they try again."""
    wait_little(monkeypatch, 0.005)
    monkeypatch.setattr(endpoint, "OUTAGE_S", 0.1)
    monkeypatch.setenv("COLUMNS", "200")
    return shared_bench
