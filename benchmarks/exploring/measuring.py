"""How well the tools, and an agent that uses them, answer planted questions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attribution.agent.agent_method import Agent
from attribution.agent.exploration import Exploration
from attribution.confidence_intervals import clustered_interval
from attribution.recordings import operations_of
from benchmarks.attribution_suites import SCRIPTED_SETTINGS, scripted_access
from benchmarks.exploring.planted import Planted, ToolUse, planted
from experiments.bench.attribution import Progress
from tracing.errors import BudgetExceededError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.recording.trace_context import trace
from tracing.systems.calls import answer_question, build_memory
from tracing.systems.prompts import baseline_candidate
from tracing.systems.registry import open_system

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess
    from tracing.systems.conversations import Conversation

MOST_CITED = 3
"""An answer that cites more ids names none of them."""


def recorded(system: str, conversations: Sequence[Conversation], progress: Progress) -> list[ExecutionGraph]:
    """The graph of each conversation, built and asked with a scripted model that makes no mistakes.

    Raises:
        ConfigError: there is no such system.
    """
    opened = open_system(system, SCRIPTED_SETTINGS.get(system, {}))
    seed = baseline_candidate(opened.prompts)
    graphs = []
    with scripted_access(conversations) as access:
        for done, conversation in enumerate(conversations):
            progress("recording", done, len(conversations))
            with trace(prefix="") as recorder:
                memory = build_memory(opened, conversation, seed, access)
                for question in conversation.questions:
                    answer_question(opened, memory, question, seed, access)
            graphs.append(recorder.graph)
    return graphs


def measure(
    graphs: Sequence[ExecutionGraph],
    count: int,
    *,
    seed: int,
    steps: int,
    model: ModelAccess | None,
    progress: Progress,
) -> dict[str, Any]:
    """Answer `count` planted questions in three ways; everything in the result is plain JSON.

    Keys: n; kinds, with n and the shares below for each; questions, one row each, with the place of its graph and what
        the agent cited.
        reachable: share whose recipe shows the answer, each step going on from what the question or a step before
            showed: what the tools allow whoever uses them right.
        search: share of which the first three texts that `search` finds for what the question quotes have the answer.
        agent, agent_ci: share that the agent answers by citing at most three ids, one of them right, with a bootstrap
            interval over conversations; None without a model. answered: share to which it gave an answer at all.
        steps, tokens: means of the agent for a question. stopped: why questions were not asked, or None.

    Raises:
        ModelError: the model cannot be reached.
    """
    questions = planted(graphs, count, seed)
    rows: list[dict[str, Any]] = []
    stopped = None
    explorations = {id(graph): Exploration(graph) for graph in graphs}
    places = {id(graph): place for place, graph in enumerate(graphs)}
    for done, question in enumerate(questions):
        progress("planted questions", done, len(questions))
        exploration = explorations[id(question.graph)]
        row: dict[str, Any] = {
            "kind": question.kind,
            "graph": places[id(question.graph)],
            "question": question.text,
            "answers": sorted(question.answers),
            "reachable": _reachable(question, exploration),
            "search": _searched(question, exploration),
        }
        if model is not None and stopped is None:
            try:
                said = Agent(question.graph, model.task, operations=operations_of(question.graph), steps=steps).ask(
                    question.text
                )
            except BudgetExceededError as error:
                stopped = str(error)
            else:
                cited = list(said.evidence)
                row |= {
                    "agent": len(cited) <= MOST_CITED and not question.answers.isdisjoint(cited),
                    "answered": said.answer is not None,
                    "cited": cited,
                    "said": said.answer or said.abstained,
                    "steps": said.steps,
                    "tokens": said.tokens,
                }
        rows.append(row)
    kinds = {
        kind: _shares([row for row in rows if row["kind"] == kind], seed)
        for kind in dict.fromkeys(row["kind"] for row in rows)
    }
    return {**_shares(rows, seed), "kinds": kinds, "stopped": stopped, "questions": rows}


def _shares(rows: Sequence[dict[str, Any]], seed: int) -> dict[str, Any]:
    asked = [row for row in rows if "agent" in row]
    hits = [float(row["agent"]) for row in asked]
    return {
        "n": len(rows),
        "reachable": _mean([row["reachable"] for row in rows]),
        "search": _mean([row["search"] for row in rows]),
        "agent": _mean(hits),
        "agent_ci": list(clustered_interval(hits, [row["graph"] for row in asked], seed=seed)) if hits else None,
        **{key: _mean([row[key] for row in asked]) for key in ("answered", "steps", "tokens")},
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _reachable(question: Planted, exploration: Exploration) -> bool:
    """Whether each step of the recipe starts from what was shown before, and the last shows an answer."""
    shown = ""
    for step in question.recipe:
        target = _handle(step, exploration)
        if step.tool != "search" and not _has(shown, target):
            return False
        shown += "\n" + exploration.use(step.tool, target, step.text)
    return any(_has(shown, handle) for handle in _handles(question, exploration))


def _searched(question: Planted, exploration: Exploration) -> bool:
    """Whether the first texts that are found for the quotation have the answer."""
    quoted = question.text.partition("“")[2].partition("”")[0]
    first = exploration.use("search", "", quoted).splitlines()[:MOST_CITED]
    return any(_has(line.partition(" ")[0], handle) for line in first for handle in _handles(question, exploration))


def _handle(step: ToolUse, exploration: Exploration) -> str:
    if step.tool == "search":
        return step.target
    handles = exploration.handles
    return handles.operation(step.target) if step.tool == "operation" else handles.variable(step.target)


def _handles(question: Planted, exploration: Exploration) -> list[str]:
    handles = exploration.handles
    return [
        handles.variable(answer) if answer in question.graph.variables else handles.operation(answer)
        for answer in sorted(question.answers)
    ]


def _has(text: str, handle: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(handle)}(?![\w-])", text) is not None
