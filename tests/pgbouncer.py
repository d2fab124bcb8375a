"""A PgBouncer of the tests' own, in front of the tests' Postgres, on a free port of loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from free_port import free_port
from postgres_cluster import OWNER, PASSWORD, PostgresCluster, as_user, unprivileged


def installed() -> str | None:
    """The program, where Debian keeps it or on the path; None without PgBouncer."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")


class PgBouncer:
    """Shares few connections to Postgres among all its clients, until `close`."""

    def __init__(self, program: str, cluster: PostgresCluster, *, mode: str = "transaction", size: int = 1) -> None:
        # It refuses to run as root, as Postgres does.
        self._user = unprivileged() if os.getuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="memtune-pgbouncer-"))
        self.port = free_port()
        settings = self._folder / "pgbouncer.ini"
        users = self._folder / "users.txt"
        users.write_text(f'"{OWNER}" "{PASSWORD}"\n"tenant" "tenant"\n', encoding="utf-8")
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={cluster.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {self.port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {users}\n"
            f"pool_mode = {mode}\ndefault_pool_size = {size}\nmax_client_conn = 200\n",
            encoding="utf-8",
        )
        if self._user is not None:
            for path in (self._folder, settings, users):
                os.chown(path, self._user.pw_uid, self._user.pw_gid)
        self._process = subprocess.Popen(
            [program, "--quiet", str(settings)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **as_user(self._user),
        )
        import psycopg

        for _ in range(300):
            try:
                psycopg.connect(self.url(cluster.url()), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, "PgBouncer ended at its start"
                time.sleep(0.1)
        raise AssertionError("PgBouncer did not answer within 30 s")

    def url(self, direct: str) -> str:
        """The address through the pooler of a database that is at `direct` without it."""
        return direct.replace(f":{urlsplit(direct).port}/", f":{self.port}/")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        shutil.rmtree(self._folder, ignore_errors=True)
