"""What attribution says of single questions: where a prompt has something to mend, and which beside a plain step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from attribution.cases import Attribution
from attribution.signals import Signal
from optimizer.objectives.objective import RecordedInput
from tracing.systems.protocol import OperationSpec, Stage, stage_of

Asked = tuple[str, str]
"""Conversation and question, by their ids."""


@dataclass(frozen=True, slots=True)
class QuestionFaults:
    """Whose fault the wrong answers to single questions are.

    Attributes:
        operations: of the system.
        wrong: the questions with wrong answers.
        attributions: of these, as far as they are known.
    """

    operations: Sequence[OperationSpec]
    wrong: Collection[Asked]
    attributions: Sequence[Attribution]

    def elsewhere(self, prompt: str, inputs: Sequence[RecordedInput]) -> frozenset[str]:
        """Keys of the inputs at questions that are wrong by the fault of other prompts alone.

        What operations without a prompt lose may be the fault of any prompt of their stage.
        """
        own = {spec.name for spec in self.operations if spec.prompt == prompt} | self._unsteered_beside(prompt)
        others = {
            _asked(attribution)
            for attribution in self.attributions
            if attribution.decisive and not any(blame.operation in own for blame in attribution.decisive)
        }
        return frozenset(recorded.key for recorded in inputs if _question_of(recorded) in others)

    def beside(
        self,
        signals: Sequence[Signal],
        recorded: Mapping[str, Sequence[RecordedInput]],
        credits: Mapping[str, Sequence[float | None]],
    ) -> list[Signal]:
        """The signals, where what operations without a prompt lose counts for the prompts that did worse there.

        That is: at the questions which these operations got wrong, worse than at those that were answered right, by the
        credits of what was recorded. Where none did, it counts for all prompts of the stage alike, as it was.

        Args:
            recorded: prompt name → its recorded inputs.
            credits: prompt name → their credits.
        """
        worse = {name: self._worse(name, inputs, credits[name]) for name, inputs in recorded.items()}
        shared: dict[Stage, tuple[float, float]] = {}
        for stage in {spec.stage for spec in self.operations}:
            peers = [s for s in signals if s.prompt in worse and stage_of(self.operations, s.prompt or "") == stage]
            shared[stage] = sum(s.beside for s in peers), sum(worse[s.prompt or ""] for s in peers)

        def counted(signal: Signal) -> Signal:
            if signal.prompt not in worse:
                return signal
            loss, total = shared[stage_of(self.operations, signal.prompt)]
            return replace(signal, beside=loss * worse[signal.prompt] / total) if total else signal

        return [counted(signal) for signal in signals]

    def _worse(self, prompt: str, inputs: Sequence[RecordedInput], credits: Sequence[float | None]) -> float:
        """How much more the prompt lost where operations of its stage without one failed, summed over the questions."""
        unsteered = self._unsteered_beside(prompt)
        failed = {
            _asked(attribution)
            for attribution in self.attributions
            if any(blame.operation in unsteered for blame in attribution.decisive)
        }
        lost: dict[Asked, float] = defaultdict(float)
        for recorded, credit in zip(inputs, credits, strict=True):
            asked = _question_of(recorded)
            if asked is not None and credit is not None:
                lost[asked] = max(lost[asked], 1 - credit)
        right = [loss for asked, loss in lost.items() if asked not in self.wrong]
        usual = fmean(right) if right else 0.0
        return sum(max(0.0, lost[asked] - usual) for asked in failed if asked in lost)

    def _unsteered_beside(self, prompt: str) -> set[str]:
        """The operations of the prompt's stage that no prompt steers."""
        stage = stage_of(self.operations, prompt)
        return {spec.name for spec in self.operations if spec.stage == stage and spec.prompt is None}


def _asked(attribution: Attribution) -> Asked:
    return attribution.case.conversation, attribution.case.question.id


def _question_of(recorded: RecordedInput) -> Asked | None:
    return None if recorded.question is None else (recorded.conversation.id, recorded.question.id)
