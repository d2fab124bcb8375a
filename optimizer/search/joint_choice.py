"""The joint choice of one round, end to end: texts of the prompts, and settings of the system with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from optimizer.gating.decision import GateDecision, GateOutcome
from optimizer.racing.joint import MOST, Combination, raced
from optimizer.racing.study import JointStudy, Params
from optimizer.search.retrieved_settings import RetrievedSettings, settings_text
from optimizer.tuning.results import SettingsRecord

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.evaluation.scores import Setting
    from optimizer.evaluation.variants import Variants
    from optimizer.racing.halving import LocalScore
    from optimizer.tuning.round import Round
    from optimizer.tuning.tuning import Tuning

BEST = 2
"""Settings that are tried because of what they retrieve; the sampler draws what else is tried."""

CHAMPION = "champion"
"""In a study, the text that the round began with."""


class JointChoice:
    """The races of one round, recorded in a study. A context manager.

    Args:
        tuning: of the run.
        this_round: notes what settings were tried.
        finalists: prompt name → its texts to choose from, best first.
        reference: outcomes of what the round begins with, on all train and validation conversations.
    """

    def __init__(
        self,
        tuning: Tuning,
        this_round: Round,
        finalists: Mapping[str, Sequence[LocalScore]],
        reference: Sequence[Outcome],
    ) -> None:
        self._tuning, self._round, self._begun = tuning, this_round, dict(tuning.champion)
        self._finalists = {
            prompt: {
                f"{rank}: {local_score.rewrite.source}": local_score for rank, local_score in enumerate(scored, start=1)
            }
            for prompt, scored in finalists.items()
        }
        self._considered: RetrievedSettings | None = None
        choices: dict[str, Sequence[Setting]] = {
            f"prompt {name}": [CHAMPION, *labels] for name, labels in self._finalists.items()
        }
        now = tuning.champion_settings
        for name, values in tuning.variants.choices.items() if tuning.variants is not None else ():
            choices[f"setting {name}"] = [now[name], *(value for value in values if value != now[name])]
        seed = tuning.seed_of(this_round.n)
        self._study = JointStudy(f"round {this_round.n}", tuning.settings.studies, choices, reference, seed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._study.end()

    def raced(self, combinations: Sequence[Combination], order: Sequence[Outcome]) -> list[Combination]:
        """Race combinations with the champion, as `optimizer.racing.joint.raced`.

        Raises:
            BudgetExceededError: a hard budget does not allow the next evaluation.
            RunError: the study cannot be written.
        """
        tuning = self._tuning
        what = "settings" if any(combination.settings for combination in combinations) else "joint choice"
        count = len(combinations)
        phase = f"round {self._round.n}: {what} of {count} combination{'s' * (count != 1)}"

        def evaluate(combination: Combination, against: Sequence[Outcome]) -> Sequence[Outcome]:
            tuning.allow(len(against))
            conversations = [outcome.conversation for outcome in against]
            candidate = combination.candidate(tuning.champion)
            outcomes = tuning.measure(candidate, conversations, phase, settings=combination.settings)
            self._study.report(self._params(combination), outcomes)
            return outcomes

        ranked = raced(combinations, order, evaluate)
        for combination in ranked:
            self._study.close(self._params(combination), str(combination.decision or GateOutcome.OVERTAKEN))
        return ranked

    def with_settings(self, variants: Variants, pool: Sequence[Outcome]) -> list[Combination]:
        """What to race under other settings: the most promising by what they retrieve, and what the sampler draws.

        Args:
            variants: the system under other settings.
            pool: the champion's outcomes on the conversations whose questions are asked.

        Raises:
            BudgetExceededError: a hard budget does not allow an embedding call.
        """
        phase = f"round {self._round.n}: what other settings retrieve"
        self._considered = considered = RetrievedSettings(self._tuning, variants, phase, pool)
        for option in considered.considered:
            if option.refused is not None:
                self._round.settings.append(
                    self._record(option.settings, GateDecision(GateOutcome.NOT_TRIED, option.refused))
                )
        combinations = [Combination({}, settings=settings) for settings in considered.best(BEST)]
        for params in self._study.drawn([self._params(combination) for combination in combinations]):
            drawn = self._combination(params)
            if len(combinations) < MOST and drawn is not None and drawn.settings and considered.allows(drawn.settings):
                combinations.append(drawn)
        return combinations

    def note(self, combination: Combination) -> None:
        """Note how far a combination with other settings got; it comes last among the settings tried."""
        decision = combination.decision
        record = self._record(combination.settings, decision, combination.gain, tuple(combination.parts))
        self._round.settings.append(record)
        if decision is not None and decision.accepted:
            gate = replace(decision, about=f"with {settings_text(combination.settings)}")
            for scored in combination.parts.values():
                before = self._round.rewrites[scored.rewrite.text]
                self._round.rewrites[scored.rewrite.text] = replace(before, gate=gate)

    def _record(
        self,
        settings: Mapping[str, Setting],
        gate: GateDecision | None,
        gain: float | None = None,
        prompts: tuple[str, ...] = (),
    ) -> SettingsRecord:
        retrieval = self._considered.retrieval_under(settings) if self._considered is not None else None
        recall, tokens = (retrieval.recall, retrieval.tokens) if retrieval is not None else (None, None)
        return SettingsRecord(dict(settings), prompts, recall, tokens, gain, gate)

    def _params(self, combination: Combination) -> Params:
        texts = combination.candidate(self._tuning.champion)
        params: dict[str, Setting] = {f"prompt {name}": self._label(name, texts[name]) for name in self._finalists}
        settings = {**self._tuning.champion_settings, **combination.settings}
        return params | {f"setting {name}": value for name, value in settings.items()}

    def _combination(self, params: Params) -> Combination | None:
        """The combination of these parameters; None if it goes back to a text that lost in this round."""
        champion = self._tuning.champion
        parts: dict[str, LocalScore] = {}
        for name, labels in self._finalists.items():
            label = params[f"prompt {name}"]
            if label == self._label(name, champion[name]):
                continue
            if label == CHAMPION:
                return None
            parts[name] = labels[str(label)]
        now = self._tuning.champion_settings
        changed = {name: params[f"setting {name}"] for name, value in now.items() if params[f"setting {name}"] != value}
        return Combination(parts, settings=changed)

    def _label(self, prompt: str, text: str) -> str:
        if text == self._begun[prompt]:
            return CHAMPION
        return next(label for label, local_score in self._finalists[prompt].items() if local_score.rewrite.text == text)
