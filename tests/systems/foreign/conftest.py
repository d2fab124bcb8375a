"""What the tests of libraries in workers share."""

from collections.abc import Iterator

import pytest

from experiments.systems.worker.handle import close_pools


@pytest.fixture(scope="module", autouse=True)
def _ended() -> Iterator[None]:
    """The workers end with the tests of a file."""
    yield
    close_pools()
