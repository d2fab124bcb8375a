"""Tuned prompts go back into the program they are from, as a patch in the syntax of each place."""

from __future__ import annotations

import asyncio
import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from scripted_server import ScriptedServer

from experiments.command import cli
from experiments.systems.wrapped.places import PromptPlace, place_of
from experiments.systems.wrapped.source_patch import source_patch
from experiments.systems.wrapped.system import WrappedProgram
from tracing.errors import ConfigError, ContractError, RunError
from tracing.systems.suite.notebook import Notebook

PROGRAMS = Path(__file__).parents[2] / "programs"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted_server: ScriptedServer) -> Iterator[Path]:
    """A copy of the programs in a repository of git, where they are imported from."""
    copy = tmp_path / "programs"
    shutil.copytree(PROGRAMS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["git", "init", "-q", "."], cwd=copy, check=True)
    monkeypatch.chdir(copy)
    monkeypatch.syspath_prepend(str(copy))
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    _forget()
    yield copy
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.endswith("_program") or name.startswith("wrap_")]:
        module = sys.modules.pop(name)
        if hasattr(module, "watched"):
            module.watched.undo()
    importlib.invalidate_caches()


def applied(folder: Path, module: str, tuned: Mapping[str, str]) -> WrappedProgram:
    """The program once git has applied the patch with some tuned prompts."""
    system = importlib.import_module(module).system
    baseline = {name: spec.text for name, spec in system.prompts.items()}
    patch, left = source_patch(system, {**baseline, **tuned}, baseline, folder)
    assert left == []
    (folder / "tuned.patch").write_bytes(patch.encode())
    subprocess.run(["git", "apply", "tuned.patch"], cwd=folder, check=True)
    _forget()
    changed: WrappedProgram = importlib.import_module(module).system
    assert {name: spec.text.strip() for name, spec in changed.prompts.items()} == {
        name: text.strip() for name, text in {**baseline, **tuned}.items()
    }
    return changed


def sent(server: ScriptedServer) -> str:
    return "\n".join(str(message["content"]) for message in server.requests[-1]["messages"])


TUNED = 'Keep {"braces": 1}, a \\ and "quotes" and 100 %, «é»:'
ESCAPED = TUNED.replace("{", "{{").replace("}", "}}")


def test_a_constant_and_an_f_string_of_a_module(folder: Path, scripted_server: ScriptedServer) -> None:
    note = f"{ESCAPED}\n\nSaid: {{turns}}"
    merge = f'{ESCAPED}\nNew note: {{note}}\nOld:\n{{listed}}\nas {{{{"replaces": null, "note": ""}}}}'
    applied(folder, "wrap_notes", {"note": note, "merge": merge})
    import notes_program

    scripted_server.script = lambda body: json.dumps({"replaces": None, "note": "Mara sails a boat."})
    memory = notes_program.Memory(":memory:")
    asyncio.run(memory.add(["Mara: I sail a boat."]))
    assert sent(scripted_server) == f"{TUNED}\n\nSaid: Mara: I sail a boat."
    asyncio.run(memory.store("Mara sails a boat."))
    stored = '0: {"replaces": null, "note": "Mara sails a boat."}'
    end = 'as {"replaces": null, "note": ""}'
    assert sent(scripted_server) == f"{TUNED}\nNew note: Mara sails a boat.\nOld:\n{stored}\n{end}"
    assert "memtune" not in (folder / "notes_program.py").read_text()


def test_a_constant_a_file_of_jinja_and_a_key_of_yaml(folder: Path, scripted_server: ScriptedServer) -> None:
    tuned = {
        "note": f"{ESCAPED} {{turns}}",
        "reply": f"Asked: {{question}}\n{ESCAPED}\n{{notes}}",
        "manner": f"{ESCAPED}\n\nBe brief.\n",
    }
    applied(folder, "wrap_helper", tuned)
    import helper_program

    helper_program.take_notes(["Mara: I sail."])
    assert sent(scripted_server) == f"{TUNED} Mara: I sail."
    helper_program.answer(["Mara sails."], "Who sails?")
    assert sent(scripted_server) == f"{TUNED}\n\nBe brief.\n\nAsked: Who sails?\n{TUNED}\n\n- Mara sails.\n"
    assert (folder / "prompts.yaml").read_text().startswith("# the prompts\nanswer:\n  system: |\n    Keep {")
    assert (folder / "prompts.yaml").read_text().endswith("  model: x\n")


def test_a_key_of_json_is_written_as_json_whatever_is_around_it(tmp_path: Path) -> None:
    file = tmp_path / "prompts.json"
    file.write_text('{\n  "n": 3,\n  "answer": {"system": "Say \\"yes\\" to {question}\\nnow"}\n}\n')
    place = PromptPlace("prompts.json:answer.system", file, "answer.system")
    assert list(place.text_keys()) == ["n", "answer.system"]
    after = place.written(place.content(), place.template().text, 'Say "no" to {question}\n\tand «why»')
    assert json.loads(after) == {"n": 3, "answer": {"system": 'Say "no" to {question}\n\tand «why»'}}
    file.write_text("a: [")
    with pytest.raises(ConfigError, match=r"prompts.json is not valid \(ParserError: while parsing"):
        place.template()


