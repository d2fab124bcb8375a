"""How an operation reads replies is seen from replies and outputs that were recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from optimizer.objectives.reply_readers import reader_of
from tracing.systems.layouts import Item


def notes(*values: Any, role: str = "note") -> list[Item]:
    return [Item(role, f"n{number}", "memory_entry", value) for number, value in enumerate(values)]


@pytest.mark.parametrize(
    ("exchanges", "reply", "expected"),
    [
        ([(" Oslo\n", notes("Oslo")), ("In Rome\nby now.", notes("In Rome\nby now."))], "Bern ", ["Bern"]),
        ([("a b\n\nc", notes("a b", "", "c"))], "d\ne", ["d", "e"]),
        ([("- a b\n- c", notes("a b", "c")), ("1. d", notes("d"))], "* e\n2) f", ["e", "f"]),
        (
            [("He moved.\nANSWER: Oslo", notes("Oslo")), ("ANSWER: Rome", notes("Rome"))],
            "So: x\nANSWER: Bern",
            ["Bern"],
        ),
        ([("I think so.\nOslo", notes("Oslo")), ("Well.\n\nRome", notes("Rome"))], "Hm.\nBern", ["Bern"]),
        ([('{"facts": ["a", "b"]}', notes("a", "b")), ('{"facts": []}', [])], '```\n{"facts": ["c"]}\n```', ["c"]),
        ([('{"memory": [{"id": 1, "text": "a"}]}', notes("a"))], '{"memory": [{"id": 2, "text": "b"}]}', ["b"]),
        ([('[{"text": "a"}, {"text": "b"}]', notes("a", "b"))], '[{"text": "c"}, {"text": "d"}]', ["c", "d"]),
        ([('{"event": "ADD"}', notes({"event": "ADD"}))], '{"event": "NONE"}', [{"event": "NONE"}]),
        ([("a\nb", notes("a", "b")), ("NONE", [])], "NONE", []),
        # What is no such JSON, the operation takes as it is.
        ([('{"says": "a"}', notes("a")), ("b c", notes("b c"))], '{"says": "d"}', ["d"]),
        ([('{"says": "a"}', notes("a")), ("b c", notes("b c")), ('{"x": 1}', notes('{"x": 1}'))], "e f", ["e f"]),
    ],
)
def test_what_was_read_shows_how_replies_are_read(
    exchanges: list[tuple[str, list[Item]]], reply: str, expected: list[Any]
) -> None:
    read = reader_of(exchanges)
    assert read is not None
    items = read(reply)
    assert [item.value for item in items] == expected
    assert {(item.role, item.kind) for item in items} <= {("note", "memory_entry")}


def test_each_role_is_read_in_its_own_way() -> None:
    outputs = [*notes("a", "b", role="facts"), *notes("travel", role="topic")]
    read = reader_of([(json.dumps({"facts": ["a", "b"], "topic": "travel"}), outputs)])
    assert read is not None
    again = read('{"topic": "food", "facts": ["c"]}')
    assert {(item.role, item.text) for item in again} == {("facts", "c"), ("topic", "food")}


def test_outputs_that_are_not_in_the_replies_are_read_by_nobody() -> None:
    assert reader_of([("yes", notes("Mara moved to Oslo.")), ("no", notes("Bo rows."))]) is None
    assert reader_of([("nothing", [])]) is None
    assert reader_of([]) is None


def test_what_an_operation_leaves_out_now_and_then_does_not_hide_how_it_reads() -> None:
    exchanges = [(f"a{n}\nb{n}", notes(f"a{n}", f"b{n}")) for n in range(9)]
    assert reader_of([*exchanges, ("a1\nnew", notes("new"))]) is not None
    assert reader_of([*exchanges[:2], ("a1\nnew", notes("new"))]) is None
