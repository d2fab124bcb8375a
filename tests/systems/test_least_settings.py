"""A setting with which a system would read or find nothing is refused before anything is asked."""

from __future__ import annotations

import pytest

from tracing.errors import ConfigError
from tracing.systems.registry import open_system

LEAST = {
    "fact-memory": {"window": 1, "top_k": 0, "compared": 0, "most_facts": 1},
    "trace-memory": {"window": 1, "top_k": 0, "statements": 0, "compared": 0},
    "rag": {"top_k": 0, "rerank": 0},
    "long-context": {"window_tokens": 1},
    "evermemos": {"cell_tokens": 1, "cell_messages": 1, "candidates": 1, "top_k": 1, "rerank": 0},
    "mem0": {"window": 1, "top_k": 0},
    "mem0@2": {"window": 1, "top_k": 0},
    "memori": {"window": 1, "top_k": 0},
    "everos": {"top_k": 0},
}


@pytest.mark.parametrize(
    ("system", "setting", "least"),
    [(system, setting, least) for system, each in LEAST.items() for setting, least in each.items()],
)
def test_a_setting_that_leaves_no_room_is_refused(system: str, setting: str, least: int) -> None:
    open_system(system, {setting: least})
    with pytest.raises(ConfigError, match=f"system_settings.{setting}: at least {least} is needed, not {least - 1}"):
        open_system(system, {setting: least - 1})


def test_more_facts_than_are_read_of_a_reply_are_not_asked_for() -> None:
    open_system("fact-memory", {"most_facts": 16})
    with pytest.raises(ConfigError, match=r"system_settings\.most_facts: at most 16 are read, not 17"):
        open_system("fact-memory", {"most_facts": 17})
