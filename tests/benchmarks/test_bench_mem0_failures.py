"""`python -m benchmarks mem0-failures`: its stories fail in the real Mem0 as planned, or else they are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.mem0_failures.drive import converse
from benchmarks.mem0_failures.measuring import failures_of, recorded, telling
from benchmarks.mem0_failures.story import FAILURES, TRUTH, stories
from tracing.errors import MemtuneError


def test_equal_seeds_give_equal_stories_and_others_do_not() -> None:
    assert stories(5, 3) == stories(5, 3)
    assert stories(5, 3) != stories(6, 3)
    assert [story.failure for story in stories(5, 2)] == [failure for failure in FAILURES for _ in range(2)]


def test_what_was_not_planned_is_refused() -> None:
    (story,) = stories(5, 1, ["taken for known"])
    with pytest.raises(MemtuneError, match="Mem0 shows UpdateError in its store and requests"):
        recorded(replace(story, failure="deleted"), converse, adds=False)
    with pytest.raises(MemtuneError, match="Mem0 shows None"):
        recorded(replace(story, reply=story.answer), converse, adds=False)


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


def test_a_mem0_that_makes_no_decisions_fails_in_none() -> None:
    assert failures_of("mem0") == failures_of("mem0@0.1") == FAILURES
    assert failures_of("mem0@2") == ("never extracted", "extracted otherwise", "others found", "ignored", "none")


def test_a_system_that_is_no_mem0_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["mem0-failures", "--system", "rag"])
    assert ended.value.code == 2
    assert "--system: 'rag' is no Mem0; choose from mem0, mem0@0.1" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("name", ["mem0@0.1", "mem0@2"])
def test_a_release_in_its_own_environment_is_told_one_story_after_the_other(
    name: str, environments: Callable[[str], None], tmp_path: Path
) -> None:
    environments(name)
    failures = failures_of(name)
    with telling(name) as tell:
        for story in stories(5, 1, failures):
            recorded(story, tell, adds="deleted" not in failures)
        with pytest.raises(MemtuneError, match=rf"(?s){name} failed in .*Connection error"):
            tell([["Ada: x"]], "?", "http://127.0.0.1:9/v1", tmp_path / "trace.jsonl")
