"""The token of the annotation page: kept in the home, so that an open page finds a server that was started again."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from tracing.errors import ConfigError

FILE = "annotate-key"
_BYTES = 24


def server_key(home: Path) -> str:
    """The token in the home, which only its owner may read; made on the first call.

    Raises:
        ConfigError: it cannot be read or written.
    """
    path = home / FILE
    try:
        new = path.with_name(f".{FILE}.{os.getpid()}")
        if not path.exists():
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(_BYTES))
            try:
                os.link(new, path)  # whoever is first wins
            except FileExistsError:
                pass
            finally:
                new.unlink()
        key = path.read_text().strip()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be used ({error.strerror}); give --home a writable folder") from None
    if len(key) < _BYTES:
        raise ConfigError(f"{path}: holds no token; remove it")
    return key
