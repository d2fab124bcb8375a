"""What functions of a program keep of their results: in each build and answer its own, whatever they gave before."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from experiments.systems.wrapped.requests import RUNNING

_CACHED: Any = type(functools.lru_cache(int))


def separate_caches(folders: Collection[Path]) -> None:
    """Let `functools.cache` and `lru_cache` keep nothing from one run of a program to the next: another candidate's
    reply would be taken for this one's, since a program knows the baseline alone.

    Args:
        folders: of the modules whose functions are meant.
    """
    for module in [*sys.modules.values()]:
        file = getattr(module, "__file__", None)
        if file is None or "site-packages" in file or not any(map(Path(file).resolve().is_relative_to, folders)):
            continue
        owners = [module, *(held for held in vars(module).values() if inspect.isclass(held))]
        for owner in owners:
            for name, held in [*vars(owner).items()]:
                if isinstance(held, _CACHED):
                    setattr(owner, name, _separate(held))
                for cell in [*_cells(held)]:
                    cell.cell_contents = _separate(cell.cell_contents)


def _cells(held: Any) -> Iterator[Any]:
    """Where decorators hold a function with a cache."""
    while (inner := getattr(held, "__wrapped__", None)) is not None and not isinstance(held, _CACHED):
        if isinstance(inner, _CACHED):
            yield from (cell for cell in getattr(held, "__closure__", None) or () if cell.cell_contents is inner)
        held = inner


def _separate(cached: Any) -> Callable[..., Any]:
    @functools.wraps(cached)
    def separate(*args: Any, **kwargs: Any) -> Any:
        running = RUNNING.get()
        if running is None:
            return cached(*args, **kwargs)
        own = functools.lru_cache(**cached.cache_parameters())(cached.__wrapped__)
        return running.caches.setdefault(cached, own)(*args, **kwargs)

    vars(separate).update(__wrapped__=cached.__wrapped__, cache_clear=cached.cache_clear, cache_info=cached.cache_info)
    return separate
