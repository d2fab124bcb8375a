"""Over all targets: what goes out comes in again byte by byte, and a prompt that a run may start from goes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from own_system import OWN
from row_prompts import LIBRARY_TARGETS

from experiments.systems.exporting.export import export
from experiments.systems.exporting.exporter import EXPORTERS, open_exporter
from experiments.systems.exporting.forms import as_string_template, from_string_template
from experiments.systems.exporting.importing import import_prompts
from tracing.errors import ContractError
from tracing.systems.baseline import check_baseline
from tracing.systems.prompts import Candidate, baseline_candidate
from tracing.systems.registry import open_system

AWKWARD = '\nMind «é» 😀 {{"a": 1}}, $5, $$name, 100 %, \\n and "it\'s".'


@dataclass(frozen=True)
class Case:
    """A system that fits a target."""

    system: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    mapping: Mapping[str, str] = field(default_factory=dict)


EPISODE = {"placeholders": ["episode_content", "nodes"], "prompts": ["note", "graph", "reply"]}
CASES: dict[str, Case] = {
    **dict.fromkeys(("text", "json", "dotenv", "python", "dspy", "mlflow"), Case("fact-memory")),
    "rag": Case("rag"),
    "mem0@0.1": Case("mem0@0.1"),
    "mem0@1.0": Case("mem0"),
    "mem0@2": Case("mem0@2"),
    "mem0@2 instructions": Case("mem0@2", {"tuned": "instructions"}),
    "langmem@0.0.30": Case(OWN),
    "langmem@0.0.30 mapped": Case(OWN, {"prompts": ["note", "graph", "reply"]}, {"graph": "instructions"}),
    "graphiti@0.31": Case(OWN, {"placeholders": ["episode_content"]}),
    "graphiti@0.31 mapped": Case(OWN, EPISODE, {"graph": "extract_edges.edge"}),
    "cognee@1.6": Case(OWN),
    "cognee@1.6 mapped": Case(OWN, {}, {"reply": "cognify.custom_prompt"}),
    "everos@1.5": Case("everos"),
    "memori@3.3": Case("memori"),
}


def case_of(name: str) -> Case:
    """One prompt of the user's system at the first place that it fits."""
    exporter: Any = open_exporter(name)
    place = next(place for place in exporter.places if not place.reply)
    return Case(OWN, {"placeholders": sorted(place.needs)}, {"note": place.name})


CASES |= {name: case_of(name) for name in LIBRARY_TARGETS if name not in CASES}


def candidate_of(case: Case, ending: str) -> Candidate:
    """The seeds of a system, each with its name and this ending."""
    seeds = baseline_candidate(open_system(case.system, case.settings).prompts)
    return {name: f"{text} ({name}){ending}" for name, text in seeds.items()}


def gone_out(case: Case, target: str, out: Path, candidate: Candidate) -> Candidate:
    """What comes in of the export of these prompts, by its folder."""
    export(case.system, candidate, target, out, {}, settings=case.settings, mapping=case.mapping, baseline=candidate)
    return import_prompts(case.system, str(out), settings=case.settings).candidate


def test_no_target_is_left_out() -> None:
    assert {name.partition(" ")[0] for name in CASES} == set(EXPORTERS.names())


@pytest.mark.parametrize("name", CASES)
def test_what_goes_out_comes_in_byte_by_byte(name: str, tmp_path: Path) -> None:
    case, target = CASES[name], name.partition(" ")[0]
    candidate = candidate_of(case, AWKWARD)
    assert gone_out(case, target, tmp_path / "out", candidate) == candidate


@pytest.mark.parametrize("name", CASES)
def test_what_a_run_may_start_from_goes_out_however_long_it_is(name: str, tmp_path: Path) -> None:
    case, target = CASES[name], name.partition(" ")[0]
    for words in (900, 2600):
        candidate = candidate_of(case, " kestrel" * words)
        check_baseline(open_system(case.system, case.settings).prompts, candidate)
        assert gone_out(case, target, tmp_path / f"{words}", candidate) == candidate


def test_what_is_beside_a_place_does_not_come_in_as_what_is_in_it(tmp_path: Path) -> None:
    case = CASES["cognee@1.6 mapped"]
    back = gone_out(case, "cognee@1.6", tmp_path / "out", candidate_of(case, "."))
    assert back["note"].endswith("(note).")
    assert back["reply"].endswith("(reply).")


@pytest.mark.parametrize("kept", ["file", "folder"])
@pytest.mark.parametrize("name", ["rag", "graphiti@0.31"])
def test_an_export_without_its_manifest_is_recognised(name: str, kept: str, tmp_path: Path) -> None:
    case, out = CASES[name], tmp_path / "out"
    candidate = candidate_of(case, AWKWARD)
    export(case.system, candidate, name, out, {}, settings=case.settings, baseline=candidate)
    (out / "manifest.json").unlink()
    (file,) = [path for path in out.iterdir() if path.suffix != ".txt"]
    imported = import_prompts(case.system, str(file if kept == "file" else out), settings=case.settings)
    first = next(iter(candidate))
    assert (imported.form, imported.candidate[first]) == (name, candidate[first])


def test_a_string_template_of_ones_own_comes_in_or_is_refused() -> None:
    text = "It costs $$5 {now}: ${context}s\n$question"
    template = from_string_template(text)
    assert template == "It costs $5 {{now}}: {context}s\n{question}"
    assert as_string_template(template) == text
    with pytest.raises(ContractError, match=r"the dollar in '\$5\. \$quest' begins no placeholder; write \$\$"):
        from_string_template("It costs $5. $question")
