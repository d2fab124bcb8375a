"""Systems that read with a library, most in an environment of its own, are asked between sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evermemos_model import EverMemOSModel
from mem0_model import Mem0Model
from scripted_server import Reply, ScriptedServer, prompt_of

from experiments.systems.worker.isolated import environment_of
from optimizer.evaluation.evaluator import Evaluator
from tracing.errors import InstallError
from tracing.llm.access import ModelAccess
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import baseline_candidate
from tracing.systems.registry import SYSTEMS, open_system

pytestmark = pytest.mark.slow

Open = Callable[..., ModelAccess]

GATES = Conversation.model_validate(
    {
        "id": "gates",
        "speakers": ["Ana"],
        "sessions": [
            {"id": f"D{number}", "time": f"2026-03-0{number} 10:00", "turns": [
                {"id": f"D{number}:1", "speaker": "Ana", "text": f"Gate {number} of the harbour is {colour} now."},
            ]}
            for number, colour in enumerate(("vermilion", "ochre", "turquoise"), start=1)
        ],
        "questions": [
            {"id": "last", "question": "What colour is gate 3 of the harbour?", "answers": ["turquoise"]},
            {"id": "first", "question": "What colour is gate 1 of the harbour?", "answers": ["vermilion"],
             "evidence": ["D1:1"], "after_session": "D1"},
            {"id": "second", "question": "What colour is gate 2 of the harbour?", "answers": ["ochre"],
             "evidence": ["D2:1"], "after_session": 2},
        ],
    }
)  # fmt: skip


class Clerk:
    """Keeps every line, in each library's form, and answers with all colours that it is shown."""

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        request, schema = prompt_of(body), json.dumps(body.get("response_format") or {})
        if any(f'"{key}"' in schema for key in ("boundaries", "content", "atomic_fact", "profile", "is_sufficient")):
            return EverMemOSModel(enough=lambda documents: True)(body)
        lines = re.findall(r"Gate \d of the harbour is \w+ now\.", request)
        if '"boundaries"' in request:
            return json.dumps({"reasoning": "one", "boundaries": [], "should_wait": False})
        if "EPISODE_TEXT" in request:
            return json.dumps({"atomic_facts": {"time": "now", "atomic_fact": lines[-1:] or ["Nothing."]}})
        if '"title"' in request:
            return json.dumps({"title": "Gates", "content": lines[-1] if lines else "Nothing was said."})
        if "## New Messages" in request:
            new = request.split("## New Messages\n")[1].split("\n\n## Observation Date")[0]
            return json.dumps({"memory": [{"id": "0", "text": line} for line in lines if line in new]})
        if '"facts"' in schema:
            return json.dumps({"facts": [line for line in lines if line in request.rpartition("</memori_context>")[2]]})
        if "Question" in request:
            return " ".join(re.findall(r"is (\w+) now", request)) or "unknown"
        return Mem0Model()(body)


@pytest.fixture(params=["memori", "mem0@2", "mem0@1.0", "mem0@0.1", "everos", "evermemos"])
def name(request: pytest.FixtureRequest, environments: Callable[[str], None]) -> str:
    try:
        if environment_of(SYSTEMS.open(request.param)) is not None:
            environments(request.param)
    except InstallError as error:
        if "needs Python" not in str(error):
            raise
        pytest.skip(str(error))
    return str(request.param)


@pytest.mark.parametrize("cache", [True, False])
def test_each_question_is_answered_from_the_memory_of_its_moment(
    name: str, scripted_server: ScriptedServer, open_access: Open, tmp_path: Path, cache: bool
) -> None:
    scripted_server.script = Clerk()
    system = open_system(name)
    evaluator = Evaluator(system, open_access(cache=cache), "contains", tmp_path / "memories")
    (outcome,) = evaluator.evaluate(baseline_candidate(system.prompts), [GATES])
    assert outcome.tainted is None
    replies = {case.question.id: set(case.reply.split()) for case in outcome.cases}
    assert replies["first"] == {"vermilion"}
    assert replies["second"] == {"vermilion", "ochre"}
    assert replies["last"] == {"vermilion", "ochre", "turquoise"}
    messages = [variable.name for variable in outcome.graph.find_variables(kind="message")]
    assert messages == ["D1:1", "D2:1", "D3:1"]
