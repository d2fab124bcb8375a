"""The conformance suite of `MemorySystem`: subclass it in a test file, and pytest checks your system against it.

    from tracing.systems.conformance import MemorySystemConformance

    class TestMyMemory(MemorySystemConformance):
        def system(self):
            return MyMemory()

        def reply(self, request):  # the JSON body of a chat request
            return "a text that makes the system store something"

The suite needs no network, no model and no test framework: a scripted endpoint on loopback stands in for the models,
for a system that uses the access as for one with its own client (`access.task.settings` has the address).
Each failure says in one line what is wrong; `problems` returns them all, without pytest.
"""

from __future__ import annotations

from tracing.systems.suite.optional import OptionalConformance
from tracing.systems.suite.recorded import RecordedConformance
from tracing.systems.suite.repeatable import RepeatableConformance
from tracing.systems.suite.talk import SMALL_TALK
from tracing.systems.suite.tenants import TenantConformance

__all__ = ["SMALL_TALK", "MemorySystemConformance"]


class MemorySystemConformance(RecordedConformance, RepeatableConformance, TenantConformance, OptionalConformance):
    """What memtune relies on. Override `system` and `reply`, and `conversation` if your system needs another one.

    The model must make the system store something, and the conversation must cause every operation it lists.
    """
