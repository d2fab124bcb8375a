"""Whom a memory of Mem0 2.x is about, which its own prompt asks for and it stores, stays with the memory."""

from __future__ import annotations

import json

from experiments.systems.mem0.decisions import memories_of
from experiments.systems.mem0.prompts import CHOICES, MEMORIES_SCHEMA
from experiments.systems.mem0.writer import _as_reply
from tracing.systems.baseline import fitted
from tracing.systems.layouts import Item

WHOLE = CHOICES["system"]
REPLY = '{"memory": [{"id": "0", "text": "a", "attributed_to": "assistant"}, {"id": "1", "text": "b"}]}'


def test_prompt_reply_schema_and_demonstrations_ask_for_it() -> None:
    assert '"attributed_to": "user"' in WHOLE.text
    assert "attributed_to" in MEMORIES_SCHEMA["properties"]["memory"]["items"]["required"]
    shown = json.loads(WHOLE.reply({}, [Item("facts", "fact1", "fact", "Ada likes tea.")]))
    assert shown == {"memory": [{"text": "Ada likes tea.", "attributed_to": "user"}]}


def test_a_rewrite_keeps_it_if_its_seed_has_it() -> None:
    without = WHOLE.text.replace("attributed_to", "about")
    assert WHOLE.contract.violations(without) == ["the marker 'attributed_to' is missing"]
    assert fitted(WHOLE.contract, WHOLE.text).violations(without) != []
    assert fitted(WHOLE.contract, without).violations(without) == []


def test_it_stays_with_the_texts_that_an_intervention_keeps() -> None:
    assert memories_of(REPLY) == ["a", "b"]
    again = json.loads(_as_reply(["c", "a"], json.loads(REPLY)["memory"]))["memory"]
    assert again == [
        {"attributed_to": "user", "id": "0", "text": "c"},
        {"id": "1", "text": "a", "attributed_to": "assistant"},
    ]
