"""What a program keeps in a container or an object of its own, as JSON; and another in its place for a while."""

from __future__ import annotations

import contextlib
import copy
import inspect
import json
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial, reduce
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import UUID

from tracing.errors import MemorySystemError

CONTAINERS = (dict, list, set, deque)
_LISTED = {kind.__name__: kind for kind in (tuple, set, frozenset, deque)}
_WRITTEN: dict[str, tuple[Any, Any]] = {
    "datetime": (datetime.isoformat, datetime.fromisoformat),
    "date": (date.isoformat, date.fromisoformat),
    "UUID": (str, UUID),
    "Decimal": (str, Decimal),
}
"""By the names of their classes, how values are written and read."""
_KIND, _CONTENT, _AS = "$", "of", "as"
_FACTORIES = (dict, list, set, int, float, str, deque, Counter)
_KINDS: dict[str, Any] = {
    **{kind.__name__: kind for kind in (dict, OrderedDict, Counter)},
    **{f"defaultdict of {kind.__name__}": partial(defaultdict, kind) for kind in _FACTORIES},
}
"""How dicts are made that are like no other: by their class, or with what their default is."""


def as_json(value: Any) -> Any:
    """A value as JSON: plain values, dates, containers, arrays, and objects by the names of their classes.

    Raises:
        TypeError: it is or holds something else, or itself.
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return list(map(as_json, value))
    if isinstance(value, dict):
        content = [[as_json(key), as_json(content)] for key, content in value.items()]
        default = getattr(value, "default_factory", None)
        made_as = kind.__name__ if default is None else f"defaultdict of {getattr(default, '__name__', '')}"
        return {_KIND: "dict", _CONTENT: content, _AS: made_as if made_as in _KINDS else "dict"}
    if kind.__name__ in _LISTED and isinstance(value, _LISTED[kind.__name__]):
        content = list(map(as_json, value))
        return {
            _KIND: kind.__name__,
            _CONTENT: sorted(content, key=str) if isinstance(value, set | frozenset) else content,
            **({_AS: value.maxlen} if isinstance(value, deque) and value.maxlen is not None else {}),
        }
    if kind.__name__ in _WRITTEN and kind.__module__ in sys.stdlib_module_names:
        return {_KIND: kind.__name__, _CONTENT: _WRITTEN[kind.__name__][0](value)}
    if isinstance(value, Enum) or hasattr(kind, "_fields"):  # a member, a named tuple
        name = f"{kind.__module__}:{kind.__qualname__}"
        return {_KIND: name, _CONTENT: value.name if isinstance(value, Enum) else list(map(as_json, value))}
    if kind.__module__ == "numpy":
        return {_KIND: str(value.dtype), _CONTENT: value.tolist()}
    if kind is timedelta or not is_own(value):
        raise TypeError(f"a {kind.__module__}.{kind.__qualname__}")
    try:
        attributes = {name: as_json(inner) for name, inner in attributes_of(value).items()}
    except RecursionError:
        raise TypeError(f"a {kind.__qualname__} that holds itself") from None
    return {_KIND: f"{kind.__module__}:{kind.__qualname__}", _CONTENT: attributes}


def is_own(value: Any) -> bool:
    """Whether it is an object of a class that is written in a file of the program or of a library, and not callable."""
    module = type(value).__module__
    has_slots = _slots(value) and module.partition(".")[0] not in sys.stdlib_module_names
    if callable(value) or not (has_slots or hasattr(value, "__dict__")):
        return False
    return hasattr(sys.modules.get(module), "__file__")


def attributes_of(value: Any) -> dict[str, Any]:
    """What an object has by its attributes, those in slots too."""
    held = {name: getattr(value, name) for name in _slots(value) if hasattr(value, name)}
    return held | getattr(value, "__dict__", {})


def _slots(value: Any) -> list[str]:
    members = chain.from_iterable(vars(kind).items() for kind in type(value).__mro__ if "__slots__" in vars(kind))
    return [name for name, member in members if inspect.ismemberdescriptor(member) and not name.startswith("__")]


def from_json(data: Any, like: Any = None) -> Any:
    """The value; a dict is one as another is, with its default, or else of its kind."""
    if isinstance(data, list):
        return list(map(from_json, data))
    if not isinstance(data, dict):
        return data
    kind, content = data[_KIND], data[_CONTENT]
    if kind == "dict":
        made = copy.copy(like) if isinstance(like, dict) else _KINDS[data.get(_AS, "dict")]()
        made.clear()
        nested = like.default_factory() if isinstance(like, defaultdict) and like.default_factory else None
        # A counter would count pairs.
        made.update({from_json(key): from_json(value, copy.copy(nested)) for key, value in content})
        return made
    if kind == "deque":
        return deque(map(from_json, content), data.get(_AS))
    if kind in _LISTED:
        return _LISTED[kind](map(from_json, content))
    if kind in _WRITTEN:
        return _WRITTEN[kind][1](content)
    if ":" not in kind:
        return sys.modules["numpy"].array(content, dtype=kind)[()]  # a number alone is no array
    module, _, name = kind.partition(":")
    other: Any = reduce(getattr, name.split("."), sys.modules[module])
    if not isinstance(content, dict):
        return other[content] if isinstance(content, str) else other(*map(from_json, content))
    value: Any = other.model_construct() if hasattr(other, "model_construct") else object.__new__(other)
    for key, held in content.items():
        object.__setattr__(value, key, from_json(held, getattr(like, key, None)))
    return value


def state_of(value: Any) -> Any:
    """What a memory begins with: an empty container, or what an object has that can be kept.

    Raises:
        TypeError: it is neither a container nor an object with something that can be kept.
    """
    if isinstance(value, CONTAINERS):
        return type(value)() if not isinstance(value, defaultdict) else defaultdict(value.default_factory)
    if not is_own(value):
        as_json(value)
        raise TypeError(f"a {type(value).__name__}")
    state = {}
    for name, held in attributes_of(value).items():
        with contextlib.suppress(TypeError):
            as_json(held)
            state[name] = copy.deepcopy(held)
    if not state:
        raise TypeError(f"a {type(value).__name__} with nothing that can be kept")
    return state


@contextlib.contextmanager
def other_state(place: str, value: Any, begins: Any, file: Path) -> Iterator[None]:
    """While it is open, the value holds what the file does, or what a memory begins with; then that is in the file.

    Raises:
        MemorySystemError: it holds something by then that cannot be kept.
    """
    data = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    before: Any = copy.copy(value) if isinstance(value, CONTAINERS) else attributes_of(value)
    shared = {}
    if isinstance(value, CONTAINERS):
        _fill(value, from_json(data, begins) if data is not None else begins)
    else:
        shared = {name: content for name, content in before.items() if name not in begins}
        state = copy.deepcopy(begins)
        state |= {name: from_json(kept, begins.get(name)) for name, kept in data.items()} if data is not None else {}
        _fill(value, {**state, **shared})

    def kept(content: Any) -> Any:
        if isinstance(value, CONTAINERS):
            return as_json(content)
        return {name: as_json(content[name]) for name in content if name not in shared}

    try:
        yield
        try:
            after = kept(value if isinstance(value, CONTAINERS) else attributes_of(value))
        except TypeError as error:
            raise MemorySystemError(
                f"stores: {place} holds {error}, which is not kept as JSON; let `build` keep it in `folder`"
            ) from None
        if data is not None or after != kept(begins):
            file.write_text(json.dumps(after), encoding="utf-8")
    finally:
        _fill(value, before)


def _fill(held: Any, content: Any) -> None:
    if not isinstance(held, CONTAINERS):
        slots = _slots(held)
        for name in slots:
            if name in content:
                object.__setattr__(held, name, content[name])
            elif hasattr(held, name):
                object.__delattr__(held, name)
        held, content = getattr(held, "__dict__", {}), {key: content[key] for key in content if key not in slots}
    held.clear()
    held.extend(content) if isinstance(held, list | deque) else held.update(content)
