"""`python -m benchmarks triage`: what a second method adds where survival is unsure."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer

from benchmarks.__main__ import main

pytestmark = pytest.mark.slow


@pytest.fixture
def config(scripted_server: ScriptedServer) -> list[str]:
    return ["--model", "helper", "--base-url", scripted_server.base_url]


def run(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    target = tmp_path / "triage.json"
    few = ["--suite", "injected", "--limit-conversations", "3", "--cases", "12", "--json", str(target)]
    with pytest.raises(SystemExit) as caught:
        main(["triage", *few, *arguments])
    assert caught.value.code == 0
    return dict(json.loads(target.read_text()))


def test_help_is_counted_over_the_confidence_below_which_it_is_asked(
    tmp_path: Path, config: list[str], scripted_server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = {"reason": "so", "error_type": "ExtractionError", "operation": "extract_facts", "confidence": "high"}
    scripted_server.script = lambda body: (
        json.dumps(verdict) if "Conclude now" in str(body["messages"]) else json.dumps({"tool": "conclude"})
    )
    found = run(tmp_path, *config, "--second", "agent", "--below", "0.95", "--system", "fact-memory")
    rows = found["thresholds"]
    assert len(rows) > 2
    assert (rows[0]["below"], rows[-1]["below"]) == (0.0, 0.95)
    alone = rows[0]
    assert (alone["asked"], alone["helped"], alone["hurt"], alone["tokens"]) == (0, 0, 0, 0)
    for before, after in pairwise(rows):
        assert before["asked"] < after["asked"]
        assert before["tokens"] <= after["tokens"]
    for row in rows:
        assert row["eta"] * found["n"] == pytest.approx(alone["eta"] * found["n"] + row["helped"] - row["hurt"])
    assert rows[-1]["asked"] * found["n"] == found["asked"] > 0
    assert rows[-1]["tokens"] > 0
    assert len(found["hurt_cases"]) == rows[-1]["hurt"]
    assert "survival, and agent below a confidence" in capsys.readouterr().out


def test_a_helper_without_an_opinion_changes_nothing(
    tmp_path: Path, config: list[str], scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: "I cannot tell."
    rows = run(tmp_path, *config, "--system", "rag")["thresholds"]
    assert {row["eta"] for row in rows} == {rows[0]["eta"]}
    assert {row["hurt"] for row in rows} == {0}
