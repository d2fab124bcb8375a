"""A user's own configuration of Memori: what is read of it, what is left out, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.systems.memori.own_config import read_own_memori
from tracing.errors import ConfigError
from tracing.systems.registry import SYSTEMS, open_system

VARIABLES = """
OPENAI_API_KEY=sk-nobody-sees
export MEMORI_API_KEY="mk-nobody-sees"
MEMORI_RECALL_EMBEDDINGS_LIMIT=400
MEMORI_RECALL_LEX_WEIGHT=0.4
MEMORI_EMBEDDINGS_MODEL='all-mpnet-base-v2'
MEMORI_COCKROACHDB_CONNECTION_STRING=postgresql://ada:nobody-sees@db/memori
"""


def test_variables_count_and_what_does_not_is_told(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(VARIABLES)
    own = read_own_memori(".env", tmp_path)
    assert own.model_dump(exclude={"others"}) == {
        "recall_facts_limit": 5,
        "recall_relevance_threshold": 0.1,
        "recall_embeddings_limit": 400,
        "MEMORI_RECALL_LEX_WEIGHT": 0.4,
        "MEMORI_RECALL_LEX_WEIGHT_SHORT": 0.3,
    }
    assert "nobody-sees" not in str(own.kept())
    assert read_own_memori(own.kept()) == own
    settings = SYSTEMS.open("memori").kept_settings({"window": 2, "config": ".env"}, tmp_path)
    assert settings == {"window": 2, "config": own.kept()}
    caveats = open_system("memori", settings).caveats(embedded=False)
    assert "in a store of its own, which began empty." in caveats[1]
    assert caveats[2] == "Of its configuration MEMORI_EMBEDDINGS_MODEL did not count: memtune's model embedded."
    assert len(caveats) == 3
    assert len(open_system("memori").caveats(embedded=False)) == 1


def test_what_is_set_in_a_program_is_given_by_its_keys_and_the_answer_gets_as_many_facts() -> None:
    config = {"recall_facts_limit": 9, "MEMORI_RECALL_EMBEDDINGS_LIMIT": "30", "session_timeout_minutes": 5}
    system = open_system("memori", {"config": config})
    assert (system.settings["top_k"], system.settings["config"]["recall_embeddings_limit"]) == (9, 30)
    assert open_system("memori", {"config": config, "top_k": 3}).settings["top_k"] == 3
    assert "session_timeout_minutes did not count" in system.caveats(embedded=False)[2]
    assert open_system("memori").settings == {"top_k": 5, "window": 4, "max_tokens": 512, "config": None}


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("nowhere.env", r"system_settings\.config: .*nowhere\.env: cannot be read"),
        (3, r"give the path of a file of variables \(\.env\), or its keys, not int"),
        ("misspelt.env", r"misspelt\.env: MEMORI_RECALL_LEX_WEIGTH: unknown key.*MEMORI_RECALL_LEX_WEIGHT"),
        ({"recall_fact_limit": 3}, "recall_fact_limit: unknown key.*recall_facts_limit"),
        ({"recall_facts_limit": 0}, "recall_facts_limit: .*greater than or equal to 1"),
        ({"recall_embeddings_limit": "many"}, "recall_embeddings_limit: .*integer"),
    ],
)
def test_what_memori_would_not_read_is_refused(source: Any, problem: str, tmp_path: Path) -> None:
    (tmp_path / "misspelt.env").write_text("MEMORI_RECALL_LEX_WEIGTH=0.2\nMEMORI_API_KEY=mk-nobody-sees\n")
    with pytest.raises(ConfigError, match=problem) as refused:
        read_own_memori(source, tmp_path)
    assert "nobody-sees" not in str(refused.value)
