"""The MLflow store of a home is whole or absent, whoever makes it, however often and however that ends."""

import multiprocessing
import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from datetime import datetime
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
from run_shapes import FILES

from experiments.mlflow_tracking.outbox import Outbox
from experiments.mlflow_tracking.prompt_versions import NameChampion, RegisterPrompt
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.mlflow_tracking.store import TrackingStore
from experiments.mlflow_tracking.writes import StartRun
from experiments.runs.folder import RunFolder
from tracing.errors import ConfigError

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["experiments.running.run", "optimizer.search.optimizers", "mlflow.tracking", "sqlalchemy"]
)


def use(home: str) -> None:
    """What a run does first in a store."""
    TrackingStore(store_uri(Path(home)), "memtune", f"key{os.getpid()}").start_run("", "title", {}, 0)


def make_in_place(home: str) -> None:
    """What MLflow does by itself."""
    from mlflow.tracking import MlflowClient

    MlflowClient(store_uri(Path(home))).search_experiments()


def write_and_die(path: str) -> None:
    store = sqlite3.connect(path, isolation_level=None)
    store.execute("PRAGMA cache_size = 1")
    store.execute("CREATE TABLE one (x)")
    store.executemany("INSERT INTO one VALUES (?)", [("x" * 3000,)] * 50)
    store.execute("BEGIN")
    store.execute("UPDATE one SET x = x || 'y'")
    os._exit(0)


def using(home: Path, what: object = use) -> ForkServerProcess:
    process = _processes.Process(target=what, args=(str(home),))  # type: ignore[arg-type]
    process.start()
    return process


def runs_in(home: Path) -> int:
    with closing(sqlite3.connect(home / "mlflow.db")) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert store.execute("SELECT count(*) FROM experiments WHERE name = 'memtune'").fetchone() == (1,)
        return int(store.execute("SELECT count(*) FROM runs").fetchone()[0])


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("moments", [2, 20])
def test_a_kill_at_any_moment_of_its_making_leaves_a_home_that_the_next_run_can_use(
    tmp_path: Path, moments: int
) -> None:
    drawn = random.Random(5)  # noqa: S311
    for number in range(moments):
        home = tmp_path / f"home{number}"
        process = using(home)
        process.join(drawn.uniform(0.2, 3.5))
        if process.is_alive():
            assert process.pid is not None
            os.kill(process.pid, drawn.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
            process.join()
        before = runs_in(home) if (home / "mlflow.db").exists() and process.exitcode == 0 else 0
        after = using(home)
        after.join()
        assert after.exitcode == 0
        assert runs_in(home) >= 1 + before
        assert not list(home.glob("*.part"))
        assert not list(home.glob("*unfinished*"))


@pytest.mark.slow
@pytest.mark.parametrize("together", [2, pytest.param(4, marks=pytest.mark.thorough)])
def test_first_runs_at_once_share_one_store(tmp_path: Path, together: int) -> None:
    found = [using(tmp_path) for _ in range(together)]
    for process in found:
        process.join()
    assert [process.exitcode for process in found] == [0] * together
    assert runs_in(tmp_path) == together


@pytest.mark.slow
def test_a_store_that_mlflow_was_killed_at_is_set_aside_and_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "mlflow.db"
    tables: set[str] = set()
    while not any(name.startswith("_alembic_tmp_") for name in tables):
        for file in tmp_path.glob("mlflow.db*"):
            file.unlink()
        process = using(tmp_path, make_in_place)
        while not (path.exists() and b"_alembic_tmp_" in path.read_bytes()) and process.is_alive():
            time.sleep(0.001)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with closing(sqlite3.connect(path)) as store:
            tables = {name for (name,) in store.execute("SELECT name FROM sqlite_master")}
    again = using(tmp_path, make_in_place)
    again.join()
    assert again.exitcode == 1
    use(str(tmp_path))
    assert runs_in(tmp_path) == 1
    (kept,) = tmp_path.glob("mlflow.db.unfinished-*/mlflow.db")
    assert f"it is kept in {kept.parent}" in caplog.text


def register(home: str) -> None:
    """What runs of one system and seed write at the same moments."""
    folder = RunFolder.create(Path(home), system="rag", now=datetime(2026, 1, 2), files=FILES)
    outbox = Outbox(TrackingStore(store_uri(Path(home)), "memtune", folder.id), folder)
    outbox.send(StartRun(title="r", moment=1, tags={}))
    for n in range(6):
        outbox.send(
            RegisterPrompt(name=f"p{n}", text="Answer.", message="baseline", tags={}),
            NameChampion(name=f"p{n}", text="Answer.", better=True),
        )
    outbox.flush(seconds=100)
    assert (outbox.waiting, outbox.refused) == (0, [])


@pytest.mark.slow
def test_runs_that_write_the_same_at_once_write_it_once_and_without_a_refusal(
    tmp_path: Path, mlflow_home: Path
) -> None:
    (tmp_path / "mlflow.db").write_bytes((mlflow_home / "mlflow.db").read_bytes())
    found = [using(tmp_path, register) for _ in range(4)]
    for process in found:
        process.join()
    assert [process.exitcode for process in found] == [0] * 4
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as store:
        versions = store.execute(
            "SELECT name, count(*) FROM model_versions WHERE name LIKE 'p_' GROUP BY name"
        ).fetchall()
    assert versions == [(f"p{n}", 1) for n in range(6)]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("CREATE TABLE _alembic_tmp_runs (x)", "an upgrade of this MLflow store was cut short; put its copy back"),
        ("UPDATE alembic_version SET version_num = 'older'", "mlflow db upgrade sqlite:///"),
        ("DROP TABLE alembic_version", "mlflow db upgrade sqlite:///"),
    ],
)
def test_a_store_with_something_in_it_is_never_replaced_or_migrated(
    tmp_path: Path, mlflow_home: Path, damage: str, said: str
) -> None:
    path = tmp_path / "mlflow.db"
    path.write_bytes((mlflow_home / "mlflow.db").read_bytes())
    with closing(sqlite3.connect(path)) as store:
        store.execute(damage)
        store.commit()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=said):
        use(str(tmp_path))
    assert path.read_bytes() == before
    assert {file.name for file in tmp_path.iterdir()} <= {"mlflow.db", ".mlflow.db.lock"}


