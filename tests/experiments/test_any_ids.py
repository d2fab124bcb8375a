"""Whatever the ids of a data set are, a run takes them, finds its conversations again and tells them apart."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from memtune_command import MemtuneCommand

from experiments.attributing.attributions import Attributions
from experiments.runs.folder import RunFolder
from optimizer.evaluation.file_names import file_name

IDS = (
    *("x" * 250, "é" * 300, "x" * 20_000, "a/b", "a_b", "A_B", "../../../etc/passwd", "/etc/passwd", ".", "..", "-rf"),
    *("con", "a\x00b", "a\nb", "a\u2028b", "a b ", "*?<>|\"'`$(x)", "\u202eabc", "😀" * 80, "[/b]", "<script>", "%s"),
)


@pytest.fixture
def command(memtune: MemtuneCommand) -> Callable[..., str]:
    """Runs memtune, which succeeds, and gives what it says."""
    lines = "system: rag\ndataset: jsonl\ndata: mine.jsonl\nrounds: 0\n"
    memtune.configure("rag.yaml", lines, traces=100)

    def run(*arguments: str) -> str:
        code, out, err = memtune(*arguments)
        assert code == 0, err[-2000:]
        return out + err

    return run


def test_the_name_of_a_file_shows_no_secret() -> None:
    assert "kolibri07x" not in file_name("chat of password=kolibri07x")


def write_data(path: Path) -> None:
    rows = []
    for number, name in enumerate(IDS):
        turn = {"id": f"{name}:1", "speaker": "Ana", "text": f"My ferry leaves from pier {number + 100}."}
        question = {"question": "Where does Ana's ferry leave?", "answers": [f"pier {number + 100}"]}
        rows.append(
            {
                "id": name,
                "speakers": ["Ana", "Bo"],
                "sessions": [{"id": f"{name}/s", "turns": [turn]}],
                "questions": [{"id": f"{name}/q", "evidence": [turn["id"]], **question}],
            }
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.slow
def test_a_run_takes_any_ids_and_finds_each_conversation_again(command: Callable[..., str], tmp_path: Path) -> None:
    write_data(Path("mine.jsonl"))
    said = command("run", "rag.yaml", "--out", "run")
    assert "warning" not in said
    traces = [path for path in Path("run/traces").rglob("*") if path.is_file()]
    assert {suffix: sum(path.suffix == suffix for path in traces) for suffix in (".jsonl", ".html")} == {
        ".jsonl": len(IDS),
        ".html": len(IDS),
    }
    assert all(len(path.name.encode()) < 100 for path in traces)
    command("attribute", "run", "--traces-of", "baseline", "--out", "said.jsonl")
    found = Attributions.read(Path("said.jsonl"))
    assert sorted(case.conversation for case in found.cases.values()) == sorted(IDS)
    assert {case.answers[0] for case in found.cases.values()} == {f"pier {n + 100}" for n in range(len(IDS))}
    command("diagnose", "run", "--traces-of", "baseline", "--out", "page.html")
    assert RunFolder(Path("run")).summary().baseline["test"].n > 0
