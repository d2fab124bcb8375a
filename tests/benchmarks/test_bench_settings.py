"""`python -m benchmarks settings`: what is retrieved under settings that were chosen by what is retrieved."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.retrieval_settings import Choice, Found, choose_and_measure, parted
from experiments.running.parts import open_access
from experiments.runs.config_file import load_config
from tracing.errors import ConfigError

BY_WORDS = load_config(
    None,
    overrides={
        "system": "rag",
        "system_settings": {"retrieval": "sparse", "top_k": 1, "chunk_tokens": 60},
        "search.settings": {"top_k": [4], "overlap": [60]},
    },
)


def test_what_is_chosen_on_some_conversations_finds_more_evidence_on_others(tmp_path: Path) -> None:
    learned_from, held_out = parted(BY_WORDS, None)
    steps: list[tuple[int, int]] = []
    with open_access(BY_WORDS, tmp_path, surely=False) as access:
        choice = choose_and_measure(
            BY_WORDS, access, tmp_path, learned_from[:3], held_out[:4], lambda *done: steps.append(done)
        )
    # An overlap of 60 does not fit chunks of 60 tokens.
    assert (choice.settings, choice.compared, steps[-1]) == ({"top_k": 4}, 3, (3, 3))
    assert choice.own.keys() == choice.chosen.keys() == {conversation.id for conversation in held_out[:4]}
    assert all(found.questions == 10 for found in choice.own.values())
    assert choice.gain > 0.1
    assert choice.tokens_saved < 0


def test_the_gain_is_the_mean_difference_over_conversations() -> None:
    own, chosen = (
        {"a": Found(10, 0.5, 100), "b": Found(10, 0.7, 100)},
        {"a": Found(10, 0.6, 40), "b": Found(10, 1.0, 60)},
    )
    choice = Choice({"top_k": 4}, 1, 0.0, own, chosen)
    assert (choice.gain, choice.tokens_saved) == (pytest.approx(0.2), pytest.approx(0.5))
    assert choice.interval is not None
    assert choice.interval[0] < 0.2 < choice.interval[1]


@pytest.mark.parametrize(
    ("learn", "told"),
    [("test-11,tast-12", "no conversation 'tast-12'; did you mean 'test-12'"), ("", "no conversation ''")],
)
def test_a_conversation_that_does_not_exist_is_told(learn: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parted(BY_WORDS, learn)


def test_a_conversation_must_be_left_to_be_held_out() -> None:
    learned_from, held_out = parted(BY_WORDS, "test-11")
    names = ",".join(conversation.id for conversation in (*learned_from, *held_out))
    with pytest.raises(ConfigError, match="name fewer"):
        parted(BY_WORDS, names)
