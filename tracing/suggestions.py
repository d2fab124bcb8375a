"""What a name, or a key of a pydantic model, that does not exist was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'NAME'?` with the known name that is closest, or nothing if none is close.

    Example:
        >>> did_you_mean("fact-memry", ["rag", "fact-memory"])
        "; did you mean 'fact-memory'?"
    """
    folded = {candidate.lower(): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower(), folded, n=1)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


def unknown_names(names: Iterable[str], existing: Collection[str]) -> str:
    """Names that do not exist, quoted, and each known one that is close to one of them."""
    unknown = dict.fromkeys(names)
    return f"{', '.join(map(repr, unknown))}{near_names(unknown, existing)}"


def near_names(names: Iterable[str], existing: Collection[str]) -> str:
    """As `did_you_mean`, for several names; each suggestion once."""
    return "".join(dict.fromkeys(did_you_mean(name, existing) for name in names))


def unknown_key(path: Sequence[int | str], model: type[BaseModel]) -> str:
    """Say of an unknown key which known one is close to it, at which other place it is known, or which ones there are.

    Args:
        path: the keys and places that lead to it from `model`, itself last (`loc` of pydantic's error).
        model: the outermost model.
    """
    name, keys = str(path[-1]), _keys_at(path[:-1], model)
    elsewhere = [known for known in _all_keys(model) if known.rpartition(".")[2] == name]
    if elsewhere:
        return f"unknown key here; its place is {' or '.join(map(repr, elsewhere))}"
    return "unknown key" + (did_you_mean(name, keys) or f"; known here: {', '.join(keys)}")


def _all_keys(model: type[BaseModel], above: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"{above}{name}"
        for inside in _models_in(field.annotation):
            yield from _all_keys(inside, f"{above}{name}.")


def _keys_at(path: Sequence[int | str], model: type[BaseModel]) -> list[str]:
    for part in path:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        inside = next(_models_in(field.annotation), None) if field else None
        if inside is None:
            return []
        model = inside
    return list(model.model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
