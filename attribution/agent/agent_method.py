"""An agent that explores a graph with tools: for wrong answers that survival leaves open, and for people's questions.

Why not `dspy.ReAct`: its context grows with every step until an endpoint refuses it, and it treats the names of tools
and ids as free text. Here each step's request is rebuilt from the task, the latest replies and one line for each
earlier one, so it fits its limit of tokens by construction; every step fits a JSON schema, which a grammar
enforces on the embedded model; and a conclusion is checked against the graph before it counts.
The idea of a tool-using explorer is MemTrace's; so is that its verdict names an operation and an error type.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from attribution.agent import agent_prompts as prompts
from attribution.agent.exploration import REPLY_CHARACTERS, Exploration
from attribution.cases import OUTSIDE_THE_SYSTEM, Attribution, Blame, Case
from attribution.explanations import Explained, ExplainedStep
from attribution.history import graph_at
from tracing.errors import CallFailedError, ModelError, OutOfTimeError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.booking import note_malformed
from tracing.llm.reply_json import object_in
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace
from tracing.systems.conversations import first_problem

if TYPE_CHECKING:
    from tracing.llm.models import ChatModel
    from tracing.systems.protocol import OperationSpec

STEPS = 12
CONTEXT_TOKENS = 6000
STEP_TOKENS, CONCLUSION_TOKENS = 220, 400
MOST_GARBAGE = 3
"""Consecutive unusable replies after which it is asked for its conclusion."""
MOST_REPEATS = 2
CONCLUSIONS = 3
"""Attempts at a conclusion that the graph supports."""

CONFIDENCE: Mapping[str, float] = {"high": 0.7, "medium": 0.5, "low": 0.3}
"""Its words as confidences. Models are overconfident."""

_MOST_SHOWN = 4

_Reply = TypeVar("_Reply", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """What an agent found out about a question, with ids of the graph that support it, or why it abstained."""

    answer: str | None
    evidence: tuple[str, ...]
    abstained: str | None
    steps: int
    tokens: int


@dataclass(slots=True)
class _Progress:
    """What one exploration is to do, and has done so far.

    `repeated` is the tool that was used last, if that was in a way in which it had been used before.
    """

    task: str
    rules: str = ""
    deadline: float | None = None
    notes: list[prompts.Note] = field(default_factory=list)
    times_used: dict[tuple[str, str, str], int] = field(default_factory=dict)
    tokens: int = 0
    steps: int = 0
    repeated: str | None = None


class Agent:
    """Explores one graph by tools. An `Attributor`; safe to use from several threads.

    Args:
        graph: the graph to explore.
        model: chat model of a `ModelAccess`.
        steps: maximum tool calls per case.
        operations: the system's operations with their stages, if known.
        context: maximum tokens of a request and its reply; an embedded model's own context if that is less.
        seconds: after which it takes no further step; None for no limit.
        clock: returns seconds.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        model: ChatModel,
        *,
        operations: Sequence[OperationSpec] = (),
        steps: int = STEPS,
        context: int = CONTEXT_TOKENS,
        seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._graph, self._specs, self._model = graph, operations, model
        self._steps, self._seconds, self._clock = steps, seconds, clock
        settings = model.settings
        self._room = min(context, settings.context) if settings.embedded else context
        self._exploration = self._explored(graph)

    def attribute(self, case: Case) -> Attribution:
        """Whose fault a wrong answer is; an abstention if the graph supports no conclusion.

        Raises:
            BudgetExceededError, OutOfTimeError: a budget or the time does not allow the next call.
        """
        return self.explain(case).attribution

    def explain(self, case: Case) -> Explained:
        """As `attribute`, with each tool that it used and what the tool told."""
        past = self._as_of(case)
        progress = _Progress(prompts.case_task(case, self._specs, past._exploration))
        attribution = past._verdict(case, progress)
        return Explained(attribution, tuple(ExplainedStep(note.request, note.reply) for note in progress.notes))

    def _explored(self, graph: ExecutionGraph) -> Exploration:
        # A character is a token at worst, and a request has room for several replies.
        return Exploration(graph, most=min(REPLY_CHARACTERS, self._room // 4))

    def _as_of(self, case: Case) -> Agent:
        """The same for what there was when the case was answered."""
        past = copy(self)
        past._graph = graph_at(self._graph, self._specs, case)
        past._exploration = self._explored(past._graph)
        return past

    def _verdict(self, case: Case, progress: _Progress) -> Attribution:
        if case.passed:
            return Attribution(case, abstained="the answer passed")
        try:
            verdict = self._explore(progress, prompts.ATTRIBUTION, prompts.AgentVerdict, self._wrong_with)
        except ModelError as error:
            return Attribution(case, abstained=f"agent: {error}")
        if isinstance(verdict, str):
            return Attribution(case, abstained=f"agent: {verdict}")
        if verdict.error_type == "none":
            return Attribution(case, abstained=f"agent: {verdict.reason or 'it found no fault'}")
        return Attribution(case, (self._blame(verdict),))

    def ask(self, question: str) -> AgentAnswer:
        """Answer a person's question from the graph.

        Raises:
            BudgetExceededError: a budget does not allow the next call.
            CallFailedError: the model cannot be reached.
        """
        progress = _Progress(prompts.question_task(question, self._exploration))
        try:
            prose = self._explore(progress, prompts.QUESTION, prompts.Prose, self._unfounded)
        except CallFailedError:
            raise
        except (OutOfTimeError, ModelError) as error:
            prose = str(error)
        if isinstance(prose, str):
            return AgentAnswer(None, (), prose, progress.steps, progress.tokens)
        handles = self._exploration.handles
        answer = handles.spelled_out(prose.answer.strip())
        return AgentAnswer(answer, self._ids(prose.evidence), None, progress.steps, progress.tokens)

    def _explore(
        self, progress: _Progress, rules: str, kind: type[_Reply], wrong_with: Callable[[_Reply], str | None]
    ) -> _Reply | str:
        """The conclusion of an exploration, or a message why there is none."""
        progress.rules = rules + prompts.TOOLBOX
        progress.deadline = None if self._seconds is None else self._clock() + self._seconds
        garbage = 0
        with trace(), operation("attribution_agent", kind="llm"):
            while progress.steps < self._steps and garbage < MOST_GARBAGE:
                due = prompts.STEP.format(left=self._steps - progress.steps)
                schema = prompts.step_schema(progress.repeated)
                step = self._next_reply(progress, due, prompts.AgentStep, schema, STEP_TOKENS)
                if isinstance(step, str):
                    garbage += 1
                    progress.notes.append(prompts.Note("(your reply)", f"is no step: {step}"))
                    continue
                garbage = 0
                if step.tool == "conclude":
                    break
                progress.steps += 1
                if not self._take(progress, step):
                    break
            why = "it never gave a usable reply"
            for _ in range(CONCLUSIONS):
                reading = "\n".join([progress.task, *(note.reply for note in progress.notes)])
                schema = prompts.conclusion_schema(kind, self._exploration.handles.shown_in(reading))
                verdict = self._next_reply(progress, prompts.CONCLUDE, kind, schema, CONCLUSION_TOKENS)
                why = verdict if isinstance(verdict, str) else wrong_with(verdict) or ""
                if not why and not isinstance(verdict, str):
                    return verdict
                progress.notes.append(prompts.Note("(your conclusion)", f"is refused: {why}"))
        return f"no usable conclusion in {CONCLUSIONS} attempts; the last: {why}"

    def _take(self, progress: _Progress, step: prompts.AgentStep) -> bool:
        """Use a tool; False if the step was repeated too often."""
        key = (step.tool, step.target, step.text)
        request = f"{step.tool}({', '.join(filter(None, (step.target, step.text)))})"
        times = progress.times_used[key] = progress.times_used.get(key, 0) + 1
        progress.repeated = step.tool if times > 1 else None
        if times > 1:
            progress.notes.append(
                prompts.Note(request, "You asked this before; its reply is above. Ask something else or conclude.")
            )
            return times <= MOST_REPEATS
        progress.notes.append(prompts.Note(request, self._exploration.use(*key)))
        return True

    def _next_reply(
        self, progress: _Progress, due: str, kind: type[_Reply], schema: dict[str, Any], most: int
    ) -> _Reply | str:
        """The model's next reply, parsed, or a message why it cannot be.

        What is asked of it stands last: up to the newest step, a request begins like the one before, so a server that
        keeps prompts reads little again.
        """
        if progress.deadline is not None and self._clock() > progress.deadline:
            raise OutOfTimeError(f"not done after {self._seconds:g} seconds; raise --timeout, or use a faster model")
        room = self._room - most - sum(map(prompts.tokens_at_most, (progress.rules, progress.task, due)))
        request = (
            f"{progress.task}\n\nYour steps so far:\n{prompts.remembered(progress.notes, room) or '(none)'}\n\n{due}"
        )
        reply = self._model.chat(
            [{"role": "system", "content": progress.rules}, {"role": "user", "content": request}],
            max_tokens=most,
            schema=schema,
            temperature=0.0,
            whole=False,
        )
        progress.tokens += reply.prompt_tokens + reply.completion_tokens
        try:
            return kind.model_validate(object_in(reply.text) or {})
        except ValidationError as error:
            note_malformed(reply.text)
            return first_problem(error)

    def _wrong_with(self, verdict: prompts.AgentVerdict) -> str | None:
        """Why a verdict is not valid; None if it is."""
        if verdict.error_type == "none" or verdict.error_type in OUTSIDE_THE_SYSTEM:
            return None
        if self._exploration.handles.find_operation(verdict.operation) is None:
            executions = self._graph.find_operations(name=verdict.operation)
            if executions:
                ids = ", ".join(
                    self._exploration.handles.operation(execution.id) for execution in executions[:_MOST_SHOWN]
                )
                return f"{verdict.operation} ran {len(executions)} times ({ids}, …); give the id of one execution"
            return f"there is no operation {verdict.operation!r}; give the id of one that the tools showed"
        return None

    def _unfounded(self, prose: prompts.Prose) -> str | None:
        handles = self._exploration.handles
        unknown = handles.unknown(prose.answer) + [cited for cited in prose.evidence if not self._ids([cited])]
        if unknown:
            return f"{', '.join(unknown)} is in no graph; cite ids that the tools showed"
        if not prose.answer.strip():
            return "the answer is empty"
        return None if prose.evidence else "evidence is empty; cite the ids that the answer rests on"

    def _blame(self, verdict: prompts.AgentVerdict) -> Blame:
        handles = self._exploration.handles
        assert verdict.error_type != "none"  # noqa: S101 (told apart by the caller)
        beyond = {"AnnotationError": "annotation", "JudgeError": "judge"}.get(verdict.error_type)
        oid = None if beyond else handles.find_operation(verdict.operation)
        return Blame(
            operation=beyond or self._graph.operations[oid or ""].name,
            operation_id=oid,
            error_type=verdict.error_type,
            confidence=CONFIDENCE[verdict.confidence],
            reason=handles.spelled_out(" ".join(verdict.reason.split())),
            evidence=tuple(
                element_id for element_id in self._ids(verdict.evidence) if element_id in self._graph.variables
            ),
        )

    def _ids(self, cited: Any) -> tuple[str, ...]:
        handles = self._exploration.handles
        ids = [handles.find_variable(handle) or handles.find_operation(handle) for handle in cited]
        return tuple(dict.fromkeys(element_id for element_id in ids if element_id is not None))
