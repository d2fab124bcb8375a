"""`memtune data show` and `validate`: what data is recognised as, what it holds, and everything wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from data_files import SOUND, longmemeval, sharegpt, written

from experiments.command import main
from experiments.data.data_check import dataset_name_of
from tracing.errors import DataError


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("name", [name for name in SOUND if name != "memtracebench"])
def test_a_path_is_recognised_by_its_content(name: str, tmp_path: Path) -> None:
    assert dataset_name_of(SOUND[name](tmp_path)) == name


def test_what_is_not_recognised_is_refused_with_the_option(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.json: is not recognised; say what it is with --dataset NAME"):
        dataset_name_of(written(tmp_path / "x.json", {"a": 1}))
    with pytest.raises(DataError, match="nine: no such file or folder, and no data set of this name"):
        dataset_name_of(tmp_path / "nine")


def test_show_prints_licence_splits_notes_and_a_conversation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = SOUND["realmem"](tmp_path)
    assert run("data", "show", path, "--conversation", "Ann_Li/Travel_1") == 0
    said = capsys.readouterr().out
    for words in (
        "realmem: RealMem: projects over months, with gold memories; licence: Apache-2.0; https://",
        "facts",
        "note: 3 memories merged from several turns left out",
        "Ann_Li/Travel_1: User, Assistant; 2 sessions",
        "ids: Ann_Li/Travel_",
        "S1_01:3 User: I fly to Jena in May.",
        "S1_01:4 Assistant: By night?",
        "When do I fly? (after session S1_01) → In May, by night.",
    ):
        assert words in said
    assert run("data", "show", "sample") == 0
    assert "licence: Apache-2.0" in capsys.readouterr().out
    assert run("data", "show", path, "--conversation", "nine") == 2
    assert "--conversation nine: there is none of this id; there are Ann_Li/Travel_" in capsys.readouterr().err


def test_what_cannot_be_used_in_a_run_can_still_be_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = written(tmp_path / "chats.json", sharegpt())
    assert run("data", "show", path) == 0
    said = capsys.readouterr().out
    assert "user: I moved to Oslo." in said
    assert "note: not usable in a run: " in said


def test_validate_prints_every_problem_and_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = longmemeval()
    assert run("data", "validate", written(tmp_path / "sound.json", rows)) == 0
    assert "sound.json: longmemeval, 3 conversations, 3 questions, no problem" in capsys.readouterr().out
    del rows[0]["answer"], rows[2]["question"]
    path = written(tmp_path / "lme.json", rows)
    assert run("data", "validate", path) == 1
    out = capsys.readouterr().out.splitlines()
    assert out == [
        f"{path}: 0: answer: Field required; the layout of LongMemEval is expected, see docs/data-format.md",
        f"{path}: 2: question: Field required; the layout of LongMemEval is expected, see docs/data-format.md",
        f"{path}: 2 problems as longmemeval (1 conversations, 1 questions read)",
    ]
    assert run("data", "validate", tmp_path / "nine.json") == 2
    assert "nine.json: no such file or folder; give an existing one" in capsys.readouterr().err


CITIES_IN = {
    "hi": ("मैं कानपुर में रहती हूँ।", "मैं कहाँ रहती हूँ?", "कानपुर"),
    "ko": ("저는 서울에 살아요.", "어디에 살아요?", "서울"),
    "ru": ("Я живу в Казани.", "Где я живу?", "Казань"),
    "en": ("I live in Oslo.", "Where do I live?", "Oslo"),
    "it": ("Vivo ancora a Torino ma il mese prossimo mi trasferisco a Milano perché ho trovato un lavoro in una banca."
           " Mia sorella invece resta ancora qui con i bambini e il cane che dorme sempre.", "Dove vivo?", "Torino"),
}  # fmt: skip


@pytest.mark.parametrize(("one", "made_for"), [("hi", False), ("it", False), ("ko", True), ("ru", True), ("en", True)])
def test_validate_says_for_which_languages_the_default_metric_is_not_made(
    one: str, made_for: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = longmemeval()
    said, asked, city = CITIES_IN[one]
    for row in rows[:2]:
        row["haystack_sessions"] = [[{"role": "user", "content": said, "has_answer": True}]] * 3
        row |= {"question": asked, "answer": city}
    assert run("data", "validate", written(tmp_path / "lme.json", rows)) == 0
    told = capsys.readouterr().err.splitlines()
    notes = [line for line in told if "the default metric short_contains" in line]
    assert len(notes) == (0 if made_for else 1)
    assert all("2 of 3 conversations" in line and "`metric: llm_judge`" in line for line in notes)


def test_a_data_set_of_ones_own_is_validated_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own_lunches.py").write_text(
        "def given(path):\n    raise ValueError(f'{path} has no soup')\n\n\ndef none(path):\n    return ['soup']\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        path = written(tmp_path / "x.txt", "soup")
        assert run("data", "validate", path, "--dataset", "own_lunches:given") == 1
        assert "failed: ValueError: " in capsys.readouterr().out
        assert run("data", "validate", path, "--dataset", "own_lunches:none") == 1
        assert "gives a str at place 1; give" in capsys.readouterr().out


OWN = """
from experiments.data.datasets import Card
from tracing.systems.conversations import Conversation


class Lunches:
    card = Card("who eats what", "CC0", "3 conversations")

    def __call__(self, path):
        return self.read(path, None)

    def read(self, path, reading):
        for number in range(3):
            if reading is not None:
                reading.advanced(number, 3)
                reading.left_out(f"c{number}", "cold soups")
                if path is not None:
                    reading.problem(f"{path}:{number}: soup: is cold; warm it up")
            yield Conversation.model_validate(
                {
                    "id": f"c{number}",
                    "speakers": ["Ann"],
                    "sessions": [{"id": "s", "turns": [{"id": "t", "speaker": "Ann", "text": "Soup."}]}],
                    "questions": [{"id": f"q{number}", "question": "?", "answers": ["soup"], "evidence": ["t"]}],
                }
            )


given = Lunches()
"""


def test_a_data_set_of_ones_own_may_show_a_licence_and_report_every_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "own_soups.py").write_text(OWN)
    assert run("data", "show", "--dataset", "own_soups:given") == 0
    said = capsys.readouterr().out
    assert "own_soups:given: who eats what; licence: CC0" in said
    assert "note: 3 cold soups left out" in said
    path = written(tmp_path / "soups", "soup")
    assert run("data", "validate", path, "--dataset", "own_soups:given") == 1
    assert capsys.readouterr().out.count("soup: is cold; warm it up") == 3


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--dataset", "longmemeval"), "data FILE, or fetch it first: memtune data fetch longmemeval"),
        (("--dataset", "csv"), "data: missing; name the folder of data set 'csv' with --data FOLDER"),
        (("--dataset", "csv", "--data", "FILE"), "data: is not a folder: "),
        (("--dataset", "longmemeval", "--data", "FOLDER"), "data: no such file: "),
    ],
)  # fmt: skip
def test_a_run_says_what_a_data_set_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], problem: str
) -> None:
    places = {"FILE": str(written(tmp_path / "file", "")), "FOLDER": str(tmp_path)}
    assert run("run", "--dry-run", *(places.get(each, each) for each in arguments)) == 2
    assert problem in capsys.readouterr().err
