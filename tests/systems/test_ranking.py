"""Rankings find what shares words with a query, whatever either says, and fusion puts first what several agree on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.systems.building_blocks.recall import by_words, fused
from tracing.systems.entries import Entry


def entries(*texts: str) -> list[Entry]:
    return [Entry(f"e{number}", text, (), "") for number, text in enumerate(texts, start=1)]


def found(query: str, *texts: str) -> list[str]:
    (ranking,) = by_words([query], entries(*texts))
    return [entry.text for entry in ranking]


@pytest.mark.parametrize(
    ("query", "texts", "expected"),
    [
        ("Who paints fences?", ["Aurel painted a fence.", "Birte sings."], ["Aurel painted a fence."]),
        ("kite", ["Aurel owns a kite.", "Birte plays."], ["Aurel owns a kite."]),
        ("café", ["The CAFE is shut.", "tea"], ["The CAFE is shut."]),
        ("他的猫叫什么", ["猫叫小黑。", "狗叫小白。", "bus"], ["猫叫小黑。", "狗叫小白。"]),
        ("แมว", ["ฉันชอบแมวมาก", "bus"], ["ฉันชอบแมวมาก"]),
        ("ລາວ", ["ຂ້ອຍເປັນຄົນລາວ", "bus"], ["ຂ້ອຍເປັນຄົນລາວ"]),
        ("?!", ["Aurel owns a kite."], []),
        ('NEAR("a" OR b) * - ^x', ["nothing here", "x"], ["x"]),
        ("kite kite", ["one kite", "one kite two"], ["one kite", "one kite two"]),
    ],
)
def test_words_are_found_by_their_stems_in_any_script(query: str, texts: list[str], expected: list[str]) -> None:
    assert found(query, *texts) == expected


def test_a_rare_word_counts_more_than_a_frequent_one() -> None:
    texts = ["Birte met Aurel.", "Birte met Cosima.", "Birte met Dag.", "Birte keeps a quokka, as everyone says."]
    assert found("Has Birte met a quokka?", *texts)[0] == texts[3]


@settings(max_examples=40)
@given(st.text(st.characters(), max_size=20), st.lists(st.text(st.characters(), max_size=20), max_size=5))
def test_no_text_breaks_the_search(query: str, texts: list[str]) -> None:
    assert set(found(query, *texts)) <= set(texts)


def test_half_a_surrogate_pair_is_no_obstacle() -> None:
    assert found("kite \ud800", "a \udfff kite") == ["a \udfff kite"]


def test_what_two_rankings_agree_on_comes_before_what_one_puts_first() -> None:
    a, b, c = entries("a", "b", "c")
    assert [entry.text for entry in fused([[a, b], [c, b]])] == ["b", "a", "c"]
    assert fused([]) == []
