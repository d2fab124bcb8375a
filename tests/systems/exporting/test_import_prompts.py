"""The prompts that a user has today come in as they are, and go out again without a changed byte."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from awkward_texts import RAW, TEMPLATES
from hypothesis import HealthCheck, given, settings

from experiments.systems.exporting.export import export
from experiments.systems.exporting.formats.constants import literal
from experiments.systems.exporting.forms import TextFiles
from experiments.systems.exporting.importing import import_prompts, write_prompts
from experiments.systems.mem0.system import Mem0
from experiments.systems.rag import Rag
from tracing.errors import ContractError, MemtuneError, RunError

FEW = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
FACTS, UPDATE = "custom_fact_extraction_prompt", "custom_update_memory_prompt"
EXTRACT_ENDS, UPDATE_ENDS = '"facts" JSON', "ADD UPDATE DELETE NONE"
ANSWER = Rag.prompts["answer"].text


@pytest.mark.slow
@FEW
@given(text=TEMPLATES)
def test_a_folder_of_texts_comes_out_as_it_went_in(text: str) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "in").mkdir()
        (folder / "in" / "answer.txt").write_bytes(text.encode())
        write_prompts(import_prompts("rag", str(folder / "in")), folder / "prompts")
        out = export("rag", import_prompts("rag", str(folder / "prompts")).candidate, "text", folder / "out", {})
        assert (out / "answer.txt").read_bytes() == text.encode()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["json", "yaml", "py"])
@FEW
@given(extract=RAW, update=RAW)
def test_a_configuration_of_mem0_comes_out_as_it_went_in(suffix: str, extract: str, update: str) -> None:
    keys = {FACTS: extract + EXTRACT_ENDS, UPDATE: update + UPDATE_ENDS}
    config = {"llm": {"provider": "openai", "config": {"model": "m"}}, **keys}
    texts = {
        "json": json.dumps(config),
        "yaml": yaml.safe_dump(config),
        "py": f"EXTRACT = {literal(keys[FACTS])}\nconfig = {{{FACTS!r}: EXTRACT, {UPDATE!r}: {keys[UPDATE]!r}}}\n",
    }
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / f"config.{suffix}").write_bytes(texts[suffix].encode())
        imported = import_prompts("mem0", str(folder / f"config.{suffix}"))
        out = export("mem0", imported.candidate, "mem0@1.0", folder / "out", {})
        exported = json.loads((out / "mem0.json").read_bytes())
        again = import_prompts("mem0", str(out))
    assert imported.names == {"extract": FACTS, "update": UPDATE}
    assert imported.candidate["answer"] == Mem0.prompts["answer"].text
    assert exported == keys
    assert again.candidate == imported.candidate


@pytest.mark.parametrize("target", ["text", "json", "dotenv", "python", "dspy", "mlflow"])
def test_an_export_comes_in_again_by_its_folder(tmp_path: Path, target: str) -> None:
    seed = {"answer": "Tea costs $5 «é» 😀 {{x}}\n{context}\n\nAsked: {question}"}
    out = export("rag", seed, target, tmp_path / "out", {})
    imported = import_prompts("rag", str(out))
    assert (imported.candidate, imported.form) == (seed, target)


def test_a_program_of_dspys_own_comes_in(tmp_path: Path) -> None:
    import dspy

    class Program(dspy.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            said = "Answer {question} from {context} alone.\nReply {like: this}."
            self.answer = dspy.ChainOfThought(dspy.Signature("context, question -> reply", said))

    Program().save(str(tmp_path / "program.json"))
    imported = import_prompts("rag", str(tmp_path / "program.json"))
    assert (imported.names, imported.form) == ({"answer": "answer.predict"}, "dspy")
    assert imported.candidate["answer"] == "Answer {question} from {context} alone.\nReply {{like: this}}."


@pytest.mark.slow
def test_the_prompts_of_a_run_come_in_from_the_registry_that_has_them(tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    client = MlflowClient(tracking_uri=uri, registry_uri=uri)
    client.register_prompt("memtune.rag.answer", "first {{ context }} {{question}}")
    client.register_prompt("memtune.rag.answer", "second {{context}} {{question}} {}")
    assert import_prompts("rag", uri).candidate["answer"] == "second {context} {question} {{}}"
    client.set_prompt_alias("memtune.rag.answer", "champion", 1)
    assert import_prompts("rag", uri).candidate["answer"] == "first {context} {question}"


def test_a_store_that_mlflow_would_upgrade_is_read_and_left_as_it_is(tmp_path: Path) -> None:
    seed = {"answer": ANSWER}
    store = changed(export("rag", seed, "mlflow", tmp_path / "out", {}) / "mlflow.db", "DROP TABLE tags")
    before = store.read_bytes()
    for source in (str(store), f"sqlite:///{store}"):
        assert import_prompts("rag", source).candidate == seed
    assert store.read_bytes() == before


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    database = changed(tmp_path / "my #1 app.db", "CREATE TABLE notes(text)")
    before = database.read_bytes()
    for source in (str(database), f"sqlite:///{database}"):
        with pytest.raises(RunError, match="not a store of MLflow's; give --from"):
            import_prompts("rag", source)
    assert database.read_bytes() == before


def changed(file: Path, statement: str) -> Path:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(statement)
    return file


def test_the_instructions_of_mem0_2_and_its_whole_prompt_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "mem0.yaml").write_text("custom_instructions: Mind the {tea}.\n")
    imported = import_prompts("mem0@2", str(tmp_path / "mem0.yaml"), settings={"tuned": "instructions"})
    assert imported.candidate["instructions"] == "Mind the {{tea}}."
    with pytest.raises(RunError, match="has custom_instructions, but mem0@2 has the prompts extract, answer"):
        import_prompts("mem0@2", str(tmp_path / "mem0.yaml"))


def test_a_name_of_ones_own_is_mapped(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(f"QA_TEMPLATE = {ANSWER + ' now'!r}\n")
    imported = import_prompts("rag", str(tmp_path / "settings.py"), mapping={"answer": "QA_TEMPLATE"})
    assert imported.candidate == {"answer": ANSWER + " now"}


def test_without_a_library_the_systems_own_seeds_come_in(tmp_path: Path) -> None:
    imported = import_prompts("rag", None)
    assert (imported.candidate, imported.names, imported.form) == ({"answer": ANSWER}, {}, None)
    write_prompts(imported, tmp_path / "prompts")
    assert (tmp_path / "prompts" / "answer.txt").read_text() == ANSWER


def test_a_configuration_that_sets_no_prompt_leaves_those_of_the_library(tmp_path: Path) -> None:
    (tmp_path / "mem0.yaml").write_text("llm: {provider: openai, config: {model: m, api_key: none}}\n")
    settings = {"config": str(tmp_path / "mem0.yaml")}
    assert import_prompts("mem0", None, settings=settings).candidate == import_prompts("mem0", None).candidate


BAD: dict[str, tuple[str, str, str, str, type[MemtuneError], str]] = {
    "no file": ("rag", "", "", "", RunError, "no such file or folder; give --from"),
    "no known form": ("rag", "x.bin", "1", "", RunError, "prompts in no known form; say which with --format"),
    "no prompts in it": ("rag", "x.json", "{}", "", RunError, "has no prompts, but rag has the prompts answer"),
    "other names": ("rag", "x.json", '{"qa": "x"}', "", RunError, "has qa, but rag has the prompts answer; say which"),
    "no JSON": ("rag", "x.json", "{", "", RunError, "no JSON"),
    "a broken contract": (
        "rag",
        "x.json",
        '{"answer": "{context}"}',
        "",
        ContractError,
        "answer (answer): the placeholder {question} is missing",
    ),
    "a form that is not read": (
        "rag",
        "x.json",
        "{}",
        "test_import_prompts:Unread",
        RunError,
        "no prompts can be read from it; choose one of",
    ),
    "a template without its key": ("rag", "x.json", "{}", "rag", RunError, "holds no text 'answer_template'"),
    "another generation's key": (
        "mem0",
        "x.yaml",
        "custom_instructions: be kind\n",
        "",
        RunError,
        "custom_instructions is a prompt of mem0@2, which mem0@1.0 ignores; import it for mem0@2",
    ),
    "a configuration without prompts": ("mem0", "x.yaml", "llm: {}\n", "", RunError, "or leave out --from for those"),
    "no UTF-8": ("rag", "x.json", "\udcff", "", RunError, "cannot be read (not UTF-8 at byte 0)"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_come_in_is_told_in_one_line(tmp_path: Path, case: str) -> None:
    system, name, text, form, kind, said = BAD[case]
    source = tmp_path / (name or "nowhere")
    if name:
        source.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(kind) as caught:
        import_prompts(system, str(source), form=form or None)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_mapping_that_names_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"qa": "x"}')
    with pytest.raises(RunError, match="--map reply=qa: rag has no such prompt; it has answer"):
        import_prompts("rag", str(tmp_path / "x.json"), mapping={"reply": "qa"})
    with pytest.raises(RunError, match=r"--map answer=x: .* has no such text; it has qa"):
        import_prompts("rag", str(tmp_path / "x.json"), mapping={"answer": "x"})


def test_nothing_that_exists_is_written_over_by_an_import(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "answer.txt").write_text("mine")
    with pytest.raises(RunError, match="exists already"):
        write_prompts(import_prompts("rag", None), tmp_path / "prompts")
    assert (tmp_path / "prompts" / "answer.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["prompts"]


def test_an_error_of_an_exporter_of_ones_own_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the exporter failed in texts: KeyError: 'text'"):
        import_prompts("rag", str(tmp_path), form="test_import_prompts:Failing")
    with pytest.raises(RunError, match="the exporter failed in prove: KeyError: 'text'"):
        export("rag", {"answer": ANSWER}, "test_import_prompts:Failing", tmp_path / "out", {}, verify=True)
    assert list(tmp_path.iterdir()) == []


class Unread:
    """An exporter that reads nothing."""

    def write(self, candidate: Mapping[str, str], folder: Path) -> dict[str, str]:
        return {}

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        return ""


class Failing(TextFiles):
    """Fails wherever a user's exporter may."""

    def recognises(self, source: str) -> bool:
        return True

    def texts(self, source: str) -> dict[str, str]:
        raise KeyError("text")

    def prove(self, folder: Path) -> list[str]:
        raise KeyError("text")
