"""What is exported in a general format reads back byte by byte, or is refused with the reason."""

from __future__ import annotations

import ast
import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from awkward_texts import PIECES, RAW, TEMPLATES
from hypothesis import HealthCheck, given, settings

from experiments.systems.exporting.conformance import ExporterConformance
from experiments.systems.exporting.export import export, written
from experiments.systems.exporting.exporter import open_exporter
from experiments.systems.exporting.formats.constants import (
    DotenvConstants,
    JsonConstants,
    PythonConstants,
    python_constants,
)
from experiments.systems.exporting.formats.dspy_state import DspyState
from experiments.systems.exporting.formats.literal_templates import (
    from_double_braces,
    from_names,
    with_double_braces,
    with_names,
)
from experiments.systems.exporting.formats.mlflow_registry import MlflowRegistry, registered
from experiments.systems.fact_memory import FactMemory
from experiments.systems.rag import Rag
from tracing.errors import ContractError, RunError
from tracing.systems.prompts import escaped, placeholders_of, render

BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}
MANY = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FEWER = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


class TestJsonConstants(ExporterConformance):
    def exporter(self) -> JsonConstants:
        return JsonConstants()


class TestDotenvConstants(ExporterConformance):
    def exporter(self) -> DotenvConstants:
        return DotenvConstants()


class TestPythonConstants(ExporterConformance):
    def exporter(self) -> PythonConstants:
        return PythonConstants()


class TestDspyState(ExporterConformance):
    def exporter(self) -> DspyState:
        return DspyState()


class TestMlflowRegistry(ExporterConformance):
    def exporter(self) -> MlflowRegistry:
        return MlflowRegistry()

    def test_the_same_prompts_give_the_same_files(self) -> None:
        """Not here: a store has the times at which it was written."""


@pytest.mark.parametrize("name", ["text", "json", "dotenv", "python", "dspy"])
@FEWER
@given(template=TEMPLATES)
def test_a_text_reads_back_byte_by_byte_or_is_refused(name: str, template: str) -> None:
    exporter: Any = open_exporter(name)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        try:
            files = written(exporter, {"answer": template}, folder)
        except ContractError:
            assert name in ("dotenv", "dspy")
            return
        source = folder if name == "text" else folder / files["answer"]
        assert exporter.recognises(str(source))
        (text,) = exporter.texts(str(source)).values()
        assert exporter.template(text, {"context", "question"}) == template


@pytest.mark.slow
def test_the_texts_of_a_real_registry_read_back_byte_by_byte(tmp_path: Path) -> None:
    candidate = {f"p{number}": escaped(f"x{piece}y") for number, piece in enumerate(PIECES)}
    exporter, refused = MlflowRegistry(), []
    for name, text in list(candidate.items()):
        with contextlib.suppress(ContractError):
            registered(name, text)
            continue
        refused.append(render(candidate.pop(name), {}))
    assert refused == ["x{{context}}y", "x{{{ x }}}y", "x{% if %}y"]
    written(exporter, candidate, tmp_path)
    texts = exporter.texts(str(tmp_path / "mlflow.db"))
    assert {name: exporter.template(text, ()) for name, text in texts.items()} == candidate
    assert exporter.recognises(f"sqlite:///{tmp_path / 'mlflow.db'}")


@MANY
@given(template=TEMPLATES)
def test_a_template_survives_a_syntax_of_single_and_of_double_braces(template: str) -> None:
    values = {"context": "{{question}}", "question": "{context} $x"}
    for there, back in (
        (with_names, lambda text: from_names(text, set(values))),
        (with_double_braces, from_double_braces),
    ):
        try:
            text = there(template)
        except ContractError:
            continue
        assert back(text) == template
        assert render(back(text), values) == render(template, values)


@MANY
@given(text=RAW)
def test_a_plain_text_survives_as_a_template(text: str) -> None:
    assert render(escaped(text), {}) == text
    assert placeholders_of(escaped(text)) == set()
    assert from_names(text, ()) == escaped(text)


