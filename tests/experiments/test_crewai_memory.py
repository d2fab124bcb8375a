"""CrewAI's own memory, recorded by one line on the real package: what goes wrong in it is named."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from memtune_command import MemtuneCommand
from scripted_server import ScriptedServer

from experiments.systems.exporting.exporter import open_exporter

pytestmark = pytest.mark.libraries
PROGRAM = Path(__file__).parents[1] / "programs" / "crewai_memory_program.py"
FACT, QUESTION = "Mara's tortoise Brisket eats only radicchio.", "What does my tortoise eat?"


def model(fault: str) -> Callable[[Mapping[str, Any]], str]:
    """Keeps the fact and answers by it, but for a fault."""

    def reply(body: Mapping[str, Any]) -> str:
        text = "\n".join(str(message["content"]) for message in body["messages"])
        form = (body.get("response_format") or {}).get("json_schema", {}).get("name")
        if form == "ExtractedMemories":
            kept = "radicchio" in text and QUESTION not in text and fault != "left out"
            return json.dumps({"memories": [FACT] if kept else []})
        if form == "QueryAnalysis":
            return json.dumps(
                {"keywords": [], "suggested_scopes": [], "complexity": "simple", "recall_queries": ["food"]}
            )
        if form is not None:
            return json.dumps({"suggested_scope": "/", "categories": [], "importance": 0.5, "extracted_metadata": {}})
        return "radicchio" if FACT in text and fault != "ignored" else "I do not know."

    return reply


@pytest.mark.parametrize(
    ("fault", "blame"),
    [
        ("none", "JudgeError at judge"),
        ("left out", "ExtractionError at extract_memories"),
        ("missed", "RetrievalError at recall"),
        ("ignored", "ResponseError at kickoff"),
    ],
)
def test_what_goes_wrong_in_crewai_s_own_memory_is_named(
    fault: str,
    blame: str,
    scripted_server: ScriptedServer,
    environments: Callable[[str], None],
    memtune: MemtuneCommand,
    tmp_path: Path,
) -> None:
    environments("crewai@1.15")
    scripted_server.script = model(fault)
    python = open_exporter("crewai@1.15").environment.interpreter
    command = [python, "-I", PROGRAM, scripted_server.base_url, tmp_path, fault]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, env={"HOME": str(tmp_path)})
    asked = ("--question", QUESTION, "--right", "radicchio")
    code, out, err = memtune("attribute", str(tmp_path / "mara.jsonl"), *asked)
    assert code == 0, err
    assert f"blame: {blame}" in out
