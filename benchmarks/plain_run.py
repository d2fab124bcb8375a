"""The parts of a run that reuses nothing: whatever the search looks at is made again from the dialogue.

- Each evaluation of a candidate on a conversation builds the memory and asks all questions.
- What the champion does is not remembered either: each round begins by running it again.
- There are no recorded inputs. To try a text on an operation's input, the conversation is run with the champion
  until the operation gets that input.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from optimizer.evaluation.evaluator import Evaluator, Outcome, Progress
from optimizer.objectives.local_evaluation import LocalEvaluation
from optimizer.objectives.local_evaluation import Progress as LocalProgress
from optimizer.objectives.objective import Credit, Objective, RecordedInput
from optimizer.tuning.reserve import calls_with
from optimizer.tuning.round import Round
from optimizer.tuning.tuning import Learned, Tuning
from tracing.errors import RunError
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import MemorySystem

Met = tuple[tuple[tuple[str, str], ...], str]
"""Texts of the prompts by name, and the id of a conversation."""


@dataclass(frozen=True, slots=True)
class NotingEvaluator(Evaluator):
    """An evaluator that notes what came out, and without `reuse` starts from nothing each time.

    Attributes:
        replies: for each candidate and conversation, all that was ever replied, with its scores.
    """

    reuse: bool = True
    replies: dict[Met, set[tuple[object, ...]]] = field(default_factory=dict)
    latest: dict[Met, Outcome] = field(default_factory=dict)

    def evaluate(
        self, candidate: Candidate, conversations: Sequence[Conversation], *, progress: Progress | None = None
    ) -> list[Outcome]:
        if self.reuse:
            outcomes = Evaluator.evaluate(self, candidate, conversations, progress=progress)
        else:
            outcomes = _afresh(self, candidate, conversations, progress)
        for outcome in outcomes:
            met = _met(candidate, outcome.conversation)
            said = tuple((case.question.id, case.reply, case.judgement.score) for case in outcome.cases)
            self.replies.setdefault(met, set()).add((outcome.tainted, *said))
            self.latest[met] = outcome
        return outcomes

    def known_outcomes(self, candidate: Candidate, conversations: Sequence[Conversation]) -> list[Outcome]:
        keys = [_met(candidate, conversation) for conversation in conversations]
        return [self.latest[key] for key in keys if key in self.latest]


class PlainTuning:
    """A tuning that runs its champion again in each round, on the conversations it is looked at on."""

    def __init__(self, tuning: Tuning, evaluator: Evaluator) -> None:
        self._tuning, self._evaluator = tuning, evaluator
        self._this_round: dict[Learned, tuple[Candidate, list[Outcome]]] = {}
        self.local = _PlainLocal(tuning, evaluator.system, tuning.local.objectives, evaluator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tuning, name)

    def beside(self, name: str) -> PlainTuning:
        """As `Tuning.beside`."""
        return PlainTuning(self._tuning.beside(name), self._evaluator)

    def outcomes(self, split: Learned) -> list[Outcome]:
        """As `Tuning.outcomes`."""
        known = self._this_round.get(split)
        if known is None or known[0] != self._tuning.champion:
            conversations = self._tuning.train if split == "train" else self._tuning.validation
            known = self._tuning.champion, self._tuning.measure(self._tuning.champion, conversations, "champion")
            self._this_round[split] = known
        return known[1]

    def calls_with(self, prompts: Collection[str]) -> float:
        """As `Tuning.calls_with` of a run that reuses replies: at other prices, other texts would be compared."""
        operations = {self._tuning.prompts[name].operation for name in prompts}
        return calls_with(self.outcomes("train"), operations, cached=True)

    @contextmanager
    def round(self, n: int) -> Iterator[Round]:
        """As `Tuning.round`."""
        with self._tuning.round(n) as this_round:
            yield this_round
        self._this_round.clear()


class _PlainLocal(LocalEvaluation):
    def __init__(
        self, tuning: Tuning, system: MemorySystem, objectives: Mapping[str, Objective], evaluator: Evaluator
    ) -> None:
        super().__init__(system, tuning.prompts, objectives, evaluator.access)
        self._tuning, self._evaluator = tuning, evaluator
        self._measured: dict[tuple[str, str, str], Credit] = {}

    def measure(
        self, prompt: str, text: str, inputs: Sequence[RecordedInput], *, progress: LocalProgress | None = None
    ) -> list[Credit | None]:
        self._reach(prompt, inputs)
        # Several texts are measured at once: each by what remembers nothing of the others.
        once = LocalEvaluation(self._evaluator.system, self._prompts, self.objectives, self._access)
        found = once.measure(prompt, text, inputs, progress=progress)
        for given, credit in zip(inputs, found, strict=True):
            if credit is not None:
                self._measured[prompt, text, given.key] = credit
        return found

    def known_credits(self, prompt: str, text: str, inputs: Sequence[RecordedInput]) -> list[Credit | None]:
        """As `LocalEvaluation.known_credits`: a figure that was written down takes no call to look up."""
        return [self._measured.get((prompt, text, given.key)) for given in inputs]

    def _reach(self, prompt: str, inputs: Sequence[RecordedInput]) -> None:
        """Run the conversations of these inputs again, as far as their operation needs it."""
        whole = {given.conversation.id: given.conversation for given in inputs}
        asked = {given.question.id for given in inputs if given.question is not None}
        needed = [
            each.model_copy(update={"questions": tuple(q for q in each.questions if q.id in asked)})
            for each in whole.values()
        ]
        outcomes = _afresh(self._evaluator, self._tuning.champion, needed)
        reached = self.inputs(prompt, [replace(each, conversation=whole[each.conversation.id]) for each in outcomes])
        if not {given.key for given in inputs} <= {given.key for given in reached}:
            raise RunError(f"{prompt}: another run of the same conversations led to other inputs")


def _afresh(
    evaluator: Evaluator,
    candidate: Candidate,
    conversations: Sequence[Conversation],
    progress: Progress | None = None,
) -> list[Outcome]:
    with tempfile.TemporaryDirectory(prefix="memtune-bench-") as folder:
        once = Evaluator(evaluator.system, evaluator.access, evaluator.metric, Path(folder))
        return once.evaluate(candidate, conversations, progress=progress)


def _met(candidate: Candidate, conversation: Conversation) -> Met:
    return tuple(sorted(candidate.items())), conversation.id