def test_a_literal_text_that_would_read_as_a_placeholder_is_refused() -> None:
    with pytest.raises(ContractError, match=r"the literal text \{context\} would read as a placeholder"):
        with_names("Use {context}, not {{context}}.")
    with pytest.raises(ContractError, match="would read as part of a variable"):
        with_double_braces("Use {context}, not {{{{context}}}}.")


def test_a_python_export_is_a_module_with_a_constant_for_each_prompt(tmp_path: Path) -> None:
    out = export("fact-memory", BASELINE, "python", tmp_path / "out", {})
    names: dict[str, str] = {}
    for node in ast.parse((out / "prompts.py").read_text()).body[1:]:
        assert isinstance(node, ast.Assign)
        assert isinstance(node.targets[0], ast.Name)
        names[node.targets[0].id] = ast.literal_eval(node.value)
    assert names == {f"{name.upper()}_PROMPT": text for name, text in BASELINE.items()}


def test_a_dotenv_export_loads_with_python_dotenv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dotenv import dotenv_values

    text = "A \"quoted\" 'text' \\n $HOME\r\n{context}\n# {question} "
    out = export("rag", {"answer": text}, "dotenv", tmp_path / "out", {})
    monkeypatch.setenv("HOME", "elsewhere")
    assert dotenv_values(out / "prompts.env") == {"ANSWER_PROMPT": text}
    with pytest.raises(ContractError, match=r"answer: python-dotenv would replace"):
        export("rag", {"answer": "${context} {question}"}, "dotenv", tmp_path / "other", {})
    assert not (tmp_path / "other").exists()


def test_prompts_whose_constants_would_have_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="would have the same name"):
        PythonConstants().write({"my-answer": "a", "my_answer": "b"}, tmp_path)


def test_what_dspy_would_change_is_refused(tmp_path: Path) -> None:
    for text in (" {context} {question}", "{context}\t{question}", "{context} {question}\n\n"):
        with pytest.raises(ContractError, match="DSPy strips instructions like a docstring"):
            export("rag", {"answer": text}, "dspy", tmp_path / "out", {})
    assert list(tmp_path.iterdir()) == []


def test_an_export_for_dspy_says_which_program_asks_as_was_measured(tmp_path: Path) -> None:
    out = export("rag", {"answer": Rag.prompts["answer"].text}, "dspy", tmp_path / "out", {})
    (warning,) = json.loads((out / "manifest.json").read_text())["warnings"]
    assert warning.startswith("load the program by dspy_program.py: ")
    assert (out / "dspy_program.py").is_file()


@pytest.mark.parametrize("text", ["{reply} {config}", "Give {{data}}."])
def test_a_name_that_dspy_uses_itself_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="answer: "):
        DspyState().write({"answer": text}, tmp_path)


def test_a_jinja_template_is_refused_by_the_registry(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="take it for a Jinja template"):
        export("rag", {"answer": "{{% x %}} {context} {question}"}, "mlflow", tmp_path / "out", {})
    with pytest.raises(ContractError, match="it is a Jinja template"):
        MlflowRegistry().template("{% if x %}{{x}}{% endif %}", ())


def test_a_registry_export_is_loaded_by_mlflow_itself(tmp_path: Path) -> None:
    out = export("rag", {"answer": Rag.prompts["answer"].text}, "mlflow", tmp_path / "out", {}, verify=True)
    (proof,) = json.loads((out / "manifest.json").read_text())["verified"]
    assert proof.startswith("answer: MLflow 3.")
    assert proof.endswith("by prompts:/answer@champion")


def test_python_source_is_read_and_never_executed(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(
        "raise SystemExit\nTEXT = 'from a name'\nconfig = {'key': TEXT, 'other': 'own'}\nMemory(argument='given')\n"
    )
    assert python_constants(str(tmp_path / "settings.py")) == {
        "TEXT": "from a name",
        "key": "from a name",
        "other": "own",
        "argument": "given",
    }
    (tmp_path / "broken.py").write_text("x = (")
    with pytest.raises(RunError, match=r"broken\.py: no Python"):
        python_constants(str(tmp_path / "broken.py"))
