"""No command takes data for markup, and none lets data steer the terminal: every command is run over hostile data."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from hostile_world import MARKUP, PAYLOADS, TEXT, shown, write_world
from scripted_server import ScriptedServer, prompt_of

from benchmarks.__main__ import benchmarks
from benchmarks.__main__ import main as main_of_benchmarks
from benchmarks.gold_answers.suite import conversations_to_spoil
from experiments.annotating.labels import Assessment, CaseId, LabelStore
from experiments.attributing.source import Source
from experiments.command import cli, main
from experiments.mlflow_tracking.sqlite_store import store_uri
from tracing.llm.serving.weights import CATALOGUE, stored_path

pytestmark = pytest.mark.slow

OWN = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AKG]|\r")
"""What rich writes to a terminal: colours, and lines that are drawn again."""

ROOT = Path(__file__).resolve().parents[2]
ARGUMENT = TEXT.replace("\x00", "")
"""What an operating system passes on as an argument."""

Said = tuple[int, str, str]
Arguments = tuple[str, ...]


class World:
    """A folder of hostile data with a finished run, and what the command that made the run said."""

    def __init__(self, folder: Path, server: ScriptedServer, tracking: str) -> None:
        self.folder, self.server = folder, server
        write_world(folder, server, tracking)
        server.script = self._reply
        weights = stored_path(CATALOGUE["smollm2-135m"])
        weights.parent.mkdir(parents=True)
        weights.touch()
        self.said = run("run", "config.yaml")
        assert self.said[0] == 0, self.said
        (made,) = (folder / "home" / "runs").iterdir()
        shutil.copytree(made, folder / f"copy {ARGUMENT.replace('/', ' ')}")
        (folder / "home" / "runs" / f"0 {ARGUMENT.replace('/', ' ')}").mkdir()
        store = LabelStore(folder / "labels.sqlite")
        case = CaseId(Source(folder / "annotated.json").digest, "case")
        store.add(f"ann {TEXT}", case, Assessment("labelled", "UpdateError"), request="1")
        copied = folder / f"copy {ARGUMENT.replace('/', ' ')}" / "summary.json"
        copied.write_text(copied.read_text().replace('"dataset": "jsonl"', f'"dataset": {json.dumps(TEXT)}'))

    @staticmethod
    def _reply(body: dict[str, object]) -> str:
        said = prompt_of(body)
        if "Conclude now" in said:
            found = re.search(r"(\S+) step \[tea\] in", said)
            return json.dumps({"answer": f"wine {TEXT}", "evidence": [found[1] if found else ""]})
        if "You explore" in said:
            return json.dumps({"thought": "", "tool": "operations", "target": "step [tea]", "text": ""})
        return f"wine {TEXT}"


def run(*arguments: str) -> Said:
    """What a command that runs here says."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(arguments) if arguments[0] != "benchmarks" else main_of_benchmarks(arguments[1:])
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, mlflow_home: Path) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    server = ScriptedServer()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MEMTUNE_HOME", str(folder / "home"))
        patch.setenv("MEMTUNE_WEIGHTS", str(folder / "weights"))
        patch.setenv("COLUMNS", "3000")
        patch.setenv("FORCE_COLOR", "1")
        made = World(folder, server, store_uri(mlflow_home))
    yield made
    server.close()


OUT = f"out {ARGUMENT.replace('/', ' ')}"
ASK = ("--helper-model", f"m {ARGUMENT}", "--base-url", "URL")
EVERYTHING = [shown(one) for one in PAYLOADS]
GIVEN = [shown(ARGUMENT)]

