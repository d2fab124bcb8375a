"""`memtune data audit --gold`: suspicious gold answers, found without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attribution.survival.needs import outdated_value
from attribution.text.content import Vocabulary
from experiments.command import main
from experiments.data.datasets import conversations_of
from experiments.data.published.locomo import CATEGORIES, reader_of
from tracing.systems.conversations import NearMiss, write_conversations

pytestmark = pytest.mark.slow

SAID = (("Ada", "I planted a quince."), ("Ben", "How nice."))


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def test_the_misleading_answer_of_an_adversarial_question_is_a_near_miss_and_no_outdated_value(tmp_path: Path) -> None:
    turns = [{"speaker": name, "dia_id": f"D1:{at}", "text": text} for at, (name, text) in enumerate(SAID, start=1)]
    asked = {"question": "What did Ben plant?", "category": 5, "evidence": ["D1:1"], "adversarial_answer": "a quince"}
    told = {"speaker_a": "Ada", "speaker_b": "Ben", "session_1": turns, "session_1_date_time": "1:00 pm on 8 May, 2023"}
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([{"sample_id": "c", "conversation": told, "qa": [asked]}]))
    (one,) = reader_of(CATEGORIES)(path)
    (question,) = one.questions
    assert question.near_miss == NearMiss(turn="D1:1", value="a quince")
    assert question.unanswerable
    assert outdated_value(question, one, Vocabulary(turn.text for turn in one.turns())) is None


def test_data_audit_lists_suspicious_gold_answers_and_the_turns_against_them_without_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = conversations_of("sample", None)[0]
    first, *others = one.questions
    wrong = first.model_copy(update={"answers": ("fried halloumi",), "near_miss": None})
    path, target = tmp_path / "mine.jsonl", tmp_path / "gold.json"
    write_conversations(path, [one.model_copy(update={"split": None, "questions": (wrong, *others)})])
    found = ("data", "audit", "--gold", "--dataset", "jsonl", "--data", str(path), "--json", str(target))
    assert run(*found, "--home", str(tmp_path / "home")) == 0
    out = capsys.readouterr().out
    assert "1 of 10 gold answers are suspicious" in out
    assert "fried halloumi" in out
    assert next(turn.text for turn in one.turns() if turn.id in first.evidence)[:40] in out
    (row,) = json.loads(target.read_text())
    assert (row["question"], row["doubt"], row["turns"]) == (first.id, "unsaid", list(first.evidence))
    assert not (tmp_path / "home").exists(), "nothing was run"
