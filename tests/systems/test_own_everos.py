"""A user's own configuration of EverOS: what is read of it, what is left out, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.systems.everos.own_config import read_own_everos
from tracing.errors import ConfigError
from tracing.systems.registry import SYSTEMS

TOML = """
[memory]
timezone = "Asia/Tokyo"
[llm]
model = "openai/gpt-4.1-mini"
api_key = "sk-nobody-sees"
[decider]
max_rounds = 5
[boundary_detection]
hard_msg_limit = 60
[memorize]
mode = "agent"
[memorize.async_queue]
enabled = false
[sqlite]
cache_size_kb = 1
"""


def test_what_counts_is_kept_and_what_does_not_is_told(tmp_path: Path) -> None:
    (tmp_path / "everos.toml").write_text(TOML)
    own = read_own_everos("everos.toml", tmp_path)
    assert own.variables == {
        "EVEROS_MEMORY__TIMEZONE": "Asia/Tokyo",
        "EVEROS_BOUNDARY_DETECTION__HARD_TOKEN_LIMIT": "65536",
        "EVEROS_BOUNDARY_DETECTION__HARD_MSG_LIMIT": "60",
    }
    assert "sk-nobody" not in str(own.kept())
    assert read_own_everos(own.kept()) == own
    caveats = " ".join(own.caveats())
    assert "llm did not count" in caveats
    assert "decider did not count" in caveats
    assert "in place of agent" in caveats
    assert "sqlite" not in caveats
    settings = SYSTEMS.open("everos").kept_settings({"top_k": 3, "config": "everos.toml"}, tmp_path)
    assert settings == {"top_k": 3, "config": own.kept()}


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("nowhere.toml", r"system_settings\.config: .*nowhere\.toml: cannot be read"),
        ("broken.toml", r"broken\.toml: no configuration \(.*\); give a TOML file"),
        (3, "give the path of an everos.toml, or its keys, not int"),
        ({"memory": {"timezone": "Mars/Olympus"}}, "no time zone: 'Mars/Olympus'"),
        ({"boundary_detection": {"hard_msg_limit": 0}}, "hard_msg_limit"),
        ({"boundary": {"hard_msg_limit": 9}}, "boundary"),
    ],
)
def test_what_everos_would_not_read_is_refused(source: Any, problem: str, tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("[llm\napi_key = 'sk-nobody-sees'")
    with pytest.raises(ConfigError, match=problem) as refused:
        read_own_everos(source, tmp_path)
    assert "sk-nobody" not in str(refused.value)