def test_what_was_changed_since_is_left_out_with_the_reason(folder: Path) -> None:
    system = importlib.import_module("wrap_notes").system
    baseline = {name: spec.text for name, spec in system.prompts.items()}
    file = folder / "notes_program.py"
    file.write_text(file.read_text().replace("New note: {note}", "New note: {self.model}"))
    tuned = {**baseline, "merge": f"Merge. {baseline['merge']}", "note": f"Note. {baseline['note']}"}
    patch, left = source_patch(system, tuned, baseline, folder)
    assert left == [
        "the prompt merge is not in the patch: notes_program:Memory.store: what stands there is no longer what was "
        "tuned; tune it again"
    ]
    assert "+NOTE = " in patch
    assert "Merge. " not in patch
    with pytest.raises(RunError, match="no longer what was tuned"):
        source_patch(system, {**baseline, "merge": tuned["merge"]}, baseline, folder)


def test_a_program_elsewhere_and_another_system_are_named(folder: Path, tmp_path: Path) -> None:
    system = importlib.import_module("wrap_notes").system
    baseline = {name: spec.text for name, spec in system.prompts.items()}
    with pytest.raises(RunError, match="go to the folder of the program"):
        source_patch(system, {**baseline, "note": f"Note. {baseline['note']}"}, baseline, tmp_path / "other")
    with pytest.raises(RunError, match=r"only of a program of memtune\.system"):
        source_patch(Notebook(), {}, {}, folder)


@pytest.mark.parametrize(
    "source",
    [
        'X = "A prompt with {field} in it"\r\ny = 1\r\n',
        "X = (\n    'A prompt with {field}'\n    ' in it'\n)\ny = 1\n",
        'é, X = 1, 2\nX = """A prompt with {field} in it"""  # kept\ny = 1\n',
        "def X(field):\n    '''A docstring that is longer than it.'''\n    return f'A prompt with {field} in it'\n",
    ],
)
def test_the_rest_of_a_file_stays(source: str, tmp_path: Path) -> None:
    (tmp_path / "prompts_here.py").write_bytes(source.encode())
    place = place_of("prompts_here:X", tmp_path)
    before, text = place.template().text, 'One "quoted"\nline, {field}\nend'
    after = place.written(place.content(), before, text)
    values: dict[str, Any] = {}
    exec(compile(after, "prompts_here", "exec"), values)  # noqa: S102 (the test's own source)
    made = values["X"]("F") if callable(values["X"]) else values["X"].format(field="F")
    assert made == 'One "quoted"\nline, F\nend'
    kept = [line for line in source.split("\n") if "prompt" not in line and "in it" not in line]
    assert [line for line in kept if line not in after.split("\n")] == []


OLDER = """
from string import Template

NOTE = "As {}: keep 100 %% of\\n%(said)s"
ANSWER = Template("For $$5: ${notes}s, asked\\n$question")


def note(said):
    return NOTE % {"said": said}


def answer(notes, question):
    return ANSWER.substitute(notes=notes, question=question)
"""


def test_the_operator_of_percent_and_a_template_of_string_fill_what_was_tuned(folder: Path) -> None:
    file = folder / "older_program.py"
    file.write_text(OLDER)
    tuned = {"NOTE": f"{ESCAPED}\n{{said}}", "ANSWER": f"{ESCAPED} $6\n{{question}}\n{{notes}}s"}
    baselines = {name: place_of(f"older_program:{name}", folder).template().text for name in tuned}
    assert baselines == {
        "NOTE": "As {{}}: keep 100 % of\n{said}",
        "ANSWER": "For $5: {notes}s, asked\n{question}",
    }
    for name, text in tuned.items():
        place = place_of(f"older_program:{name}", folder)
        file.write_text(place.written(place.content(), baselines[name], text))
    older = importlib.import_module("older_program")
    assert older.note("I sail 5 %.") == f"{TUNED}\nI sail 5 %."
    assert older.answer("boats", "Who?") == f"{TUNED} $6\nWho?\nboatss"


def test_an_f_string_with_quotes_in_a_field_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prompts_there.py").write_text("""def X(a):\n    return f'''A prompt with {a["it's"]}'''\n""")
    place = place_of("prompts_there:X", tmp_path)
    text = place.template().text
    with pytest.raises(ContractError, match="quotes or backslashes"):
        place.written(place.content(), text, text.replace("A prompt", "Another prompt"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--to", "source", "--out", "tuned"], "--to source needs --patch, and no --out"),
        (["--to", "text", "--patch"], "give --out, and no --patch"),
    ],
)
def test_a_target_and_where_it_is_written_belong_together(options: list[str], problem: str) -> None:
    result = CliRunner().invoke(cli, ["export", "latest", *options])
    assert result.exit_code == 2
    assert problem in result.output
