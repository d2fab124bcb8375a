"""A server that others wrote: llama.cpp's own, over HTTP, with what it takes, tells and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from memtune_command import MemtuneCommand

from tracing.llm.serving.weights import locate

pytestmark = [pytest.mark.slow, pytest.mark.embedded, pytest.mark.usefixtures("embedded_weights")]

SERVER = """
import sys
import xllamacpp

settings = xllamacpp.CommonParams()
settings.model.path, settings.n_ctx = sys.argv[1], int(sys.argv[2])
settings.hostnames, settings.port, settings.n_parallel, settings.cpuparams.n_threads = ["127.0.0.1"], 0, 1, 1
server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
sys.stdin.read()
"""
RAG = "system: rag\nlimits: {conversations: 3, questions: 1}\nrounds: 0\nconcurrency: 1\n"


@pytest.fixture
def serve() -> Iterator[Callable[[int], str]]:
    """Starts the server with a context of this many tokens: its base_url."""
    begun: list[subprocess.Popen[str]] = []

    def serving(context: int) -> str:
        command = [sys.executable, "-c", SERVER, str(locate("smollm2-135m")), str(context)]
        pipe = subprocess.PIPE
        begun.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True))
        assert begun[-1].stdout is not None
        return f"{begun[-1].stdout.readline().strip()}/v1"

    yield serving
    for process in begun:
        process.kill()
        process.communicate()


def configured(base_url: str) -> str:
    return f"{RAG}models: {{task: {{model: small, base_url: '{base_url}', retries: 0}}}}\n"


def test_a_run_on_it_learns_what_it_takes_and_counts_its_tokens(
    memtune: MemtuneCommand, serve: Callable[[int], str]
) -> None:
    Path("run.yaml").write_text(configured(serve(4096)))
    takes = "takes max_tokens, json_schema, temperature, seed; tells usage"
    code, out, err = memtune("doctor", "run.yaml", "--home", "home")
    assert (code, takes in out) == (0, True), (out, err)
    code, out, err = memtune("run", "run.yaml", "--home", "home", "--out", "run")
    assert code == 0, err
    assert "short_contains" in out
    summary = json.loads(Path("run/summary.json").read_text())
    assert summary["endpoints"]["task"]["usage"] is True
    assert (summary["calls"]["estimated"], summary["calls"]["cut_prompts"]) == (0, [])
    code, out, err = memtune("eval", "run.yaml", "--prompts", "baseline", "--home", "home")
    assert code == 0, err
    assert "short_contains" in out


@pytest.mark.parametrize("command", [("run", "--out", "run"), ("eval", "--prompts", "baseline")])
def test_a_context_that_is_too_short_is_named_and_scores_nothing(
    memtune: MemtuneCommand, serve: Callable[[int], str], command: tuple[str, ...]
) -> None:
    Path("run.yaml").write_text(configured(serve(256)))
    code, out, err = memtune(command[0], "run.yaml", *command[1:], "--home", "home")
    assert code == 2
    assert "exceeds the available context size (256 tokens)" in err.splitlines()[-1]
    assert "short_contains" not in out
