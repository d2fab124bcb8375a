"""Methods that are replaced temporarily."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

_MARK = "_memtune_original"


class Instrumentation:
    """Replaced methods; `undo`, or the end of a `with`, restores the originals."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        """Replace a method of a class or an instance by `wrap(original)`; a method already wrapped stays."""
        original = getattr(owner, name)
        if hasattr(original, _MARK):
            return
        inherited = name not in vars(owner)
        wrapped = wrap(original)
        setattr(wrapped, _MARK, original)
        setattr(owner, name, wrapped)

        def restore() -> None:
            if inherited:
                delattr(owner, name)
            else:
                setattr(owner, name, original)

        self._undo.append(restore)

    def also(self, undo: Callable[[], None]) -> None:
        """Call this `undo` along with the rest."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Restore everything; a second call does nothing."""
        while self._undo:
            self._undo.pop()()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.undo()
