"""Attribution by counterfactual replay: correct one output, rerun what comes after it, and see whether it helps.

The decisive operation is the earliest whose inputs carried what was needed, whose output did not, and whose repair
makes the answer right. If no single repair does, all wrong outputs on the way are corrected together, and
unnecessary repairs are removed again, latest first, until each that remains is needed (as in delta debugging,
Zeller and Hildebrandt 2002, one at a time).

Every run is the system's own code with its own prompts. Operations before a repair repeat their requests, which the
response cache answers, so only what is downstream costs calls. An access without a cache pays for all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attribution.cases import OUTSIDE_THE_SYSTEM, PASS_SCORE, Attribution, Blame, Case, ReplayVerdict
from attribution.explanations import Explained, ExplainedStep, explained
from attribution.history import History, as_known_in
from attribution.judging.words import Judgement
from attribution.recordings import Recording
from attribution.replay.repair import Execution, Repairs, WrongOutput
from attribution.survival.flow import rewrites, turns_read
from attribution.survival.gold import Gold
from attribution.survival.matching.matcher import MatcherFactory
from attribution.text.content import Vocabulary
from tracing.errors import ModelError
from tracing.graph.elements import Operation
from tracing.recording.trace_context import trace, whole_session
from tracing.systems.calls import answer_question, build_memory
from tracing.systems.conversations import Conversation, Question
from tracing.systems.interventions import Heard, intervene
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Memory, MemorySystem

if TYPE_CHECKING:
    from attribution.attributor import Attributor
    from tracing.graph.execution_graph import ExecutionGraph
    from tracing.llm.access import ModelAccess

CONFIRMED, JOINT = 0.95, 0.8
"""Confidence in an operation whose repair alone makes the answer right, and in one of several needed together."""

Judged = Callable[[Question, str], Judgement]


@dataclass(frozen=True, slots=True)
class Check:
    """The result of correcting one output."""

    output: WrongOutput
    verdict: ReplayVerdict
    reply: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """What replay found about one case, the repairs tried alone, and the runs and model calls that it cost."""

    attribution: Attribution
    checks: tuple[Check, ...] = ()
    runs: int = 0
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """One more run of a question: the reply, whether it is right, and which outputs on the way to it are wrong."""

    reply: str
    rescued: bool
    wrong_outputs: tuple[WrongOutput, ...]


class Replay:
    """Replays the wrong answers of one conversation; its memory is built once for all of them.

    Args:
        system: the system under test.
        candidate: the prompts it was run with.
        access: its models, with a response cache.
        conversation: what it was run on.
        judged: judges a reply, as the cases were judged.
        graph: of the run the cases come from, so that blames name its operations; None: blames have the ids of the
            rebuilt run.
        most_runs: maximum runs per case.
        matcher: sets up what decides which outputs carry what is needed; by default their words do.
    """

    def __init__(
        self,
        system: MemorySystem,
        candidate: Candidate,
        access: ModelAccess,
        conversation: Conversation,
        judged: Judged,
        *,
        graph: ExecutionGraph | None = None,
        most_runs: int = 12,
        matcher: MatcherFactory | None = None,
    ) -> None:
        self._system, self._candidate, self._access = system, candidate, access
        self._judged, self._graph = judged, graph
        self._most_runs = most_runs
        self._verbatim = not rewrites(system.operations)
        self._answering = {spec.name for spec in system.operations if spec.stage in ("retrieve", "answer")}
        self._open_matcher = matcher
        self._hear(conversation)

    def _hear(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._vocabulary = Vocabulary(turn.text for turn in conversation.turns())
        self._matcher = None if self._open_matcher is None else self._open_matcher(conversation, self._access)
        self._built: tuple[Memory, Heard] | None = None

    def _as_of(self, case: Case) -> tuple[Replay, Case]:
        """The same of what was said when the case was answered, and the case as far as it was known then."""
        if self._graph is None:
            return self, case
        past = History(Recording(self._graph, self._conversation, tuple(self._system.operations))).at(case)
        if past.conversation is self._conversation:
            return self, case
        then = copy(self)
        then._graph = past.graph
        then._hear(past.conversation)
        return then, as_known_in(case, past)

    def attribute(self, case: Case) -> Attribution:
        """Whose fault a wrong answer is, according to replay. Raises as `examine`."""
        return self.examine(case).attribution

    def examine(self, case: Case) -> Replayed:
        """Replay a wrong answer.

        Raises:
            ModelError, BudgetExceededError: a call downstream of a repair failed.
        """
        if case.passed:
            return Replayed(Attribution(case, abstained="the answer passed"))
        past, case_then = self._as_of(case)
        replayed = _CaseReplay(past, case_then.question, self._most_runs)
        with self._access.watch() as watch:
            decisive, confidence, abstained = replayed.decisive()
        blames = tuple(past._blame(wrong, confidence, case_then) for wrong in decisive)
        attribution = Attribution(case, blames, None if blames else abstained)
        return Replayed(attribution, tuple(replayed.checks), replayed.runs, watch.calls)

    def verdicts(self, case: Case, blames: Sequence[Blame]) -> Sequence[ReplayVerdict]:
        """Whether repairing blamed operations makes the answer right, alone or else together. Raises as `examine`."""
        past, case_then = self._as_of(case)
        return past._verdicts(case_then, blames)

    def _verdicts(self, case: Case, blames: Sequence[Blame]) -> Sequence[ReplayVerdict]:
        wrong = self.run(case.question, ()).wrong_outputs
        alone = [self._alone(case, self._places(wrong, blame, case)) for blame in blames]
        if len(blames) < 2 or "refuted" not in alone or "confirmed" in alone:
            return alone
        helping = self._helping_together(case, blames)
        return ["confirmed" if at in helping else verdict for at, verdict in enumerate(alone)]

    def _alone(self, case: Case, places: Sequence[Execution]) -> ReplayVerdict:
        if not places:
            return "not repairable"
        rescued = any(self.run(case.question, (place,)).rescued for place in places)
        return "confirmed" if rescued else "refuted"

    def _helping_together(self, case: Case, blames: Sequence[Blame]) -> Collection[int]:
        """Which blames' repairs make the answer right together; none if they do not."""
        # What an operation does wrong may show only once those before it are repaired.
        wrong = self.run(case.question, None).wrong_outputs
        placed = {at: self._places(wrong, blame, case) for at, blame in enumerate(blames)}
        needed = [at for at, places in placed.items() if places]

        def rescue(blamed: Sequence[int]) -> bool:
            return self.run(case.question, [place for at in blamed for place in placed[at]]).rescued

        if len(needed) < 2 or not rescue(needed):
            return ()
        for at in reversed(needed):
            rest = [other for other in needed if other != at]
            if len(rest) > 1 and rescue(rest):
                needed = rest
        return needed

    def _places(self, wrong_outputs: Sequence[WrongOutput], blame: Blame, case: Case) -> Sequence[Execution]:
        return [
            wrong.place
            for wrong in wrong_outputs
            if wrong.place.operation == blame.operation
            and blame.operation_id in (None, self._operation_id(wrong, case))
        ]

    def run(self, question: Question, chosen: Collection[Execution] | None) -> Run:
        """Ask a question again, with the outputs of the chosen places corrected (None: all that are wrong)."""
        gold = Gold(question, self._conversation, self._vocabulary, verbatim=self._verbatim, matcher=self._matcher)
        repairs = Repairs(gold, chosen)
        memory, heard = self._base()
        if chosen is None or any(place.operation not in self._answering for place in chosen):
            with trace(prefix="b"), intervene(repairs):
                memory = build_memory(self._system, self._conversation, self._candidate, self._access)
        else:
            heard.tell(repairs)
        with trace(prefix="a"), whole_session(question.id), intervene(repairs):
            reply = answer_question(self._system, memory, question, self._candidate, self._access).text
        return Run(reply, self._judged(question, reply).score >= PASS_SCORE, tuple(repairs.wrong_outputs))

    def _base(self) -> tuple[Memory, Heard]:
        """The memory as it is, and what was emitted when it was built."""
        if self._built is None:
            heard = Heard()
            with trace(prefix="b"), intervene(heard):
                memory = build_memory(self._system, self._conversation, self._candidate, self._access)
            self._built = memory, heard
        return self._built

    def _blame(self, wrong: WrongOutput, confidence: float, case: Case) -> Blame:
        operation = wrong.place.operation
        where = self._operation_id(wrong, case)
        return Blame(operation, where, wrong.error_type, confidence, wrong.reason, verdict="confirmed")

    def _operation_id(self, wrong: WrongOutput, case: Case) -> str | None:
        """The execution of the case's own graph that made a wrong output; None where none did."""
        if self._graph is None:
            return wrong.operation_id
        place, count = wrong.place, 0
        for operation in self._graph.operations.values():
            if operation.name == place.operation and place.about in _matters(self._graph, operation, case):
                count += 1
                if count == place.number:
                    return operation.id
        return None