COMMANDS: dict[str, list[tuple[Arguments, list[str]]]] = {
    "init": [
        (("init", OUT), [shown(OUT)]),
        (("init", "text.jsonl"), []),
    ],
    "run": [
        (("run", "config.yaml", "--dry-run"), EVERYTHING),
        (("run", "--resume", ARGUMENT), GIVEN),
        (("run", "config.yaml", "--rewrites", ARGUMENT), GIVEN),
    ],
    "eval": [
        (("eval", "config.yaml", "--prompts", "baseline"), []),
        (("eval", "config.yaml", "--prompts", ARGUMENT), GIVEN),
        (("eval", "config.yaml", "--prompts", "baseline", "--against", ARGUMENT), GIVEN),
    ],
    "runs": [(("runs",), EVERYTHING)],
    "compare": [
        (("compare", "latest", f"copy {ARGUMENT.replace('/', ' ')}"), EVERYTHING),
        (("compare", "latest", f"copy {ARGUMENT.replace('/', ' ')}", "--html", f"{OUT}.html"), [shown(OUT)]),
    ],
    "export": [
        (("export", "latest", "--to", "text", "--out", OUT), [shown(OUT)]),
        (("export", "latest", "--to", ARGUMENT, "--out", "e"), MARKUP),
        (("export", "latest", "--to", "mem0@1.0", "--map", f"{ARGUMENT}=x", "--out", "e"), MARKUP),
    ],
    "import-prompts": [
        (("import-prompts", "rag", "--out", f"prompts {OUT}"), [shown(OUT)]),
        (("import-prompts", "rag", "--from", ARGUMENT, "--out", "p"), GIVEN),
        (("import-prompts", "rag", "--from", "text.jsonl", "--format", "json", "--out", "p"), []),
    ],
    "doctor": [
        (("doctor", "config.yaml"), []),
        (("doctor", "--system", ARGUMENT), MARKUP),
        (("doctor", "--home", ARGUMENT), GIVEN),
        (("doctor", "config.yaml", "--build"), []),
    ],
    "completion": [(("completion", "bash"), []), (("completion", ARGUMENT), MARKUP)],
    "watch": [(("watch",), []), (("watch", "latest"), EVERYTHING), (("watch", ARGUMENT), GIVEN)],
    "ui": [(("ui", "--home", ARGUMENT), GIVEN)],
    "attribute": [
        (("attribute", "annotated.json", "--out", f"{OUT}.jsonl"), [shown(OUT)]),
        (("attribute", "annotated.json", "--question", f"What does Ann like? {TEXT}", "--out", "c.jsonl"), EVERYTHING),
        (("attribute", "cut.jsonl", "--out", "d.jsonl"), []),
    ],
    "annotate": [
        (
            ("annotate", "annotated.json", "--labels", "labels.sqlite", "--agreement", "--export", OUT),
            [*EVERYTHING, shown(OUT)],
        ),
        (("annotate", "annotated.json", "--labels", ARGUMENT, "--agreement"), GIVEN),
    ],
    "diagnose": [
        (("diagnose", "latest", "--out", f"{OUT}.html"), [shown(OUT)]),
        (("diagnose", "latest", "--out", f"{OUT}.md"), [shown(OUT)]),
        (("diagnose", ARGUMENT), GIVEN),
    ],
    "mlflow send": [(("mlflow", "send", ARGUMENT), GIVEN)],
    "trace stats": [
        (("trace", "stats", "cut.jsonl"), EVERYTHING),
        (("trace", "stats", "trace.jsonl", "--json"), MARKUP),
    ],
    "trace show": [
        (("trace", "show", "cut.jsonl"), EVERYTHING),
        (("trace", "show", "trace.jsonl", "--depth", "0"), EVERYTHING),
        (("trace", "show", "trace.jsonl", "--operation", "o0 [/INST]"), ["[/INST]"]),
        (("trace", "show", "trace.jsonl", "--session", ARGUMENT), MARKUP),
        (("trace", "show", "trace.jsonl", "--html", f"{OUT}.html", "--svg", f"{OUT}.svg"), [shown(OUT)]),
    ],
    "trace search": [
        (("trace", "search", "cut.jsonl", ""), EVERYTHING),
        (("trace", "search", "trace.jsonl", "gone"), [shown("\x1b[2Jgone"), shown("\x9b2Jgone")]),
        (("trace", "search", "trace.jsonl", "", "--json"), MARKUP),
        (("trace", "search", "trace.jsonl", ARGUMENT + "(", "--regex"), MARKUP),
    ],
    "trace slice": [
        (("trace", "slice", "trace.jsonl", "m1 [tea]"), ["step [tea]", "value [tea]"]),
        (("trace", "slice", "trace.jsonl", "m8 \x1b[2Jgone", "--json"), [shown("\x1b[2Jgone")]),
        (("trace", "slice", "trace.jsonl", ARGUMENT), MARKUP),
    ],
    "trace diff": [
        (("trace", "diff", "trace.jsonl", "other.jsonl"), ["step [/INST]", "role [/INST]", shown("\x1b[2Jgone")]),
        (("trace", "diff", "trace.jsonl", "other.jsonl", "--json"), MARKUP),
    ],
    "trace import": [
        (("trace", "import", "annotated.json", "--from", "smartcomment", "--out", OUT), ["lost [/INST]", shown(OUT)]),
        (("trace", "import", ARGUMENT, "--from", "otlp", "--out", "i.jsonl"), GIVEN),
    ],
    "trace map": [
        (("trace", "map", "trace.jsonl"), []),
        (("trace", "map", ARGUMENT), GIVEN),
    ],
    "trace export": [
        (("trace", "export", "cut.jsonl", "--to", "otlp", "--out", f"{OUT}.json"), [shown(OUT), "type [/INST]"]),
        (("trace", "export", "trace.jsonl", "--to", "mlflow", "--out", "m.json"), []),
        (("trace", "export", "trace.jsonl", "--to", "smartcomment", "--out", "s.json"), []),
    ],
    "data show": [(("data", "show", "config.yaml"), EVERYTHING)],
    "data list": [(("data", "list", "--home", ARGUMENT), [])],
    "data validate": [
        (("data", "validate", ARGUMENT), GIVEN),
        (("data", "validate", "data.jsonl"), []),
        (("data", "validate", "cut.jsonl", "--dataset", "jsonl"), []),
    ],
    "data fetch": [(("data", "fetch", ARGUMENT), MARKUP), (("data", "fetch", "locomo", ARGUMENT), GIVEN)],
    "data audit": [
        (("data", "audit", "config.yaml"), EVERYTHING),
        (("data", "audit", "config.yaml", "--gold"), []),
    ],
    "data generate": [
        (("data", "generate", "data.jsonl", "--out", f"{OUT}.jsonl", "--dry-run"), []),
        (("data", "generate", ARGUMENT, "--out", "g.jsonl"), GIVEN),
    ],
    "data review": [(("data", "review", ARGUMENT), MARKUP)],
    "benchmarks agents": [(("benchmarks", "agents", ARGUMENT), GIVEN)],
    "benchmarks authors": [(("benchmarks", "authors", "--system", ARGUMENT), ["[/INST]"])],
    "benchmarks generate": [(("benchmarks", "generate", "--data", ARGUMENT), GIVEN)],
    "benchmarks halumem": [(("benchmarks", "halumem", "--run", ARGUMENT), MARKUP)],
    "benchmarks mem0-failures": [(("benchmarks", "mem0-failures", "--seed", ARGUMENT), [GIVEN[0][:40]])],
    "benchmarks languages": [(("benchmarks", "languages", ARGUMENT), GIVEN)],
    "benchmarks gold-answers": [
        (("benchmarks", "gold-answers", "--data", "data.jsonl"), []),
        (("benchmarks", "gold-answers", "--data", ARGUMENT), GIVEN),
    ],
    "bench attribution": [
        (("bench", "attribution", "--suite", "annotated.json", "--method", "survival"), []),
        (("bench", "attribution", "--suite", ARGUMENT, "--method", "survival"), GIVEN),
    ],
    "benchmarks blame": [
        (("benchmarks", "blame", "--system", ARGUMENT), ["[/INST]"]),
        (("benchmarks", "blame", "--contender", ARGUMENT), ["[/INST]"]),
    ],
    "benchmarks busy": [(("benchmarks", "busy", "--weights", ARGUMENT), GIVEN)],
    "benchmarks calibration": [
        (("benchmarks", "calibration", "--labelled", "annotated.json", "--cases", "20"), []),
        (("benchmarks", "calibration", "--labelled", ARGUMENT, "--cases", "20"), GIVEN),
    ],
    "benchmarks evidence": [
        (("benchmarks", "evidence", "--suite", "annotated.json", "--words"), []),
        (("benchmarks", "evidence", "--suite", ARGUMENT, "--words"), GIVEN),
    ],
    "benchmarks attribution": [
        (("benchmarks", "attribution", "--suite", ARGUMENT, "--method", "survival"), GIVEN),
    ],
    "benchmarks settings": [(("benchmarks", "settings", "--learn", ARGUMENT), ["[/INST]"])],
    "benchmarks gate": [
        (("benchmarks", "gate", "--trials", "1", "--json", f"{OUT}.json"), []),
        (("benchmarks", "gate", "--recorded", ARGUMENT), GIVEN),
    ],
    "benchmarks loop": [
        (("benchmarks", "loop", "--optimizer", "closed-loop", "--system", "rag", "--conversations", "3"), []),
        (("benchmarks", "loop", "--system", ARGUMENT), []),
    ],
    "benchmarks matcher": [
        (("benchmarks", "matcher", "--matcher", "words", "--json", f"{OUT}.json"), []),
        (("benchmarks", "matcher", "--matcher", ARGUMENT), []),
    ],
    "benchmarks optimize": [
        (("benchmarks", "optimize", "--optimizer", ARGUMENT), ["[/INST]"]),
        (("benchmarks", "optimize", ARGUMENT), GIVEN),
    ],
    "benchmarks providers": [(("benchmarks", "providers", "--habit", ARGUMENT), [])],
    "benchmarks throughput": [
        (("benchmarks", "throughput", "--calls", "20", "--latency", "0.01", "--json", f"{OUT}.json"), []),
        (("benchmarks", "throughput", ARGUMENT), GIVEN),
    ],
    "benchmarks trace-memory": [(("benchmarks", "trace-memory", "--store", ARGUMENT), GIVEN)],
    "benchmarks tracing": [(("benchmarks", "tracing", "--json", "b.json", ARGUMENT), GIVEN)],
    "model list": [(("model", "list"), [])],
    "model pull": [
        (("model", "pull", ARGUMENT), GIVEN),
        (("model", "pull", "smollm2-135m", "--from", ARGUMENT), GIVEN),
    ],
    "model serve": [(("model", "serve", ARGUMENT), GIVEN)],
    "system install": [(("system", "install", ARGUMENT), MARKUP)],
    "system list": [(("system", "list"), [])],
    "system check": [(("system", "check", ARGUMENT), MARKUP)],
    "system remove": [(("system", "remove", ARGUMENT), MARKUP)],
    "gateway": [(("gateway", ARGUMENT), GIVEN)],
}
"""Every command and benchmark → ways to run it over hostile data, each with what is to be read in what it says."""


