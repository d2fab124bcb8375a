"""Whatever a provider's endpoint does, memtune scores as with a clean one, or tells why it cannot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.providers.habit import Habit
from benchmarks.providers.habits import HABITS
from benchmarks.providers.zoo import COMMANDS, SYSTEMS, Zoo, models_alone

BY_NAME = pytest.mark.parametrize("habit", HABITS.values(), ids=HABITS)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zoo]:
    """One for all habits: what one of them leaves behind must not disturb the next."""
    zoo = Zoo(tmp_path_factory.mktemp("zoo"))
    yield zoo
    zoo.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("COLUMNS", "200")
    with models_alone():
        yield


@BY_NAME
def test_calls_get_the_clean_replies_or_a_failure_that_is_told(zoo: Zoo, habit: Habit) -> None:
    assert zoo.outcome_of_calls(habit) == (_expected(habit), "")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("system", SYSTEMS)
@BY_NAME
def test_commands_reach_the_clean_score_or_tell_why_not(zoo: Zoo, habit: Habit, system: str, command: str) -> None:
    if command == "run" and _other_system(habit) == system:
        pytest.skip("runs take turns between the systems; `python -m benchmarks providers` makes all")
    outcome, why = zoo.outcome(habit, command, system)
    may_pass = command == "doctor" and not (habit.fails and habit.doctor)
    assert outcome == _expected(habit) or (may_pass and outcome != "silent"), why


def _expected(habit: Habit) -> str:
    return "told" if habit.fails or habit.counted else "same score"


def _other_system(habit: Habit) -> str:
    return list(SYSTEMS)[list(HABITS).index(habit.name) % len(SYSTEMS)]
