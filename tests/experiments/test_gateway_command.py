"""`memtune gateway` serves a configuration's models to another program until it is interrupted."""

import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import openai
from agent_forms import openai_messages
from agent_story import KITE, Call, requests, turns_of
from scripted_server import CHECK, Reply, ScriptedServer

from attribution.attributor import survival_in
from experiments.attributing.source import Complaint, Source
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


def test_the_tools_of_an_agent_behind_it_are_attributed(scripted_server: ScriptedServer, tmp_path: Path) -> None:
    """Its recording has calls to models alone: what tools were given and gave is in their messages."""
    turns = turns_of(KITE, "cut")
    calls = [*requests(turns)]
    replies = iter(calls)

    def answer(body: dict[str, Any]) -> Reply | str:
        if body["messages"] == CHECK:
            return "ok"
        gives = next(replies)[3]
        return gives if isinstance(gives, str) else Reply(change=partial(with_call, gives))

    def with_call(call: Call, whole: dict[str, Any]) -> dict[str, Any]:
        (message,) = openai_messages([("call", call)])
        whole["choices"][0]["message"] = message
        return whole

    scripted_server.script = answer
    file = tmp_path / "calls.jsonl"
    options = ["--model", "m", "--base-url", scripted_server.base_url, "--home", tmp_path / "home", "--trace", file]
    command = [sys.executable, "-m", "experiments.command", "gateway", *map(str, options)]
    tools: Any = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in KITE.tools]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        named = re.match(r"export OPENAI_BASE_URL=(\S+) OPENAI_API_KEY=(\S+)$", process.stdout.readline())
        assert named is not None
        with openai.OpenAI(base_url=named[1], api_key=named[2]) as client:
            for _, _, read, _ in calls:
                messages: Any = openai_messages(read)
                client.chat.completions.create(model="m", messages=messages, tools=tools)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    content = Source(file, complaint=Complaint(KITE.question, "", (KITE.answer,))).read()
    (case,) = content.cases
    main = survival_in(content.of(case)).attribute(case).main
    assert main is not None
    assert (main.error_type, main.operation) == ("UpdateError", "store_note")
