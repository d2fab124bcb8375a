"""Fixtures and settings for every test: no telemetry, no network look-ups, a home of its own for each test."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

# Read by mlflow, dspy and litellm when they are imported, so before anything else here.
os.environ.update(
    LITELLM_LOCAL_MODEL_COST_MAP="True",
    MLFLOW_DISABLE_TELEMETRY="true",
    DO_NOT_TRACK="true",
    LANGSMITH_TRACING="false",
    GIT_PYTHON_REFRESH="quiet",
)
sys.path.insert(0, str(Path(__file__).parent))

# A shell that starts the tests in the background has them, and all that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
from hypothesis import HealthCheck, settings
from impatience import wait_little
from pgbouncer import PgBouncer
from pgbouncer import installed as pgbouncer_program
from postgres_cluster import PostgresCluster, installed
from scripted_server import ScriptedServer

from tracing.llm.access import ModelAccess
from tracing.llm.serving.weights import CATALOGUE, pull, stored_path
from tracing.llm.settings import Limits, ModelSettings
from tracing.recording import known_secrets

# How long an example takes says more of the machine than of the code.
settings.register_profile("memtune", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("memtune")

USER_WEIGHTS = stored_path(CATALOGUE["smollm2-135m"]).parent
"""Where the user's own weights lie; looked up before tests get folders of their own."""


@pytest.fixture(autouse=True)
def no_secrets_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process remembers the secrets that it was given, and looks for each of them in every message."""
    monkeypatch.setattr(known_secrets, "_remembered", {})


@pytest.fixture(autouse=True)
def memtune_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty MEMTUNE_HOME, no weights, no environments of systems, and no API key from the developer's shell."""
    folder = tmp_path / "home"
    monkeypatch.setenv("MEMTUNE_HOME", str(folder))
    monkeypatch.setenv("MEMTUNE_WEIGHTS", str(folder / "weights"))
    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(folder / "systems"))
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "dspy"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return folder


@pytest.fixture(autouse=True)
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forgets the modules that a test wrote, since the next one may write others of the same names."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield
    for name in sys.modules.keys() - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def scripted_server() -> Iterator[ScriptedServer]:
    """An OpenAI-compatible server whose replies the test decides by setting `scripted_server.script`."""
    server = ScriptedServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def mlflow_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with an MLflow store; making its tables takes seconds, so the tests share one."""
    from experiments.mlflow_tracking.tracking import MlflowRun
    from experiments.runs.folder import FINGERPRINT, RunFolder

    home = tmp_path_factory.mktemp("home")
    folder = RunFolder.create(home, system="rag", now=datetime(2026, 1, 1), files={FINGERPRINT: "{}"})
    MlflowRun.start(uri=None, experiment="empty", home=home, folder=folder, system="rag", baseline={}, params={})
    return home


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresCluster]:
    """A Postgres of the tests' own; starting it takes seconds, so the tests share it."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'memtune[postgres]'")
    programs = installed()
    if programs is None:
        pytest.skip("Postgres is not installed: apt-get install postgresql")
    cluster = PostgresCluster(programs)
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def pgbouncer(postgres: PostgresCluster) -> Iterator[PgBouncer]:
    """A PgBouncer in transaction mode, with one connection to each database."""
    with _pgbouncer(postgres, "transaction") as pooler:
        yield pooler


@pytest.fixture
def pgbouncer_of_statements(postgres: PostgresCluster) -> Iterator[PgBouncer]:
    """A PgBouncer in statement mode."""
    with _pgbouncer(postgres, "statement") as pooler:
        yield pooler


@contextlib.contextmanager
def _pgbouncer(postgres: PostgresCluster, mode: str) -> Iterator[PgBouncer]:
    program = pgbouncer_program()
    if program is None:
        pytest.skip("PgBouncer is not installed: apt-get install pgbouncer")
    pooler = PgBouncer(program, postgres, mode=mode)
    yield pooler
    pooler.close()


@pytest.fixture
def postgres_url(postgres: PostgresCluster) -> str:
    """The address of its database for SQLAlchemy, without the password."""
    return postgres.url_without_password


@pytest.fixture
def open_access(
    scripted_server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., ModelAccess]]:
    """Opens accesses to the scripted server, chat and embedding, with one cache in this test's folder.

    They wait little before they try again.
    """
    wait_little(monkeypatch)
    opened: list[ModelAccess] = []

    def open_it(
        limits: Limits | None = None,
        *,
        cache: bool = True,
        concurrency: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        **settings: object,
    ) -> ModelAccess:
        model = ModelSettings.model_validate({"model": "scripted", "base_url": scripted_server.base_url, **settings})
        access = ModelAccess.open(
            {"task": model, "embedding": model.model_copy(update={"model": "scripted-embedding"})},
            cache_dir=tmp_path / "cache" if cache else None,
            limits=limits or Limits(),
            concurrency=concurrency,
            clock=clock,
        )
        opened.append(access)
        return access

    yield open_it
    for access in opened:
        access.close()


@pytest.fixture
def embedded_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small model's weights, pulled into the user's own folder once, within reach of this test."""
    ours = stored_path(CATALOGUE["smollm2-135m"])
    theirs = USER_WEIGHTS / ours.name
    if not theirs.is_file():
        with monkeypatch.context() as patched:
            patched.setenv("MEMTUNE_WEIGHTS", str(USER_WEIGHTS))
            pull("smollm2-135m")
    ours.parent.mkdir(parents=True)
    ours.symlink_to(theirs)


@pytest.fixture(scope="session")
def environments_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all tests of this session share, in whatever process of pytest-xdist they run.

    $MEMTUNE_TEST_SYSTEMS names one that outlives the session.
    """
    named = os.environ.get("MEMTUNE_TEST_SYSTEMS")
    base = tmp_path_factory.getbasetemp()
    return Path(named or (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "systems")


@pytest.fixture
def environments(environments_home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes sure that the environment of a system or an exporter is installed, and can be used by this test."""
    from filelock import FileLock

    from experiments.systems.exporting.exporter import EXPORTERS
    from experiments.systems.worker.installing import install
    from experiments.systems.worker.isolated import environment_of
    from tracing.systems.registry import SYSTEMS

    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(environments_home))

    def ready(name: str) -> None:
        environment = environment_of((SYSTEMS if name in SYSTEMS.names() else EXPORTERS).open(name))
        assert environment is not None
        environments_home.mkdir(parents=True, exist_ok=True)
        with FileLock(environments_home / f"{environment.name}.tests.lock"):
            install(environment, lambda line: None)

    return ready
