"""Variables of the environment that are set for as long as a block runs."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


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
