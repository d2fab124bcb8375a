"""An exporter of one's own comes in by `module:Object` or an entry point; what is none is refused in one line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from own_parts import install, write_module

from experiments.systems.exporting.conformance import ExporterConformance
from experiments.systems.exporting.export import export
from experiments.systems.exporting.exporter import EXPORTERS, Exporter, open_exporter
from experiments.systems.exporting.forms import RagTemplate, TextFiles
from experiments.systems.exporting.places import Place
from experiments.systems.rag import Rag
from tracing.errors import ConfigError, ContractError, MemtuneError, RunError
from tracing.systems.prompts import Candidate, render

_names = (f"own_exporter_{number}" for number in itertools.count())

EXPORTER = '''
import json

from tracing.systems.prompts import render


class JsonFile:
    """All prompts in one JSON file."""

    def write(self, candidate, folder):
        (folder / "prompts.json").write_text(json.dumps(dict(candidate)))
        return dict.fromkeys(candidate, "prompts.json")

    def render(self, name, values, folder):
        return render(json.loads((folder / "prompts.json").read_text())[name], values)
'''

BASELINE = {"answer": Rag.prompts["answer"].text}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a module that is nowhere yet; it belongs into the current folder."""
    monkeypatch.chdir(tmp_path)
    return next(_names)


def test_an_export_is_written_by_an_exporter_of_ones_own(own: str, tmp_path: Path) -> None:
    write_module(tmp_path, own, EXPORTER)
    out = export("rag", BASELINE, f"{own}:JsonFile", tmp_path / "out", {})
    assert json.loads((out / "prompts.json").read_text()) == BASELINE
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["target"] == f"{own}:JsonFile"
    assert manifest["prompts"]["answer"]["file"] == "prompts.json"


def test_an_entry_point_is_an_exporter_by_its_name(own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_module(tmp_path / "site", own, EXPORTER)
    install(tmp_path / "site", "memtune.exporters", "one-file", f"{own}:JsonFile")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert "one-file" in EXPORTERS.names()
    assert (export("rag", BASELINE, "one-file", tmp_path / "out", {}) / "prompts.json").is_file()
    with pytest.raises(RunError, match=r"rag can be exported to: text, .*rag, one-file, or by your own"):
        export("rag", BASELINE, "xml", tmp_path / "other", {})


FOUND: dict[str, tuple[str, type[MemtuneError], str]] = {
    "no module": ("", ConfigError, "no module '{own}'"),
    "its import fails": ("1 / 0", ConfigError, "cannot be imported: ZeroDivisionError"),
    "no method": (
        "class JsonFile:\n    def write(self): ...\n",
        ConfigError,
        "a JsonFile without render is not an exporter",
    ),
    "it cannot be made": (EXPORTER + "    def __init__(self, name): ...\n", ConfigError, "cannot be made: TypeError"),
    "it fails": (EXPORTER.replace("json.dumps(", "json.dump("), RunError, "the exporter failed in write: TypeError"),
    "it reads back otherwise": (
        EXPORTER.replace("[name], values)", "[name], values).strip() + '!'"),
        ContractError,
        "reads back differently",
    ),
    "it writes elsewhere": (
        EXPORTER.replace('"prompts.json")', '"../prompts.json")', 1),
        ContractError,
        "into no file of",
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_what_does_not_export_is_told_in_one_line_and_leaves_nothing(own: str, case: str, tmp_path: Path) -> None:
    text, kind, complaint = FOUND[case]
    if text:
        write_module(tmp_path, own, text)
    with pytest.raises(kind) as caught:
        export("rag", BASELINE, f"{own}:JsonFile", tmp_path / "exports" / "out", {})
    assert complaint.replace("{own}", own) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "exports" / "out").exists()


class TestTextFiles(ExporterConformance):
    def exporter(self) -> TextFiles:
        return TextFiles()


class TestRagTemplate(ExporterConformance):
    def exporter(self) -> RagTemplate:
        return RagTemplate()


class Stripping(TextFiles):
    """Loses blanks at the end."""

    def write(self, candidate: Candidate, folder: Path) -> dict[str, str]:
        return super().write({name: text.strip() for name, text in candidate.items()}, folder)


class Unformatted(TextFiles):
    """Puts values in by replacing, and so leaves doubled braces."""

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        text = (folder / f"{name}.txt").read_bytes().decode()
        for place, value in values.items():
            text = text.replace(f"{{{place}}}", value)
        return text


class Counting(TextFiles):
    """Writes another file each time."""

    made = itertools.count()

    def write(self, candidate: Candidate, folder: Path) -> dict[str, str]:
        (folder / "number").write_text(str(next(self.made)))
        return super().write(candidate, folder)


class Remembering(TextFiles):
    """Hands back from memory what it did not write."""

    def write(self, candidate: Candidate, folder: Path) -> dict[str, str]:
        self.kept = candidate
        return super().write({"answer": "always the same {context} {question}"}, folder)

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        return render(self.kept[name], values)


class Boasting(TextFiles):
    """Says that it holds what it does not."""

    prompts = frozenset({"answer", "extract"})


class Misplaced(TextFiles):
    """Has other places than it is given prompts for."""

    places = (Place("system", "answer"),)


class Forgetful(TextFiles):
    """Reads another text than it wrote."""

    def texts(self, source: str) -> dict[str, str]:
        return {name: text.upper() for name, text in super().texts(source).items()}


class Empty(TextFiles):
    """Writes nothing."""

    def write(self, candidate: Candidate, folder: Path) -> dict[str, str]:
        return {}


BROKEN: list[tuple[type[TextFiles], str, str]] = [
    (Empty, "prompts read back as they are", "answer: the exporter wrote it into no file of the folder"),
    (Stripping, "awkward prompts read back as they are", "answer: the exported prompt reads back differently"),
    (Unformatted, "awkward prompts read back as they are", "answer: the exported prompt reads back differently"),
    (Remembering, "every tuned prompt changes what is written", "the same whatever the prompt answer says"),
    (Counting, "the same prompts give the same files", "exported twice, these files differ: ['number']"),
    (Forgetful, "what is read is what was written", "answer: what is read from its file is another text"),
    (Misplaced, "it says rightly which prompts it holds", "it has the places ['system']"),
    (Boasting, "it says rightly which prompts it holds", "it says that it holds ['answer', 'extract']"),
]


@pytest.mark.parametrize(("broken", "test", "complaint"), BROKEN)
def test_an_exporter_that_breaks_the_contract_fails_the_suite(
    broken: type[TextFiles], test: str, complaint: str
) -> None:
    class Suite(ExporterConformance):
        def exporter(self) -> TextFiles:
            return broken()

    found = {name: said for name, _, said in (problem.partition(": ") for problem in Suite().problems())}
    assert complaint in found[test]


def test_every_test_of_the_suite_is_seen_to_fail() -> None:
    tests = {
        name.removeprefix("test_").replace("_", " ") for name in dir(ExporterConformance) if name.startswith("test_")
    }
    assert tests == {test for _, test, _ in BROKEN}


def test_the_built_in_names_open() -> None:
    assert isinstance(open_exporter("text"), TextFiles)
    assert isinstance(open_exporter("rag"), RagTemplate)
    assert all(isinstance(open_exporter(name), Exporter) for name in EXPORTERS.built_in)
