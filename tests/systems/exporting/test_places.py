"""Each prompt goes to the place that is for it, and one that does not fit there is refused, saying why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from own_system import AWKWARD, OWN, Own
from row_prompts import names_of

from experiments.systems.exporting.conformance import ExporterConformance
from experiments.systems.exporting.export import export
from experiments.systems.exporting.importing import import_prompts
from experiments.systems.exporting.library_targets import TARGETS, LibraryTarget
from experiments.systems.mem0.exporter import Mem0FirstSettings, Mem0OneSettings, Mem0TwoSettings
from experiments.systems.mem0.system import Mem0
from experiments.systems.rag import Rag
from tracing.errors import ContractError, RunError
from tracing.systems.prompts import Candidate, baseline_candidate


def exported(target: str, out: Path, *, mapping: Mapping[str, str] | None = None, **settings: Any) -> dict[str, Any]:
    """The manifest of an export of the user's system."""
    candidate = baseline_candidate(Own(**settings).prompts)
    export(OWN, candidate, target, out, {}, settings=settings, mapping=mapping)
    found: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    return found


def test_a_prompt_goes_to_the_place_of_its_stage(tmp_path: Path) -> None:
    manifest = exported("cognee", tmp_path / "cognee")
    places = {name: entry["place"] for name, entry in manifest["prompts"].items()}
    assert places == {"note": "cognify.custom_prompt", "reply": "search.system_prompt"}
    plain = AWKWARD.replace("{{", "{").replace("}}", "}")
    assert json.loads((tmp_path / "cognee" / "cognee.json").read_text()) == {
        "cognify": {"custom_prompt": f"note {plain}"},
        "search": {"system_prompt": f"reply {plain}"},
    }
    assert manifest["target"] == "cognee@1.6"


def test_a_prompt_without_a_place_is_written_beside_with_a_warning(tmp_path: Path) -> None:
    manifest = exported("langmem", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["langmem.json", "manifest.json", "reply.txt"]
    assert any(
        "langmem@0.0.30 has no place for the prompt reply: it is in reply.txt" in said for said in manifest["warnings"]
    )


def test_a_mapping_says_what_goes_where(tmp_path: Path) -> None:
    mapping = {"reply": "cognify.custom_prompt"}
    manifest = exported("cognee", tmp_path / "out", mapping=mapping)
    assert {name: entry.get("place") for name, entry in manifest["prompts"].items()} == {
        "note": None,
        "reply": "cognify.custom_prompt",
    }


def test_a_configuration_keeps_what_stands_beside_a_nested_prompt(tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps({"cognify": {"custom_prompt": "old", "chunk_size": 512}, "data": {"path": "x"}}))
    export(OWN, baseline_candidate(Own().prompts), "cognee", tmp_path / "out", {}, into=mine)
    texts = json.loads((tmp_path / "out" / "cognee.json").read_text())
    filled = json.loads((tmp_path / "out" / "mine.json").read_text())
    assert filled == texts | {"cognify": texts["cognify"] | {"chunk_size": 512}, "data": {"path": "x"}}


def test_a_list_with_a_users_own_items_is_not_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps({"custom_categories": [{"food": "what they eat"}]}))
    candidate, mapping = baseline_candidate(Own().prompts), {"note": "custom_categories.hobbies"}
    with pytest.raises(RunError, match=r"--into .*mine\.json: custom_categories is set there"):
        export(OWN, candidate, "mem0-platform", tmp_path / "out", {}, mapping=mapping, into=mine)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("target", "mapping", "said"),
    [
        ("langmem", {"noted": "instructions"}, "no prompt 'noted'; did you mean 'note'?; the system has note, reply"),
        ("langmem", {"note": "prompt"}, "langmem@0.0.30 has no place 'prompt'; it has instructions"),
        ("langmem", {"note": "instructions", "reply": "instructions"}, "instructions is given twice"),
        ("text", {"note": "instructions"}, "text keeps the names of the prompts; leave it out"),
    ],
)
def test_a_mapping_that_fits_nothing_is_refused(
    tmp_path: Path, target: str, mapping: dict[str, str], said: str
) -> None:
    with pytest.raises(RunError, match="--map") as caught:
        exported(target, tmp_path / "out", mapping=mapping)
    assert said in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_the_user_names_is_written_and_read_back_under_that_name(tmp_path: Path) -> None:
    mapping = {"note": "entity_types.Hobby.description", "reply": "edge_types.LIKES.description"}
    manifest = exported("zep", tmp_path / "zep", mapping=mapping)
    plain = AWKWARD.replace("{{", "{").replace("}}", "}")
    assert json.loads((tmp_path / "zep" / "zep.json").read_text()) == {
        "set_ontology": {
            "entity_types": [{"name": "Hobby", "description": f"note {plain}"}],
            "edge_types": [{"name": "LIKES", "description": f"reply {plain}"}],
        }
    }
    assert (
        "An ontology takes the place of the one before: put what you have beside these types." in manifest["warnings"]
    )
    exported("mem0-platform", tmp_path / "mem0", mapping=dict.fromkeys(("note",), "custom_categories.their hobbies"))
    project = tmp_path / "mem0" / "mem0_project.json"
    assert json.loads(project.read_text()) == {"custom_categories": [{"their hobbies": f"note {plain}"}]}
    mine = {"custom_categories": [{"food": "what they eat"}, {"their hobbies": "what they do"}, 3]}
    project.write_text(json.dumps(mine))
    assert TARGETS["mem0-platform"]().texts(str(project)) == {
        "custom_categories.food": "what they eat",
        "custom_categories.their hobbies": "what they do",
    }
    imported = import_prompts(OWN, str(project), form="mem0-platform@2.2", mapping={"note": "custom_categories.food"})
    assert imported.candidate["note"] == "what they eat"


