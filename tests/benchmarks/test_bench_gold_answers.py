"""`python -m benchmarks gold-answers`: wrong gold answers, found without a model."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.gold_answers import shifted_dates, spoiling
from benchmarks.gold_answers.suite import annotated_cases, part_of
from experiments.data.datasets import conversations_of
from experiments.data.published.locomo import CATEGORIES, reader_of

pytestmark = pytest.mark.slow

LOCOMO = Path(__file__).parents[3] / "shared" / "data" / "locomo" / "locomo7.json"


def ran(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_equal_seeds_spoil_equally_and_no_conversation_is_in_both_parts() -> None:
    everything = [one for one in conversations_of("sample", None) if one.split != "sealed"]
    development, held_out = part_of(everything, "development"), part_of(everything, "held-out")
    assert {one.id for one in development}.isdisjoint(one.id for one in held_out)
    assert len(development) + len(held_out) == len(everything)

    def drawn(seed: int) -> list[tuple[str, tuple[str, ...], str, str | None]]:
        cases = annotated_cases(development[:6], seed=seed)
        return [(one.case.question.id, one.case.question.answers, one.case.reply, one.spoiling) for one in cases]

    assert drawn(0) == drawn(0) != drawn(1)


def test_what_is_spoiled_differs_from_the_annotation_and_what_is_sound_does_not() -> None:
    everything = [one for one in conversations_of("sample", None) if one.split != "sealed"]
    original = {question.id: question for one in everything for question in one.questions}
    cases = annotated_cases(everything, seed=0)
    assert {one.spoiling for one in cases} >= {None, "unsaid", "speaker", "event", "premise"}
    for one in cases:
        assert one.case.judgement.score == 0
        assert (one.case.question == original[one.case.question.id]) is (one.spoiling is None)


def test_the_benchmark_does_not_ask_what_it_measures() -> None:
    for module in (spoiling, shifted_dates):
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not {name for name in imported if name.startswith("attribution")}


def test_survival_finds_more_spoiled_gold_answers_than_words_and_accuses_hardly_a_sound_one(tmp_path: Path) -> None:
    target = tmp_path / "annotations.json"
    assert ran("gold-answers", "--part", "development", "--json", str(target)) == 0
    methods: dict[str, Any] = json.loads(target.read_text())["methods"]
    survival, words = methods["survival"], methods["not in the cited turns"]
    assert survival["found"] > words["found"]
    assert survival["precision"] >= 0.8
    assert survival["accused"] <= 0.01


@pytest.mark.skipif(not LOCOMO.is_file(), reason="needs ../shared/data/locomo/locomo7.json")
def test_the_held_out_part_of_locomo_has_enough_of_every_kind() -> None:
    held_out = part_of(list(reader_of(CATEGORIES)(LOCOMO)), "held-out")
    kinds = [one.spoiling for one in annotated_cases(held_out, seed=0)]
    assert sum(kind is not None for kind in kinds) >= 120
    assert kinds.count(None) >= 120
    assert all(kinds.count(kind) >= 20 for kind in spoiling.SPOILINGS)
