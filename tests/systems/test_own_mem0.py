"""A user's own Mem0: its configuration is the baseline, its parameters count, and its stores and keys stay its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from mem0_model import Mem0Model, decide, is_extraction, is_update
from scripted_server import ScriptedServer, vector_of

from experiments.command import main
from experiments.runs.config_file import load_config
from experiments.runs.run_settings import dump_config, params_of
from experiments.systems.exporting.export import export
from experiments.systems.exporting.importing import import_prompts
from experiments.systems.exporting.written_files import json_or_yaml
from experiments.systems.mem0 import library
from experiments.systems.mem0.own_config import generation_of
from experiments.systems.mem0.system import Mem0
from tracing.errors import ConfigError, ContractError, RunError
from tracing.llm.access import ModelAccess
from tracing.systems.conformance import SMALL_TALK
from tracing.systems.prompts import baseline_candidate, render
from tracing.systems.registry import open_system

Open = Callable[..., ModelAccess]
KEY = "sk-proj-4Kq8Zt1Lm7Wv2Xc9"
EXTRACT = 'Extract what is said of animals, as JSON: {"facts": ["..."]}'
UPDATE = "Prefer NONE. ADD what is new, UPDATE what changed, DELETE what is to be forgotten."


def own(folder: Path, **others: Any) -> dict[str, Any]:
    """A configuration with keys, servers and a store on disk."""
    return {
        "llm": {
            "provider": "openai",
            "config": {"model": "gpt-4.1-mini", "api_key": KEY, "temperature": 0.4, "max_tokens": 700},
        },
        "embedder": {"provider": "openai", "config": {"model": "text-embedding-3-small", "api_key": KEY}},
        "vector_store": {"provider": "qdrant", "config": {"path": str(folder / "qdrant"), "on_disk": True}},
        "history_db_path": str(folder / "history.db"),
        "custom_fact_extraction_prompt": EXTRACT,
        **others,
    }


def built(system: Mem0, access: ModelAccess) -> list[str]:
    candidate = baseline_candidate(system.prompts)
    memory = system.build(SMALL_TALK, candidate, access)
    system.answer(memory, SMALL_TALK.questions[0], candidate, access)
    return [entry["text"] for entry in memory.state["entries"]]


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_asks_as_its_users_mem0_does(scripted_server: ScriptedServer, open_access: Open, tmp_path: Path) -> None:
    scripted_server.script = Mem0Model()
    system = Mem0(config=own(tmp_path))
    built(system, open_access())
    extraction = next(body for body in scripted_server.requests if is_extraction(body))
    update = next(body for body in scripted_server.requests if is_update(body))
    library.load()
    from mem0.configs.prompts import DEFAULT_UPDATE_MEMORY_PROMPT

    assert extraction["messages"][0]["content"] == EXTRACT
    assert update["messages"][0]["content"].startswith(DEFAULT_UPDATE_MEMORY_PROMPT)
    for body in (extraction, update):
        assert (body["temperature"], body["max_tokens"], body["model"]) == (0.4, 700, "scripted")
    assert Mem0(config={}).max_tokens == 2000
    assert Mem0(config=own(tmp_path), max_tokens=90).max_tokens == 90


def test_a_store_that_its_user_has_is_neither_read_nor_written(
    scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    scripted_server.script = Mem0Model()
    config = own(tmp_path)
    theirs = {**config, "llm": {}, "embedder": {}}
    for part, model in (("llm", "m"), ("embedder", "e")):
        theirs[part] = {"config": {"model": model, "api_key": "k", "openai_base_url": scripted_server.base_url}}
    theirs["vector_store"]["config"]["embedding_model_dims"] = len(vector_of("any"))
    memory = library.load().Memory.from_config(theirs)
    memory.add([{"role": "user", "content": "Aurel's cottage is painted black."}], user_id="memtune")
    memory.close()
    memory.vector_store.client.close()
    before = files_in(tmp_path)
    assert any(b"painted black" in content for content in before.values())
    assert not any("black" in text for text in built(Mem0(config=config), open_access(cache=False)))
    assert {name: content for name, content in files_in(tmp_path).items() if name in before} == before


@pytest.mark.parametrize(
    ("store", "sentence"),
    [
        ("qdrant", "Each memory was in a store of its own (qdrant), which began empty."),
        ("pgvector", "(qdrant), which began empty, in place of pgvector: its search may find others."),
    ],
)
def test_what_does_not_count_is_told(store: str, sentence: str, tmp_path: Path) -> None:
    stores = {"vector_store": {"provider": store, "config": {"host": "db", "password": KEY}}}
    graph = {"graph_store": {"provider": "neo4j", "config": {"url": "bolt://db", "password": KEY}}}
    config = own(tmp_path, **stores, **graph)
    told = Mem0(config=config, without=["graph_store"]).caveats(embedded=False)
    assert sentence in " ".join(told)
    assert "models.task in place of llm (openai gpt-4.1-mini) and models.embedding in place of embedder" in told[0]
    assert told[0].endswith("of llm only temperature, max_tokens counted.")
    assert told[2] == "Of the configuration graph_store (neo4j), history_db_path did not count."
    assert Mem0().caveats(embedded=False) == []


def test_a_part_that_a_run_does_not_have_is_refused_unless_it_may_go_without(tmp_path: Path) -> None:
    """A run keeps that it does, and reads what it kept of the configuration again."""
    config = own(tmp_path, reranker={"provider": "cohere"}, graph_store={"provider": "kuzu", "config": {"db": "x"}})
    (tmp_path / "mine.json").write_text(json.dumps(config))
    for without, message in (
        ([], r"graph_store \(kuzu\) is not there in a run: .*without: \[graph_store\]"),
        (["graph_store"], r"mine\.json: reranker \(cohere\) is not there in a run"),
        (["graph"], r"without: unknown: 'graph'; choose of graph_store, reranker"),
    ):
        settings = {"config": "mine.json", "without": without}
        (tmp_path / "run.yaml").write_text(yaml.safe_dump({"system": "mem0", "system_settings": settings}))
        with pytest.raises(ConfigError, match=message):
            load_config(str(tmp_path / "run.yaml"))
    settings = {"config": "mine.json", "without": ["graph_store", "reranker"]}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({"system": "mem0", "system_settings": settings}))
    run = load_config(str(tmp_path / "run.yaml"))
    earlier = {name: value for name, value in run.system_settings.items() if name != "without"}
    for kept in (run.system_settings, earlier):
        assert "graph_store (kuzu), reranker (cohere)" in open_system("mem0", kept).caveats(embedded=False)[2]


@pytest.mark.parametrize(
    ("others", "system"),
    [({}, "mem0"), ({"custom_fact_extraction_prompt": None, "custom_instructions": "Keep pets."}, "mem0@2")],
)
def test_init_begins_with_its_user_s_own(
    others: dict[str, Any], system: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = own(tmp_path, reranker={"provider": "cohere"}, **others)
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({key: value for key, value in config.items() if value}))
    with pytest.raises(SystemExit) as ended:
        main(["init", str(tmp_path / "new"), "--mem0", str(tmp_path / "mine.yaml")])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert f"system: {system}, seen by custom_" in printed
    assert "stays: temperature, max_tokens, vector_store qdrant; " in printed
    assert "left out: reranker (cohere): what is found would be in another order" in printed
    assert "told in each report: Each memory was in a store of its own (qdrant), which began empty." in printed
    assert KEY not in printed
    run = load_config(str(tmp_path / "new" / "experiment.yaml"))
    assert (run.system, run.system_settings["without"]) == (system, ["reranker"])
    own_prompts = {key: value for key, value in config.items() if key.startswith("custom_") and value}
    assert {key: run.system_settings["config"][key] for key in own_prompts} == own_prompts


def test_a_store_that_needs_a_folder_gets_one_of_its_own(
    scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    pytest.importorskip("faiss")
    options = {"path": str(tmp_path / "faiss" / "mine"), "distance_strategy": "cosine"}
    scripted_server.script = Mem0Model()
    system = Mem0(config=own(tmp_path, vector_store={"provider": "faiss", "config": options}))
    assert built(system, open_access()) == built(Mem0(), open_access())
    assert system.instance.store_options == {"distance_strategy": "cosine"}
    assert not list(tmp_path.glob("faiss"))


def test_a_store_whose_library_is_missing_is_told(open_access: Open, tmp_path: Path) -> None:
    system = Mem0(config=own(tmp_path, vector_store={"provider": "chroma"}))
    with pytest.raises(ConfigError, match=r"vector_store: chroma needs a library .*chromadb.*; install it for"):
        built(system, open_access())


def test_memories_are_those_of_the_ids_that_are_given(
    scripted_server: ScriptedServer, open_access: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_server.script = Mem0Model(update=decide("NONE"))
    ids = {"agent_id": "support", "run_id": "r7"}
    system, access = Mem0(ids=ids, window=1), open_access()
    memory = library.load().Memory
    told: list[dict[str, Any]] = []
    add, search = memory.add, memory.search

    def noting(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(self: Any, *args: Any, **arguments: Any) -> Any:
            told.append({key: value for key, value in arguments.items() if key.endswith("_id")})
            return call(self, *args, **arguments)

        return called

    monkeypatch.setattr(memory, "add", noting(add))
    monkeypatch.setattr(memory, "search", noting(search))
    assert built(system, access)[0] == next(SMALL_TALK.turns()).spoken
    assert told
    assert all(arguments == ids for arguments in told)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("none.json", r"system_settings\.config: none\.json: cannot be read \(No such file"),
        ({"custom_instructions": "x"}, r"config: custom_instructions: a key of mem0ai 2\.x, which 1\.0\.x ignores"),
        ({"custom_fact_prompt": "x"}, r"config: custom_fact_prompt: unknown key.*custom_fact_extraction_prompt"),
        ({"llm": {"config": {"temperature": "warm"}}}, r"config: llm\.config\.temperature: .*number"),
        (["llm"], r"config: give the path of a JSON or YAML file of Mem0, or its keys, not list"),
    ],
)
def test_a_configuration_that_mem0_would_not_take_is_refused(config: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_system("mem0", {"config": config})


def test_a_prompt_that_cannot_work_is_refused_by_its_key() -> None:
    with pytest.raises(ContractError, match=r"custom_fact_extraction_prompt: .*facts"):
        open_system("mem0", {"config": {"custom_fact_extraction_prompt": "Be brief."}})


@pytest.mark.parametrize("ids", [{}, {"user": "x"}, {"user_id": 3}, "x"])
def test_ids_that_mem0_does_not_know_are_refused(ids: Any) -> None:
    with pytest.raises(ConfigError, match=r"system_settings\.ids: .*user_id, agent_id, run_id"):
        open_system("mem0", {"ids": ids})


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_run_keeps_what_it_takes_of_the_file_and_none_of_its_secrets(suffix: str, tmp_path: Path) -> None:
    config = own(tmp_path, custom_update_memory_prompt=UPDATE)
    (tmp_path / f"mine.{suffix}").write_text(json.dumps(config) if suffix == "json" else yaml.safe_dump(config))
    (tmp_path / "run.yaml").write_text(f"system: mem0\nsystem_settings: {{config: mine.{suffix}}}\n")
    run = load_config(str(tmp_path / "run.yaml"))
    (tmp_path / f"mine.{suffix}").unlink()
    system = open_system(run.system, run.system_settings)
    assert system.prompts["extract"].text == EXTRACT.replace("{", "{{").replace("}", "}}")
    assert system.prompts["update"].text == UPDATE
    (tmp_path / "kept.yaml").write_text(dump_config(run))
    assert load_config(str(tmp_path / "kept.yaml")).system_settings == run.system_settings
    for kept in (dump_config(run), params_of(run), system.prompts, run):
        assert KEY not in str(kept)


def test_a_file_that_cannot_be_parsed_is_told_without_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(f"llm: {{api_key: {KEY}\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml: no configuration") as refused:
        Mem0(config=str(tmp_path / "mine.yaml"))
    assert KEY not in str(refused.value)


def test_what_to_give_for_a_dict_in_a_program_is_told(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text('"""Ours."""\n\nCONFIG = {"llm": {"provider": "openai"}}\n')
    told = r"^\S*shop\.py: no configuration \([^/]*\); give JSON \(of a dict in a program: json\.dumps\) or YAML$"
    with pytest.raises(ConfigError, match=told):
        generation_of(tmp_path / "shop.py")


@pytest.mark.parametrize(("suffix", "extract"), [("json", EXTRACT), ("yaml", None)])
def test_the_tuned_prompts_go_back_into_the_file_they_came_from(
    suffix: str, extract: str | None, tmp_path: Path
) -> None:
    config = own(tmp_path)
    if extract is None:  # the library's own is the baseline, and stays where it is
        del config["custom_fact_extraction_prompt"]
    mine = tmp_path / f"mine.{suffix}"
    mine.write_text(json.dumps(config) if suffix == "json" else yaml.safe_dump(config))
    before = mine.read_bytes()
    settings = {"config": str(mine)}
    today = baseline_candidate(open_system("mem0", settings).prompts)
    if extract is not None:
        assert import_prompts("mem0", None, settings=settings).candidate == today
    candidate = today | {"update": UPDATE}
    out = export("mem0", candidate, "mem0@1.0", tmp_path / "out", {}, settings=settings, into=mine)
    assert _kept(out) == []
    filled = json_or_yaml(out / mine.name)
    assert filled == config | {"custom_update_memory_prompt": UPDATE}
    assert mine.read_bytes() == before
    memory = library.load().Memory.from_config(filled)
    assert (memory.custom_fact_extraction_prompt, memory.custom_update_memory_prompt) == (extract, UPDATE)
    memory.close()
    memory.vector_store.client.close()
    assert baseline_candidate(Mem0(config=str(out / mine.name)).prompts) == candidate


def test_a_prompt_that_another_file_sets_otherwise_is_told(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.json", tmp_path / "other.json"
    mine.write_text(json.dumps(own(tmp_path)))
    other.write_text(json.dumps(own(tmp_path) | {"custom_fact_extraction_prompt": "Only what is about food."}))
    settings = {"config": str(mine)}
    candidate = baseline_candidate(open_system("mem0", settings).prompts) | {"update": UPDATE}
    out = export("mem0", candidate, "mem0@1.0", tmp_path / "out", {}, settings=settings, into=other)
    assert _kept(out) == [
        "other.json keeps its own custom_fact_extraction_prompt, "
        "which is not the text that these prompts were measured with."
    ]


def _kept(out: Path) -> list[str]:
    warnings = json.loads((out / "manifest.json").read_text())["warnings"]
    return [warning for warning in warnings if "keeps its own" in warning]


def test_a_target_without_keys_cannot_be_written_into_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    with pytest.raises(RunError, match=r"--into .*mine\.json: text writes no keys"):
        export("mem0", baseline_candidate(Mem0.prompts), "text", tmp_path / "out", {}, into=tmp_path / "mine.json")
    assert not (tmp_path / "out").exists()


MEMORIES = '{"memory": [{"text": "Birte plays bassoon.", "attributed_to": "user"}]}'
NAMED = "Name the person in each memory, and keep every concrete value."


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mem0@0.1", pytest.param("mem0@1.0", marks=pytest.mark.thorough)])
def test_the_generations_before_2_take_it_too(
    name: str, scripted_server: ScriptedServer, open_access: Open, environments: Callable[[str], None], tmp_path: Path
) -> None:
    environments(name)
    scripted_server.script = Mem0Model()
    mine = tmp_path / "mine.yaml"
    mine.write_text(yaml.safe_dump(own(tmp_path)))
    system = cast("Mem0", open_system(name, {"config": str(mine), "ids": {"agent_id": "support"}}))
    mine.unlink()
    assert built(system, open_access())
    extraction, update = (next(filter(is_one, scripted_server.requests)) for is_one in (is_extraction, is_update))
    assert extraction["messages"][0]["content"] == EXTRACT
    assert update["messages"][0]["content"].startswith("You are a smart memory manager")
    assert (update["temperature"], update["max_tokens"]) == (0.4, 700)
    assert not list(tmp_path.glob("*qdrant*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "settings", "prompts"),
    [
        ({"custom_instructions": NAMED}, {}, {"instructions", "answer"}),
        ({"custom_instructions": NAMED}, {"tuned": "system"}, {"extract", "answer"}),
        ({}, {}, {"extract", "answer"}),
    ],
)
def test_mem0_2_is_tuned_where_its_user_has_a_text_and_sends_all_of_them(
    config: dict[str, str],
    settings: dict[str, str],
    prompts: set[str],
    scripted_server: ScriptedServer,
    open_access: Open,
    environments: Callable[[str], None],
) -> None:
    environments("mem0@2")
    scripted_server.script = lambda body: MEMORIES
    system = cast("Mem0", open_system("mem0@2", {**settings, "config": config, "ids": {"agent_id": "support"}}))
    assert set(system.prompts) == prompts
    assert built(system, open_access()) == ["Birte plays bassoon."]
    system_message, user_message = (message["content"] for message in scripted_server.requests[0]["messages"])
    whole = import_prompts("mem0@2", None).candidate["extract"]
    assert system_message.startswith(render(whole, {}))
    assert "agent" in system_message[len(render(whole, {})) :]
    assert (NAMED in user_message) == bool(config)


def test_instructions_that_are_not_there_cannot_be_tuned() -> None:
    with pytest.raises(ConfigError, match=r"system_settings\.tuned: config has no custom_instructions"):
        open_system("mem0@2", {"config": {}, "tuned": "instructions"})