def test_places_within_one_that_the_user_names_are_written_beside_each_other(tmp_path: Path) -> None:
    names = ("note", "graph", "reply")
    mapping = {
        "note": "entity_types.Hobby.properties.since.description",
        "graph": "entity_types.Hobby.description",
        "reply": "edge_types.LIKES.properties.how.description",
    }
    exported("zep", tmp_path / "zep", prompts=names, mapping=mapping)
    note, graph, reply = (f"{name} {AWKWARD}".replace("{{", "{").replace("}}", "}") for name in names)
    assert json.loads((tmp_path / "zep" / "zep.json").read_text()) == {
        "set_ontology": {
            "entity_types": [
                {
                    "name": "Hobby",
                    "description": graph,
                    "properties": [{"name": "since", "type": "text", "description": note}],
                }
            ],
            "edge_types": [
                {"name": "LIKES", "properties": [{"name": "how", "type": "text", "description": reply}]},
            ],
        }
    }


def test_a_name_of_digits_is_no_place_in_a_list(tmp_path: Path) -> None:
    exported("mem0-platform", tmp_path / "mem0", mapping={"note": "custom_categories.2024"})
    assert [*json.loads((tmp_path / "mem0" / "mem0_project.json").read_text())["custom_categories"][0]] == ["2024"]


@pytest.mark.parametrize("place", ["custom_categories.*", "custom_categories.", "custom_categories", "categories.food"])
def test_a_place_that_the_user_names_needs_a_name(tmp_path: Path, place: str) -> None:
    with pytest.raises(RunError, match=r"it has custom_instructions, .*, custom_categories\.\*"):
        exported("mem0-platform", tmp_path / "out", mapping={"note": place})


def test_of_several_prompts_for_one_place_the_user_chooses(tmp_path: Path) -> None:
    names = ("note", "graph", "reply")
    with pytest.raises(RunError, match="has note, graph for it; choose with --map note=instructions"):
        exported("langmem", tmp_path / "out", prompts=names)
    manifest = exported("langmem", tmp_path / "out", prompts=names, mapping={"graph": "instructions"})
    assert manifest["prompts"]["graph"]["place"] == "instructions"


def test_a_system_without_a_prompt_for_any_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"it has places for instructions \(extract\), .*, but the system has answer"):
        export("rag", baseline_candidate(Rag.prompts), "langmem", tmp_path / "out", {})


def test_placeholders_that_the_target_does_not_fill_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ContractError, match=r"note does not fit instructions of langmem@0\.0\.30: \{turns\} would be sent"
    ):
        exported("langmem", tmp_path / "out", placeholders=["turns"])
    said = (
        r"\{turns\} would be sent as it is written: its placeholders are custom.*the placeholder \{episode_content\} is"
    )
    with pytest.raises(ContractError, match=said):
        exported("graphiti", tmp_path / "out", placeholders=["turns"])
    assert list(tmp_path.iterdir()) == []


