"""A user's own parts work wherever the built-in ones do, and a faulty one is named in one line."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from gold_runs import live

from attribution.judging.metrics import open_metric
from attribution.judging.words import judge
from experiments.command import main
from experiments.data.loaders import load_dataset
from experiments.runs.config_file import load_config
from experiments.runs.folder import RunFolder
from tracing.errors import ConfigError, DataError

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


EVERYTHING = """
from experiments.data.datasets import sample
from optimizer.proposers.rewrites import Rewrite

def conversations(path):
    yield from sample(None)

def words(reply, answers):
    if len(reply.split()) > 12:
        return 0.25
    return max(len({*reply.lower().split()} & {*answer.lower().split()}) / len(answer.split()) for answer in answers)

class Shorter:
    name = "shorter"

    def __init__(self, means):
        self.means = means

    def propose(self, request):
        return [Rewrite(request.prompt.name, "Be brief.\\n" + request.text, "x", "briefer")]

def once(tuning):
    from optimizer.search.closed_loop import closed_loop
    return closed_loop(tuning) + ", all by mine"
"""

FAULTY = """
from tracing.systems.conversations import Conversation

def seven(reply, answers):
    return 7

def nan(reply, answers):
    return float("nan")

def text(reply, answers):
    return "good"

def raises(reply, answers):
    raise KeyError("two\\nlines")

def one(reply):
    return 1.0

def nothing(path):
    return []

def rubbish(path):
    return [{"id": "c1"}]

def no_iterable(path):
    return 3

def unreadable(path):
    yield from ()
    raise OSError("the disk\\nis gone")

def same_ids(path):
    from experiments.data.datasets import sample
    return [*sample(None)[:2], *sample(None)[:2]]

def none():
    return []
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
def parts(tmp_path: Path) -> Callable[[str], None]:
    """Writes the user's module `mine`."""

    def write(text: str) -> None:
        (tmp_path / "mine.py").write_text(text)
        sys.modules.pop("mine", None)
        importlib.invalidate_caches()

    return write


def one_line(said: str) -> str:
    """The last line of what was said, and that it is no traceback."""
    assert "Traceback" not in said
    return said.strip().splitlines()[-1]


def small(name: str = "run", rounds: int = 1) -> list[str]:
    return ["run", "run.yaml", "--rounds", str(rounds), "--out", name, "--home", "home"]


@pytest.mark.slow
def test_an_own_attributor_decides_what_is_rewritten_and_what_reports_say(
    command: Command, parts: Callable[[str], None]
) -> None:
    parts(BLAMES)
    code, _, err = command(*small(), "--attribution", "mine:Extraction")
    assert code == 0, err
    summary = RunFolder(Path("run")).summary()
    # Survival blames the answers, which are long: see the run of `whole`.
    # What it lost on its recorded inputs is less than all, so that others are tried beside it.
    assert summary.rounds[1].edited[0] == "extract"
    assert summary.rounds[0].blame["extract_facts"].share == 1
    assert "attribution: mine:Extraction" in Path("run/config.yaml").read_text()
    code, _, err = command("diagnose", "run", "--traces-of", "baseline", "--out", "page.json", "--home", "home")
    assert code == 0, err
    facts = json.loads(Path("page.json").read_text())
    assert facts["counts"]["attributed"] == facts["counts"]["failures"] > 0
    assert {blame["reason"] for case in facts["cases"] for blame in case["line"]["decisive"]} == {"mine of 5"}
    code, _, err = command(
        "attribute", "run", "--traces-of", "baseline", "--method", "mine:Extraction", "--home", "home"
    )
    assert code == 0, err
    assert json.loads(Path("attributions.jsonl").read_text().splitlines()[0])["method"] == "mine:Extraction"


@pytest.mark.slow
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
    assert {blame.share for blame in summary.rounds[0].blame.values()} == {0.0}
    assert caplog.text.count("attribution failed") == 1, "told once, not with every case"
    code, _, err = command(
        "attribute",
        "run",
        "--traces-of",
        "baseline",
        "--method",
        f"mine:{name}",
        "--home",
        "home",
        "--out",
        "said.jsonl",
    )
    assert code == 1, err
    assert "Traceback" not in err
    said = [json.loads(line) for line in Path("said.jsonl").read_text().splitlines()]
    assert all(line["failed"] for line in said if line["type"] == "case")


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("nowhere", "choose one of survival, or give your own as module:Object"),
        ("agent", "'agent' is no longer part of memtune: a model's help bettered no verdict; use survival"),
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


