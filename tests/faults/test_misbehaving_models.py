"""A run through an endpoint that misbehaves ends as one through a sound endpoint, or says why and can be resumed."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest
from bench import Bench, Tried, leaks, memtune, well_said
from misbehaviour import EVERY, Misbehaviour

from tracing.llm.http import endpoint

PASSING = [kind for kind in EVERY.values() if kind.passes and not kind.slow]
LASTING = [kind for kind in EVERY.values() if not kind.believed and not kind.slow]
SLOW = [kind for kind in EVERY.values() if kind.slow]
BELIEVED = [kind for kind in EVERY.values() if kind.believed]

AT_ONCE = {"chat": 30, "embedding": 12}
"""Kinds that one run meets: it makes a few more requests."""

CHAIN = 8
"""Times that one run is stopped."""

NOTED: dict[str, tuple[str, ...]] = {
    "chat": (
        *("429 without Retry-After", "HTTP 401", "quota used up", "error with markup", "200000 brackets"),
        *("reset within the body", "echoes the key, at 490", "token count 1e400"),
    ),
    "embedding": (
        *("HTTP 503", "embedding of another dimension", "embedding of NaN", "too few embeddings", "HTML with 200"),
    ),
    "said": ("says 990 brackets", "says 200000 facts", "says halves of surrogate pairs", "cut at the limit"),
}
"""What the quick tests try for good; they try everything once."""

TO_A_JUDGE = (
    *("content null", "says 990 brackets", "says 100000 objects", "says 200000 facts", "says another schema"),
    *("says fenced object", "says halves of surrogate pairs", "says numbers beyond"),
)


def batches(kinds: Sequence[Misbehaviour], role: str, size: int) -> list[list[Misbehaviour]]:
    fitting = [kind for kind in kinds if role in kind.at]
    return [fitting[at : at + size] for at in range(0, len(fitting), size)]


def _rounds() -> list[dict[str, list[Misbehaviour]]]:
    by_role = {role: batches(PASSING, role, size) for role, size in AT_ONCE.items()}
    count = max(len(each) for each in by_role.values())
    return [{role: each[n] for role, each in by_role.items() if n < len(each)} for n in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("kinds", _rounds(), ids=lambda kinds: f"from {kinds['embedding'][0].name}")
def test_what_passes_when_asked_again_changes_nothing(
    bench: Bench, tried: Tried, kinds: dict[str, list[Misbehaviour]]
) -> None:
    whole = bench.whole()
    bench.endpoint.met.clear()
    bench.endpoint.misbehave_once(kinds)
    for role, each in kinds.items():
        for kind in each:
            tried(f"{kind.name}, {role}, passing")
    said = bench.run(bench.config(retries=2))
    assert sorted(bench.endpoint.met) == sorted((kind.name, role) for role, each in kinds.items() for kind in each)
    assert said.code == 0, said.last
    assert bench.outcome() == whole


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("role", ["chat", "embedding"])
@pytest.mark.parametrize(
    "kind",
    SLOW,
    ids=lambda kind: kind.name,
)
def test_what_costs_all_patience_passes_or_is_told(bench: Bench, tried: Tried, kind: Misbehaviour, role: str) -> None:
    whole = bench.whole()
    tried(f"{kind.name}, {role}, passing")
    bench.endpoint.misbehave_once({role: [kind]})
    said = bench.run(bench.config(timeout=0.5))
    assert said.code == 0, said.last
    assert bench.outcome() == whole
    _stopped_and_resumed(bench, tried, [kind], role, timeout=0.5)


def _stopped_and_resumed(
    bench: Bench, tried: Tried, kinds: Sequence[Misbehaviour], role: str, *, timeout: float = 20.0, after: int = 0
) -> None:
    """One run that is stopped by a kind, resumed, stopped by the next, and so on, until the endpoint is mended."""
    whole = bench.whole()
    config, more = bench.config(timeout=timeout), ()
    for kind in kinds:
        tried(f"{kind.name}, {role}, lasting")
        bench.endpoint.met.clear()
        bench.endpoint.misbehave(kind, role, after=after)
        said = bench.run(config, *more)
        assert bench.endpoint.met, "no request met it"
        if said.code == 0:
            # It did no harm; the next kind stops another run.
            assert bench.outcome() == whole
            config, more = bench.config(timeout=timeout), ()
        else:
            more = ("--resume", "latest")
    bench.endpoint.behave()
    said = bench.run(config, *more)
    assert said.code == 0, said.last
    assert bench.outcome() == whole


@pytest.mark.slow
@pytest.mark.parametrize("role", ["chat", "embedding"])
def test_what_lasts_is_told_and_resumed_once_it_is_mended(bench: Bench, tried: Tried, role: str) -> None:
    kinds = [EVERY[name] for name in NOTED[role]]
    _stopped_and_resumed(bench, tried, kinds, role, after=2 if role == "chat" else 1)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("role", "kinds"),
    [(role, batch) for role in ("chat", "embedding") for batch in batches(LASTING, role, CHAIN)],
    ids=lambda given: given if isinstance(given, str) else f"from {given[0].name}",
)
def test_whatever_lasts_is_told_and_resumed_once_it_is_mended(
    bench: Bench, tried: Tried, kinds: list[Misbehaviour], role: str
) -> None:
    _stopped_and_resumed(bench, tried, kinds, role, after=3 if role == "chat" else 1)


@pytest.mark.slow
def test_an_endpoint_that_refuses_connections_is_told_and_waited_for_where_it_was_there_before(
    bench: Bench, tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, server = bench.whole(), bench.server
    tried("connection refused, lasting")
    config = bench.config()
    server.go_away()
    try:
        said = bench.run(config)
    finally:
        server.come_back()
    assert said.code == 2
    assert f"{server.base_url}: " in said.last
    # No run had begun that could be resumed.
    assert bench.run(config).code == 0
    assert bench.outcome() == whole

    tried("connection refused, passing")
    monkeypatch.setattr(endpoint, "OUTAGE_S", 30.0)

    def away() -> None:
        while not bench.endpoint.met:
            time.sleep(0.01)
        server.go_away()
        time.sleep(0.5)
        server.come_back()
        bench.endpoint.behave()

    bench.endpoint.misbehave(EVERY["reset before the reply"], "chat", after=5)
    bench.endpoint.met.clear()
    leaving = threading.Thread(target=away, daemon=True)
    leaving.start()
    said = bench.run(bench.config())
    leaving.join()
    assert said.code == 0, said.last
    assert bench.outcome() == whole


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "role"),
    [
        *(
            pytest.param(kind, "chat", marks=() if kind.name in NOTED["said"] else pytest.mark.thorough)
            for kind in BELIEVED
        ),
        (EVERY[TO_A_JUDGE[0]], "judge"),
        *(pytest.param(EVERY[name], "judge", marks=pytest.mark.thorough) for name in TO_A_JUDGE[1:]),
    ],
    ids=lambda given: given if isinstance(given, str) else given.name,
)
def test_what_is_said_is_believed_alike_by_the_run_and_its_resumption(
    bench: Bench, tried: Tried, kind: Misbehaviour, role: str
) -> None:
    metric = "llm_judge" if role == "judge" else "short_contains"
    whole = bench.whole(metric)
    tried(f"{kind.name}, {role}, lasting")
    config = bench.config(metric=metric)
    bench.endpoint.met.clear()
    bench.endpoint.misbehave(kind, role)
    first = bench.run(config)
    assert bench.endpoint.met
    ended = bench.outcome() if first.code == 0 else None
    again = bench.run(config, "--resume", "latest")
    assert again.code == first.code, again.last
    assert again.code != 0 or bench.outcome() == ended
    bench.endpoint.behave()
    if first.code != 0 and bench.run(config, "--resume", "latest").code == 0:
        # It was no reply at all, and so was not kept.
        assert bench.outcome() == whole


@pytest.mark.slow
def test_after_all_that_a_home_is_as_good_as_new(bench: Bench) -> None:
    """Last of these tests, so that the home has seen all of them."""
    whole = bench.whole()
    bench.endpoint.behave()
    assert bench.run(bench.config()).code == 0
    assert bench.outcome() == whole
    assert not leaks(bench.home)
    said = memtune("runs", "--home", bench.home)
    well_said(said)
    assert said.code == 0