def test_a_prompt_that_asks_for_a_reply_which_nobody_reads_is_refused(tmp_path: Path) -> None:
    seeds = baseline_candidate(Mem0.prompts)
    with pytest.raises(ContractError, match="the prompt asks for a JSON object with facts as reply, but no JSON"):
        export("mem0", seeds, "langmem", tmp_path / "out", {})
    with pytest.raises(ContractError, match="a JSON object with facts as reply, but a JSON object with memory"):
        export("mem0", seeds, "mem0@2", tmp_path / "out", {}, mapping={"extract": "ADDITIVE_EXTRACTION_PROMPT"})
    with pytest.raises(
        ContractError, match=r"note does not fit custom_fact_extraction_prompt of mem0@1\.0: the prompt"
    ):
        exported("mem0@1.0", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_generations_of_mem0_differ_in_what_they_need() -> None:
    spec, text = Mem0.prompts["extract"], 'Give {{"facts": []}}.'
    assert Mem0OneSettings().places[0].problems(spec, text) == []
    assert Mem0FirstSettings().places[0].problems(spec, text) == ["the text lacks the word 'json'"]
    assert Mem0FirstSettings().places[0].problems(spec, f"{text} As JSON.") == []
    assert Mem0TwoSettings().places[1].problems(spec, text) != []


@pytest.mark.parametrize(
    ("tuned", "place", "file"),
    [("instructions", "custom_instructions", "mem0.json"), ("system", "ADDITIVE_EXTRACTION_PROMPT", "mem0_prompts.py")],
)
def test_both_ways_to_steer_mem0_2_have_their_place(tmp_path: Path, tuned: str, place: str, file: str) -> None:
    from experiments.systems.mem0.system import Mem0Two

    candidate = baseline_candidate(Mem0Two(tuned=tuned).prompts)
    out = export("mem0@2", candidate, "mem0@2", tmp_path / "out", {}, settings={"tuned": tuned})
    prompts = json.loads((out / "manifest.json").read_text())["prompts"]
    (entry,) = [entry for entry in prompts.values() if "place" in entry]
    assert (entry["place"], entry["file"]) == (place, file)


NODES = ("episode_content", "entity_types", "custom_extraction_instructions", "previous_episodes")


def test_what_graphiti_would_not_send_is_warned_of(tmp_path: Path) -> None:
    said = exported("graphiti", tmp_path / "out", placeholders=["episode_content"])["warnings"]
    place = "note, at extract_nodes.extract_message of graphiti@0.31, lacks"
    assert [each for each in said if each.startswith("note")] == [
        f"{place} {{custom_extraction_instructions}}: what you give Graphiti as custom_extraction_instructions is not "
        "sent.",
        f"{place} {{entity_types}}: the model is told of no entity types, your own among them.",
        f"{place} {{previous_episodes}}: the episodes before are not sent.",
    ]
    whole = exported("graphiti", tmp_path / "whole", placeholders=NODES)["warnings"]
    assert not [each for each in whole if each.startswith("note")]


def test_where_graphiti_asks_by_its_own_prompts_is_warned_of(tmp_path: Path) -> None:
    names = {name for name, row in TARGETS["graphiti"].row["places"].items() if "request" in row}
    said, always = TARGETS["graphiti"]().warnings({"extract_nodes.extract_message": ""})
    assert all((f"{name} (" in said) == (name != "extract_nodes.extract_message") for name in names)
    assert "add_episode_bulk, unless it is called with use_combined_extraction=False" in said
    assert TARGETS["graphiti"]().warnings(dict.fromkeys(names, "")) == [always]
    assert exported("graphiti", tmp_path / "out", placeholders=NODES)["warnings"][-2:] == [said, always]


def test_a_prompt_without_what_mem0_stores_with_a_memory_is_exported_with_a_warning(tmp_path: Path) -> None:
    from experiments.systems.mem0.system import Mem0Two

    seeds = baseline_candidate(Mem0Two().prompts)
    earlier = {**seeds, "extract": 'Reply as JSON: {{"memory": [{{"text": "..."}}]}}'}
    for name, texts, warned in (("own", seeds, 0), ("earlier", earlier, 1)):
        out = export("mem0@2", texts, "mem0@2", tmp_path / name, {}, baseline=texts)
        said = json.loads((out / "manifest.json").read_text())["warnings"]
        lost = [each for each in said if "lacks attributed_to: Mem0's memories will not have it" in each]
        assert len(lost) == warned
    with pytest.raises(ContractError, match="extract: the marker 'attributed_to' is missing"):
        export("mem0@2", earlier, "mem0@2", tmp_path / "rewritten", {}, baseline=seeds)


def test_only_targets_that_fit_are_offered(tmp_path: Path) -> None:
    with pytest.raises(
        RunError, match=r"mem0 can be exported to: text, .*mlflow, mem0@0\.1, mem0@1\.0, or by your own"
    ):
        export("mem0", baseline_candidate(Mem0.prompts), "nothing", tmp_path / "out", {})


class _Places(ExporterConformance):
    """The suite on prompts that fit the places."""

    def candidate(self) -> Candidate:
        exporter: Any = self.exporter()
        return {
            called: " ".join(
                ["Mind this", *place.markers, *(f"{{{name}}}" for name in sorted(place.needs | place.may))]
            )
            for place in exporter.places
            for called in names_of(place)
        }


class TestMem0FirstSettings(_Places):
    def exporter(self) -> Mem0FirstSettings:
        return Mem0FirstSettings()


class TestMem0OneSettings(_Places):
    def exporter(self) -> Mem0OneSettings:
        return Mem0OneSettings()


class TestMem0TwoSettings(_Places):
    def exporter(self) -> Mem0TwoSettings:
        return Mem0TwoSettings()


@pytest.mark.parametrize("product", sorted(TARGETS))
def test_a_row_of_a_library_is_an_exporter(product: str) -> None:
    class OfRow(_Places):
        def exporter(self) -> LibraryTarget:
            return TARGETS[product]()

    assert OfRow().problems() == []
