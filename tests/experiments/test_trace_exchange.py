"""`memtune trace import` and `export`, and a trace in a real MLflow store."""

from __future__ import annotations

import json
from pathlib import Path

import mlflow
import pytest
from graph_exchange import recorded, unusual

from experiments.command import main
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.mlflow_tracking.store import TrackingStore
from tracing import ExecutionGraph, load_trace, records_of, save_trace
from tracing.interchange import FORMATS, mlflow_traces


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["trace", *map(str, arguments)])
    said = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, said.out, said.err


@pytest.mark.parametrize("name", FORMATS)
def test_a_trace_exported_and_imported_is_the_same_trace(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there, away, back = (tmp_path / name for name in ("there.jsonl", "away.json", "back.jsonl"))
    save_trace(recorded(), there)
    code, out, err = run(capsys, "export", there, "--to", name, "--out", away)
    assert (code, err) == (0, "")
    assert out == f"10 variables, 6 operations and 2 sessions exported to {away}\n"
    assert run(capsys, "import", away, "--from", name, "--out", back)[0] == 0
    assert back.read_bytes() == there.read_bytes()
    assert sorted(one.name for one in tmp_path.iterdir() if one.is_file()) == ["away.json", "back.jsonl", "there.jsonl"]


def test_an_output_that_exists_is_replaced_only_when_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_trace(recorded(), tmp_path / "t.jsonl")
    out = tmp_path / "out.json"
    out.write_text("mine")
    arguments = ("export", tmp_path / "t.jsonl", "--to", "otlp", "--out")
    code, _, err = run(capsys, *arguments, out)
    assert (code, err) == (2, f"memtune: {out}: exists already; add --force to replace it, or give another path\n")
    assert out.read_text() == "mine"
    assert run(capsys, *arguments, out, "--force")[0] == 0
    assert "resourceSpans" in out.read_text()
    code, _, err = run(capsys, *arguments, tmp_path, "--force")
    assert code == 2
    assert "is a folder" in err


def test_an_unusable_file_is_one_line_and_leaves_what_was_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, out = tmp_path / "bad.json", tmp_path / "out.jsonl"
    out.write_text("mine")
    bad.write_text("[" * 100_000)
    for name in FORMATS:
        code, said, err = run(capsys, "import", bad, "--from", name, "--out", out, "--force")
        assert (code, said) == (2, "")
        assert err.startswith(f"memtune: {bad}: ")
        assert err.count("\n") == 1
    assert out.read_text() == "mine"
    code, _, err = run(capsys, "export", bad, "--to", "otlp", "--out", tmp_path / "x")
    assert code == 2
    assert "is not a trace" in err


def test_what_was_repaired_is_told_in_few_short_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"name": f"n{number}", "value": "1", "session_id": "lost"} for number in range(500)]
    ends = {"source_full_node_id": "n1@1", "target_full_node_id": "n2@1"}
    edges = [{"op_id": name, **ends} for name in ("a" * 300, "b", *(f"lost {number}" for number in range(100)))]
    document = {"data": {"nodes": rows, "edges": edges, "operations": [{}], "sessions": [None]}}
    (tmp_path / "f.json").write_text(json.dumps(document))
    code, out, err = run(capsys, "import", tmp_path / "f.json", "--from", "smartcomment", "--out", tmp_path / "t.jsonl")
    assert code == 0
    assert out.startswith("500 variables, 103 operations and 0 sessions")
    assert "and 497 more: names no session" in err
    assert err.count("\n") <= 11
    assert all(line.startswith("warning: ") and len(line) <= 210 for line in err.splitlines())


def test_a_trace_cut_short_is_exported_as_far_as_it_goes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_trace(recorded(), tmp_path / "t.jsonl")
    (tmp_path / "t.jsonl").write_bytes((tmp_path / "t.jsonl").read_bytes()[:-40])
    code, out, err = run(capsys, "export", tmp_path / "t.jsonl", "--to", "smartcomment", "--out", tmp_path / "f.json")
    assert (code, out[:27]) == (0, "10 variables, 5 operations ")
    assert err.startswith("warning: ")


@pytest.mark.slow
@pytest.mark.parametrize("graph", [recorded(), unusual()], ids=["recorded", "unusual"])
def test_a_store_of_mlflow_gives_a_logged_trace_back(graph: ExecutionGraph, mlflow_home: Path, tmp_path: Path) -> None:
    store = TrackingStore(store_uri(mlflow_home), "exchange", "k")
    with store.as_default():
        logged = mlflow_traces.log_trace(graph, store.client, store.experiment_id, tags={"kind": "test"})
        mlflow.flush_trace_async_logging()
        stored = store.client.get_trace(logged)
    assert stored.info.tags["kind"] == "test"
    (tmp_path / "stored.json").write_text(stored.to_json())
    imported = mlflow_traces.read(tmp_path / "stored.json")
    assert imported.warnings == ()
    assert records_of(imported.graph) == records_of(graph)
    (tmp_path / "back.jsonl").unlink(missing_ok=True)
    save_trace(imported.graph, tmp_path / "back.jsonl")
    assert load_trace(tmp_path / "back.jsonl").problem is None
