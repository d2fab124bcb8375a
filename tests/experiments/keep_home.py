"""Make a small home with some commit's code, as data for `test_kept_homes.py`: a finished run, and one that was killed.

    PYTHONPATH=.:tests:tests/experiments python tests/experiments/keep_home.py CHECKOUT ARCHIVE

ARCHIVE is `tests/experiments/homes/NAME.tar.gz`, and CHECKOUT a folder with the code of that commit; the scripted model
is that of this one. Pages, studies, built memories and MLflow's store with its path are left out.
"""

import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from gold_runs import GoldModel
from scripted_server import ScriptedServer

LEFT_OUT = {"mlflow.db", ".mlflow.db.lock", "artifacts", "memories", "study.log", "lock"}
SETTINGS = """
limits: {{conversations: 6, sessions: 1, questions: 2}}
rounds: {rounds}
proposals: 3
models:
  task: {{model: m, base_url: "{url}", retries: 0}}
  embedding: {{model: e, base_url: "{url}", retries: 0}}
"""


def main(checkout: Path, archive: Path) -> None:
    server = ScriptedServer(GoldModel(delay=0.03))
    with tempfile.TemporaryDirectory() as scratch:
        home, settings = Path(scratch) / "home", Path(scratch) / "run.yaml"
        environment = {**os.environ, "PYTHONPATH": str(checkout), "MEMTUNE_HOME": str(home)}

        def started(rounds: int) -> subprocess.Popen[bytes]:
            settings.write_text(SETTINGS.format(rounds=rounds, url=server.base_url))
            command = [sys.executable, "-m", "memtune", "run", str(settings), "--home", str(home)]
            return subprocess.Popen(command, cwd=checkout, env=environment)

        assert started(1).wait() == 0
        interrupted = started(3)
        while interrupted.poll() is None and len(list(home.glob("runs/*/summary.json"))) < 2:
            time.sleep(0.1)
        interrupted.send_signal(signal.SIGKILL)
        interrupted.wait()
        server.close()
        for summary in home.glob("runs/*/summary.json"):
            summary.write_text(re.sub(r"sqlite:///[^\"]*", "sqlite:////gone/mlflow.db", summary.read_text()))
        archive.parent.mkdir(exist_ok=True)
        with tarfile.open(archive, "w:gz") as file:
            file.add(home, "home", filter=_kept)


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    name = Path(member.name).name
    member.uname = member.gname = ""
    member.uid = member.gid = 0
    return None if name in LEFT_OUT or name.endswith((".html", "-shm", "-wal")) else member


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
