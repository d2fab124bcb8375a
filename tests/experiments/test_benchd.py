"""Bench'd's own runner, the real package: what it asks becomes data, and its score shows what a run gained."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from benchd_harness.adapters.null import NullAdapter
from benchd_harness.benchmarks import SmokeBenchmark
from benchd_harness.benchmarks.base import BaseBenchmark
from benchd_harness.benchmarks.locomo import LoCoMoBenchmark
from benchd_harness.runner import BenchmarkRunner
from data_files import written
from memtune_command import MemtuneCommand
from scripted_server import ScriptedServer, prompt_of

import memtune as library
from experiments.data.dataset_reader import Reading
from experiments.data.datasets import conversations_of
from experiments.systems.fact_memory import FactMemory
from tracing.errors import ConfigError

FLAW = "Leave out where things are kept."
CURE = "Write where each thing is kept."
PLACES = ("cellar", "attic", "garage", "hallway", "pantry", "stable", "chapel", "library", "kitchen")
THINGS = ("kettle", "canoe")
KEPT = re.compile(r"(\w+): I keep the (\w+) in the (\w+)\.")


def locomo() -> list[dict[str, Any]]:
    """A conversation for each place, whose two questions Bench'd scores without a model."""
    rows = []
    for number, place in enumerate(PLACES):
        other = PLACES[(number + 1) % len(PLACES)]
        spoken = [f"I keep the {thing} in the {where}." for thing, where in zip(THINGS, (place, other), strict=True)]
        turns = [
            {"speaker": speaker, "dia_id": f"D1:{at}", "text": text}
            for at, (speaker, text) in enumerate([("Ada", "Hello."), ("Ben", spoken[0]), ("Ben", spoken[1])], start=1)
        ]
        qa = [
            {"question": f"Where does Ben keep the {thing}?", "answer": where, "category": 1, "evidence": ["D1:2"]}
            for thing, where in zip(THINGS, (place, other), strict=True)
        ]
        conversation = {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1": turns,
            "session_1_date_time": "1:56 pm on 8 May, 2023",
        }
        rows.append({"sample_id": f"c{number}", "conversation": conversation, "qa": qa})
    return rows


def scored(adapter: Any, benchmark: BaseBenchmark, folder: Path) -> tuple[float, Path]:
    """What the harness's own runner says of a memory, and the manifest that it wrote."""
    signed = BenchmarkRunner(adapter, benchmark, output_dir=folder).run()
    return signed.manifest["scores"]["verified"]["overall"], folder / signed.manifest["run_id"] / "manifest.signed.json"


def model(body: dict[str, Any]) -> str:
    """Follows the planted instruction unless it is told otherwise; as author it knows the cure."""
    prompt = prompt_of(body)
    if "one line at a time" in prompt:
        return json.dumps({"lines": [CURE, "Use short sentences.", "Name the speaker."]})
    if "Question: " in prompt:
        thing = re.search(r"keep the (\w+)\?", prompt)
        kept = re.search(rf"keeps the {thing[1]} in the (\w+)", prompt) if thing else None
        return kept[1] if kept else "unknown"
    if "New fact: " in prompt:
        return json.dumps({"event": "ADD", "id": ""})
    facts = [f"{who} keeps the {thing} in the {place}." for who, thing, place in KEPT.findall(prompt)]
    return json.dumps({"facts": facts if CURE in prompt or FLAW not in prompt else []})


def test_a_run_of_a_benchmark_is_data_and_what_has_no_answer_is_counted(
    memtune: MemtuneCommand, tmp_path: Path
) -> None:
    score, manifest = scored(NullAdapter(), SmokeBenchmark(), tmp_path)
    assert score == 0
    reading = Reading()
    conversations = conversations_of("benchd", manifest, reading)
    items = {item.question_id: item for item in SmokeBenchmark().load_items()}
    asked = [question for conversation in conversations for question in conversation.questions]
    assert {question.id for question in asked} == {key for key, item in items.items() if item.scoring_method != "regex"}
    for conversation in conversations:
        for question in conversation.questions:
            item = items[question.id]
            assert (question.question, question.answers) == (item.recall_query, (item.expected_answer.strip(),))
            said = [(turn.speaker, turn.text) for turn in conversation.turns()]
            assert said == [(turn["role"], turn["content"]) for turn in item.ingest_history]
    assert reading.omitted() == ["3 questions without an answer to compare with left out"]
    code, out, _ = memtune("data", "validate", str(manifest))
    assert code == 0
    assert "benchd, 10 conversations, 7 questions" in out


def test_questions_of_one_history_are_asked_of_one_conversation_with_its_session(tmp_path: Path) -> None:
    _, manifest = scored(NullAdapter(), LoCoMoBenchmark(written(tmp_path / "locomo.json", locomo())), tmp_path)
    conversations = conversations_of("benchd", manifest)
    assert [conversation.id for conversation in conversations[:2]] == ["locomo-v1-1", "locomo-v1-2"]
    assert [len(conversation.questions) for conversation in conversations] == [2] * len(PLACES)
    first = conversations[0]
    assert (first.speakers, first.sessions[0].time) == (("Ada", "Ben"), "1:56 pm on 8 May, 2023")
    assert [turn.id for turn in first.turns()] == ["D1:1", "D1:2", "D1:3"]


@pytest.mark.slow
def test_its_score_shows_what_a_run_on_its_questions_mended(
    memtune: MemtuneCommand, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    benchmark = LoCoMoBenchmark(written(tmp_path / "locomo.json", locomo()))
    _, manifest = scored(NullAdapter(), benchmark, tmp_path)
    flawed = tmp_path / "flawed"
    flawed.mkdir()
    for name, spec in FactMemory.prompts.items():
        first, _, rest = spec.text.partition("\n")
        text = f"{first}\n{FLAW}\n{rest}" if name == "extract" else spec.text
        (flawed / f"{name}.txt").write_text(text)
    scripted_server.script = model
    memtune.configure("run.yaml", f"data: {manifest}\nprompts: {{start: {flawed}}}\nrounds: 1\nproposals: 3\n")
    code, _, err = memtune("run", "run.yaml", "--out", "run")
    assert code == 0, err
    result = library.load("run")
    scores = {side: scored(result.memory(side), benchmark, tmp_path)[0] for side in ("baseline", "champion")}
    assert scores == {"baseline": 0, "champion": 100}
    memory = result.memory()
    with pytest.raises(ConfigError, match="call setup"):
        memory.recall("Where does Ben keep the kettle?")
    memory.setup()
    with pytest.raises(ConfigError, match="nothing was told"):
        memory.recall("Where does Ben keep the kettle?")
    memory.teardown()