class _CaseReplay:
    """The replays of one case, within a number of runs."""

    def __init__(self, replay: Replay, question: Question, most_runs: int) -> None:
        self.checks: list[Check] = []
        self.runs = 0
        self._replay, self._question, self._most_runs = replay, question, most_runs

    def decisive(self) -> tuple[Sequence[WrongOutput], float, str | None]:
        """The outputs to blame with the confidence in each; or none, and why."""
        base = self._run(())
        if base.rescued:
            return (), 0.0, "the answer is right when the question is asked again"
        for wrong in base.wrong_outputs[: self._most_runs // 2]:
            run = self._run((wrong.place,))
            self.checks.append(Check(wrong, "confirmed" if run.rescued else "refuted", run.reply))
            if run.rescued:
                return (wrong,), CONFIRMED, None
        if not base.wrong_outputs:
            return (), 0.0, "no operation's output is wrong given its inputs, as far as the gold evidence tells"
        whole = self._run(None)
        if not whole.rescued:
            return (), 0.0, "no repair rescues the answer"
        return self._needed(whole.wrong_outputs), JOINT, None

    def _needed(self, wrong_outputs: Sequence[WrongOutput]) -> Sequence[WrongOutput]:
        """A smallest subset whose repairs together make the answer right, as far as the number of runs allows."""
        needed = list(wrong_outputs)
        for wrong in reversed(wrong_outputs):
            rest = [other for other in needed if other is not wrong]
            if self.runs < self._most_runs and rest and self._run([other.place for other in rest]).rescued:
                needed = rest
        return needed

    def _run(self, chosen: Collection[Execution] | None) -> Run:
        self.runs += 1
        return self._replay.run(self._question, chosen)


def _matters(graph: ExecutionGraph, operation: Operation, case: Case) -> list[tuple[str, ...]]:
    """What an execution works on, in the ways in which a place may say it."""
    inputs = [graph.variables[vid] for vid in operation.input_ids()]
    where = graph.sessions.get(operation.session or "")
    in_question = where is not None and where.name == case.question.id
    facts = [str(variable.value) for variable in inputs if variable.kind == "fact"]
    turns = turns_read(graph, operation)
    return [turns, (" ".join(facts),), *((fact,) for fact in facts), (case.question.id,) if in_question else ()]


@dataclass(frozen=True, slots=True)
class Checked:
    """An `Attributor` whose blames on operations have replay's verdict.

    If a call that the check needs fails, no blame of the case has a verdict.
    """

    first: Attributor
    replay: Replay

    def attribute(self, case: Case) -> Attribution:
        """Whose fault the case is, as `first` says.

        Raises:
            BudgetExceededError: a budget does not allow the next call.
        """
        return self.explain(case).attribution

    def explain(self, case: Case) -> Explained:
        """As `attribute`, with the steps of `first` and what replay finds about each blame."""
        first = explained(self.first, case)
        checked = self._checked(case, first.attribution.decisive)
        confirmed = sum(blame.verdict == "confirmed" for blame in checked)
        steps = (ExplainedStep(f"Replay of {blame.operation}", _finding(blame.verdict, confirmed)) for blame in checked)
        return Explained(replace(first.attribution, decisive=checked), (*first.steps, *steps))

    def _checked(self, case: Case, blames: Sequence[Blame]) -> tuple[Blame, ...]:
        within = [blame for blame in blames if blame.error_type not in OUTSIDE_THE_SYSTEM]
        try:
            verdicts = iter(self.replay.verdicts(case, within) if within else ())
        except ModelError:
            return tuple(blames)
        return tuple(replace(blame, verdict=next(verdicts)) if blame in within else blame for blame in blames)


def _finding(verdict: ReplayVerdict | None, confirmed: int) -> str:
    if verdict is None:
        return "not replayed"
    if verdict == "not repairable":
        return "not repairable: there was no wrong output to correct"
    rescued = "makes" if verdict == "confirmed" else "does not make"
    others = ", alone or with the others that are confirmed," if verdict == "confirmed" and confirmed > 1 else ""
    return f"{verdict}: correcting its output{others} {rescued} the answer right"
