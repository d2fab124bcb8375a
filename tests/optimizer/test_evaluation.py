"""Evaluation pays only for what changed, and scores nothing that rests on a failed call."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from marked_outcomes import outcomes as marked
from scripted_server import Reply, ScriptedServer, after_meeting, prompt_of
from scripted_world import LENGTHY, WeakModel, kind_of, memory, world

from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.evaluator import ATTEMPTS, Evaluator, score_of
from optimizer.evaluation.memories import snapshot_key
from optimizer.evaluation.statistics import score_interval
from optimizer.objectives.local_evaluation import recorded_inputs
from tracing.errors import BudgetExceededError, ContractError, ModelError
from tracing.files.loading import load_trace
from tracing.files.trace_file import records_of
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits
from tracing.recording.trace_context import session
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Answer, Memory

Open = Callable[..., ModelAccess]
FIRST, SECOND = CONVERSATIONS = world().train[:2]
BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}
OTHER_ANSWER = {**BASELINE, "answer": "Be brief.\n" + BASELINE["answer"]}
OTHER_EXTRACT = {**BASELINE, "extract": "Be thorough.\n" + BASELINE["extract"]}
IDENTITIES = {"task": "t", "embedding": "e", "proposer": "p", "judge": "j"}


@pytest.fixture(autouse=True)
def model(scripted_server: ScriptedServer) -> WeakModel:
    able = WeakModel()
    scripted_server.script = able
    return able


def evaluator(access: ModelAccess, folder: Path, **given: Any) -> Evaluator:
    return Evaluator(given.pop("system", memory()), access, "short_contains", folder / "memories", **given)


def kinds(server: ScriptedServer) -> Counter[str]:
    return Counter(kind_of(body) for body in server.requests)


def all_calls(server: ScriptedServer) -> int:
    return len(server.requests) + len(server.embedding_requests)


def test_cases_are_judged_in_order_and_the_trace_is_whole(open_access: Open, tmp_path: Path) -> None:
    told: list[tuple[int, ...]] = []
    judging = evaluator(open_access(), tmp_path, traces=tmp_path / "traces")
    outcomes = judging.evaluate(BASELINE, CONVERSATIONS, progress=lambda *step: told.append(step))
    assert [outcome.conversation for outcome in outcomes] == list(CONVERSATIONS)
    assert told == [(0, 2, 0), (1, 2, 0), (2, 2, 0)]
    assert [case.reply for case in outcomes[0].cases] == ["Zibbeltrain0", "unknown"]
    assert (outcomes[0].score, score_of(outcomes).n) == (1.0, 4)
    loaded = [load_trace(path) for path in sorted((tmp_path / "traces").glob("*/train-0-*.jsonl"))]
    assert [each.problem for each in loaded] == [None]
    assert loaded[0].graph.operations.keys() == outcomes[0].graph.operations.keys()
    assert outcomes[0].cases[0].prediction in loaded[0].graph.variables


def test_a_question_is_one_session_whatever_sessions_its_answer_begins(open_access: Open, tmp_path: Path) -> None:
    class Dividing(FactMemory):
        def answer(self, *given: Any) -> Answer:
            with session("lookup"), session("reply"):
                return super().answer(*given)

    (outcome,) = evaluator(open_access(), tmp_path, system=Dividing(near=2.0)).evaluate(BASELINE, [FIRST])
    recorded = recorded_inputs(FactMemory.prompts["answer"], [outcome])
    assert [execution.question for execution in recorded] == list(FIRST.questions)


def test_the_interval_of_a_score_is_that_of_the_mean_over_questions() -> None:
    uneven = score_of(marked("+" * 18 + "-" * 72, *["++-"] * 5))
    assert uneven.ci is not None
    assert uneven.ci[0] <= uneven.score <= uneven.ci[1]
    even = marked("++-", "+--", "+++", "---", "+--")
    assert score_of(even).ci == score_interval([one.score for one in even], [3] * 5)


def test_results_and_traces_do_not_depend_on_what_is_done_first(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path, model: WeakModel
) -> None:
    """The replies of eight at a time come in an order that chance decides."""
    chance = random.Random(7)  # noqa: S311 - delays, no secret
    talks = [talk for group in world(4, 3, 3).named().values() for talk in group]
    twin = talks[0].model_copy(update={"id": "twin"})

    def seen(folder: Path, width: int) -> list[Any]:
        access = open_access(cache=False, concurrency=width)
        judging = evaluator(access, folder, traces=folder / "traces")
        outcomes = judging.evaluate(BASELINE, [*talks, twin])
        files = sorted((folder / "traces").rglob("*.jsonl"))
        plain = [
            {key: value for key, value in record.items() if key not in ("started", "ended")}
            for graph in [*(outcome.graph for outcome in outcomes), *(load_trace(file).graph for file in files)]
            for record in records_of(graph)
        ]
        tables = [(outcome.cases, outcome.calls, outcome.tokens, outcome.tainted) for outcome in outcomes]
        named = [file.relative_to(folder) for file in files]
        return [tables, named, plain, judging.calls, score_of(outcomes), access.meter.totals()["calls_made"]]

    one = seen(tmp_path / "one", 1)
    assert scripted_server.most_at_once == 1
    scripted_server.script = after_meeting(
        5, lambda body: replace(Reply(str(model(body))), delay=chance.uniform(0, 0.05))
    )
    eight = seen(tmp_path / "eight", 8)
    assert scripted_server.most_at_once > 4
    assert eight == one


def test_editing_the_answer_prompt_rebuilds_nothing(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    judging = evaluator(open_access(cache=False), tmp_path)
    judging.evaluate(BASELINE, CONVERSATIONS)
    before = kinds(scripted_server)
    judging.evaluate(OTHER_ANSWER, CONVERSATIONS)
    after = kinds(scripted_server)
    assert (before["extract"], after["extract"]) == (4, 4)
    assert (before["answer"], after["answer"]) == (4, 8)
    evaluator(open_access(cache=False), tmp_path).evaluate(OTHER_ANSWER, CONVERSATIONS)
    assert kinds(scripted_server)["extract"] == 4
    judging.evaluate(OTHER_EXTRACT, CONVERSATIONS)
    assert kinds(scripted_server)["extract"] == 8


@pytest.mark.parametrize("memories", ["memories lost", "memories kept"])
def test_a_re_run_on_the_same_cache_makes_no_call(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path, memories: str
) -> None:
    first = evaluator(open_access(), tmp_path).evaluate(BASELINE, CONVERSATIONS)
    before = all_calls(scripted_server)
    folder = tmp_path / "elsewhere" if memories == "memories lost" else tmp_path
    judging = evaluator(open_access(), folder)
    again = judging.evaluate(BASELINE, CONVERSATIONS)
    assert all_calls(scripted_server) == before
    assert (judging.calls.sent, judging.calls.cached > 0) == (0, True)
    assert [outcome.cases for outcome in again] == [outcome.cases for outcome in first]
    assert [outcome.calls for outcome in again] == [outcome.calls for outcome in first]


class _Swallows(FactMemory):
    """A system that hides a failure and hands back what it has."""

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        try:
            return super().build(conversation, candidate, access)
        except ModelError:
            return Memory({"entries": []})


@pytest.mark.parametrize("system", [memory(), _Swallows(near=2.0)], ids=["raises", "swallows"])
@pytest.mark.parametrize("failing", ["extract", "answer"])
def test_what_a_failed_call_leaves_is_neither_kept_nor_judged(
    open_access: Open,
    scripted_server: ScriptedServer,
    tmp_path: Path,
    model: WeakModel,
    system: FactMemory,
    failing: str,
) -> None:
    def script(body: dict[str, Any]) -> Reply | str:
        broken = kind_of(body) == failing and "Anketrain0" in prompt_of(body)
        return Reply("out of order", status=403) if broken else model(body)

    scripted_server.script = script
    judging = evaluator(open_access(retries=0, concurrency=1), tmp_path, system=system)
    told: list[tuple[int, ...]] = []
    tainted, sound = judging.evaluate(BASELINE, CONVERSATIONS, progress=lambda *step: told.append(step))
    assert told == [(0, 2, 0), (0, 2, 1), (1, 2, 1)]  # a failure is no progress
    assert "out of order" in str(tainted.tainted)
    assert tainted.cases == ()
    with pytest.raises(ModelError, match="out of order"):
        _ = tainted.score
    with pytest.raises(ModelError):
        score_of([tainted, sound])
    assert (sound.tainted, sound.score) == (None, 1.0)
    kept = len(list((tmp_path / "memories").rglob("*.json")))
    assert kept == (1 if failing == "extract" else 2)
    tries = [body for body in scripted_server.requests if kind_of(body) == failing and "Anketrain0" in prompt_of(body)]
    assert len(tries) == ATTEMPTS
    assert judging.calls.without_reuse >= judging.calls.sent

    scripted_server.script = model
    assert [each.score for each in judging.evaluate(BASELINE, CONVERSATIONS)] == [1.0, 1.0]


def test_a_failure_that_passes_leaves_a_sound_outcome(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path, model: WeakModel
) -> None:
    scripted_server.script = lambda body: Reply(status=500) if scripted_server.count == 2 else model(body)
    (outcome,) = evaluator(open_access(retries=0), tmp_path).evaluate(BASELINE, [FIRST])
    assert (outcome.tainted, outcome.score) == (None, 1.0)
    assert kinds(scripted_server)["extract"] == 3
    failed = [each for each in outcome.graph.operations.values() if each.status != "ok"]
    assert failed == []


def test_a_reply_cut_short_in_a_build_taints_at_once_and_a_cut_answer_is_judged(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path, model: WeakModel
) -> None:
    def cutting(kind: str) -> Callable[[dict[str, Any]], Reply | str]:
        return lambda body: Reply(LENGTHY.format("?"), finish_reason="length") if kind_of(body) == kind else model(body)

    scripted_server.script = cutting("extract")
    (outcome,) = evaluator(open_access(), tmp_path).evaluate(BASELINE, [FIRST])
    assert "cut short" in str(outcome.tainted)
    assert scripted_server.count == 1
    assert list(tmp_path.rglob("memories/**/*.json")) == []

    scripted_server.script = cutting("answer")
    (outcome,) = evaluator(open_access(), tmp_path).evaluate(OTHER_EXTRACT, [FIRST])
    assert (outcome.tainted, outcome.score) == (None, 0.0)


@pytest.mark.parametrize("limit", [1, 4, 7])
def test_a_spent_budget_stops_and_what_was_computed_is_not_computed_again(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path, limit: int
) -> None:
    stopped = evaluator(open_access(Limits(calls=limit)), tmp_path)
    with pytest.raises(BudgetExceededError, match=f"budget of {limit} calls"):
        stopped.evaluate(BASELINE, CONVERSATIONS)
    assert all_calls(scripted_server) == limit == stopped.calls.sent
    assert stopped.calls.without_reuse >= limit
    resumed = evaluator(open_access(), tmp_path)
    assert score_of(resumed.evaluate(BASELINE, CONVERSATIONS)).score == 1.0
    whole = all_calls(scripted_server)
    evaluator(open_access(cache=False), tmp_path / "anew").evaluate(BASELINE, CONVERSATIONS)
    assert all_calls(scripted_server) == 2 * whole


def test_a_broken_contract_is_refused_before_any_call(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    with pytest.raises(ContractError, match="answer"):
        evaluator(open_access(), tmp_path).evaluate({**BASELINE, "answer": "Answer."}, CONVERSATIONS)
    assert all_calls(scripted_server) == 0


def test_a_text_that_a_run_may_start_from_is_evaluated_however_long_it_is(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    long = {**BASELINE, "answer": BASELINE["answer"] + " kestrel" * 1000}
    assert all(outcome.tainted is None for outcome in evaluator(open_access(), tmp_path).evaluate(long, CONVERSATIONS))


def test_a_plain_run_is_counted_as_if_nothing_were_reused(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    reusing = evaluator(open_access(), tmp_path)
    for candidate in (BASELINE, OTHER_ANSWER, BASELINE):
        reusing.evaluate(candidate, CONVERSATIONS)
    before = all_calls(scripted_server)
    assert reusing.calls.sent == before
    for number, candidate in enumerate((BASELINE, OTHER_ANSWER, BASELINE)):
        plain = evaluator(open_access(cache=False), tmp_path / f"plain{number}")
        plain.evaluate(candidate, CONVERSATIONS)
        assert (plain.calls.without_reuse, plain.calls.cached) == (plain.calls.sent, 0)
    assert reusing.calls.without_reuse == all_calls(scripted_server) - before > before


def test_equal_dialogues_under_two_names_are_two_outcomes(open_access: Open, tmp_path: Path) -> None:
    twin = FIRST.model_copy(update={"id": "twin"})
    outcomes = evaluator(open_access(), tmp_path).evaluate(BASELINE, [FIRST, twin])
    assert [outcome.conversation.id for outcome in outcomes] == ["train-0", "twin"]
    assert {case.conversation for case in outcomes[1].cases} == {"twin"}


KEY = snapshot_key(memory(), FIRST, BASELINE, IDENTITIES)


@pytest.mark.parametrize(
    "changed",
    [
        {"candidate": OTHER_EXTRACT},
        {"candidate": {**BASELINE, "decide": BASELINE["decide"] + " "}},
        {"conversation": SECOND},
        {"system": FactMemory(near=2.0, window=3)},
        {"system": type("Newer", (FactMemory,), {"version": "2"})(near=2.0)},
        {"identities": {**IDENTITIES, "task": "another"}},
        {"identities": {**IDENTITIES, "embedding": "another"}},
    ],
    ids=["extract", "decide", "conversation", "settings", "version", "model", "embedding"],
)
def test_a_memory_is_not_taken_for_one_that_was_built_otherwise(changed: dict[str, Any]) -> None:
    given = {"system": memory(), "conversation": FIRST, "candidate": BASELINE, "identities": IDENTITIES, **changed}
    assert snapshot_key(**given) != KEY


@pytest.mark.parametrize(
    "changed",
    [
        {"candidate": OTHER_ANSWER},
        {"candidate": dict(reversed(BASELINE.items()))},
        {"conversation": FIRST.model_copy(update={"questions": FIRST.questions[:1]})},
        {"identities": {**IDENTITIES, "proposer": "another", "judge": "another"}},
    ],
    ids=["answer", "order", "questions", "other roles"],
)
def test_a_memory_is_reused_whatever_does_not_shape_it(changed: dict[str, Any]) -> None:
    given = {"system": memory(), "conversation": FIRST, "candidate": BASELINE, "identities": IDENTITIES, **changed}
    assert snapshot_key(**given) == KEY


def test_a_damaged_snapshot_is_built_anew(open_access: Open, scripted_server: ScriptedServer, tmp_path: Path) -> None:
    evaluator(open_access(cache=False), tmp_path).evaluate(BASELINE, [FIRST])
    (stored,) = (tmp_path / "memories").rglob("*.json")
    whole = stored.read_text()
    stored.write_text(whole[: len(whole) // 2])
    (outcome,) = evaluator(open_access(cache=False), tmp_path).evaluate(BASELINE, [FIRST])
    assert (outcome.score, kinds(scripted_server)["extract"]) == (1.0, 4)
    assert json.loads(stored.read_text())["calls"] == json.loads(whole)["calls"]


def test_many_unusable_replies_are_told_once_at_the_first_conversations(
    open_access: Open,
    scripted_server: ScriptedServer,
    tmp_path: Path,
    model: WeakModel,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scripted_server.script = lambda body: "no JSON" if kind_of(body) == "extract" else model(body)
    told: list[int] = []
    judging = evaluator(open_access(), tmp_path)
    for candidate in (BASELINE, OTHER_EXTRACT):
        judging.evaluate(candidate, CONVERSATIONS, progress=lambda *_: told.append(len(caplog.messages)))
    (warning,) = caplog.messages
    assert "scores measure the form of the replies, not the prompts" in warning
    assert "malformed" in warning
    assert told[2] == 1, "it was told before the second conversation was done"


def test_a_filtered_request_ends_nothing_and_its_memory_is_built_anew_by_another_run(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path, model: WeakModel
) -> None:
    refused = json.dumps({"error": {"message": "The response was filtered", "code": "content_filter"}}).encode()
    scripted_server.script = lambda body: Reply(status=400, raw=refused) if kind_of(body) != "update" else model(body)
    outcomes = evaluator(open_access(), tmp_path).evaluate(BASELINE, CONVERSATIONS)
    assert [outcome.tainted for outcome in outcomes] == [None, None]
    assert score_of(outcomes).score == 0.5, "only what nobody told is answered right"
    scripted_server.script = model
    assert score_of(evaluator(open_access(), tmp_path).evaluate(BASELINE, CONVERSATIONS)).score == 1
