"""`python -m benchmarks exploring`: the tools, and an agent, on questions that the graph answers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer, prompt_of

from attribution.agent.agent_prompts import starting_points
from attribution.agent.exploration import Exploration
from benchmarks.__main__ import main
from benchmarks.exploring.measuring import measure, recorded
from benchmarks.exploring.planted import KINDS, Planted, planted
from experiments.data.loaders import load_dataset
from experiments.runs.config import RunConfig
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess

pytestmark = pytest.mark.slow


def quiet(phase: str, done: int, total: int) -> None:
    """No progress."""


@pytest.fixture(scope="module")
def graphs() -> list[ExecutionGraph]:
    return recorded("fact-memory", load_dataset(RunConfig()).splits.train[:3], quiet)


def test_the_tools_show_the_answer_to_every_planted_question(graphs: list[ExecutionGraph]) -> None:
    result = measure(graphs, 90, seed=0, steps=3, model=None, progress=quiet)
    assert result["n"] == 90
    assert set(result["kinds"]) == set(KINDS)
    assert result["reachable"] == 1.0
    assert result["search"] < 0.5, "a search alone must not do"
    assert result["agent"] is None
    assert result["agent_ci"] is None


def test_questions_are_drawn_by_the_seed_and_their_answers_are_in_their_graphs(graphs: list[ExecutionGraph]) -> None:
    first, again, other = (planted(graphs, 45, seed) for seed in (0, 0, 1))
    assert [one.text for one in first] == [one.text for one in again] != [one.text for one in other]
    for one in first:
        assert all(answer in one.graph.variables or answer in one.graph.operations for answer in one.answers)
    assert len({one.text for one in first}) == 45


def test_an_agent_is_right_if_it_cites_the_answer_and_little_else(
    graphs: list[ExecutionGraph], scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    questions = planted(graphs, 4, 0)
    first, second, third, _ = questions

    def answer_of(one: Planted) -> str:
        handles, answer = Exploration(one.graph).handles, min(one.answers)
        return handles.variable(answer) if answer in one.graph.variables else handles.operation(answer)

    def script(body: dict[str, Any]) -> str:
        asked = next(one for one in questions if one.text in prompt_of(body))
        if "Conclude now" not in prompt_of(body):
            return json.dumps({"tool": "conclude"})
        known = body["response_format"]["json_schema"]["schema"]["properties"]["evidence"]["items"]["enum"]
        if asked is first:
            cited = [answer_of(first)]
        elif asked is second:
            cited = [answer_of(second), *(one for one in known if one != answer_of(second))][:4]
        else:
            cited = ["nowhere"] if asked is third else [known[0], answer_of(asked)]
        return json.dumps({"answer": "That one.", "evidence": cited})

    scripted_server.script = script
    result = measure(graphs, 4, seed=0, steps=3, model=open_access(cache=False), progress=quiet)
    assert [row["agent"] for row in result["questions"]] == [True, False, False, True]
    assert [row["answered"] for row in result["questions"]] == [True, True, False, True]
    assert (result["agent"], result["answered"]) == (0.5, 0.75)
    assert result["tokens"] > 0


def test_an_exploration_starts_with_what_is_nearest_to_the_question(graphs: list[ExecutionGraph]) -> None:
    near = 0
    questions = planted(graphs, 45, 3)
    for one in questions:
        exploration = Exploration(one.graph)
        shown = exploration.handles.shown_in("\n".join(starting_points(one.text, exploration)))
        named = {exploration.handles.find_variable(each) or exploration.handles.find_operation(each) for each in shown}
        near += not one.answers.isdisjoint(named)
    assert near / len(questions) > 0.6
    assert starting_points("?", Exploration(graphs[0])) == []


def test_the_command_prints_a_row_for_each_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "exploring.json"
    arguments = ["exploring", "--limit-conversations", "12", "--limit-questions", "2", "--questions", "18"]
    with pytest.raises(SystemExit) as caught:
        main([*arguments, "--json", str(target)])
    assert caught.value.code == 0
    said = capsys.readouterr().out
    assert all(kind in said for kind in KINDS)
    assert json.loads(target.read_text())["reachable"] == 1.0
