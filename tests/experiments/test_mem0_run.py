"""Mem0 through the whole loop: `memtune run`, then its prompts in the form the real library takes."""

import json
from pathlib import Path
from typing import Any

import pytest
from mem0_model import Mem0Model
from scripted_server import ScriptedServer

from experiments.command import main
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.runs.folder import RunFolder

KEY = "sk-proj-4Kq8Zt1Lm7Wv2Xc9"
OWN = {
    "llm": {"provider": "openai", "config": {"model": "gpt-4.1-mini", "api_key": KEY, "temperature": 0.4}},
    "vector_store": {"provider": "pgvector", "config": {"user": "ann", "password": KEY, "host": "db"}},
    "custom_fact_extraction_prompt": 'List all facts as JSON: {"facts": ["..."]}',
}


@pytest.mark.slow
@pytest.mark.parametrize(("own_config", "settings"), [({}, ""), (OWN, "system_settings: {config: mine.json}")])
def test_mem0_is_tuned_and_its_prompts_are_proven_in_its_own_requests(
    mlflow_home: Path,
    tmp_path: Path,
    own_config: dict[str, Any],
    settings: str,
    scripted_server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"
    Path("mine.json").write_text(json.dumps(own_config))
    Path("mem0.yaml").write_text(
        f"system: mem0\n{settings}\nlimits: {{conversations: 3, sessions: 1, questions: 2}}\nrounds: 1\nproposals: 1\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
        f"tracking: {{uri: '{store_uri(mlflow_home)}', experiment: {tmp_path.name}}}\n"
    )
    # Nothing is extracted, so that the extraction prompt is what the loop rewrites.
    scripted_server.script = Mem0Model(extract=lambda lines: [])

    def memtune(*arguments: str) -> str:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        said = capsys.readouterr()
        assert caught.value.code == 0, said.err
        return said.out + said.err

    memtune("run", "mem0.yaml", "--out", "run")
    found = RunFolder(Path("run")).summary()
    assert found.stopped == "all rounds done"
    assert found.rounds[1].edited == ("extract",)
    said = memtune("export", "run", "--to", "mem0@1.0", "--out", "tuned", "--into", "mine.json", "--verify")
    assert "verified: custom_fact_extraction_prompt" in said
    assert "verified: custom_update_memory_prompt" in said
    assert "warning: These are the baseline prompts" in said
    assert set(json.loads(Path("tuned/mem0.json").read_text())) == {
        "custom_fact_extraction_prompt",
        "custom_update_memory_prompt",
    }
    report = Path("run/report.html").read_text()
    assert ("in place of pgvector" in report) == ("in place of pgvector" in said) == bool(own_config)
    if own_config:
        baseline = Path("run/prompts/baseline/extract.txt").read_text()
        assert baseline == OWN["custom_fact_extraction_prompt"].replace("{", "{{").replace("}", "}}")
    written = json.loads(Path("tuned/mine.json").read_text())
    assert written == (own_config or json.loads(Path("tuned/mem0.json").read_text()))
    kept = [path for folder in (Path("run"), mlflow_home) for path in folder.rglob("*") if path.is_file()]
    assert len(kept) > 10
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


def test_a_missing_library_is_told_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("experiments.systems.libraries.installed_version", lambda package: None)
    with pytest.raises(SystemExit) as caught:
        main(["run", "--system", "mem0", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--out", "run"])
    assert caught.value.code == 2
    assert "pip install 'memtune[mem0]'" in capsys.readouterr().err
    assert not Path("run").exists()
