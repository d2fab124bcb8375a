"""Recorders of memory libraries: those that memtune ships, those of installed distributions, and a user's own."""

from __future__ import annotations

from tracing.plugins import PluginRegistry

RECORDERS = PluginRegistry(
    kind="recorders", key="recorder", built_in={"mem0": "experiments.systems.mem0.recorder:mem0"}
)
"""Each is a function that takes the library's object and returns an `Instrumentation`; `instrument.NAME` is it."""
