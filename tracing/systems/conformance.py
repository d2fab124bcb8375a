"""What conformance suites share: tests that pytest finds, and that run without it as well."""

from __future__ import annotations

import inspect


class Conformance:
    """A suite: each method `test_…` fails with one line that says what is wrong."""

    @classmethod
    def teardown_class(cls) -> None:
        """Release what the tests held; pytest calls this after the last one, and so does `problems`."""

    def problems(self) -> list[str]:
        """Every way in which the contract is broken, a line each; empty where it is kept."""
        found: list[str] = []
        try:
            for name, test in inspect.getmembers(self, inspect.ismethod):
                if name.startswith("test_"):
                    try:
                        test()
                    except Exception as error:
                        said = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
                        found.append(f"{name.removeprefix('test_').replace('_', ' ')}: {' '.join(said.split())}")
        finally:
            self.teardown_class()
        return found


def require(holds: bool, problem: str) -> None:
    """Fail with `problem` unless something holds."""
    # Not `assert`: suites ship, and must find faults under `python -O` and without pytest's rewriting as well.
    if not holds:
        raise AssertionError(problem)
