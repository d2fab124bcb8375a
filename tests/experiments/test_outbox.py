"""An MLflow server that goes away costs a run seconds and loses nothing: a real server is stopped and started again."""

import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from free_port import free_port
from judged_cases import seen_case, table_of
from run_shapes import SEED, TUNED, loop_result, record, run_folder, score

from attribution.signals import Signal
from experiments.command import main
from experiments.mlflow_tracking import server_ui
from experiments.mlflow_tracking.logged_datasets import SplitData
from experiments.mlflow_tracking.outbox import OUTBOX, Outbox
from experiments.mlflow_tracking.server_ui import HOST
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.mlflow_tracking.store import TrackingStore
from experiments.mlflow_tracking.tracking import MlflowRun
from experiments.mlflow_tracking.writes import SetTag, StartRun
from experiments.runs.folder import LOCK, RunFolder
from experiments.runs.lock import locked
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.gating.verdict import Verdict
from optimizer.tuning.round import RewriteRecord
from tracing.errors import RunError

SIGNALS = [Signal("answer", "answer", 1.0, (0.5, 1.0), 7, 0.3, {"ResponseError": 7}, ("q1",), True)]
DATA = tuple(
    SplitData(name=f"sample {use}", use=use, source="sample", digest=use, conversations=2, questions=20)
    for use in ("training", "validation", "test")
)
REWRITE = RewriteRecord(
    "answer", "bank", "asks for a short answer", TUNED["answer"], 0.5, GateDecision(GateOutcome.ACCEPTED, "+0.5")
)
DEAD = "http://127.0.0.1:9"


class Server:
    """An MLflow server that can be stopped, and started again at the same address."""

    def __init__(self, home: Path) -> None:
        self._port = free_port()
        self._home, self._process = home, None
        self.address = f"http://{HOST}:{self._port}"

    def start(self) -> None:
        if self._process is None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(server_ui, "READY_SECONDS", 600)
                self._process, _ = server_ui.start_ui(self._home, port=self._port)  # type: ignore[assignment]

    def stop(self) -> None:
        if self._process is not None:
            server_ui.stop_ui(self._process)
            self._process = None


@pytest.fixture(scope="module")
def server(mlflow_home: Path) -> Iterator[Server]:
    server = Server(mlflow_home)
    yield server
    server.stop()


def start(folder: RunFolder, uri: str, experiment: str, **given: Any) -> MlflowRun:
    return MlflowRun.start(
        uri=uri,
        experiment=experiment,
        home=folder.path,
        folder=folder,
        system="rag",
        seed=SEED,
        params={"a": 1},
        datasets=DATA,
        **given,
    )


def rest_of_a_run(run: MlflowRun) -> None:
    run.baseline("validation", score(0.45))
    run.blame(1, SIGNALS)
    run.round(replace(record(1, accepted=True, champion=TUNED), rewrites=(REWRITE,)))
    run.verdict(Verdict("improved", 0.1, (0.02, 0.18), 0.031, 0.64))
    seen = [seen_case(1, "unknown", lost_at="answer")]
    run.cases(seen, [seen_case(1, "Oslo")], TUNED, metric="short_contains", method="survival", most=5)
    run.finish(loop_result())


