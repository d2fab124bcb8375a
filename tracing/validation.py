"""What a key that a pydantic model does not have was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from tracing.suggestions import did_you_mean


def unknown_key(path: Sequence[int | str], model: type[BaseModel]) -> str:
    """Say of an unknown key which known one is close to it, or which ones there are.

    Args:
        path: the keys and places that lead to it from `model`, itself last (`loc` of pydantic's error).
        model: the outermost model.
    """
    keys = _keys_at(path[:-1], model)
    return "unknown key" + (did_you_mean(str(path[-1]), keys) or f"; known here: {', '.join(keys)}")


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
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
