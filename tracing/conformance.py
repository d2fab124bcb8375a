"""What conformance suites share: tests that run with or without pytest."""

from __future__ import annotations

import inspect


class Conformance:
    """A suite: each method `test_…` fails with one line that says what is wrong."""

    @classmethod
    def teardown_class(cls) -> None:
        """Release what the tests opened; pytest and `problems` call this after the last one."""

    def problems(self) -> list[str]:
        """Every way in which the contract is broken, one line each; empty if it is met."""
        problems: list[str] = []
        try:
            for name, test in inspect.getmembers(self, inspect.ismethod):
                if name.startswith("test_"):
                    try:
                        test()
                    except Exception as error:
                        message = (
                            str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
                        )
                        problems.append(f"{name.removeprefix('test_').replace('_', ' ')}: {' '.join(message.split())}")
        finally:
            self.teardown_class()
        return problems


def require(holds: bool, problem: str) -> None:
    """Fail with `problem` unless `holds`."""
    # Not `assert`: suites ship, and must also find faults under `python -O` and without pytest's rewriting.
    if not holds:
        raise AssertionError(problem)
