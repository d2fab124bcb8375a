"""`python -m benchmarks mem0-failures`: its stories fail in the real Mem0 as planned, or else they are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.mem0_failures.measuring import recorded
from benchmarks.mem0_failures.story import FAILURES, TRUTH, stories
from tracing.errors import MemtuneError


def test_equal_seeds_give_equal_stories_and_others_do_not() -> None:
    assert stories(5, 3) == stories(5, 3)
    assert stories(5, 3) != stories(6, 3)
    assert [story.failure for story in stories(5, 2)] == [failure for failure in FAILURES for _ in range(2)]


def test_what_was_not_planned_is_refused() -> None:
    (story,) = stories(5, 1, ["taken for known"])
    with pytest.raises(MemtuneError, match="Mem0 shows UpdateError in its store and requests"):
        recorded(replace(story, failure="deleted"), isolated=False)
    with pytest.raises(MemtuneError, match="Mem0 shows None"):
        recorded(replace(story, reply=story.answer), isolated=False)


def test_every_failure_is_told_to_the_real_library_and_attributed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "figures.json"
    with pytest.raises(SystemExit) as ended:
        main(["mem0-failures", "--each", "1", "--seed", "5", "--json", str(target)])
    assert ended.value.code == 0
    written = json.loads(target.read_text())
    wrong = [failure for failure in FAILURES if TRUTH[failure] is not None]
    for known in ("turn named", "answer only"):
        assert [name for name in written[known] if name in FAILURES] == wrong
        assert written[known]["all"]["n"] == len(wrong)
        assert written[known]["all"]["type"]["share"] >= 0.75
    assert "error type" in capsys.readouterr().out