@pytest.mark.slow
def test_a_run_without_its_server_is_whole_after_sending(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_folder(tmp_path)
    begun = time.monotonic()
    run = start(folder, server.address, "late")
    rest_of_a_run(run)
    assert time.monotonic() - begun < 60
    assert run.link is None
    assert run.problems[0].endswith(f"`memtune mlflow send {folder.id}` sends them")

    def send() -> tuple[Any, str]:
        with pytest.raises(SystemExit) as caught:
            main(["mlflow", "send", str(folder.path)])
        said = capsys.readouterr()
        return caught.value.code, said.out + said.err

    code, said = send()
    assert code == 2
    assert "writes still wait" in said
    server.start()
    code, said = send()
    assert code == 0, said
    assert not (folder.path / OUTBOX).exists()
    link = folder.summary().mlflow
    assert link is not None
    assert link.tracking_uri == server.address
    check_whole(link.experiment_id, link.run_id, server, folder)
    code, said = send()
    assert code == 2
    assert "nothing to send" in said


@pytest.mark.slow
def test_an_outage_within_a_run_loses_nothing_and_a_second_sending_doubles_nothing(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.start()
    folder = run_folder(tmp_path)
    # Its first replies take a while.
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "60")
    run = start(folder, server.address, "outage")
    assert run.link is not None
    server.stop()
    rest_of_a_run(run)
    kept = (folder.path / OUTBOX).read_text()
    server.start()
    for _ in range(2):
        (folder.path / OUTBOX).write_text(kept)
        box = Outbox.load(folder)
        box.flush(seconds=600)
        assert (box.waiting, box.refused) == (0, [])
    assert run.link is not None
    check_whole(run.link.experiment_id, run.link.run_id, server, folder)


def check_whole(experiment: str, run: str, server: Server, folder: RunFolder) -> None:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(server.address)
    parent = client.get_run(run)
    assert (parent.data.tags["memtune.run"], parent.info.status) == (folder.id, "FINISHED")
    assert parent.info.run_name.startswith("rag 0.42→0.52 · ")
    assert parent.data.tags["verdict"] == "improved"
    assert [(each.step, each.value) for each in client.get_metric_history(run, "answers/validation_score")] == [
        (0, 0.45),
        (1, 0.45),
        (1, 0.51),
    ]
    runs = client.search_runs([experiment])
    parts = [each.data.tags.get("memtune.part", "") for each in runs]
    assert sorted(parts) == ["", "baseline", "champion", "round 1"]
    assert {each.info.status for each in runs} == {"FINISHED"}
    traces = client.search_traces(locations=[experiment])
    assert sorted(each.info.tags["mlflow.traceName"] for each in traces) == ["baseline conv1 q1", "champion conv1 q1"]
    assert sorted(len(each.info.assessments) for each in traces) == [2, 3]
    versions = client.search_prompt_versions("memtune.rag.answer")
    texts = [each.template for each in versions]
    assert len(set(texts)) == len(texts)
    store = TrackingStore(server.address, client.get_experiment(experiment).name, "")
    assert table_of(store, run, "rewrites.json")["text"].tolist() == [TUNED["answer"]]
    assert len(parent.inputs.dataset_inputs) == 3
    assert parent.data.tags["mlflow.note.content"].startswith("## Improved")
    assert table_of(store, run, "cases/test.json").shape[0] == 1


def test_a_server_that_accepts_and_never_answers_holds_a_run_up_for_seconds_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with socket.socket() as deaf:
        deaf.bind((HOST, 0))
        deaf.listen(64)
        folder = run_folder(tmp_path)
        import mlflow.tracking  # noqa: F401 (its import is not the server's time)

        begun = time.monotonic()
        run = start(folder, f"http://{HOST}:{deaf.getsockname()[1]}", "deaf")
        rest_of_a_run(run)
    # The start and the end ask once each.
    assert time.monotonic() - begun < 20
    assert "writes wait" in run.problems[0]


def test_writes_wait_without_the_servers_password(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    start(folder, DEAD.replace("//", "//me:hunter2@"), "secret").finish(loop_result())
    text = (folder.path / OUTBOX).read_text()
    assert "hunter2" not in text
    assert json.loads(text.splitlines()[0])["uri"] == DEAD


def test_a_file_whose_writer_was_killed_gives_its_whole_lines(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    start(folder, DEAD, "killed")
    path = folder.path / OUTBOX
    whole = Outbox.load(folder).waiting
    path.write_bytes(path.read_bytes()[:-5])
    cut = Outbox.load(folder)
    assert cut.waiting == whole - 1
    cut.send(SetTag(key="verdict", value="inconclusive"))
    assert Outbox.load(folder).waiting == whole
    path.write_text("no header\n")
    with pytest.raises(RunError, match="cannot be read"):
        Outbox.load(folder)


def test_a_text_that_waits_may_hold_whatever_else_ends_a_line(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    box = Outbox(TrackingStore(DEAD, "e", "k"), folder)
    texts = ["a\u2028b", "a\x85b", "a\x0bb\x1cc\rd\ne", "caf\u00e9"]
    for text in texts:
        box.send(SetTag(key="k", value=text))
    path = folder.path / OUTBOX
    data = path.read_bytes()
    for end in range(len(data), len(data) - 12, -1):
        path.write_bytes(data[:end])
        assert Outbox.load(folder).waiting == len(texts) - (end < len(data) - 1)


@pytest.mark.parametrize("before", [0, 1])
def test_writes_that_a_full_disk_cut_short_are_kept_once_where_there_is_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    def full(descriptor: int) -> None:
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - 7)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = run_folder(tmp_path)
    box = Outbox(TrackingStore(DEAD, "e", "k"), folder)
    for n in range(before):
        box.send(SetTag(key="k", value=f"before {n}"))
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        for n in range(2):
            with pytest.raises(RunError, match="No space left on device"):
                box.send(SetTag(key="k", value=f"cut {n}"))
    box.send(SetTag(key="k", value="after"))
    assert Outbox.load(folder).waiting == box.waiting == before + 3


def test_what_has_no_room_before_it_is_sent_is_sent_all_the_same(
    mlflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = run_folder(tmp_path)
    box = Outbox(TrackingStore(store_uri(mlflow_home), "no room", "k"), folder)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        box.queue([StartRun(title="r", moment=1, tags={}), SetTag(key="k", value="v")])
        assert box.waiting == 2
        box.flush(seconds=600)
    assert (box.waiting, box.refused) == (0, [])
    assert box.store.client.get_run(box.store.run_id()).data.tags["k"] == "v"


def test_sending_while_another_process_works_on_the_run_sends_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_folder(tmp_path)
    start(folder, DEAD, "twice")
    kept = (folder.path / OUTBOX).read_bytes()
    with locked(folder.path / LOCK), pytest.raises(SystemExit) as caught:
        main(["mlflow", "send", str(folder.path)])
    assert caught.value.code == 2
    assert f"process {os.getpid()} is working on this run" in capsys.readouterr().err
    assert (folder.path / OUTBOX).read_bytes() == kept


def test_a_damaged_line_that_waits_costs_itself_and_is_told(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    rest_of_a_run(start(folder, DEAD, "damaged"))
    path = folder.path / OUTBOX
    lines = path.read_bytes().splitlines(keepends=True)
    whole = Outbox.load(folder).waiting
    path.write_bytes(b"".join([*lines[:3], b'{"kind": ["run"]}\n', b"\xff\n", *lines[5:]]))
    box = Outbox.load(folder)
    assert box.waiting == whole - 2
    assert box.refused == [f"{path}:{number}: is damaged, and was left out" for number in (4, 5)]
    assert Outbox.load(folder).refused == []
    for damaged in (b"[" * 5000, b'{"uri": ["x"], "experiment": "e", "key": "k"}', b"\xff", b"{}"):
        path.write_bytes(b"".join([damaged + b"\n", *lines[1:]]))
        with pytest.raises(RunError, match=rf"{path}: cannot be read \(.*delete it"):
            Outbox.load(folder)
