"""A user's own parts work wherever the built-in ones do, and a faulty one is named in one line."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gold_runs import live

from experiments.command import main
from experiments.runs.folder import RunFolder

Command = Callable[..., tuple[int, str, str]]

BLAMES = """
from attribution.cases import Attribution, Blame

class Extraction:
    def __init__(self, recording, access):
        self.recording = recording

    def attribute(self, case):
        said = f"mine of {len(self.recording.operations)}"
        return Attribution(case, (Blame("extract_facts", None, "ExtractionError", 0.9, said),))

class Raising(Extraction):
    def attribute(self, case):
        raise KeyError("two\\nlines")

class Refusing(Extraction):
    def __init__(self, recording, access):
        raise OSError("no recording is good enough")

class Rubbish(Extraction):
    def attribute(self, case):
        return {"blame": "everyone"}

def too_few(recording):
    return None

NOTHING = None
"""


@pytest.fixture
def command(
    configured: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Runs memtune in a folder with `run.yaml`."""
    monkeypatch.setenv("COLUMNS", "200")
    configured("parts")

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        said = capsys.readouterr()
        assert isinstance(caught.value.code, int)
        return caught.value.code, said.out, said.err

    return run


@pytest.fixture(autouse=True)
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Writes the user's module `mine`, which is forgotten at the end."""
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(text: str) -> None:
        (tmp_path / "mine.py").write_text(text)
        sys.modules.pop("mine", None)
        importlib.invalidate_caches()

    yield write
    sys.modules.pop("mine", None)


def one_line(said: str) -> str:
    """The last line of what was said, and that it is no traceback."""
    assert "Traceback" not in said
    return said.strip().splitlines()[-1]


def small(name: str = "run", rounds: int = 1) -> list[str]:
    return ["run", "run.yaml", "--rounds", str(rounds), "--out", name, "--home", "home"]


def test_an_own_attributor_decides_what_is_rewritten_and_what_reports_say(
    command: Command, parts: Callable[[str], None]
) -> None:
    parts(BLAMES)
    code, _, err = command(*small(), "--attribution", "mine:Extraction")
    assert code == 0, err
    summary = RunFolder(Path("run")).summary()
    # Survival blames the answers, which are long: see the run of `whole`.
    assert summary.iterations[0].edited == ("extract",)
    assert summary.iterations[0].blame["extract_facts"].share == 1
    assert "attribution: mine:Extraction" in Path("run/config.yaml").read_text()
    code, _, err = command("report", "run", "--prompts", "seed", "--out", "page.json", "--home", "home")
    assert code == 0, err
    facts = json.loads(Path("page.json").read_text())
    assert facts["counts"]["attributed"] == facts["counts"]["failures"] > 0
    assert {blame["reason"] for case in facts["cases"] for blame in case["line"]["decisive"]} == {"mine of 5"}
    code, _, err = command("attribute", "run", "--prompts", "seed", "--method", "mine:Extraction", "--home", "home")
    assert code == 0, err
    assert json.loads(Path("attributions.jsonl").read_text().splitlines()[0])["method"] == "mine:Extraction"


@pytest.mark.parametrize("name", ["Raising", "Refusing", "Rubbish"])
def test_an_attributor_that_fails_abstains_and_the_run_goes_on(
    command: Command, parts: Callable[[str], None], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    parts(BLAMES)
    code, _, err = command(*small(), "--attribution", f"mine:{name}")
    assert code == 0, err
    assert "Traceback" not in err
    summary = RunFolder(Path("run")).summary()
    assert summary.stopped == "all rounds done"
    assert {blame.share for blame in summary.iterations[0].blame.values()} == {0.0}
    assert caplog.text.count("attribution failed") == 1, "told once, not with every case"
    code, _, err = command(
        "attribute", "run", "--prompts", "seed", "--method", f"mine:{name}", "--home", "home", "--out", "said.jsonl"
    )
    assert code == 1, err
    assert "Traceback" not in err
    said = [json.loads(line) for line in Path("said.jsonl").read_text().splitlines()]
    assert all(line["failed"] for line in said if line["type"] == "case")


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("nowhere", "choose one of survival, assisted, agent, triage, or give your own as module:Object"),
        ("absent:Object", "no module 'absent'"),
        ("mine:Absent", "has no attribute 'Absent'"),
        ("mine:too_few", "it has to take (recording, access)"),
        ("mine:NOTHING", "is a NoneType, which cannot be called"),
        ("broken:Object", "cannot be imported: ZeroDivisionError"),
    ],
)
@pytest.mark.parametrize(
    "start", [["run", "run.yaml", "--out", "run", "--attribution"], ["attribute", ".", "--method"]]
)
def test_a_name_that_opens_no_attributor_is_refused_in_one_line(
    command: Command, parts: Callable[[str], None], start: list[str], option: str, expected: str
) -> None:
    parts(BLAMES)
    Path("broken.py").write_text("1 / 0")
    code, _, err = command(*start, option)
    assert code == 2
    said = one_line(err)
    assert expected in said
    assert option in said
    assert not Path("run").exists()


def test_an_installed_distribution_brings_a_part_by_its_name(tmp_path: Path, parts: Callable[[str], None]) -> None:
    from attribution.attributor import ATTRIBUTORS, open_attributor

    parts(BLAMES)
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[memtune.attributors]\nblamer = mine:Extraction\n")
    sys.path.insert(0, str(tmp_path))
    assert "blamer" in ATTRIBUTORS.names()
    assert open_attributor("blamer").__name__ == "Extraction"  # type: ignore[attr-defined]


def test_a_run_with_an_own_attributor_is_resumed_in_a_fresh_process(
    configured: Callable[..., None], parts: Callable[[str], None]
) -> None:
    configured("parts-resumed")
    parts(BLAMES)
    arguments = [*small(), "--attribution", "mine:Extraction"]
    assert live([*arguments, "--budget-calls", "30"], None) == 0
    assert RunFolder(Path("run")).summary().stopped.startswith("budget: ")
    assert live(["run", "--resume", "run", "--home", "home", "--budget-calls", "2000"], None) == 0
    assert RunFolder(Path("run")).summary().iterations[0].edited == ("extract",)
