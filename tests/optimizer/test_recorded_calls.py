"""A prompt is found in what was asked, and another text takes its place with the same values."""

from __future__ import annotations

import pytest

from tracing.systems.layouts import Item
from tracing.systems.recorded_calls import filled_prompt

NOTES = "Notes:\n{notes}\n\nQuestion: {question}\nAnswer:"
PARTS = {
    "notes": (Item("notes", "n1", "context", "Mara sails."), Item("notes", "n2", "context", "Question: which?")),
    "question": (Item("question", "q1", "query", "Where does Mara sail?"),),
}
VALUES = {"notes": "Mara sails.\nQuestion: which?", "question": "Where does Mara sail?"}
OTHER = "Q: {question}\nFrom: {notes}"


@pytest.mark.parametrize(
    ("template", "text", "expected"),
    [
        (NOTES, f"Notes:\n{VALUES['notes']}\n\nQuestion: {VALUES['question']}\nAnswer:", VALUES),
        # The system writes the notes otherwise than the layout says.
        (
            NOTES,
            "Notes:\n* Mara sails.\n* Question: which?\n\nQuestion: Where does Mara sail?\nAnswer:",
            {"notes": "* Mara sails.\n* Question: which?", "question": VALUES["question"]},
        ),
        # A value has the words of the template in it: only one way of parting them holds what was recorded.
        (
            NOTES,
            "Notes:\nMara sails.\n\nQuestion: which?\nAnswer:\n\nQuestion: Where does Mara sail?\nAnswer:",
            {"notes": "Mara sails.\n\nQuestion: which?\nAnswer:", "question": VALUES["question"]},
        ),
        (f"\n{NOTES}\n", f"Notes:\n{VALUES['notes']}\n\nQuestion: {VALUES['question']}\nAnswer:", VALUES),
    ],
)
def test_a_prompt_is_found_with_what_fills_it(template: str, text: str, expected: dict[str, str]) -> None:
    filled = filled_prompt(template, ["You are kind.", f"First. {text} Last."], PARTS, VALUES)
    assert filled is not None
    assert (filled.place, filled.values) == (1, expected)
    assert filled.with_text(template) == f"First. {text} Last."
    rendered = f"Q: {expected['question']}\nFrom: {expected['notes']}"
    assert filled.with_text(OTHER) == f"First. {rendered} Last."


def test_literal_braces_are_written_as_the_system_writes_them() -> None:
    template = 'As {{"facts": []}}: {told}'
    for text, other in (('As {"facts": []}: I row.', "{1} I row."), ('As {{"facts": []}}: I row.', "{{1}} I row.")):
        filled = filled_prompt(template, [text], {}, {"told": "I row."})
        assert filled is not None
        assert filled.with_text(template) == text
        assert filled.with_text("{{1}} {told}") == other


@pytest.mark.parametrize(
    ("template", "texts"),
    [
        (NOTES, ["Something else."]),
        ("{notes}{question}", ["Mara sails. Where?"]),
        ("Tell {notes} and {notes}.", ["Tell one and two."]),
        ("Be kind.", ["Be kind. Be kind."]),
        ("Be kind.", ["Be kind.", "Be kind."]),
    ],
)
def test_a_prompt_that_is_not_clearly_there_is_not_found(template: str, texts: list[str]) -> None:
    assert filled_prompt(template, texts, {}, {}) is None
