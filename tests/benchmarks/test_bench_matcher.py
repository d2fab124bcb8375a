"""`python -m benchmarks matcher`: its pairs and replies, and what it writes of a matcher."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.gold_answers.suite import conversations_to_spoil
from benchmarks.matching.pairs import LANGUAGES, pairs_of
from benchmarks.matching.replies import free_replies, replies_of

LOCOMO = Path(__file__).parents[2].parent / "shared" / "data" / "locomo" / "locomo7.json"

pytestmark = pytest.mark.slow


def test_the_parts_have_no_pair_and_no_reply_in_common() -> None:
    held, other = pairs_of("held-out"), pairs_of("development")
    assert len(held) >= 150
    assert {pair.language for pair in held} == set(LANGUAGES)
    assert not {pair.text for pair in held} & {pair.text for pair in other}
    right, wrong = ([one for one in replies_of("held-out") if one.right is is_right] for is_right in (True, False))
    assert min(len(right), len(wrong)) >= 120
    assert not {(one.question, one.reply) for one in (*right, *wrong)} & {
        (one.question, one.reply) for one in replies_of("development")
    }
    assert replies_of("held-out") == replies_of("held-out")


def test_words_are_measured_without_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "matcher.json"
    with pytest.raises(SystemExit) as caught:
        main(["matcher", "--matcher", "words", "--json", str(target), "--home", str(tmp_path / "home")])
    assert caught.value.code == 0
    figures = json.loads(target.read_text())
    assert figures["part"] == "held-out"
    words = figures["matchers"]["words"]
    assert words["pairs"]["paraphrase"]["all"]["n"] == 50
    assert words["pairs"]["opposite"]["all"]["right"] > 0.8
    assert words["replies"]["all"]["false_pardons"] <= 0.02
    assert words["replies"]["duration"]["pardoned"] > 0.9
    assert "balanced accuracy" in capsys.readouterr().out


def test_the_models_matcher_needs_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["matcher", "--matcher", "llm", "--home", str(tmp_path)])
    assert caught.value.code == 2
    assert "--helper-model" in capsys.readouterr().err


@pytest.mark.skipif(not LOCOMO.exists(), reason="LoCoMo is not here")
def test_free_words_are_about_questions_of_the_data_and_their_parts_share_no_conversation() -> None:
    talks = conversations_to_spoil(LOCOMO, None)
    parts = [free_replies(part, talks) for part in ("held-out", "development")]
    assert [len(part) for part in parts] == [100, 100]
    assert not {reply.reply for reply in parts[0]} & {reply.reply for reply in parts[1]}
    assert free_replies("held-out", talks[1:2]) == []


@pytest.mark.skipif(not LOCOMO.exists(), reason="LoCoMo is not here")
def test_replies_in_free_words_are_judged_alone(tmp_path: Path) -> None:
    target = tmp_path / "matcher.json"
    chosen = ["--only", "free", "--data", str(LOCOMO), "--part", "development", "--matcher", "words"]
    with pytest.raises(SystemExit) as caught:
        main(["matcher", *chosen, "--json", str(target), "--home", str(tmp_path / "home")])
    assert caught.value.code == 0
    words = json.loads(target.read_text())["matchers"]["words"]
    assert (words["replies"]["free"]["n"], words["replies"]["free"]["wrong"], words["calls"]) == (50, 50, 0)
    assert "pairs" not in words


def test_replies_in_free_words_need_their_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["matcher", "--only", "free", "--home", str(tmp_path)])
    assert caught.value.code == 2
    assert "--data" in capsys.readouterr().err
