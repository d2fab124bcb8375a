"""What is exported is seen, character by character, in the requests of the real library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from row_prompts import AWKWARD, LIBRARY_TARGETS, prompts_of

from experiments.command import main
from experiments.systems.exporting.export import written
from experiments.systems.exporting.exporter import EXPORTERS, HasDefaults, Proves, open_exporter
from experiments.systems.exporting.importing import import_prompts
from experiments.systems.libraries import Library
from tracing.errors import ConfigError, ContractError
from tracing.systems.prompts import render

TWO_PROMPTS = {
    "custom_fact_extraction_prompt": 'List facts as json {{"facts": []}}' + AWKWARD,
    "custom_update_memory_prompt": "ADD UPDATE DELETE NONE" + AWKWARD,
}
PROMPTS = {
    "mem0@0.1": TWO_PROMPTS,
    "mem0@1.0": TWO_PROMPTS,
    "mem0@2": {
        "custom_instructions": "Be brief." + AWKWARD,
        "ADDITIVE_EXTRACTION_PROMPT": 'As json {{"memory": [{{"text": ""}}]}}' + AWKWARD,
    },
    **{name: prompts_of(open_exporter(name)) for name in LIBRARY_TARGETS},
}
ASKS_MORE = ("mem0-graph@1.0", "cognee@1.6", "langchain@1.5")
"""Those that ask for more than is tuned: the facts beside a graph, a summary of their own, the answer."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("mem0@2", marks=pytest.mark.slow),
        *(pytest.param(name, marks=pytest.mark.thorough) for name in ("mem0@0.1", "mem0@1.0")),
        *(pytest.param(name, marks=pytest.mark.libraries) for name in PROMPTS if not name.startswith("mem0@")),
    ],
)
def test_the_library_sends_what_was_exported(name: str, tmp_path: Path, environments: Callable[[str], None]) -> None:
    environments(name)
    exporter = open_exporter(name)
    assert isinstance(exporter, Proves)
    written(exporter, PROMPTS[name], tmp_path)
    proof = exporter.prove(tmp_path)
    prompts, others = proof[: len(PROMPTS[name])], proof[len(PROMPTS[name]) :]
    assert [line.partition(":")[0] for line in prompts] == list(PROMPTS[name])
    assert all("characters are in " in line for line in prompts)
    held = [line for line in others if line.startswith("mem0_replies.py: ") and "in its schemas" in line]
    assert len(held) == int(name in ("mem0@0.1", "mem0@1.0"))
    own = [line for line in others if "have none of these prompts, but its own: " in line]
    assert len(own) == int(name in ASKS_MORE)
    assert len(others) == len(held) + len(own)
    assert not any("extraction specialist" in line or "fact extractor" in line for line in own)


@pytest.mark.libraries
def test_what_graphiti_extracts_by_its_own_prompts_is_told(tmp_path: Path, environments: Callable[[str], None]) -> None:
    environments("graphiti@0.31")
    exporter = open_exporter("graphiti@0.31")
    assert isinstance(exporter, Proves)
    place = "extract_nodes.extract_message"
    written(exporter, {place: PROMPTS["graphiti@0.31"][place]}, tmp_path)
    proof, others = exporter.prove(tmp_path)
    assert proof.startswith(f"{place}: all ")
    for opening in ("specialist for unstructured text", "specialist for JSON", "fact extractor", "long-term memory of"):
        assert opening in others


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mem0@0.1", "mem0@1.0", "mem0@2"])
def test_the_prompts_that_a_library_uses_by_itself_come_in(name: str, environments: Callable[[str], None]) -> None:
    environments(name)
    exporter = open_exporter(name)
    assert isinstance(exporter, HasDefaults)
    texts = exporter.defaults()
    imported = import_prompts(name, None)
    assert {render(imported.candidate[prompt], {}) for prompt in imported.names} == set(texts.values())
    assert min(map(len, texts.values())) > 1000


@pytest.mark.parametrize("name", ["langmem@0.0.30", "graphiti@0.31", "cognee@1.6", "mem0@2"])
def test_without_its_environment_a_proof_gives_the_command_that_makes_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(tmp_path / "none"))
    # The environment of these tests may have the library.
    monkeypatch.setattr(Library, "here", lambda self: None)
    exporter = open_exporter(name)
    assert isinstance(exporter, Proves)
    written(exporter, PROMPTS[name], tmp_path)
    with pytest.raises(ConfigError, match=f"memtune system install {name}$"):
        exporter.prove(tmp_path)


@pytest.mark.parametrize("name", ["langmem", "graphiti@0.31", "cognee"])
def test_a_library_without_a_memory_system_has_an_environment_too(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(tmp_path / "none"))
    with pytest.raises(SystemExit):
        main(["system", "check", name])
    full = next(each for each in EXPORTERS.names() if each.startswith(name))
    assert capsys.readouterr().err.endswith(f"memtune system install {full}\n")
    with pytest.raises(SystemExit) as ended:
        main(["system", "list"])
    assert ended.value.code == 0
    listed = capsys.readouterr().out
    assert full in listed
    assert "memtune system install NAME" in listed


def test_a_dspy_program_sends_what_was_measured_and_nothing_else(tmp_path: Path) -> None:
    exporter = open_exporter("dspy")
    assert isinstance(exporter, Proves)
    answer = 'Mind {{"a": 1}} $5 «é».\n  Of {context}\n\nanswer {question}, {question}'
    written(exporter, {"answer": answer, "extract": "List facts."}, tmp_path)
    first, second = exporter.prove(tmp_path)
    assert first.startswith("answer: the user message of request 1 of dspy 3.")
    assert second.startswith("extract: the system message of request 2 of dspy 3.")
    assert first.endswith("is the prompt with its values, byte for byte")


def test_a_dspy_program_that_would_ask_otherwise_is_not_proven(tmp_path: Path) -> None:
    exporter = open_exporter("dspy")
    assert isinstance(exporter, Proves)
    written(exporter, {"answer": "Of {context}, answer {question}"}, tmp_path)
    module = tmp_path / "dspy_program.py"
    module.write_text(module.read_text().replace("dspy.context(adapter=Verbatim())", "dspy.context()"))
    with pytest.raises(ContractError, match="the export is unusable"):
        exporter.prove(tmp_path)


def test_a_prompt_that_the_library_changes_is_not_proven(tmp_path: Path) -> None:
    exporter = open_exporter("dspy")
    assert isinstance(exporter, Proves)
    written(exporter, {"answer": "Of {context}\n\nanswer {question}"}, tmp_path)
    file = tmp_path / "program.json"
    file.write_text(file.read_text().replace("Of {context}", "\\tOf {context}"))
    with pytest.raises(ContractError, match=r"answer: dspy 3\S+ does not send it as it is; the export is unusable"):
        exporter.prove(tmp_path)
