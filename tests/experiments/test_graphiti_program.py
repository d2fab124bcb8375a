"""A program on Graphiti is a memory system by `memtune.system`, on the real package and its embedded graph store.

It passes the conformance suite, and a flawed prompt of it is won back by a run and put back into the program.
"""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from memtune_command import MemtuneCommand
from scripted_server import ScriptedServer
from talks_in_passing import PASSING, answered, write_talks

from experiments.runs.folder import RunFolder
from experiments.systems.exporting.exporter import open_exporter
from tracing.systems.conformance import MemorySystemConformance

pytestmark = pytest.mark.libraries
PROGRAMS = Path(__file__).parents[1] / "programs"
FLAWED = "write down as facts what the speakers like."
_LINE = re.compile(r"^(\w+): (.*)$", re.MULTILINE)


def graph_of(body: Mapping[str, Any], keeps: Callable[[str, str], bool] = lambda task, line: True) -> str:
    """What is said and kept as facts between who says it and a thing; the end of what it reads as an answer."""
    text = "\n".join(str(message["content"]) for message in body["messages"])
    keys = (body.get("response_format") or {}).get("json_schema", {}).get("schema", {}).get("properties", ())
    task, _, message = text.partition("Message:" if "edges" in keys else "<CURRENT MESSAGE>")
    said = _LINE.findall(message)
    if "extracted_entities" in keys:
        names = dict.fromkeys([*(speaker for speaker, _ in said), "life"])
        return json.dumps({"extracted_entities": [{"name": name, "entity_type_id": 0} for name in names]})
    if "edges" in keys:
        ends = {"target_entity_name": "life", "relation_type": "TELLS"}
        kept = [(name, line) for name, line in said if keeps(task, line)]
        edges = [{"source_entity_name": name, "fact": f"{name}: {line}", **ends} for name, line in kept]
        return json.dumps({"edges": edges})
    least = {key: None if key.endswith("_at") else [] for key in keys}
    return json.dumps(least) if keys else f"bassoon {text[-60:]}"


@pytest.fixture(autouse=True)
def graphiti(environments: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Graphiti can be imported, from the environment of its exporter if need be, and afterwards its program not."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")  # makes a client, which reaches no server
    if find_spec("graphiti_core") is None:
        environments("graphiti@0.31")
        folder = open_exporter("graphiti@0.31").environment.folder
        (packages,) = folder.glob("lib/python3.*/site-packages")
        sys.path.append(str(packages))
    yield
    for name in ("wrap_graph", "graph_program"):
        sys.modules.pop(name, None)


class TestTheGraphOfGraphiti(MemorySystemConformance):
    @pytest.fixture(autouse=True)
    def _beside(self, graphiti: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(PROGRAMS))

    def system(self) -> Any:
        return importlib.import_module("wrap_graph").system

    def reply(self, request: Mapping[str, Any]) -> str:
        return graph_of(request)

    def test_it_has_at_most_twenty_five_lines_outside_and_none_inside(self) -> None:
        lines = (PROGRAMS / "wrap_graph.py").read_text().splitlines()
        assert len([line for line in lines if line.strip()]) <= 25
        assert "memtune" not in (PROGRAMS / "graph_program.py").read_text()

    def test_what_fills_a_builder_of_prompts_is_named_for_what_it_reads(self) -> None:
        placeholders = self.system().prompts["triples"].contract.placeholders
        assert placeholders == {"episode_content", "nodes", "edge_types", "reference_time"}


def obedient(body: dict[str, Any]) -> str:
    """Keeps of what is said what its prompt asks for, and reads what it is shown."""
    text = str(body["messages"][-1]["content"])
    if (answer := answered(text)) is not None:
        return answer
    return graph_of(body, lambda task, line: " like " in line or any(map(task.__contains__, PASSING)))


def test_a_flawed_prompt_is_won_back_and_put_into_the_program(
    memtune: MemtuneCommand, scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path.cwd()))
    for name in ("wrap_graph.py", "graph_program.py"):
        shutil.copy(PROGRAMS / name, name)
    program = Path("graph_program.py")
    sound = "write down as facts what the speakers tell about themselves."
    program.write_text(program.read_text().replace(sound, FLAWED))
    scripted_server.script = obedient
    write_talks(Path("mine.jsonl"))
    lines = "system: wrap_graph:system\ndataset: jsonl\ndata: mine.jsonl\nrounds: 1\nprompts: {tune: [triples]}\n"
    memtune.configure("tune.yaml", lines)
    code, _, err = memtune("run", "tune.yaml", "--out", "run")
    assert code == 0, err
    summary = RunFolder(Path("run")).summary()
    assert summary.rounds[-1].edited == ("triples",)
    assert (summary.baseline["test"].score, summary.verdict, summary.delta) == (0.0, "improved", 1.0)
    code, _, err = memtune("export", "run", "--to", "source", "--patch", "tuned.patch")
    assert code == 0, err
    patch = Path("tuned.patch").read_text()
    assert any(map(patch.__contains__, PASSING))
    assert '{context["episode_content"]}' in patch or "episode_content" not in patch
    assert FLAWED in program.read_text()
