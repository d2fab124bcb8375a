"""An export says exactly what the candidate says, in the form of its reader, or is not written at all."""

import hashlib
import json
import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.systems.evermemos.system import EverMemOS
from experiments.systems.exporting.export import export
from experiments.systems.exporting.forms import as_string_template
from experiments.systems.exporting.places import Place
from experiments.systems.fact_memory import FactMemory
from experiments.systems.long_context import LongContext
from experiments.systems.mem0 import library
from experiments.systems.mem0.exporter import Mem0OneSettings
from experiments.systems.mem0.system import Mem0
from experiments.systems.rag import Rag
from tracing.errors import ContractError, RunError
from tracing.systems.prompts import render

RAG = {"answer": "Costs $5, ${question} stays; {{literal}} $$.\n{context}\nQ: {question}s {question}_x {context}1"}
FACTS = {name: spec.text for name, spec in FactMemory.prompts.items()}
MEM0 = {name: spec.text + "\nMind «every» {{brace}}, kestrel." for name, spec in Mem0.prompts.items()}


def test_text_exports_one_file_a_prompt_and_a_manifest_of_their_hashes(tmp_path: Path) -> None:
    out = export("fact-memory", FACTS, "text", tmp_path / "deep" / "out", {"run_id": "r1", "model": "m"})
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["run_id"] == "r1"
    assert (manifest["target"], manifest["system"], manifest["version"]) == ("text", "fact-memory", 1)
    assert set(manifest["prompts"]) == set(FACTS)
    for name, entry in manifest["prompts"].items():
        written = (out / entry["file"]).read_bytes()
        assert written.decode() == FACTS[name]
        assert hashlib.sha256(written).hexdigest() == entry["sha256"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_rag_exports_a_string_template_that_renders_like_the_prompt(tmp_path: Path) -> None:
    out = export("rag", RAG, "rag", tmp_path / "out", {})
    template = json.loads((out / "rag.json").read_text())["answer_template"]
    values = {"question": "Where is $home {x}?", "context": "a $5 {note}\n- ${b}"}
    assert string.Template(template).substitute(values) == render(RAG["answer"], values)


PIECES = st.lists(st.sampled_from(["{question}", "{context}", "{{", "}}", "$", "a", "_", "1", "é", " ", "\n", "}}{{"]))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PIECES)
def test_every_prompt_survives_the_change_of_syntax(pieces: list[str]) -> None:
    text = "".join(pieces)
    values = {"question": "q$}", "context": "{c}"}
    assert string.Template(as_string_template(text)).substitute(values) == render(text, values)


def test_a_system_whose_prompts_the_target_cannot_hold_is_told_which_targets_fit(tmp_path: Path) -> None:
    general = "text, json, dotenv, python, dspy, mlflow"
    with pytest.raises(RunError, match=f"fact-memory can be exported to: {general}$"):
        export("fact-memory", FACTS, "rag", tmp_path / "out", {})
    with pytest.raises(
        RunError, match=f"unknown target; did you mean .*; rag can be exported to: {general}, rag, or by"
    ):
        export("rag", RAG, "mem0x", tmp_path / "out", {})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("mem0", "which version? choose one of mem0@0.1, mem0@1.0, mem0@2"),
        ("mem0@3", "unknown version; choose one of mem0@0.1, mem0@1.0, mem0@2"),
        ("langmem@9", "unknown version; choose one of langmem@0.0.30"),
    ],
)
def test_a_target_of_an_unknown_version_is_refused(tmp_path: Path, target: str, said: str) -> None:
    with pytest.raises(RunError) as caught:
        export("mem0", MEM0, target, tmp_path / "out", {})
    assert said in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["no placeholders", "{context} {question} {extra}", "{context} {question} {", "", " "])
def test_a_prompt_that_breaks_its_contract_is_not_exported(tmp_path: Path, text: str) -> None:
    with pytest.raises(ContractError, match="answer: "):
        export("rag", {"answer": text}, "text", tmp_path / "out", {})
    assert list(tmp_path.iterdir()) == []


def test_a_candidate_that_lacks_a_prompt_is_not_exported(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="decide: missing"):
        export("fact-memory", {k: v for k, v in FACTS.items() if k != "decide"}, "text", tmp_path / "out", {})


def test_nothing_that_exists_is_written_over(tmp_path: Path) -> None:
    out = tmp_path / "out"
    export("rag", {"answer": Rag.prompts["answer"].text}, "text", out, {})
    before = sorted(path.name for path in out.iterdir())
    with pytest.raises(RunError, match="exists already"):
        export("rag", RAG, "text", out, {})
    assert sorted(path.name for path in out.iterdir()) == before
    assert (out / "answer.txt").read_text() == Rag.prompts["answer"].text


