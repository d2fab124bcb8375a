"""A Postgres of the tests' own: a new cluster in a temporary folder, on a free port of loopback."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from free_port import free_port

OWNER = "ann"
PASSWORD = "kolibri/07{x}%"
"""Has what an address must quote."""


def installed() -> Path | None:
    """The folder of Postgres' programs, where Debian keeps them or on the path; None without Postgres."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


class PostgresCluster:
    """Runs until `close`; `stop` and `start` take it away in between."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        # Postgres refuses to run as root, and another user cannot reach pytest's folders.
        self._user = unprivileged() if os.getuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="memtune-postgres-"))
        word = self._folder / "password"
        word.write_text(PASSWORD)
        if self._user is not None:
            for path in (self._folder, word):
                os.chown(path, self._user.pw_uid, self._user.pw_gid)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        data = ("-D", str(self._folder / "data"), "-U", OWNER, "--pwfile", str(word), "-A", "scram-sha-256", "-N")
        done = subprocess.run(
            [str(programs / "initdb"), *data, "-E", "UTF8", "--locale", "C"], capture_output=True, **as_user(self._user)
        )
        assert done.returncode == 0, done.stderr.decode()
        self.start()

    def url(self, *, user: str = OWNER, password: str | None = None, database: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql://{user}:{quote(password or PASSWORD, safe='')}@127.0.0.1:{self.port}/{database}"

    @property
    def url_without_password(self) -> str:
        """The address of a database for SQLAlchemy; the password is in an environment variable."""
        return f"postgresql+psycopg://{OWNER}@127.0.0.1:{self.port}/postgres"

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"d{secrets.token_hex(6)}"
        self.run(f"CREATE DATABASE {name}")
        return self.url(database=name)

    def run(self, *statements: str, url: str | None = None) -> list[Any]:
        """Execute statements as the owner of everything; the rows of the last."""
        import psycopg

        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        """Start, and return once it answers."""
        import psycopg

        listen = ("-c", "listen_addresses=127.0.0.1", "-p", str(self.port), "-k", str(self._folder))
        self._process = subprocess.Popen(
            [str(self._programs / "postgres"), "-D", str(self._folder / "data"), *listen],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **as_user(self._user),
        )
        for _ in range(300):
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, "Postgres ended at its start"
                time.sleep(0.1)
        raise AssertionError("Postgres did not answer within 30 s")

    def stop(self) -> None:
        """Stop at once and break all connections, as a crash does."""
        if self._process is not None:
            self._process.send_signal(3)  # SIGQUIT: an immediate shutdown
            self._process.wait(30)
            self._process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def unprivileged() -> pwd.struct_passwd:
    """A user of the system that is not root."""
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def as_user(user: pwd.struct_passwd | None) -> dict[str, Any]:
    """What `subprocess` needs to start a program as another user; None is the current one."""
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}
