"""Wrong answers whose cause is known because it was injected: passed cases of a real run, one fault in each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from attribution.cases import Case
from attribution.judging.words import Judgement
from attribution.recordings import Recording
from benchmarks.injected_faults.faults import Fault, FaultTarget, SeveralFaults, target_of
from benchmarks.injected_faults.kinds import KINDS, Kind
from benchmarks.injected_faults.wordings import STYLES, Reworded, Style, Wordings, style_of
from benchmarks.labelled_cases import LabelledCase
from tracing.errors import BudgetExceededError, ConfigError, ModelError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import session, trace
from tracing.systems.calls import answer_question, build_memory
from tracing.systems.conversations import Conversation, Question
from tracing.systems.description import describe
from tracing.systems.interventions import Heard, intervene
from tracing.systems.prompts import Candidate, baseline_candidate
from tracing.systems.protocol import Answer, Memory, MemorySystem

Judged = Callable[[Question, str], Judgement]
Progress = Callable[[int, int], None]


class FaultySystem:
    """A memory system that does something wrong whenever the operation at fault runs.

    Args:
        system: as it is.
        fault: what it does wrong.
        reworded: how it words what it extracts.
    """

    def __init__(self, system: MemorySystem, fault: Fault | SeveralFaults, reworded: Reworded) -> None:
        self._system, self.fault, self._reworded = system, fault, reworded
        self.prompts, self.operations = system.prompts, system.operations

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Build as the system does, with the fault."""
        with intervene(self.fault), intervene(self._reworded):
            return build_memory(self._system, conversation, candidate, access)

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer as the system does, with the fault."""
        with intervene(self.fault):
            return answer_question(self._system, memory, question, candidate, access)


@dataclass(slots=True)
class Injected:
    """The outcome of injecting faults.

    Attributes:
        cases: wrong answers with their truth.
        systems: what runs each recording's system again, fault included.
        asked, passed: questions of the run without faults, and those answered right.
        harmless: by kind, faults that left the answer right.
        ambiguous: by kind, faults that spoilt one copy of the content while the memory held another: whose fault the
            wrong answer is, theirs or that of what did not find or use the other, no annotation says.
    """

    cases: list[LabelledCase] = field(default_factory=list)
    systems: dict[Recording, FaultySystem] = field(default_factory=dict)
    asked: int = 0
    passed: int = 0
    harmless: Counter[str] = field(default_factory=Counter)
    ambiguous: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Base:
    """A conversation's memory as it is without faults, and what its operations emitted."""

    wordings: Wordings
    style: Style
    reworded: Reworded
    memory: Memory
    records: list[dict[str, Any]]
    built: Heard


@dataclass(frozen=True, slots=True)
class _Passed:
    base: _Base
    case: Case
    answered: Heard
    target: FaultTarget


