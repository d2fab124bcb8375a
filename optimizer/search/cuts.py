"""What could be cut so that a question takes fewer tokens: contexts, whole prompts, and single lines of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from optimizer.evaluation.evaluator import Outcome
from optimizer.evaluation.scores import Settings, settings_text
from optimizer.objectives.objective import RecordedInput
from optimizer.objectives.retrieval import Retrieval
from optimizer.proposers.rewrites import ANOTHER_TEXT, Rewrite
from optimizer.proposers.shortening import removable, without
from optimizer.racing.local_scores import alternating, compared
from optimizer.search.retrieved_settings import Considered, considered_settings
from optimizer.tuning.round import RewriteRecord, Round
from optimizer.tuning.tuning import Tuning
from tracing.systems.prompts import tokens_of

_T = TypeVar("_T")

SHORTER = "shorter"
"""The source of rewrites that only lack something."""

SETTINGS = 3
"""Settings that meet whole conversations in a round, of those that retrieve as much, and of the others. A choice."""

INPUTS = 12
"""Recorded inputs on which a shorter text is compared with the champion's. A choice."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What could be cut of the champion: prompts, or what is retrieved under other settings.

    Attributes:
        rewrites: the shorter texts, each of another prompt; none if settings change.
        pieces: that the one text lacks, the longest first; none if it is another text.
        settings: that differ from the champion's.
        retrieval: what is retrieved under them.
        saved: tokens of contexts or whole texts that it saves a question, estimated.
    """

    rewrites: tuple[Rewrite, ...] = ()
    pieces: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)
    retrieval: Retrieval | None = None
    saved: float = 0.0

    @property
    def what(self) -> str:
        """In a few words."""
        prompts = " and ".join(rewrite.prompt for rewrite in self.rewrites)
        return f"a shorter {prompts}" if prompts else settings_text(self.settings)


class Cuts:
    """What could be cut of the champion of a search.

    Args:
        tuning: the search.
        margin: how much lower a score may be.
        baseline: outcomes of the conversations that every cut meets.

    Attributes:
        champion: the champion's outcomes, as far as it has met these conversations.
    """

    def __init__(self, tuning: Tuning, margin: float, baseline: Sequence[Outcome]) -> None:
        self.tuning, self.margin = tuning, margin
        self.conversations = [outcome.conversation for outcome in baseline]
        self.champion = baseline
        self._others: list[Rewrite] | None = None
        """Whole texts with which their operations are no worse, and which were neither made champion nor rejected
        alone; None before any was measured."""

    def of_round(self, this_round: Round) -> Iterator[Cut]:
        """What could be cut, what saves most first; texts are measured on recorded inputs when they are asked for."""
        settings = self._settings(this_round)
        as_much = [cut for cut, holds in settings if holds]
        yield from sorted([*as_much[:SETTINGS], *self._other_texts(this_round)], key=lambda cut: -cut.saved)
        for name in self._prompts():
            cut = self._shortened(this_round, name)
            if cut is not None:
                yield cut
        yield from [cut for cut, holds in settings if not holds][:SETTINGS]

    def note(self, cut: Cut, outcomes: Sequence[Outcome], *, crowned: bool) -> None:
        """A cut met whole conversations, with these outcomes, and was made the champion or not."""
        if crowned or len(cut.rewrites) == 1:
            self._others = [rewrite for rewrite in self._others or () if rewrite not in cut.rewrites]
        if crowned:
            self.champion = outcomes

    def halves(self, cut: Cut) -> list[Cut]:
        """What is tried after texts that lack too much."""
        whole = [self._whole(rewrites) for rewrites in _halved(cut.rewrites)]
        lines = (self._without(cut.rewrites[0].prompt, pieces) for pieces in _halved(cut.pieces))
        return [*whole, *(half for half in lines if half is not None)]

    def _settings(self, this_round: Round) -> list[tuple[Cut, bool]]:
        """Settings under which fewer tokens are retrieved, and whether as much of what is needed is, best first."""
        tuning, variants = self.tuning, self.tuning.variants
        if variants is None:
            return []
        phase = f"round {this_round.n}: what other settings retrieve"
        champion = tuning.champion, tuning.champion_settings
        own, considered = considered_settings(variants, champion, self.conversations, partial(tuning.step, phase))
        this_round.retrieved = own
        if own is not None or this_round.n == 1:
            this_round.settings += [option.not_tried(_why_not_tried(option, own)) for option in considered]
        if own is None:
            return []
        retrieved = {option.retrieval: option for option in reversed(considered) if option.retrieval}
        fewer = [
            (option, retrieval)
            for retrieval, option in retrieved.items()
            if retrieval.tokens < own.tokens
            and not any(other.covers(retrieval) for other in retrieved if other != retrieval)
        ]
        least = own.recall - self.margin
        ranked = sorted(
            (
                (Cut(settings=option.settings, retrieval=found, saved=own.tokens - found.tokens), found)
                for option, found in fewer
            ),
            key=lambda pair: (pair[1].recall < least, pair[1].tokens if pair[1].recall >= least else -pair[1].recall),
        )
        return [(cut, retrieval.recall >= least) for cut, retrieval in ranked]

    def _other_texts(self, this_round: Round) -> list[Cut]:
        """Rewrites by hand and shorter alternatives, the first of each prompt together, and each of the others."""
        if self._others is None:
            self._others = []
            for name in self._prompts():
                offered = self._offered(name)
                inputs = self._inputs(name) if offered else []
                for number, rewrite in enumerate(offered):
                    self.tuning.step(f"round {this_round.n}: other texts of {name}", number, len(offered))
                    if self._is_no_worse(this_round, rewrite, inputs):
                        self._others.append(rewrite)
        first: dict[str, Rewrite] = {}
        for rewrite in self._others:
            first.setdefault(rewrite.prompt, rewrite)
        together = tuple(first.values())
        single = [(rewrite,) for rewrite in self._others if rewrite not in together]
        return [self._whole(rewrites) for rewrites in (together, *single) if rewrites]

    def _offered(self, name: str) -> list[Rewrite]:
        spec, text = self.tuning.prompts[name], self.tuning.champion[name]
        by_hand = [rewrite for rewrite in self.tuning.settings.hand if rewrite.prompt == name]
        shorter = [
            Rewrite(name, other, SHORTER, ANOTHER_TEXT)
            for other in sorted(spec.alternatives, key=tokens_of)
            if tokens_of(other) < tokens_of(text)
        ]
        return [rewrite for rewrite in (*by_hand, *shorter) if not spec.contract.violations(rewrite.text)]

    def _whole(self, rewrites: tuple[Rewrite, ...]) -> Cut:
        questions = sum(len(outcome.cases) for outcome in self.champion)
        saved = sum(
            self._executions(rewrite.prompt)
            * (tokens_of(self.tuning.champion[rewrite.prompt]) - tokens_of(rewrite.text))
            for rewrite in rewrites
        )
        return Cut(rewrites, saved=saved / max(questions, 1))

    def _shortened(self, this_round: Round, name: str) -> Cut | None:
        """The prompt without the pieces that its operation is no worse without; None if it needs them all."""
        tuning, spec, text = self.tuning, self.tuning.prompts[name], self.tuning.champion[name]
        pieces: list[str] = []
        inputs = self._inputs(name)
        this_round.edits(name)
        for number, piece in enumerate(candidates := removable(text, spec.contract.markers)):
            tuning.step(f"round {this_round.n}: {name} without single lines", number, len(candidates))
            shorter = without(text, [*pieces, piece])
            if shorter is None or spec.contract.violations(shorter):
                continue
            also = f", and {len(pieces)} before it" if pieces else ""
            rewrite = Rewrite(name, shorter, SHORTER, f"without: {piece}{also}")
            if self._is_no_worse(this_round, rewrite, inputs):
                pieces.append(piece)
        return self._without(name, pieces)

    def _is_no_worse(self, this_round: Round, rewrite: Rewrite, inputs: Sequence[RecordedInput]) -> bool:
        """Whether the operation loses no more than the margin on recorded inputs; true if there are none."""
        local, name = self.tuning.local, rewrite.prompt
        if not inputs:
            return True
        measure, weight = partial(local.measure, name), local.objectives[name].weight
        gain = compared(rewrite, self.tuning.champion[name], inputs, measure, weight).gain
        this_round.rewrites[rewrite.key] = RewriteRecord.of(rewrite, local=gain)
        return gain >= -self.margin

    def _without(self, name: str, pieces: Sequence[str]) -> Cut | None:
        shorter = without(self.tuning.champion[name], pieces)
        if not pieces or shorter is None or self.tuning.prompts[name].contract.violations(shorter):
            return None
        reason = f"without {len(pieces)} lines" if len(pieces) > 1 else f"without: {pieces[0]}"
        return Cut((Rewrite(name, shorter, SHORTER, reason),), tuple(pieces))

    def _inputs(self, name: str) -> list[RecordedInput]:
        """Recorded inputs of a prompt's operation on which a text may be measured; none if that tells nothing."""
        local = self.tuning.local
        if name not in local.objectives or not self.tuning.settings.local_objectives:
            return []
        inputs = alternating(local.inputs(name, self.champion), self.tuning.settings.seed)[:INPUTS]
        is_rerun = inputs and local.reruns_as_recorded(name, self.tuning.champion[name], inputs[0])
        return inputs if is_rerun else []

    def _prompts(self) -> list[str]:
        """Names, first of the prompt whose text takes the most tokens over all executions of its operation."""
        champion = self.tuning.champion
        return sorted(self.tuning.prompts, key=lambda name: -self._executions(name) * tokens_of(champion[name]))

    def _executions(self, name: str) -> int:
        """Executions of a prompt's operation for the champion's outcomes."""
        operation = self.tuning.prompts[name].operation
        return sum(len(outcome.graph.find_operations(name=operation)) for outcome in self.champion)


def _why_not_tried(option: Considered, own: Retrieval | None) -> str:
    is_shorter = own is None or option.retrieval is None or option.retrieval.tokens < own.tokens
    return "other cuts come first" if is_shorter else "these are no fewer tokens"


def _halved(parts: tuple[_T, ...]) -> list[tuple[_T, ...]]:
    """Both halves; none of what cannot be halved."""
    middle = len(parts) // 2
    return [parts[:middle], parts[middle:]] if middle else []
