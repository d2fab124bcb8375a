"""Test of the conformance suite: two conversations are two tenants, and neither sees what the other said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from tracing.conformance import require
from tracing.recording.recorder import trace
from tracing.systems.conversations import Conversation
from tracing.systems.coroutines import settled
from tracing.systems.protocol import MemorySystem
from tracing.systems.suite.steps import RecordedCall, SystemSteps, as_json
from tracing.systems.suite.talk import told_by

TENANTS = ("kingfisher", "bullfinch")
"""Each is a word that only its own tenant says."""


class TenantConformance(SystemSteps):
    """What one tenant said never reaches the memory, the requests or the answers of another."""

    def test_two_tenants_never_see_each_others_memories(self) -> None:
        """A run builds and asks the memories of many conversations with one system, also at the same time."""
        system, candidate = self.system(), self._candidate()
        talks = {tenant: told_by(tenant, self.conversation) for tenant in TENANTS}
        built = {
            tenant: self._run(lambda access, talk=talk: system.build(talk, candidate, access), "b")  # type: ignore[misc]
            for tenant, talk in talks.items()
        }
        for tenant, other in (TENANTS, TENANTS[::-1]):
            steps = [
                built[tenant],
                *(self._answer(system, built[tenant], question) for question in talks[tenant].questions),
            ]
            state = as_json(built[tenant].result.state)
            require(other not in state.lower(), f"the memory of one tenant holds {other!r}, which another one said")
            sent = "".join(text for step in steps for request in step.requests for text in request.texts)
            require(tenant in sent.lower(), f"no request holds {tenant!r}, which is in every turn")
            for step in steps:
                fault = f"{other!r}, which another tenant said, was sent, recorded or replied"
                require(other not in _all_of(step), fault)
        for tenant, state in self._built_at_once(system, talks).items():
            require(state == as_json(built[tenant].result.state), "two memories built at once differ from each alone")

    def _built_at_once(self, system: MemorySystem, talks: Mapping[str, Conversation]) -> dict[str, str]:
        """The states of the tenants' memories, built in a thread each."""
        candidate, access = self._candidate(), self.access()

        def build(tenant: str) -> str:
            with trace(prefix="b"):
                return as_json(settled(system.build(talks[tenant], candidate, access)).state)

        with ThreadPoolExecutor(len(talks)) as threads:
            return dict(zip(talks, threads.map(build, talks), strict=True))


def _all_of(step: RecordedCall) -> str:
    """The texts that were sent, recorded and, by an answer, replied."""
    texts = [text for request in step.requests for text in request.texts]
    return "\n".join([*texts, json.dumps(step.records), str(getattr(step.result, "text", ""))]).lower()
