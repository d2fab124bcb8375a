"""JSON that a model wrote to do harm, or by accident, is a malformed reply like any other: told, and survived."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from mem0_model import Mem0Model, is_extraction
from scripted_server import Reply, ScriptedServer

from attribution.judging.llm_judge import LlmJudge
from experiments.systems.fact_memory import PROMPTS, FactMemory
from experiments.systems.mem0.prompts import PROMPTS as MEM0_PROMPTS
from experiments.systems.mem0.system import Mem0
from optimizer.proposers.examples import event_in
from tracing.errors import MalformedReplyError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.llm.http.strict_json import DEEPEST, strict_json
from tracing.llm.reply_json import object_in
from tracing.recording.trace_context import trace
from tracing.systems.conformance import SMALL_TALK
from tracing.systems.conversations import Question
from tracing.systems.protocol import Memory

Open = Callable[..., ModelAccess]
BASELINE = {name: spec.text for name, spec in PROMPTS.items()}
MEM0_BASELINE = {name: spec.text for name, spec in MEM0_PROMPTS.items()}
GREEN, YELLOW = "Aurel's cottage is painted green.", "Aurel's cottage is painted yellow."

USABLE = '{"facts": ["x"], "event": "ADD", "label": "right", "tells": true, "id": ?}'
"""All that any operation asks for, beside a value that makes it no JSON."""

HOSTILE = {
    "brackets": "[" * 990,
    "many brackets": "[" * 60_000,
    "closed brackets": "[" * 900 + "]" * 900,
    "braces": '{"a":' * 10_000,
    "a deep value": USABLE.replace("?", "[" * 500 + "]" * 500),
    "NaN": USABLE.replace("?", "NaN"),
    "a number too long": USABLE.replace("?", "9" * 50_000),
    "stray braces": '{"' * 30_000,
}


@pytest.fixture(params=HOSTILE.values(), ids=HOSTILE)
def hostile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def extracted(access: ModelAccess) -> tuple[Memory, ExecutionGraph]:
    with trace() as recorder:
        memory = FactMemory().build(SMALL_TALK, BASELINE, access)
    return memory, recorder.graph


def test_an_extraction_that_is_no_json_finds_nothing_and_is_told(
    open_access: Open, scripted_server: ScriptedServer, hostile: str
) -> None:
    scripted_server.script = lambda body: hostile
    memory, graph = extracted(open_access())
    assert memory.state["entries"] == []
    assert all(op.attributes["malformed"] for op in graph.find_operations(name="extract_facts"))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (["Aurel is a beekeeper."] * 17, "at most 16"),
        (["a"] * 15_000, "at most 16"),
        (["a" * 561], "560"),
        (["a", 7], "facts.1"),
        ("a", "facts"),
        (None, "facts"),
    ],
    ids=["many", "very many", "a long one", "a number", "a text", "none"],
)
def test_an_extraction_that_breaks_its_reply_schema_is_refused_quickly(
    open_access: Open, scripted_server: ScriptedServer, facts: object, said: str
) -> None:
    scripted_server.script = lambda body: json.dumps({"facts": facts})
    access = open_access()
    started = time.monotonic()
    memory, graph = extracted(access)
    assert time.monotonic() - started < 2
    assert memory.state["entries"] == []
    assert all(said in op.attributes["malformed"] for op in graph.find_operations(name="extract_facts"))


def test_an_extraction_a_little_over_the_limits_is_used(open_access: Open, scripted_server: ScriptedServer) -> None:
    """Many endpoints know the schema's form and not its limits."""
    told = [f"Aurel keeps bees in hive {number}." for number in range(5)] + [
        "Birte " + "very " * 30 + "much likes tea."
    ]
    scripted_server.script = lambda body: json.dumps({"facts": told})
    _, graph = extracted(open_access())
    (first, *_) = graph.find_operations(name="extract_facts")
    assert [graph.variables[made].value for made in first.output_ids("facts")] == told


