"""What is written for EverOS and Memori is what they read, and what they would misread is refused, without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.systems.everos.exporter import EverOsSlots
from experiments.systems.everos.prompts import PROMPTS, PromptRequest, as_template, rendered, write_slots
from experiments.systems.exporting.conformance import ExporterConformance
from experiments.systems.exporting.export import written
from experiments.systems.exporting.exporter import Exporter
from experiments.systems.memori.exporter import MemoriAugmentation
from experiments.systems.memori.ingestion import PROMPTS as MEMORI
from tracing.errors import ContractError, RunError
from tracing.systems.prompts import Candidate, baseline_candidate, render

BASELINE = baseline_candidate(PROMPTS)


class TestEverOsExport(ExporterConformance):
    def exporter(self) -> Exporter:
        return EverOsSlots()

    def candidate(self) -> Candidate:
        return BASELINE


class TestMemoriExport(ExporterConformance):
    def exporter(self) -> Exporter:
        return MemoriAugmentation()

    def candidate(self) -> Candidate:
        return baseline_candidate(MEMORI)


def test_an_export_for_memori_that_is_imported_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    exporter, first = MemoriAugmentation(), tmp_path / "a" / "memori.json"
    exporter.write(baseline_candidate(MEMORI), first.parent)
    assert exporter.recognises(str(first))
    assert exporter.recognises(str(first.parent))
    assert exporter.texts(str(first.parent)) == exporter.texts(str(first))
    exporter.write(exporter.texts(str(first)), tmp_path / "b")
    assert first.read_bytes() == (tmp_path / "b" / "memori.json").read_bytes()


@pytest.mark.parametrize(
    ("exporter", "seed", "name"),
    [(EverOsSlots(), BASELINE, "episode_extract"), (MemoriAugmentation(), baseline_candidate(MEMORI), "extract")],
)
def test_a_text_that_lost_the_conversation_is_not_written(
    exporter: Exporter, seed: Candidate, name: str, tmp_path: Path
) -> None:
    broken = {**seed, name: seed[name].replace("{conversation}", "it")}
    with pytest.raises(ContractError, match=r"the placeholder \{conversation\} is missing"):
        exporter.write(broken, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("episode_extract", ("{conversation}", "it"), "the placeholder {conversation} is missing"),
        ("episode_extract", ('"content"', "content"), "the marker '\"content\"' is missing"),
        ("boundary_detection", ("{messages}", ""), "the placeholder {messages} is missing"),
        ("boundary_detection", ("{messages}", "{{{messages}}}"), "braces beside a placeholder"),
    ],
)
def test_a_text_that_everos_would_misread_breaks_the_contract(name: str, change: tuple[str, str], problem: str) -> None:
    broken = BASELINE[name].replace(*change)
    assert any(problem in said for said in PROMPTS[name].contract.violations(broken))


def test_braces_that_everos_reads_otherwise_are_not_exported(tmp_path: Path) -> None:
    broken = {**BASELINE, "boundary_detection": BASELINE["boundary_detection"].replace("{messages}", "{{{messages}}}")}
    with pytest.raises(ContractError, match="braces beside a placeholder"):
        written(EverOsSlots(), broken, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        'Split:\n{messages}\nReply {{"boundaries": []}} {{"should_wait": false}}.',
        'A single { brace, {unknown} and }: {messages} {"x": {}} {{}}',
        "  Blanks before,\ttabs, \r\n a return, «é»: {messages}\n\n",
    ],
)
def test_an_imported_text_makes_the_same_request_and_is_exported_as_it_was(text: str, tmp_path: Path) -> None:
    template = as_template(text, {"messages"})
    values = {"messages": "[1] Ada: {hello} {{x}}"}
    assert render(template, values) == rendered(text, values)
    write_slots({"boundary_detection": template, "episode_extract": text}, tmp_path)
    assert EverOsSlots().texts(str(tmp_path)) == {"boundary_detection": template, "episode_extract": text}
    assert as_template(template, {"messages"}) == template
    one = tmp_path / "boundary_detection.yaml"
    assert EverOsSlots().recognises(str(one))
    assert EverOsSlots().texts(str(one)) == EverOsSlots().texts(str(tmp_path))


def test_the_values_of_a_request_are_read_back(tmp_path: Path) -> None:
    values = {"conversation_start_time": "now", "conversation": "a\n{b} (c)*", "custom_instructions": "be short"}
    assert PromptRequest(BASELINE["episode_extract"]).values(render(BASELINE["episode_extract"], values)) == values
    assert PromptRequest(BASELINE["episode_extract"]).values("another request") is None


@pytest.mark.parametrize("content", ["- a list", "enabled: true\ntemplate: [1]", "enabled: {", "\xff"])
def test_a_file_that_is_no_slot_is_refused_in_one_line(content: str, tmp_path: Path) -> None:
    for name in ("boundary_detection", "episode_extract"):
        (tmp_path / f"{name}.yaml").write_bytes(content.encode("latin-1"))
    with pytest.raises(RunError) as error:
        EverOsSlots().texts(str(tmp_path))
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(RunError, match="give the folder of the slots"):
        EverOsSlots().texts(str(tmp_path / "none"))
