"""A question asked between sessions: what comes later neither answers it nor is blamed for its wrong answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mem0_model import facts_shown as facts_in_update
from mem0_model import is_extraction, is_update, memories_shown
from scripted_server import ScriptedServer, prompt_of

from attribution.cases import Attribution, Case
from attribution.gold_answers.answer_audit import Audit
from attribution.replay.replay_method import Replay
from attribution.survival.survival_method import Survival
from experiments.running.estimate import estimate
from experiments.runs.config_file import load_config
from experiments.systems.fact_memory import FactMemory
from experiments.systems.long_context import LongContext
from experiments.systems.mem0.system import Mem0
from experiments.systems.rag import Rag
from experiments.systems.trace_memory.system import TraceMemorySystem
from experiments.views.trace_page import questions_of
from optimizer.evaluation.evaluator import Evaluator, Outcome
from optimizer.evaluation.ladder import audit
from optimizer.evaluation.scores import Splits
from optimizer.objectives.local_evaluation import recorded_inputs
from optimizer.objectives.objectives import objectives_of
from tracing.llm.access import ModelAccess
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate, baseline_candidate
from tracing.systems.protocol import Memory, MemorySystem

Open = Callable[..., ModelAccess]

FERRY = Conversation.model_validate(
    {
        "id": "ferry",
        "speakers": ["Ana", "Bo"],
        "sessions": [
            {"id": "D1", "time": "2026-03-04", "turns": [
                {"id": "D1:1", "speaker": "Ana", "text": "The ferry to Kvaloya leaves at seven."},
                {"id": "D1:2", "speaker": "Bo", "text": "I had soup today."},
            ]},
            {"id": "D2", "time": "2026-03-09", "turns": [
                {"id": "D2:1", "speaker": "Ana", "text": "The ferry to Kvaloya leaves at eight."},
            ]},
            {"id": "D3", "time": "2026-03-11", "turns": [{"id": "D3:1", "speaker": "Bo", "text": "I had fish."}]},
        ],
        "questions": [
            {"id": "now", "question": "When does the ferry to Kvaloya leave?", "answers": ["eight"],
             "supersedes": True, "evidence": ["D2:1"], "after_session": "D2"},
            {"id": "then", "question": "When does the ferry to Kvaloya leave?", "answers": ["seven"],
             "evidence": ["D1:1"], "after_session": 1},
        ],
    }
)  # fmt: skip


NEAR = 0.8
"""Below the cosine of two departures of one ferry."""


class Rebuilt(FactMemory):
    """Builds as it always did, and knows nothing of stretches."""

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        return super().build(conversation, candidate, access)


class Distinct(Rebuilt):
    """Reads the last session first."""

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        backwards = conversation.model_copy(update={"sessions": conversation.sessions[::-1]})
        return super().build(backwards, candidate, access)


@dataclass
class Clerk:
    """Notes every line but `deaf_to`, lets a new departure replace the old one, and answers with the last given."""

    deaf_to: str = "nothing"

    def __call__(self, body: dict[str, Any]) -> str:
        text = prompt_of(body)
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
        if is_extraction(body) or "facts" in schema:
            lines = re.findall(r"(?:Ana|Bo): ([^\n]+)", body["messages"][-1]["content"])
            return json.dumps({"facts": [line for line in lines if self.deaf_to not in line][:6]})
        if is_update(body):
            near = {memory["text"].rpartition(" ")[0]: memory["id"] for memory in memories_shown(body)}
            rows = [(fact, near.get(fact.rpartition(" ")[0])) for fact in facts_in_update(body)]
            return json.dumps(
                {"memory": [{"id": at or "9", "text": fact, "event": "UPDATE" if at else "ADD"} for fact, at in rows]}
            )
        if "event" in schema:
            return json.dumps({"event": "UPDATE", "id": "1"})
        times = re.findall(r"leaves at (\w+)", text)
        return times[-1] if times else "unknown"


def evaluated(system: MemorySystem, access: ModelAccess, folder: Path, **others: Any) -> Outcome:
    evaluator = Evaluator(system, access, "short_contains", folder / "memories", **others)
    (outcome,) = evaluator.evaluate(baseline_candidate(system.prompts), [FERRY])
    assert outcome.tainted is None
    return outcome


def case_of(outcome: Outcome, name: str) -> Case:
    return next(case for case in outcome.cases if case.question.id == name)


def attributed(system: MemorySystem, outcome: Outcome, name: str) -> Attribution:
    return Survival(outcome.graph, FERRY, system.operations).attribute(case_of(outcome, name))


SYSTEMS = [
    FactMemory(near=NEAR),
    Rebuilt(near=NEAR),
    Rag(retrieval="sparse", top_k=1),
    LongContext(),
    Mem0(),
    TraceMemorySystem(near=NEAR),
]
NAMES = ["stepwise", "rebuilt", "rag", "long context", "mem0", "trace memory"]


@pytest.mark.parametrize("system", SYSTEMS, ids=NAMES)
def test_each_question_is_answered_from_the_memory_of_its_moment(
    system: MemorySystem, scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    scripted_server.script = Clerk()
    outcome = evaluated(system, open_access(), tmp_path)
    assert [(case.question.id, case.reply) for case in outcome.cases] == [("now", "eight"), ("then", "seven")]
    messages = [variable.name for variable in outcome.graph.find_variables(kind="message")]
    assert messages == ["D1:1", "D1:2", "D2:1"]  # each was read once, and nothing after the last question


@pytest.mark.parametrize("system", SYSTEMS[:3], ids=NAMES[:3])
def test_what_is_kept_of_a_memory_spares_its_building(
    system: MemorySystem, scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    scripted_server.script = Clerk()
    first = evaluated(system, open_access(cache=False), tmp_path)
    count = len(scripted_server.requests)
    again = evaluated(system, open_access(cache=False), tmp_path)
    assert len(scripted_server.requests) - count == len(FERRY.questions)
    assert again.graph.operations.keys() == first.graph.operations.keys()
    assert again.calls == first.calls


@pytest.mark.parametrize("system", [FactMemory(near=NEAR), Mem0()], ids=["fact memory", "mem0"])
def test_what_was_stored_later_cannot_help(
    system: MemorySystem, scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    scripted_server.script = Clerk(deaf_to="seven")
    outcome = evaluated(system, open_access(), tmp_path)
    blame = attributed(system, outcome, "then").main
    assert (blame.operation, blame.error_type) == ("extract_facts", "ExtractionError")
    read = outcome.graph.operation(str(blame.operation_id)).input_ids()
    assert "D1:1" in {outcome.graph.variables[vid].name for vid in read}


@pytest.mark.parametrize("system", [FactMemory(near=NEAR, top_k=0), Rebuilt(near=NEAR, top_k=0)], ids=NAMES[:2])
def test_what_was_changed_later_cannot_be_blamed(
    system: MemorySystem, scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    scripted_server.script = Clerk()
    outcome = evaluated(system, open_access(), tmp_path)
    assert attributed(system, outcome, "then").main.error_type == "RetrievalError"


def test_a_replay_asks_at_the_moment_of_the_question(
    scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    scripted_server.script = Clerk(deaf_to="seven")
    system, access = FactMemory(near=NEAR), open_access()
    outcome = evaluated(system, access, tmp_path)
    judged = Evaluator(system, access, "short_contains", tmp_path).judged
    replay = Replay(system, baseline_candidate(system.prompts), access, FERRY, judged, graph=outcome.graph)
    (blame,) = replay.attribute(case_of(outcome, "then")).decisive
    assert (blame.operation, blame.verdict) == ("extract_facts", "confirmed")


def test_a_decision_made_after_a_question_is_right_or_wrong_without_it(
    scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    scripted_server.script = Clerk()
    system, access = FactMemory(near=NEAR), open_access()
    outcome = evaluated(system, access, tmp_path)
    objective = objectives_of(Evaluator(system, access, "short_contains", tmp_path), {})["decide"]
    (decision,) = [
        recorded for recorded in recorded_inputs(system.prompts["decide"], [outcome]) if "D2:1" in recorded.turns
    ]
    assert objective.credit(decision, decision.outputs).value == 1.0


def test_a_system_that_builds_otherwise_where_more_follows_is_told_so(
    scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    scripted_server.script = Clerk()
    system = Distinct()
    evaluator = Evaluator(system, open_access(), "short_contains", tmp_path)
    (outcome,) = evaluator.evaluate(baseline_candidate(system.prompts), [FERRY])
    assert "give it build_stepwise" in str(outcome.tainted)


def test_the_ladder_stores_and_shows_what_held_when_the_question_was_asked(
    scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    scripted_server.script = Clerk(deaf_to="leaves")
    texts = {turn.id: turn.text for turn in FERRY.turns()}
    facts = [{"id": "f1", "turn": "D1:1"}, {"id": "f2", "turn": "D2:1", "action": "update", "of": "f1"}]
    questions = [question.model_dump() for question in FERRY.questions]
    rows = FERRY.model_dump() | {
        "facts": [{**fact, "text": texts[fact["turn"]]} for fact in facts],
        "questions": [{**questions[0], "fact": "f2"}, {**questions[1], "fact": "f1"}],
    }
    evaluator = Evaluator(FactMemory(near=NEAR), open_access(), "short_contains", tmp_path)
    rungs = audit(evaluator, [Conversation.model_validate(rows)])
    assert [rung.score for rung in rungs] == [0.0, 1.0, 1.0, 1.0]


def test_the_forecast_of_a_long_context_counts_what_each_question_reads() -> None:
    late = FERRY.model_copy(
        update={"questions": tuple(q.model_copy(update={"after_session": None}) for q in FERRY.questions)}
    )
    config = load_config(None, overrides={"system": "long-context", "optimizer": "local-search"})
    between, at_the_end = (
        estimate(config, LongContext(), Splits((talk,), (talk,), (talk,))).prompt_tokens for talk in (FERRY, late)
    )
    assert between < at_the_end


def test_a_page_says_after_which_session_a_question_was_asked(
    scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    scripted_server.script = Clerk()
    outcome = evaluated(FactMemory(near=NEAR), open_access(), tmp_path)
    shown = {row["id"]: row["asked"] for row in questions_of(outcome.graph, [(case, None) for case in outcome.cases])}
    assert shown["then"] == "When does the ferry to Kvaloya leave? (after session 1)"


@pytest.mark.parametrize(("after", "suspected"), [(1, True), (None, False)])
def test_a_gold_answer_that_is_said_only_later_is_suspicious(after: int | None, suspected: bool) -> None:
    asked = {"id": "pet", "question": "What did Bo adopt?", "answers": ["a greyhound"], "after_session": after}
    later = {"id": "D3:2", "speaker": "Bo", "text": "I adopted a greyhound from the shelter."}
    rows = FERRY.model_dump() | {"questions": [asked]}
    rows["sessions"] = [*rows["sessions"][:2], {"id": "D3", "turns": [later]}]
    assert [finding.question for finding in Audit(Conversation.model_validate(rows)).suspicions()] == (
        ["pet"] if suspected else []
    )