def test_two_hundred_thousand_facts_are_refused_in_well_under_a_second(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: json.dumps({"facts": ["a"] * 200_000})
    access = open_access(retries=0)
    started = time.monotonic()
    with access.watch() as watch, pytest.raises(Exception, match="malformed"):
        extracted(access)
    assert time.monotonic() - started < 1
    assert watch.failures


def test_a_decision_that_is_no_json_loses_nothing(
    open_access: Open, scripted_server: ScriptedServer, hostile: str
) -> None:
    scripted_server.script = lambda body: hostile
    with trace() as recorder:
        memory = FactMemory(near=0.6).build_from_facts([[GREEN], [YELLOW]], BASELINE, open_access())
    assert [entry["text"] for entry in memory.state["entries"]] == [GREEN, YELLOW]
    assert all(op.attributes["malformed"] for op in recorder.graph.find_operations(name="decide_update"))


@pytest.mark.parametrize("step", ["extraction", "update"])
def test_mem0_goes_on_with_nothing(open_access: Open, scripted_server: ScriptedServer, hostile: str, step: str) -> None:
    model = Mem0Model()
    scripted_server.script = lambda body: hostile if is_extraction(body) == (step == "extraction") else model(body)
    with trace() as recorder:
        memory = Mem0().build(SMALL_TALK, MEM0_BASELINE, open_access())
    assert memory.state["entries"] == []
    name = "extract_facts" if step == "extraction" else "decide_update"
    assert all(op.attributes["malformed"] for op in recorder.graph.find_operations(name=name))


@pytest.mark.parametrize("step", ["extraction", "update"])
def test_mem0_is_spared_a_reply_with_thousands_of_items(
    open_access: Open, scripted_server: ScriptedServer, step: str
) -> None:
    model = Mem0Model()
    many = {
        "extraction": {"facts": [f"f{n}" for n in range(8_000)]},
        "update": {"memory": [{"id": "0", "text": "a", "event": "ADD"}] * 5_000},
    }[step]
    wanted = step == "extraction"
    scripted_server.script = lambda body: json.dumps(many) if is_extraction(body) == wanted else model(body)
    started = time.monotonic()
    memory = Mem0(max_tokens=1024).build(SMALL_TALK, MEM0_BASELINE, open_access())
    assert time.monotonic() - started < 15
    assert memory.state["entries"] == []


def test_mem0_is_spared_facts_that_are_no_texts(open_access: Open, scripted_server: ScriptedServer) -> None:
    model = Mem0Model()
    scripted_server.script = lambda body: '{"facts": [{"fact": 5}]}' if is_extraction(body) else model(body)
    assert Mem0().build(SMALL_TALK, MEM0_BASELINE, open_access()).state["entries"] == []


def test_a_judge_whose_label_cannot_be_read_leaves_it_to_the_words(
    open_access: Open, scripted_server: ScriptedServer, hostile: str
) -> None:
    def labels(body: dict[str, object]) -> Reply:
        return Reply(hostile if "response_format" in body else "Yes")

    scripted_server.script = labels
    judge = LlmJudge(open_access().judge)
    question = Question(id="q", question="Where does Ann live?", answers=("Oslo",))
    judge.calibrate([(question, "Oslo"), (question, "Paris")] * 4)
    assert judge.judge(question, "in Oslo, the town").score == 1
    assert judge.judge(question, "in Paris, the town").score == 0


def test_a_recorded_reply_that_cannot_be_read_shows_nothing(hostile: str) -> None:
    assert event_in(hostile) is None


def test_json_is_read_to_the_limit_and_no_further() -> None:
    assert strict_json("[" * DEEPEST + "]" * DEEPEST)
    with pytest.raises(MalformedReplyError, match="nested"):
        strict_json("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1))
    with pytest.raises(MalformedReplyError, match="Infinity"):
        strict_json('{"a": -Infinity}')
    with pytest.raises(MalformedReplyError, match="JSON"):
        strict_json('"a\nb"')
    assert strict_json('"a\nb"', line_breaks=True) == "a\nb"
    assert object_in('thinking {"a": 1} then {"b": {"c": 2}} }') == {"b": {"c": 2}}
    assert object_in('{"a": {"b": 1}} and {"c": 2} }') == {"c": 2}
    for text in ("{{{ {not json} [1, 2]", "", "{" * 50_000):
        assert object_in(text) is None
