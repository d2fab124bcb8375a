"""Graphs that are extreme in one respect, of any size: what is quick on a usual trace may be quadratic on these."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tracing import ExecutionGraph, Operation, Session, Variable


def _ran(oid: str, name: str, start: float, end: float, **facts: object) -> Operation:
    return Operation(oid, name, started=start, ended=end, status="ok", **facts)  # type: ignore[arg-type]


def _values(count: int) -> list[Variable]:
    return [Variable(f"v{n}", f"n{n}", "value", f"text {n}") for n in range(count)]


def deep(count: int) -> ExecutionGraph:
    """Every operation stands in the one before it."""
    return ExecutionGraph(
        _values(count),
        [
            _ran(
                f"o{n}",
                "step",
                float(n),
                2.0 * count - n,
                parent=f"o{n - 1}" if n else None,
                inputs=(("in", f"v{n - 1}"),) if n else (),
                outputs=(("out", f"v{n}"),),
            )
            for n in range(count)
        ],
    )


def flat(count: int) -> ExecutionGraph:
    """All operations stand in one."""
    top = _ran("top", "top", 0.0, 1e6)
    inner = [_ran(f"o{n}", "step", n, n + 1.0, parent="top", outputs=(("out", f"v{n}"),)) for n in range(count)]
    return ExecutionGraph(_values(count), [top, *inner])


def named_apart(count: int) -> ExecutionGraph:
    """No two operations have the same name."""
    return ExecutionGraph([], [_ran(f"o{n}", f"step{n}", n, n + 1.0) for n in range(count)])


def circle(count: int) -> ExecutionGraph:
    """The operations stand in each other in a circle, as only a damaged file says."""
    return ExecutionGraph([], [_ran(f"o{n}", "step", n, n + 1.0, parent=f"o{(n + 1) % count}") for n in range(count)])


def tail_of_a_circle(count: int) -> ExecutionGraph:
    """All operations but two stand in each other and at last in two that stand in each other."""
    around = [f"o{n + 1}" for n in range(count - 1)] + [f"o{count - 2}"]
    return ExecutionGraph([], [_ran(f"o{n}", "step", n, n + 1.0, parent=around[n]) for n in range(count)])


def wide(count: int) -> ExecutionGraph:
    """One operation reads many variables and makes as many."""
    links = [(f"role{n}", f"v{n}") for n in range(2 * count)]
    one = _ran("o", "wide", 0.0, 1.0, inputs=tuple(links[:count]), outputs=tuple(links[count:]))
    return ExecutionGraph(_values(2 * count), [one])


def repeated(count: int) -> ExecutionGraph:
    """One operation reads and makes the same two variables many times."""
    one = _ran("o", "again", 0.0, 1.0, inputs=(("in", "v0"),) * count, outputs=(("out", "v1"),) * count)
    return ExecutionGraph(_values(2), [one])


def versions(count: int) -> ExecutionGraph:
    """Every variable is a version of the one before it."""
    line = [Variable(f"v{n}", "x", "entry", f"text {n}", n + 1, f"v{n - 1}" if n else None) for n in range(count)]
    return ExecutionGraph(line, [_ran("o", "read", 0.0, 1.0, inputs=(("in", "v0"),))])


def branches(count: int) -> ExecutionGraph:
    """Every variable is a version of the first."""
    line = [Variable(f"v{n}", "x", "entry", f"text {n}", 2 if n else 1, "v0" if n else None) for n in range(count)]
    return ExecutionGraph(line, [_ran("o", "read", 0.0, 1.0, inputs=(("in", "v0"),))])


def hub(count: int) -> ExecutionGraph:
    """Every operation reads one variable, makes it again, and stands in one that reads it too."""
    top = _ran("top", "top", 0.0, 1e6, inputs=(("in", "v0"),))
    inner = [
        _ran(f"o{n}", "step", n, n + 1.0, parent="top", inputs=(("in", "v0"),), outputs=(("out", "v0"),))
        for n in range(count)
    ]
    return ExecutionGraph(_values(1), [top, *inner])


def shared(count: int) -> ExecutionGraph:
    """One large value, which a file holds once, is that of every variable; its size grows with their number."""
    value = [{"text": f"text {n}"} for n in range(count)]
    return ExecutionGraph(
        [Variable(f"v{n}", f"n{n}", "value", value) for n in range(count)],
        [_ran(f"o{n}", "step", n, n + 1.0, inputs=(("in", f"v{n}"), ("all", "v0"))) for n in range(count)],
    )


def sessions(count: int) -> ExecutionGraph:
    """Every operation has a session of its own, all of one name."""
    return ExecutionGraph(
        [Variable(f"v{n}", "x", "value", "the same", session=f"s{n}") for n in range(count)],
        [_ran(f"o{n}", "step", n, n + 1.0, outputs=(("out", f"v{n}"),), session=f"s{n}") for n in range(count)],
        [Session(f"s{n}", "one name") for n in range(count)],
    )


_ALL = (deep, flat, named_apart, circle, tail_of_a_circle, wide, repeated, versions, branches, hub, shared, sessions)
SHAPES: Mapping[str, Callable[[int], ExecutionGraph]] = {one.__name__: one for one in _ALL}