def test_what_is_no_store_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("dear diary, " * 100)
    with pytest.raises(ConfigError, match="unusable MLflow store"):
        use(str(tmp_path))
    assert (tmp_path / "mlflow.db").read_text().startswith("dear diary")


@pytest.mark.slow
def test_a_journal_left_by_another_store_is_not_rolled_back_into_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    process = using(path, write_and_die)
    process.join()
    path.unlink()
    assert (tmp_path / "mlflow.db-journal").stat().st_size > 0
    use(str(tmp_path))
    assert runs_in(tmp_path) == 1


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["INSERT INTO alembic_version", "DROP TABLE model_versions", "DROP TABLE jobs"])
def test_ctrl_c_while_a_store_is_made_is_an_interrupt_and_no_trouble_of_the_store(
    tmp_path: Path, statement: str
) -> None:
    """SQLAlchemy lets go of a connection that an interrupt hits, and may then stumble over its own transaction."""
    from sqlalchemy import Engine, event

    def interrupt(cursor: object, said: str, *_: object) -> None:
        if said.strip().startswith(statement):
            raise KeyboardInterrupt

    event.listen(Engine, "do_execute", interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            use(str(tmp_path))
    finally:
        event.remove(Engine, "do_execute", interrupt)
    assert not (tmp_path / "mlflow.db").exists()
    use(str(tmp_path))
    assert runs_in(tmp_path) == 1


def test_the_newest_version_is_the_one_that_mlflow_migrates_to(mlflow_home: Path) -> None:
    import mlflow
    from alembic.script import ScriptDirectory

    from experiments.mlflow_tracking.sqlite_store import _newest_version

    migrations = Path(mlflow.__file__).parent / "store" / "db_migrations"
    assert _newest_version() == ScriptDirectory(str(migrations)).get_current_head()
