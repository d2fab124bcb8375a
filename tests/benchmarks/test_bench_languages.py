"""`python -m benchmarks languages`: its replies, and what it writes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from benchmarks.__main__ import main
from benchmarks.languages.reply_pairs import LANGUAGES, reply_pairs
from benchmarks.matching.replies import Part


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_part_has_forty_replies_in_each_language_and_none_of_the_other_part(language: str) -> None:
    replies = [
        reply for part in get_args(Part) for pair in reply_pairs(part, language) for reply in (pair.right, pair.wrong)
    ]
    assert all(len(reply_pairs(part, language)) >= 20 for part in get_args(Part))
    assert len(set(replies)) == len(replies)


def test_shares_are_written_for_each_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "languages.json"
    with pytest.raises(SystemExit) as caught:
        main(["languages", "--json", str(target)])
    assert caught.value.code == 0
    written = json.loads(target.read_text())
    assert list(written["languages"]) == list(LANGUAGES)
    for row in written["languages"].values():
        assert list(row) == ["judge", "matcher", "guard"]
        assert all(shares["right"] >= 0.8 for shares in row.values())
        assert all(shares["right"] == (shares["found"] + shares["rejected"]) / 2 for shares in row.values())
    assert "share right" in capsys.readouterr().out
