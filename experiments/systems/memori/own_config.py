"""A user's own configuration of Memori, what they set of `memori.config` and its variables: what a run takes of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field

from experiments.systems.own_config import TakenInPart, own_config
from tracing.files.opening import read_text

_MODELS = ("MEMORI_EMBEDDINGS_MODEL", "embeddings")
_RUNS = (
    *(f"MEMORI_{name}" for name in ("API_KEY", "API_URL_BASE", "COLLECTOR_URL_BASE", "HOME", "TEST_MODE")),
    *(f"MEMORI_{name}" for name in ("COCKROACHDB_CONNECTION_STRING", "TIDB_ZERO_URL", "ENTITY_ID", "PROJECT_ID")),
    *(f"MEMORI_{name}" for name in ("DISABLE_RUST_CORE", "USE_RUST_CORE", "PYTHON_LIB", "ORT_AUTO_DOWNLOAD")),
    *("debug_truncate", "raise_final_request_attempt"),
    *("request_backoff_factor", "request_num_backoff", "request_secs_timeout"),
)
"""What says where and how it runs, and nothing of what is kept and found."""


class OwnMemori(TakenInPart):
    """What a run takes of a configuration: how much is recalled, from how much, and what words count in it."""

    unused = (*_MODELS, "session_timeout_minutes", *_RUNS)

    recall_facts_limit: int = Field(default=5, ge=1)
    recall_relevance_threshold: float = 0.1
    recall_embeddings_limit: int = Field(
        default=1000, ge=1, validation_alias=AliasChoices("recall_embeddings_limit", "MEMORI_RECALL_EMBEDDINGS_LIMIT")
    )
    MEMORI_RECALL_LEX_WEIGHT: float = 0.15
    MEMORI_RECALL_LEX_WEIGHT_SHORT: float = 0.3

    def give_to(self, config: Any) -> None:
        """Set it in `memori.config`, and in this process's environment, which Memori reads at each search."""
        for name, value in self:
            if name.isupper():
                os.environ[name] = str(value)
            elif name.startswith("recall_"):
                setattr(config, name, value)

    def caveats(self) -> list[str]:
        """What of it did not count in a run, one sentence each."""
        return [
            "Memori had its user's limits and weights of recall, without its Rust core, in a store of its own, which "
            "began empty.",
            *self.left_out(_MODELS, "memtune's model embedded"),
            *self.left_out(("session_timeout_minutes",), "each session of a conversation is one of Memori's"),
        ]


DEFAULTS = OwnMemori()
"""What Memori has by itself."""


def read_own_memori(source: object, folder: Path = Path()) -> OwnMemori:
    """The configuration that is given as the path of a file of variables, or by its keys.

    Raises:
        ConfigError: there is no such file, or a key or variable of Memori is unknown or has no fitting value.
    """
    form, reader = "a file of variables (.env)", "Memori reads: attributes of memori.config, or variables MEMORI_…"
    return own_config(OwnMemori, source, folder, _variables, form, reader)[0]


def _variables(path: Path) -> Mapping[str, str | None]:
    """The variables of a file that are Memori's."""
    from dotenv import dotenv_values  # which an environment of a system may lack

    values = dotenv_values(stream=StringIO(read_text(path)), interpolate=False)
    return {name: value for name, value in values.items() if name.startswith("MEMORI_")}