@pytest.mark.slow
def test_a_run_with_an_own_attributor_is_resumed_in_a_fresh_process(
    configured: Callable[..., None], parts: Callable[[str], None]
) -> None:
    configured("parts-resumed")
    parts(BLAMES)
    arguments = [*small(), "--attribution", "mine:Extraction"]
    assert live([*arguments, "--budget-calls", "30"], None) == 0
    assert RunFolder(Path("run")).summary().stopped.startswith("budget: ")
    assert live(["run", "--resume", "run", "--home", "home", "--budget-calls", "2000"], None) == 0
    assert RunFolder(Path("run")).summary().rounds[1].edited[0] == "extract"


@pytest.mark.slow
def test_a_run_of_own_parts_alone_is_scored_reported_evaluated_and_attributed_with_them(
    command: Command, parts: Callable[[str], None]
) -> None:
    parts(EVERYTHING)
    with Path("run.yaml").open("a") as file:
        file.write("metric: mine:words\ndataset: mine:conversations\noptimizer: mine:once\nproposers: [mine:Shorter]\n")
    code, out, err = command(*small())
    assert code == 0, err
    summary = RunFolder(Path("run")).summary()
    assert (summary.metric, summary.dataset) == ("mine:words", "mine:conversations")
    assert (summary.attribution, summary.optimizer) == ("survival", "mine:once")
    assert summary.stopped == "all rounds done, all by mine"
    assert summary.baseline["test"].score == 0.25
    assert summary.champion["test"].score == 1.0
    rewrites = [json.loads(line) for line in Path("run/rewrites.jsonl").read_text().splitlines()]
    assert {rewrite["source"] for rewrite in rewrites} == {"shorter"}
    assert "mine:words" in Path("run/report.html").read_text()
    assert "mine:words" in out
    assert set(json.loads(Path("run/fingerprint.json").read_text())) >= {"code.mine:words", "code.mine:Shorter"}
    code, out, err = command("eval", "run.yaml", "--prompts", "baseline", "--sealed", "--home", "home")
    assert code == 0, err
    assert "sealed" in out
    assert "mine:words" in out
    code, out, err = command("attribute", "run", "--traces-of", "baseline", "--home", "home")
    assert code == 0, err
    said = [json.loads(line) for line in Path("attributions.jsonl").read_text().splitlines()]
    assert {line["score"] for line in said if line["type"] == "case"} == {0.25}, "judged by the run's own metric"
    code, out, err = command("compare", "run", "run", "--home", "home")
    assert code == 0, err
    assert "mine:words" in out


def test_a_faulty_metric_ends_a_run_in_one_line_and_leaves_its_folder_usable(
    command: Command, parts: Callable[[str], None]
) -> None:
    parts(FAULTY)
    before = Path("run.yaml").read_text()
    Path("run.yaml").write_text(before + "metric: mine:seven\n")
    code, _, err = command(*small())
    assert code == 2
    assert "metric: 'mine:seven' returned 7 for" in one_line(err)
    assert RunFolder(Path("run")).summary().stopped.startswith("error: metric: 'mine:seven'")
    Path("run.yaml").write_text(before + "metric: mine:one\n")
    code, _, err = command(*small("other"))
    assert code == 2
    assert "'mine:one' takes (reply); it has to take (reply, answers)" in one_line(err)
    assert not Path("other").exists(), "said before anything starts"
    Path("run.yaml").write_text(before + "metric: mine:seven\n")
    parts(FAULTY.replace("return 7", "return 1"))
    code, _, err = command("run", "--resume", "run", "--home", "home")
    assert code == 2
    assert "the code of mine:seven has changed" in one_line(err), "another metric is another run"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("seven", "returned 7 for 'Oslo'; return a number from 0 to 1"),
        ("nan", "returned nan for"),
        ("text", "returned 'good' for"),
        ("raises", "failed on 'Oslo': KeyError: 'two"),
        ("one", "it has to take (reply, answers)"),
    ],
)
def test_a_metric_that_gives_no_score_is_named_in_one_line(
    parts: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    parts(FAULTY)
    open_metric.cache_clear()
    with pytest.raises(ConfigError) as caught:
        judge("Oslo", ["Bergen"], f"mine:{name}")
    assert str(caught.value).startswith(f"metric: 'mine:{name}'")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nothing", "gives no conversation"),
        ("rubbish", "gives a dict at place 1; give"),
        ("no_iterable", "failed: TypeError: 'int' object is not iterable"),
        ("unreadable", "failed: OSError: the disk is gone"),
        ("same_ids", "gives two conversations with the id"),
        ("none", "it has to take (path)"),
        ("absent", "has no attribute 'absent'"),
    ],
)
def test_a_data_set_that_gives_no_conversations_is_named_in_one_line(
    parts: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    parts(FAULTY)
    with pytest.raises((ConfigError, DataError)) as caught:
        load_dataset(load_config(None, overrides={"dataset": f"mine:{name}"}))
    assert str(caught.value).startswith(f"dataset: 'mine:{name}'")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
