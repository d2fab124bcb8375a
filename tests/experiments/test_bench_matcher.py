"""`memtune bench matcher`, and a matcher of one's own where attribution is started."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import memtune
from attribution.cases import Case
from attribution.conformance import recorded
from attribution.judging.words import judge
from experiments.bench.matching.pairs import LANGUAGES, pairs_of
from experiments.bench.matching.replies import replies_of
from experiments.command import main
from tracing.errors import ConfigError

pytestmark = pytest.mark.slow

OWN = """
from attribution.survival.matching.word_matcher import WordMatcher

class Asked(Exception):
    pass

class Unheard(WordMatcher):
    def __init__(self, conversation, access):
        super().__init__(conversation)

    def grades(self, claim, passages):
        raise Asked("the own matcher was asked")
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "own_matching.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "own_matching:Unheard"
    sys.modules.pop("own_matching", None)


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
        main(["bench", "matcher", "--matcher", "words", "--json", str(target), "--home", str(tmp_path / "home")])
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
        main(["bench", "matcher", "--matcher", "llm", "--home", str(tmp_path)])
    assert caught.value.code == 2
    assert "--model" in capsys.readouterr().err


def test_attribution_asks_a_matcher_of_ones_own(own: str, tmp_path: Path) -> None:
    recording, (case, *_) = recorded()
    wrong = memtune.attribute(recording.graph, [_wrong(case)], home=tmp_path)
    assert wrong.cases["error_type"].notna().all()
    with pytest.raises(Exception, match="the own matcher was asked"):
        memtune.attribute(recording.graph, [_wrong(case)], matcher=own, home=tmp_path)
    with pytest.raises(ConfigError, match="matcher: unknown"):
        memtune.attribute(recording.graph, [_wrong(case)], matcher="sense", home=tmp_path)


def _wrong(case: Case) -> Case:
    reply = "a wheelbarrow"
    return replace(case, reply=reply, judgement=judge(reply, case.question.answers))
