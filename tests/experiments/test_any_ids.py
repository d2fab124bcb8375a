"""Whatever the ids of a data set are, a run takes them, finds its conversations again and tells them apart."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scripted_server import ScriptedServer

from experiments.attributing.attributions import Attributions
from experiments.command import main
from experiments.mlflow_tracking.tracking import store_uri
from experiments.runs.folder import RunFolder
from optimizer.evaluation.file_names import file_name

IDS = (
    *("x" * 250, "é" * 300, "x" * 20_000, "a/b", "a_b", "A_B", "../../../etc/passwd", "/etc/passwd", ".", "..", "-rf"),
    *("con", "a\x00b", "a\nb", "a\u2028b", "a b ", "*?<>|\"'`$(x)", "\u202eabc", "😀" * 80, "[/b]", "<script>", "%s"),
)


@pytest.fixture
def command(
    mlflow_home: Path,
    tmp_path: Path,
    scripted_server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., str]:
    monkeypatch.chdir(tmp_path)
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"
    Path("rag.yaml").write_text(
        f"system: rag\ndataset: jsonl\ndata: mine.jsonl\nrounds: 0\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
        f"tracking: {{uri: '{store_uri(mlflow_home)}', experiment: {tmp_path.name}, traces: 100}}\n"
    )

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        said = capsys.readouterr()
        assert caught.value.code == 0, said.err[-2000:]
        return said.out + said.err

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


def test_a_run_takes_any_ids_and_finds_each_conversation_again(command: Callable[..., str], tmp_path: Path) -> None:
    write_data(Path("mine.jsonl"))
    said = command("run", "rag.yaml", "--out", "run")
    assert "warning" not in said
    traces = list(Path("run/traces").rglob("*"))
    assert len([path for path in traces if path.is_file()]) == len(IDS)
    assert all(len(path.name.encode()) < 100 for path in traces)
    command("attribute", "run", "--prompts", "seed", "--out", "said.jsonl")
    found = Attributions.read(Path("said.jsonl"))
    assert sorted(case.conversation for case in found.cases.values()) == sorted(IDS)
    assert {case.answers[0] for case in found.cases.values()} == {f"pier {n + 100}" for n in range(len(IDS))}
    command("report", "run", "--prompts", "seed", "--out", "page.html")
    assert RunFolder(Path("run")).summary().baseline["test"].n > 0
