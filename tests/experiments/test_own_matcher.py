"""A matcher of one's own where attribution is started."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import memtune
from attribution.cases import Case
from attribution.conformance import recorded
from attribution.judging.words import judge
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


def test_attribution_asks_a_matcher_of_ones_own(own: str, tmp_path: Path) -> None:
    recording, (case, *_) = recorded()
    wrong = memtune.attribute(recording.graph, [_wrong(case)], home=tmp_path)
    assert wrong.cases["error_type"].notna().all()
    # What fails in a case is told of it and ends nothing, as with traces in files.
    failed = memtune.attribute(recording.graph, [_wrong(case)], matcher=own, home=tmp_path)
    assert "the own matcher was asked" in failed.cases["abstained"][0]
    with pytest.raises(ConfigError, match="matcher: unknown"):
        memtune.attribute(recording.graph, [_wrong(case)], matcher="sense", home=tmp_path)


def _wrong(case: Case) -> Case:
    reply = "a wheelbarrow"
    return replace(case, reply=reply, judgement=judge(reply, case.question.answers))