def test_the_prompts_of_every_system_in_process_are_exported_as_text(tmp_path: Path) -> None:
    for name, specs in {"evermemos": EverMemOS.prompts, "long-context": LongContext.prompts}.items():
        candidate = {prompt: spec.text + "\nMind «every» {{brace}}." for prompt, spec in specs.items()}
        out = export(name, candidate, "text", tmp_path / name, {})
        assert {path.stem: path.read_text() for path in out.glob("*.txt")} == candidate
    out = export("long-context", RAG, "rag", tmp_path / "template", {})
    assert (out / "rag.json").is_file()


def test_a_reranking_is_exported_as_text_and_fits_no_template_without_one(tmp_path: Path) -> None:
    reranking = {"rerank": 6}
    candidate = {name: spec.text for name, spec in Rag(**reranking).prompts.items()}
    assert (export("rag", candidate, "text", tmp_path / "text", {}, settings=reranking) / "rerank.txt").is_file()
    with pytest.raises(RunError, match="holds the prompts answer, but rag has rerank, answer"):
        export("rag", candidate, "rag", tmp_path / "template", {}, settings=reranking)


def test_mem0_exports_its_configuration_keys_as_it_sends_them(tmp_path: Path) -> None:
    out = export("mem0", MEM0, "mem0@1.0", tmp_path / "out", {"run_id": "r1"})
    keys = json.loads((out / "mem0.json").read_text())
    assert keys == {
        "custom_fact_extraction_prompt": render(MEM0["extract"], {}),
        "custom_update_memory_prompt": render(MEM0["update"], {}),
    }
    assert keys["custom_update_memory_prompt"].endswith("«every» {brace}, kestrel.")
    assert (out / "answer.txt").read_text() == MEM0["answer"]
    manifest = json.loads((out / "manifest.json").read_text())
    assert {name: (entry["file"], entry.get("place")) for name, entry in manifest["prompts"].items()} == {
        "extract": ("mem0.json", "custom_fact_extraction_prompt"),
        "update": ("mem0.json", "custom_update_memory_prompt"),
        "answer": ("answer.txt", None),
    }


@pytest.mark.slow
def test_a_verified_export_is_seen_in_what_the_real_library_sends(tmp_path: Path) -> None:
    out = export("mem0", MEM0, "mem0@1.0", tmp_path / "out", {}, verify=True)
    proof = json.loads((out / "manifest.json").read_text())["verified"]
    release = f"mem0ai {library.V1.here()}"
    keys = json.loads((out / "mem0.json").read_text())
    assert [line.partition(":")[0] for line in proof] == [*keys, "mem0_replies.py"]
    assert f"are in the system message of request 1 of {release}" in proof[0]
    assert f"are in the user message of request 2 of {release}" in proof[1]


@pytest.mark.slow
def test_an_export_that_the_library_ignores_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A configuration key of another generation is dropped without a word.
    monkeypatch.setattr(Mem0OneSettings, "places", (Place("custom_instructions", "extract"),))
    monkeypatch.setattr(Place, "problems", lambda self, spec, text: [])
    with pytest.raises(ContractError, match=r"custom_instructions: mem0ai 1\.0\.\d+ does not send it as it is"):
        export("mem0", MEM0, "mem0@1.0", tmp_path / "out", {}, verify=True)
    assert list(tmp_path.iterdir()) == []


def test_what_was_tuned_from_a_longer_seed_is_exported(tmp_path: Path) -> None:
    seeds = {**MEM0, "extract": MEM0["extract"] + "\nkestrel" * 1000}
    with pytest.raises(ContractError, match="at most 6000 are allowed"):
        export("mem0", seeds, "mem0@1.0", tmp_path / "out", {})
    out = export("mem0", seeds, "mem0@1.0", tmp_path / "out", {}, baseline=seeds)
    assert json.loads((out / "mem0.json").read_text())["custom_fact_extraction_prompt"].endswith("kestrel")


def test_a_target_without_a_library_cannot_be_verified(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="--verify: text is for no library"):
        export("mem0", MEM0, "text", tmp_path / "out", {}, verify=True)


def test_conditions_that_the_user_will_not_have_are_warned_of(tmp_path: Path) -> None:
    def warnings(origin: dict[str, object], used_with: str | None) -> list[str]:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        out = export("mem0", MEM0, "mem0@1.0", folder, origin, model=used_with)
        return list(json.loads((out / "manifest.json").read_text())["warnings"])

    tuned = {"model": "small", "caveats": ["A schema held the replies."]}
    assert warnings({"model": "small", "tuned": ["extract"]}, "small") == []
    assert (
        "mem0@1.0 has no place for the prompt answer: it is in answer.txt" in warnings({"tuned": ["answer"]}, None)[0]
    )
    assert "tuned on small: with large" in warnings({"model": "small"}, "large")[0]
    schema, model, _ = warnings(tuned, None)
    assert schema == "A schema held the replies."
    assert "tuned on small: with another model" in model
