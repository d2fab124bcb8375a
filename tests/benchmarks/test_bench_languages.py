"""`python -m benchmarks languages`: its replies, and what it writes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.languages.reply_pairs import LANGUAGES, reply_pairs


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_forty_replies_and_none_twice(language: str) -> None:
    pairs = reply_pairs("development", language)
    replies = [reply for pair in pairs for reply in (pair.right, pair.wrong)]
    assert len(replies) >= 40
    assert len(set(replies)) == len(replies)


def test_shares_are_written_for_each_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "languages.json"
    with pytest.raises(SystemExit) as caught:
        main(["languages", "--part", "development", "--json", str(target)])
    assert caught.value.code == 0
    written = json.loads(target.read_text())
    assert list(written["languages"]) == list(LANGUAGES)
    for row in written["languages"].values():
        assert list(row) == ["judge", "matcher", "guard"]
        assert all(shares["right"] == (shares["found"] + shares["rejected"]) / 2 for shares in row.values())
    assert "share right" in capsys.readouterr().out
