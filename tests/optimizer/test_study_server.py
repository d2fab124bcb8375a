"""Studies on a database that runs share: told apart by run, refused at once where it cannot be used, no password."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import optuna
import pytest
from postgres_cluster import PASSWORD
from sqlalchemy import create_engine, text
from test_study import CHOICES, REFERENCE, TALKS, outcome

from optimizer.racing.joint_study import JointStudy
from optimizer.racing.study_storage import PASSWORD_VARIABLE, Studies, StudyServer, storage_url
from tracing.errors import ConfigError, RunError
from tracing.recording.credentials import without_password

QUOTED = quote(PASSWORD, safe="")
TRIED = {"prompt answer": "1: bank", "setting top_k": 4}


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'studies.db'}"
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    return str(request.getfixturevalue("postgres_url"))


def search(studies: Studies) -> JointStudy:
    """A study of a run, with one trial that gained."""
    made = JointStudy("round 1", studies, CHOICES, REFERENCE)
    made.report(TRIED, [outcome(TALKS[0], 1.0), outcome(TALKS[1], 0.5)])
    made.close(TRIED, "accepted")
    made.end()
    return made


def trials(server: StudyServer) -> dict[str, list[float | None]]:
    storage = server.open()
    names = optuna.get_all_study_names(storage)
    return {name: [each.value for each in optuna.load_study(study_name=name, storage=storage).trials] for name in names}


@pytest.mark.slow
def test_runs_share_a_database_and_each_makes_its_own_studies_again(url: str) -> None:
    before = set(trials(StudyServer(url)))
    search(StudyServer(url).studies("run-1"))
    search(StudyServer(url).studies("run-12"))
    search(StudyServer(url).studies("run-1"))
    found = trials(StudyServer(url))
    assert {name: found[name] for name in found.keys() - before} == {
        "run-1 round 1": [0.0, 0.25],
        "run-12 round 1": [0.0, 0.25],
    }


def test_runs_that_start_at_once_on_a_new_database_all_find_its_tables(postgres_url: str) -> None:
    admin = create_engine(postgres_url, connect_args={"password": PASSWORD}, isolation_level="AUTOCOMMIT")
    with admin.connect() as connected:
        connected.execute(text("create database fresh"))
    admin.dispose()
    fresh = postgres_url.replace("/postgres", "/fresh")
    with ThreadPoolExecutor(4) as pool:
        servers = [StudyServer(fresh, {PASSWORD_VARIABLE: PASSWORD}) for _ in range(4)]
        assert len(list(pool.map(StudyServer.open, servers))) == 4


@pytest.mark.parametrize(
    ("given", "environment", "said"),
    [
        ("ann", {}, "password"),
        ("ann", {PASSWORD_VARIABLE: "wrong-" + PASSWORD}, "password authentication failed"),
        (f"ann:wrong{QUOTED}", {}, "password authentication failed"),
        (f"nobody:{QUOTED}", {}, "password authentication failed"),
    ],
)
def test_a_server_that_refuses_the_user_is_told_in_a_line_without_the_password(
    postgres_url: str, given: str, environment: dict[str, str], said: str
) -> None:
    server = StudyServer(postgres_url.replace("ann@", f"{given}@"), environment)
    with pytest.raises(ConfigError, match=r"^search\.storage: ") as refused:
        server.check()
    told = str(refused.value)
    assert said in told
    assert PASSWORD_VARIABLE in told
    assert "\n" not in told
    assert "kolibri" not in told


def test_a_password_in_the_url_reaches_the_server_and_nothing_that_is_shown(postgres_url: str) -> None:
    server = StudyServer(postgres_url.replace("ann@", f"ann:{QUOTED}@"), {})
    server.check()
    assert server.shown == postgres_url
    storage = server.open()
    assert "kolibri" not in f"{server.shown} {storage.url} {storage.engine.url}"


UNREACHABLE = [
    ("postgresql+psycopg://ann@127.0.0.1:9/x", "refused"),
    ("postgresql+nodriver://ann@127.0.0.1/x", "no URL of a database that SQLAlchemy knows"),
    ("redis://127.0.0.1/0", "no URL of a database that SQLAlchemy knows"),
    ("mysql+mysqlconnector://ann@127.0.0.1/x", "the driver that the URL names is not installed"),
    ("sqlite:////no/such/folder/studies.db", "/no/such/folder is not a folder that can be written to"),
    ("sqlite://", "names no file"),
]


@pytest.mark.parametrize(("given", "said"), UNREACHABLE)
def test_a_database_that_cannot_be_used_is_told_in_a_line_with_the_remedy(given: str, said: str) -> None:
    if "psycopg:" in given:
        pytest.importorskip("psycopg")
    with pytest.raises(ConfigError, match=r"^search\.storage: .*; .*, or leave it out$") as refused:
        StudyServer(given).check()
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_check_makes_no_file(tmp_path: Path) -> None:
    StudyServer(f"sqlite:///{tmp_path / 'studies.db'}").check()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "studies.db").write_text("what is this? " * 100)
    with pytest.raises(ConfigError, match="file is not a database"):
        StudyServer(f"sqlite:///{tmp_path / 'studies.db'}").open()


@pytest.mark.slow
def test_a_server_that_goes_away_ends_the_run_with_its_place_and_remedy(tmp_path: Path) -> None:
    file = tmp_path / "studies.db"
    studies = StudyServer(f"sqlite:///{file}").studies("run")
    made = JointStudy("round 1", studies, CHOICES, REFERENCE)
    file.write_bytes(b"")
    with pytest.raises(RunError, match=r"studies\.db: the joint choice cannot be recorded \(no such table.*--resume"):
        made.report(TRIED, [outcome(TALKS[0], 1.0)])
    with pytest.raises(RunError, match="--resume"):
        JointStudy("round 2", studies, CHOICES, REFERENCE)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("my.db", "is not a URL"),
        ("postgresql://ann:pa@ss@host/x", "more than one @"),
        ("postgresql://ann@host/x?password=kolibri07", "a password among its parameters"),
    ],
)
def test_a_url_in_which_a_password_could_be_missed_is_refused_without_showing_it(given: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        storage_url(given)
    assert given not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("postgresql+psycopg://ann:pa/s?s:w%40rd#x@host:5432/x", "postgresql+psycopg://ann@host:5432/x"),
        ("mysql://:word@host/x", "mysql://@host/x"),
        ("postgresql://ann@host:5432/x?a=b", "postgresql://ann@host:5432/x?a=b"),
        ("sqlite:////home/a:b@c/studies.db", "sqlite:////home/a:b@c/studies.db"),
        ("no URL: of anything", "no URL: of anything"),
    ],
)
def test_only_the_password_is_taken_out_of_a_url(given: str, left: str) -> None:
    assert without_password(given) == left


@pytest.mark.slow
def test_the_settings_load_no_database_library() -> None:
    code = "import sys, experiments.runs.config; sys.exit('sqlalchemy' in sys.modules or 'optuna' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
