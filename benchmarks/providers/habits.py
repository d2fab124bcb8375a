"""All habits of providers' endpoints."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.providers import embedding_habits, failure_habits, reply_habits, request_habits
from benchmarks.providers.habit import Habit

_MODULES = (request_habits, reply_habits, failure_habits, embedding_habits)
HABITS: Mapping[str, Habit] = {habit.name: habit for module in _MODULES for habit in module.HABITS}
"""By name."""