CALIBRATION = "benchmarks calibration"


def commands(group: click.Group, before: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands(found, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def test_every_command_is_among_those_that_are_run() -> None:
    assert set(COMMANDS) == {*commands(cli), *commands(benchmarks, "benchmarks ")}


def steering(text: str) -> set[str]:
    """Characters of a text that would act on a terminal and are not seen."""
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return {ascii(one) for one in text if unicodedata.category(one) in hidden and one not in "\n\t"}


def check(said: Said, wanted: list[str] | tuple[str, ...]) -> None:
    code, out, err = said
    both = OWN.sub("", out + err)
    assert code in (0, 1, 2)
    assert not steering(both)
    assert "Traceback" not in both
    assert [one for one in wanted if one not in both] == []


@pytest.mark.parametrize(
    "terminal",
    [pytest.param(False, marks=pytest.mark.thorough, id="piped"), pytest.param(True, id="terminal")],
)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == CALIBRATION else name for name in COMMANDS]
)
def test_data_is_neither_markup_nor_steers_the_terminal(
    name: str, terminal: bool, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.folder)
    monkeypatch.setenv("MEMTUNE_HOME", str(world.folder / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key-1234567")
    monkeypatch.setenv("COLUMNS", "3000")
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    if name == CALIBRATION:  # what it measures beside the hostile file takes minutes
        few = conversations_to_spoil(None, None)[::8]
        monkeypatch.setattr("benchmarks.gold_answers.suite.conversations_to_spoil", lambda *_: few)
        monkeypatch.setattr("benchmarks.calibration.verdicts.SYSTEMS", ("rag",))
    for arguments, wanted in COMMANDS[name]:
        for made in world.folder.glob("*"):
            if made.name.startswith("out ") or made.name in ("m.json", "s.json"):
                shutil.rmtree(made) if made.is_dir() else made.unlink()
        said = run(*(world.server.base_url if one == "URL" else one for one in arguments))
        if not terminal:
            assert "\x1b" not in said[1] + said[2]
            assert "\r" not in said[1] + said[2]
        check(said, wanted)


@pytest.mark.parametrize("terminal", [False, True], ids=["piped", "terminal"])
def test_a_server_names_a_hostile_model_as_it_is(terminal: bool, world: World) -> None:
    """It runs until it is ended, so in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments.command", "gateway", "config.yaml"],
        cwd=world.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **({"FORCE_COLOR": "1"} if terminal else {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    check((0, line + out, err), EVERYTHING)


def test_a_run_shows_progress_and_results_of_hostile_data_on_a_terminal(world: World) -> None:
    check(world.said, EVERYTHING)
    assert "\x1b[1m" in world.said[1], "it was not shown as on a terminal"
