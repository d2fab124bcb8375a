"""Whatever a provider's endpoint does, memtune scores as with a clean one, or tells why it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

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


def _tries() -> Iterator[object]:
    """Each habit with every command and system: one of them in turn is slow, the others thorough."""
    ways = list(product(COMMANDS, SYSTEMS))
    for number, habit in enumerate(HABITS.values()):
        for place, (command, system) in enumerate(ways):
            marks = pytest.mark.slow if place == number % len(ways) else pytest.mark.thorough
            yield pytest.param(habit, command, system, marks=marks, id=f"{habit.name}-{command}-{system}")


@pytest.mark.parametrize(("habit", "command", "system"), _tries())
def test_commands_reach_the_clean_score_or_tell_why_not(zoo: Zoo, habit: Habit, command: str, system: str) -> None:
    outcome, why = zoo.outcome(habit, command, system)
    tells = habit.fails or habit.counted or command == "doctor"
    assert outcome == "same score" or (outcome == "told" and tells), why


def _expected(habit: Habit) -> str:
    return "told" if habit.fails or habit.counted else "same score"
