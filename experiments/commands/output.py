"""Output files of commands."""

from __future__ import annotations

from pathlib import Path


def write_output(path: Path, text: str, option: str) -> None:
    """Write the file that an option names; a lone surrogate, which is not valid UTF-8, is replaced.

    Raises:
        ConfigError: it cannot be written.
    """
    from tracing.errors import ConfigError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}); give {option} another file") from None
