"""LangMem, the real library: it passes the conformance suite, and what it keeps, changes and removes is seen."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer

from attribution.cases import Case
from attribution.judging.words import judge
from attribution.survival.survival_method import attribute
from experiments.systems.langmem.system import PROMPTS
from tracing.errors import BudgetExceededError, CallFailedError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits
from tracing.recording.trace_context import session, trace
from tracing.systems.conformance import SMALL_TALK, MemorySystemConformance
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import baseline_candidate
from tracing.systems.protocol import Memory, MemorySystem
from tracing.systems.registry import open_system

pytestmark = pytest.mark.slow

Open = Callable[..., ModelAccess]
Ready = Callable[[str], None]
BASELINE = baseline_candidate(PROMPTS)


def lines_read(body: Mapping[str, Any]) -> list[str]:
    """What was said, of a request of the manager."""
    (said,) = re.findall(
        r"<session_1>\n=+ Human Message =+\n\n(.*)\n</session_1>", body["messages"][-1]["content"], re.S
    )
    return said.splitlines()


def memories_shown(body: Mapping[str, Any]) -> dict[str, str]:
    """The stored memories that it was shown, by the ids that it was shown."""
    system = body["messages"][0]["content"]
    found = re.findall(r'<instance id=(\S+) schema_type="Memory">\n(.*)\n</instance>', system)
    return {name: ast.literal_eval(memory)["content"] for name, memory in found}


def calling(*calls: tuple[str, dict[str, Any]]) -> Reply:
    """A reply that calls tools."""

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        asked = [
            {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for at, (name, arguments) in enumerate(calls, start=1)
        ]
        answer["choices"][0]["message"] |= {"content": None, "tool_calls": asked}
        return answer

    return Reply(change=change)


def every_line(body: Mapping[str, Any]) -> Reply | str:
    """Every line said becomes a memory; the answer is the first memory."""
    if body.get("tools"):
        return calling(*(("Memory", {"content": line}) for line in lines_read(body)))
    request = body["messages"][-1]["content"]
    return next((line[2:] for line in request.splitlines() if line.startswith("- ")), "unknown")


@pytest.fixture(autouse=True)
def _installed(environments: Ready) -> None:
    environments("langmem")


@pytest.mark.thorough
class TestLangMem(MemorySystemConformance):
    @pytest.fixture(autouse=True)
    def _models(self, scripted_server: ScriptedServer, open_access: Open) -> None:
        scripted_server.script = every_line
        self.opened = open_access(cache=False)

    def access(self) -> ModelAccess:
        return self.opened

    def system(self) -> MemorySystem:
        return open_system("langmem")


def build(
    access: ModelAccess, conversation: Conversation = SMALL_TALK, **settings: Any
) -> tuple[Memory, ExecutionGraph]:
    with trace(prefix="b") as recorder:
        memory = open_system("langmem", settings).build(conversation, BASELINE, access)
    return memory, recorder.graph


def test_a_re_run_makes_no_new_call(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = every_line
    memory, _ = build(open_access(), window=1)
    open_system("langmem").answer(memory, SMALL_TALK.questions[0], BASELINE, open_access())
    made = (scripted_server.count, len(scripted_server.embedding_requests))
    again, _ = build(open_access(), window=1)
    open_system("langmem").answer(again, SMALL_TALK.questions[0], BASELINE, open_access())
    assert (scripted_server.count, len(scripted_server.embedding_requests)) == made
    assert again.state == memory.state


PET = Conversation.model_validate(
    {
        "id": "pet",
        "speakers": ["Mara"],
        "sessions": [
            {"id": "D1", "turns": [{"id": "D1:1", "speaker": "Mara", "text": "My tortoise Brisket eats radicchio."}]},
            {"id": "D2", "turns": [{"id": "D2:1", "speaker": "Mara", "text": "Brisket eats nothing but papaya now."}]},
        ],
        "questions": [
            {"id": "food", "question": "What does Mara's tortoise eat?", "answers": ["papaya"], "evidence": ["D2:1"]}
        ],
    }
)


def changing(*calls: tuple[str, dict[str, Any]]) -> Callable[[Mapping[str, Any]], Reply | str]:
    """Keeps what the first session says, and makes these calls in the second about what is stored."""

    def reply(body: Mapping[str, Any]) -> Reply | str:
        shown = memories_shown(body) if body.get("tools") else {}
        if not shown:
            return every_line(body)
        (name,), offered = shown, {tool["function"]["name"] for tool in body["tools"]}
        return calling(*((tool, {**others, "json_doc_id": name}) for tool, others in calls if tool in offered))

    return reply


def patch(text: str) -> tuple[str, dict[str, Any]]:
    patches = [{"op": "replace", "path": "/content", "value": text}]
    return "PatchDoc", {"planned_edits": "-", "patches": patches}


def test_a_patched_memory_is_a_new_version_and_a_wrong_patch_is_blamed_on_the_decision(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = changing(patch("Mara's tortoise Brisket eats papaya."))
    memory, graph = build(open_access(), PET)
    assert [entry["text"] for entry in memory.state["entries"]] == ["Mara's tortoise Brisket eats papaya."]
    versions = [graph.variables[op.output_ids()[0]] for op in graph.find_operations(name="store")]
    assert [one.version for one in versions] == [1, 2]
    assert [one.name for one in graph.backward_slice(versions[1].id).variables.values() if one.kind == "message"] == [
        "D1:1",
        "D2:1",
    ]
    scripted_server.script = changing(patch("Mara has a tortoise."))
    conversation = PET.model_copy(
        update={"questions": (PET.questions[0].model_copy(update={"answers": ("radicchio",), "evidence": ("D1:1",)}),)}
    )
    system, access, asked = open_system("langmem"), open_access(cache=False), conversation.questions[0]
    with trace(prefix="b") as building:
        memory = system.build(conversation, BASELINE, access)
    with trace(prefix="a") as answering:
        answering.adopt(building.records())
        with session(asked.id):
            answer = system.answer(memory, asked, BASELINE, access)
    case = Case(conversation.id, asked, answer.text, judge(answer.text, asked.answers), answer.variable)
    (blame,) = attribute(case, building.graph.merge(answering.graph), conversation, system.operations).decisive
    assert (blame.operation, blame.error_type) == ("decide_update", "UpdateError")


def test_a_memory_is_removed_only_where_langmem_may(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = changing(("RemoveDoc", {}))
    memory, graph = build(open_access(), PET, enable_deletes=True)
    assert memory.state["entries"] == []
    assert [one.name for one in graph.find_variables(kind="delete_marker")] == ["m1"]
    build(open_access(cache=False), PET)
    offered = [{tool["function"]["name"] for tool in body.get("tools", ())} for body in scripted_server.requests]
    assert {"RemoveDoc" in names for names in offered[:2]} == {True, False}
    assert not any("RemoveDoc" in names for names in offered[2:])


def test_a_failure_that_langmem_swallows_leaves_the_build(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = lambda body: Reply("down", status=500) if memories_shown(body) else every_line(body)
    with pytest.raises(CallFailedError):
        build(open_access(retries=0), PET)
    assert len(scripted_server.requests) == 2, "what failed is not asked for again and again"


def test_a_spent_budget_leaves_the_build_as_such(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = every_line
    with pytest.raises(BudgetExceededError):
        build(open_access(Limits(calls=2), cache=False), PET)


def test_a_reply_that_calls_nothing_stores_nothing_and_is_noted(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = lambda body: "Nothing to keep."
    memory, graph = build(open_access(), PET)
    assert memory.state["entries"] == []
    noted = [op.attributes["no_tool_called"] for op in graph.find_operations(name="manage_memory")]
    assert noted == ["Nothing to keep.", "Nothing to keep."]
