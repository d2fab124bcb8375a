"""The joint choice of one round, end to end: texts of the prompts, and settings of the system with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from attribution.survival.flow import rewrites
from optimizer.objectives.golds import Golds
from optimizer.objectives.retrieval import Retrieval, retrieval_of
from optimizer.racing.joint import MOST, Combination, raced
from optimizer.racing.study import JointStudy, Params
from optimizer.tuning.results import SettingsAttempt

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.evaluation.variants import Setting
    from optimizer.racing.halving import LocalScore
    from optimizer.tuning.iteration import Iteration
    from optimizer.tuning.tuning import Tuning

BEST = 2
"""Values of settings that are tried alone because they retrieve the most; the sampler draws what else is tried."""

CHAMPION = "champion"
"""In a study, the text that the round began with."""


class _Value(NamedTuple):
    """One value of one setting, and what is retrieved under it; None if that could not be measured."""

    name: str
    value: Setting
    found: Retrieval | None


class JointChoice:
    """The races of one round, recorded in a study. A context manager.

    Args:
        tuning: of the run.
        iteration: the round; notes what settings were tried.
        finalists: prompt name → its texts to choose from, best first.
        reference: outcomes of what the round begins with, on all train and validation conversations.
    """

    def __init__(
        self,
        tuning: Tuning,
        iteration: Iteration,
        finalists: Mapping[str, Sequence[LocalScore]],
        reference: Sequence[Outcome],
    ) -> None:
        self._tuning, self._iteration, self._begun = tuning, iteration, dict(tuning.champion)
        self._finalists = {
            prompt: {f"{rank}: {each.arm.source}": each for rank, each in enumerate(scored, start=1)}
            for prompt, scored in finalists.items()
        }
        self._retrieved: dict[tuple[str, Setting], Retrieval] = {}
        self._known: list[Params] = []
        choices: dict[str, Sequence[Setting]] = {
            f"prompt {name}": [CHAMPION, *labels] for name, labels in self._finalists.items()
        }
        now = tuning.champion_settings
        for name, values in tuning.variants.choices.items() if tuning.variants is not None else ():
            choices[f"setting {name}"] = [now[name], *(value for value in values if value != now[name])]
        seed = tuning.seed_of(iteration.n)
        self._study = JointStudy(f"iteration {iteration.n}", tuning.settings.studies, choices, reference, seed)

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
        what = "settings" if any(each.settings for each in combinations) else "joint choice"
        count = len(combinations)
        phase = f"iteration {self._iteration.n}: {what} of {count} combination{'s' * (count != 1)}"

        def evaluate(combination: Combination, against: Sequence[Outcome]) -> Sequence[Outcome]:
            tuning.allow(len(against))
            conversations = [outcome.conversation for outcome in against]
            candidate = combination.candidate(tuning.champion)
            outcomes = tuning.measure(candidate, conversations, phase, settings=combination.settings)
            self._study.report(self._params(combination), outcomes)
            return outcomes

        ranked = raced(combinations, order, evaluate)
        for each in ranked:
            self._study.close(self._params(each), each.decision.reason if each.decision else "another one was ahead")
        return ranked

    def with_settings(self, pool: Sequence[Outcome]) -> list[Combination]:
        """What to race under other settings: values that retrieve the most, alone, and what the sampler draws.

        Settings of which another value retrieves as much in fewer tokens, or more in as few, are not tried.

        Raises:
            BudgetExceededError: a hard budget does not allow an embedding call.
        """
        kept = self._screened(pool)
        left = {(each.name, each.value) for each in kept}
        found = [Combination({}, settings={each.name: each.value}) for each in kept if each.found is not None][:BEST]
        for params in self._study.drawn([self._params(each) for each in found]):
            drawn = self._combination(params)
            if len(found) < MOST and drawn is not None and drawn.settings and left.issuperset(drawn.settings.items()):
                found.append(drawn)
        return found

    def note(self, combination: Combination) -> None:
        """Note how far a combination with other settings got; it comes last among the settings tried."""
        said = combination.decision.reason if combination.decision is not None else None
        attempt = self._attempt(combination.settings, said, combination.gain, tuple(combination.parts))
        self._iteration.settings.append(attempt)
        if combination.decision is not None and combination.decision.accepted:
            under = ", ".join(f"{name} {value}" for name, value in combination.settings.items())
            for scored in combination.parts.values():
                known = self._iteration.attempts[scored.arm.text]
                self._iteration.attempts[scored.arm.text] = replace(known, gate=f"with {under}: {said}")

    def _screened(self, pool: Sequence[Outcome]) -> list[_Value]:
        """The values to try, best first; of the others it is noted why not."""
        kept: list[_Value] = []
        for name, values in self._tuning.variants.choices.items() if self._tuning.variants is not None else ():
            now = self._tuning.champion_settings[name]
            measured = {value: self._retrieval(name, value, pool) for value in values}
            for value in values:
                found = measured[value]
                better = next((v for v, other in measured.items() if found and other and found.beaten_by(other)), None)
                if value == now:
                    continue
                if better is not None:
                    why = f"not tried: with {better} as much is retrieved in fewer tokens, or more in as few"
                    self._iteration.settings.append(self._attempt({name: value}, why))
                else:
                    kept.append(_Value(name, value, found))
        return sorted(kept, key=lambda each: (each.found is None, *_rank(each.found)))

    def _retrieval(self, name: str, value: Setting, pool: Sequence[Outcome]) -> Retrieval | None:
        tuning, variants = self._tuning, self._tuning.variants
        if variants is None:
            return None
        settings = tuning.champion_settings
        evaluator = variants.under({**settings, name: value})
        golds = Golds(verbatim=not rewrites(evaluator.system.operations))
        conversations = [outcome.conversation for outcome in pool]
        found = retrieval_of(evaluator, variants.under(settings), tuning.champion, conversations, golds)
        if found is not None:
            self._retrieved[name, value] = found
        return found

    def _attempt(
        self,
        settings: Mapping[str, Setting],
        gate: str | None,
        gain: float | None = None,
        prompts: tuple[str, ...] = (),
    ) -> SettingsAttempt:
        alone = next(iter(settings.items())) if len(settings) == 1 else None
        found = self._retrieved.get(alone) if alone is not None else None
        recall, tokens = (found.recall, found.tokens) if found is not None else (None, None)
        return SettingsAttempt(dict(settings), prompts, recall, tokens, gain, gate)

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
        return next(label for label, each in self._finalists[prompt].items() if each.arm.text == text)


def _rank(found: Retrieval | None) -> tuple[float, float]:
    return (0.0, 0.0) if found is None else (-found.recall, found.tokens)
