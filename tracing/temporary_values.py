"""Values that hold for as long as a block runs: of the context's variables and of the environment's."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def context_with(variable: ContextVar[T], value: T) -> Iterator[None]:
    """The context with this value of a variable; when the block ends, it is as it was before."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def environment_with(variables: Mapping[str, str]) -> Iterator[None]:
    """The environment with these variables; when the block ends, they are as they were before."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ |= variables
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