class Injector:
    """Makes wrong answers with one system, by the faults of `kinds.KINDS`.

    Args:
        system: to inject into.
        access: its models.
        judged: says whether a reply is right.
        rewords: whether what it extracts is worded in the styles of `wordings`, where it is an annotated fact word for
            word. A real model has words of its own.
        seed: of the choice of cases, values and styles.
    """

    def __init__(
        self, system: MemorySystem, access: ModelAccess, judged: Judged, *, seed: int, rewords: bool = True
    ) -> None:
        self._system, self.access, self.judged, self._seed = system, access, judged, seed
        extracts = any(spec.prompt is not None for spec in system.operations if spec.stage == "extract")
        self._rewords = rewords and extracts
        self.candidate = baseline_candidate(system.prompts)

    def inject(self, conversations: Sequence[Conversation], count: int, progress: Progress) -> Injected:
        """Inject up to `count` faults, the kinds in turn, each into passed cases in an order drawn from the seed.

        Raises:
            ConfigError: the system has no place for faults.
            ModelError: a call of the run without faults failed.
            BudgetExceededError: a hard budget ended it.
        """
        made = Injected()
        passed: list[_Passed] = []
        for conversation in conversations:
            base = self._built(conversation)
            answered = [self._answered(base, question) for question in conversation.questions]
            if base.built.silent and all(one.answered.silent for one in answered):
                raise ConfigError(
                    f"--system: no operation of {describe(self._system).name} passes its outputs to "
                    "tracing.systems.interventions, so no fault can be injected; docs/extending.md says how to"
                )
            made.asked += len(answered)
            passed += [one for one in answered if one.case.passed]
        made.passed = len(passed)
        queues = {name: self._opportunities(name, passed) for name in KINDS}
        while len(made.cases) < count and queues:
            for name in list(queues):
                if len(made.cases) < count and not self._next(name, queues[name], made):
                    del queues[name]
                progress(len(made.cases), count)
        return made

    def _opportunities(self, name: str, passed: Sequence[_Passed]) -> list[_Passed]:
        drawn = list(passed)
        random.Random(f"{self._seed} {name}").shuffle(drawn)  # noqa: S311 - a choice of examples, no secret
        return drawn

    def _next(self, name: str, queue: list[_Passed], made: Injected) -> bool:
        """Inject the kind into the next case that it makes wrong; False where none is left."""
        kind = KINDS[name]
        while queue:
            chosen = queue.pop()
            building, answering = self._fires(kind, chosen)
            if not (building or answering):
                continue
            try:
                found = self._spoilt(name, kind, chosen, rebuild=building)
            except BudgetExceededError:
                raise
            except ModelError:
                continue
            if found is None:
                made.harmless[name] += 1
                continue
            labelled, system = found
            if kind.spoils and system.fault.remains:
                made.ambiguous[name] += 1
                continue
            made.cases.append(labelled)
            made.systems[labelled.recording] = system
            return True
        return False

    def _fires(self, kind: Kind, chosen: _Passed) -> tuple[bool, bool]:
        """Whether the fault finds its operation in what was emitted without it, in building and in answering."""
        trial = kind.make(chosen.target)
        chosen.base.built.tell(trial)
        building = trial.builds
        chosen.answered.tell(trial)
        return building, bool(trial.fired)

    def _spoilt(
        self, name: str, kind: Kind, chosen: _Passed, *, rebuild: bool
    ) -> tuple[LabelledCase, FaultySystem] | None:
        """The case with the fault in it; None where its answer stays right."""
        base, question = chosen.base, chosen.case.question
        conversation = base.wordings.conversation
        system = FaultySystem(self._system, kind.make(chosen.target), base.reworded)
        memory, records = base.memory, base.records
        if rebuild:
            with trace(prefix="b") as building:
                memory = build_memory(system, conversation, self.candidate, self.access)
            records = building.records()
        else:
            base.built.tell(system.fault)  # so that it knows where the content went
        graph, case = self._asked(system, conversation, question, memory, records)
        fired = system.fault.fired
        if case.passed or not fired:
            return None
        recording = Recording(graph, conversation, tuple(self._system.operations))
        return LabelledCase(
            case, recording, kind.error_type, fired, fired, name, base.style if self._rewords else None
        ), system

    def _built(self, conversation: Conversation) -> _Base:
        heard, wordings = Heard(), Wordings.of(conversation)
        style = style_of(conversation, self._seed) if self._rewords else STYLES[0]
        reworded = Reworded(wordings, style, self._seed)
        with trace(prefix="b") as building, intervene(heard), intervene(reworded):
            memory = build_memory(self._system, conversation, self.candidate, self.access)
        return _Base(wordings, style, reworded, memory, building.records(), heard)

    def _answered(self, base: _Base, question: Question) -> _Passed:
        heard = Heard()
        with intervene(heard):
            _, case = self._asked(self._system, base.wordings.conversation, question, base.memory, base.records)
        return _Passed(base, case, heard, target_of(question, base.wordings, seed=self._seed))

    def _asked(
        self,
        system: MemorySystem,
        conversation: Conversation,
        question: Question,
        memory: Memory,
        records: list[dict[str, Any]],
    ) -> tuple[ExecutionGraph, Case]:
        with trace(prefix="a") as answering:
            answering.adopt(records)
            with session(question.id):
                answer = answer_question(system, memory, question, self.candidate, self.access)
        judgement = self.judged(question, answer.text)
        return answering.graph, Case(conversation.id, question, answer.text, judgement, answer.variable)
