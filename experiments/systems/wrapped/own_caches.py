"""What a program keeps of replies: in each build and answer its own, whatever it was replied before."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.systems.wrapped.requests import REPLACED, RUNNING
from tracing.instrument.patches import with_subclasses

_CACHED: Any = type(functools.lru_cache(int))
_MARK = "_memtune_separate"
_KEEPING = ("cache_key", "cache_clear", "__cache_key__", "check_call_in_cache", "invalidate")
"""What functions have that a library keeps the results of: cachetools, async-lru and aiocache, diskcache, joblib."""

_LIBRARIES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "langchain_core.caches": ("BaseCache", ("lookup", "alookup", "update", "aupdate")),
    "litellm.caching.caching": ("Cache", ("should_use_cache",)),
}
"""Module → its class of caches of replies, and methods that find and keep nothing if they return None."""


def separate_caches(folders: Collection[Path]) -> None:
    """Let caches keep nothing from one run of a program to the next: another candidate's reply would be taken for this
    one's, since a program knows the baseline alone; and the program's own, on disk, would be left with replies to them.

    Args:
        folders: of the modules whose functions are meant, beside the caches of libraries.
    """
    for library, (kind, methods) in _LIBRARIES.items():
        for owner in with_subclasses(getattr(sys.modules[library], kind)) if library in sys.modules else ():
            for name in methods:
                if name in vars(owner):
                    REPLACED.replace(owner, name, _keeping_nothing)
    for module in [*sys.modules.values()]:
        file = getattr(module, "__file__", None)
        if file is None or "site-packages" in file or not any(map(Path(file).resolve().is_relative_to, folders)):
            continue
        owners = [module, *(held for held in vars(module).values() if inspect.isclass(held))]
        for owner in owners:
            for name, held in [*vars(owner).items()]:
                if _is_cached(held):
                    setattr(owner, name, _separate(held))
                for cell in [*_cells(held)]:
                    cell.cell_contents = _separate(cell.cell_contents)


def _is_cached(held: Any) -> bool:
    if isinstance(held, _CACHED):
        return True
    is_own = hasattr(held, _MARK) or not callable(getattr(held, "__wrapped__", None))
    return not is_own and any(hasattr(held, name) for name in _KEEPING)


def _cells(held: Any) -> Iterator[Any]:
    """Where decorators hold a function with a cache."""
    while (inner := getattr(held, "__wrapped__", None)) is not None and not _is_cached(held):
        if _is_cached(inner):
            yield from (cell for cell in getattr(held, "__closure__", None) or () if cell.cell_contents is inner)
        held = inner


def _separate(cached: Any) -> Callable[..., Any]:
    def separate(*args: Any, **kwargs: Any) -> Any:
        running = RUNNING.get()
        if running is None:
            return cached(*args, **kwargs)
        if not isinstance(cached, _CACHED):  # equal requests get equal replies all the same
            return cached.__wrapped__(*args, **kwargs)
        own = functools.lru_cache(**cached.cache_parameters())(cached.__wrapped__)
        return running.caches.setdefault(cached, own)(*args, **kwargs)

    functools.update_wrapper(separate, cached.__wrapped__)
    told = {name: getattr(cached, name) for name in dir(cached) if name[0] != "_"}  # `cache_clear`, `cache_info`
    vars(separate).update({**told, _MARK: True, "__wrapped__": cached.__wrapped__})
    return separate


def _keeping_nothing(method: Any) -> Any:
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def kept_async(*args: Any, **kwargs: Any) -> Any:
            return await method(*args, **kwargs) if RUNNING.get() is None else None

        return kept_async

    @functools.wraps(method)
    def kept(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs) if RUNNING.get() is None else None

    return kept
