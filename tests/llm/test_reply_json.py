"""JSON as models write it is read; what is no JSON, or not all of it, is malformed."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tracing.errors import MalformedReplyError
from tracing.llm.reply_json import read_json

FACTS = {"facts": ["It's red.", 'He said "no"'], "more": True, "last": None}

READ: dict[str, tuple[str, Any]] = {
    "plain": ('{"facts": ["It\'s red.", "He said \\"no\\""], "more": true, "last": null}', FACTS),
    "Python": ("{'facts': ['It\\'s red.', 'He said \"no\"'], 'more': True, 'last': None}", FACTS),
    "an apostrophe within single quotes": ("{'a': 'it's red', 'b': 'x, y'}", {"a": "it's red", "b": "x, y"}),
    "a byte order mark": ('\ufeff{"a": 1}', {"a": 1}),
    "fenced": ('```json\n{"a": 1}\n```', {"a": 1}),
    "fenced without a name": ('```\n{"a": 1}\n```', {"a": 1}),
    "fenced amid chatter": ('Sure, here {it} is:\n```JSON\n{"a": 1,}\n```\nAnything {else}?', {"a": 1}),
    "chatter": ('The answer is {"a": 1}. I hope this helps!', {"a": 1}),
    "chatter around a list": ('Facts: ["a", "b"]. Done.', ["a", "b"]),
    "reasoned first": ('I thought of {"a": 0}, but it is {"a": 1}', {"a": 1}),
    "commas at the end": ('{"a": [1, 2,],}', {"a": [1, 2]}),
    "comments": ('// facts\n{"a": 1 /* one */}', {"a": 1}),
    "an address is no comment": ('{"a": "http://x//y",}', {"a": "http://x//y"}),
    "words within texts stay": ("{'a': 'True, None', \"b\": \"False\"}", {"a": "True, None", "b": "False"}),
    "a raw line break": ('{"a": "one\ntwo"}', {"a": "one\ntwo"}),
    "no object": ('"right"', "right"),
    "the only one of a list": ('[{"a": 1}]', {"a": 1}),
    "JSON within a string": ('"{\\"a\\": 1}"', {"a": 1}),
    "needless escapes": (r'{"a_b": "It\'s \_x\n"}'.replace("a_b", r"a\_b"), {"a_b": "It's _x\n"}),
    "names without quotes": ("{a: [1], b_c : {d: True}}", {"a": [1], "b_c": {"d": True}}),
    "typographic quotes": ("{“a”: “b ‘c’”}", {"a": "b ‘c’"}),
}


@pytest.mark.parametrize(("text", "value"), READ.values(), ids=READ)
def test_json_is_read_as_models_write_it(text: str, value: Any) -> None:
    assert read_json(text) == value


MALFORMED = {
    "prose": "I know nothing of that.",
    "braces in prose": "She wrote {name} there.",
    "cut short": '{"facts": ["a", "b',
    "cut short in a fence": '```json\n{"facts": ["a"',
    "not a number": "{'a': NaN}",
    "deep": "{'a': " + "[" * 90 + "]" * 90 + "}",
    "nothing": "",
    "stray braces": '{"' * 30_000 + "}",
    "quotes": "{" + "'" * 50_000 + "}",
    "fences": "```\n" * 12_000 + "{x}",
    "comments": "{" + "/*" * 24_000 + "}",
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_json_is_malformed_and_takes_little_time(text: str) -> None:
    started = time.monotonic()
    with pytest.raises(MalformedReplyError):
        read_json(text)
    assert time.monotonic() - started < 2


def test_an_object_that_is_wrapped_in_another_is_found_by_its_fields() -> None:
    assert read_json('{"reply": {"a": 1}}', fields=["a"]) == {"a": 1}
    assert read_json('{"a": {"a": 1}}', fields=["a"]) == {"a": {"a": 1}}
    assert read_json('{"reply": {"a": 1}}') == {"reply": {"a": 1}}
