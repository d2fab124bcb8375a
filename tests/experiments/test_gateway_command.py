"""`memtune gateway` serves a configuration's models to another program until it is interrupted."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import openai
from scripted_server import ScriptedServer

from tracing import load_trace

ROOT = Path(__file__).resolve().parents[2]


def test_another_programs_calls_are_served_from_the_cache_and_recorded(
    scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    file = tmp_path / "calls.jsonl"
    options = ["--model", "m", "--base-url", scripted_server.base_url, "--home", tmp_path / "home", "--trace", file]
    command = [sys.executable, "-m", "experiments.command", "gateway", *map(str, options)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        named = re.match(r"export OPENAI_BASE_URL=(\S+) OPENAI_API_KEY=(\S+)$", process.stdout.readline())
        assert named is not None
        with openai.OpenAI(base_url=named[1], api_key=named[2]) as client:
            for _ in range(2):
                said = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
                assert said.choices[0].message.content == "ok"
    finally:
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=120)
    assert "1 calls made, 1 from the cache" in told
    assert scripted_server.count == 1
    recorded = [operation.name for operation in load_trace(file).graph.operations.values()]
    assert recorded == ["chat", "chat"]
    assert named[2] not in file.read_text()
