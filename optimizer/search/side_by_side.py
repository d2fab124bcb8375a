"""Several optimizers in one search: each searches on its own from the champion, and what they find races with it.

The race is on the validation conversations, of which no demonstration shows anything, whichever optimizer wrote it.
What an optimizer crowned was evaluated on them, so only the texts of several together cost anything there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from optimizer.evaluation.evaluator import Outcome
from optimizer.evaluation.scores import Setting
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.proposers.rewrites import Rewrite
from optimizer.racing.local_scores import LocalScore
from optimizer.search.joint_choice import Combination
from optimizer.search.race import raced
from optimizer.search.rounds import crown_winner
from optimizer.tuning.round import RewriteRecord, Round, SettingsRecord
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import ChampionUnscoredError, Tuning
from tracing.errors import BudgetExceededError, ShareSpentError


class SideBySide:
    """An `Optimizer` of several, each with an equal share of a limited budget; what one leaves goes to those after it.

    Args:
        searches: name → optimizer, in the order in which they search.
    """

    def __init__(self, searches: Mapping[str, Callable[[Tuning], Stopped]]) -> None:
        self._searches = searches

    def __call__(self, tuning: Tuning, /) -> Stopped:
        reasons: list[str] = []
        tunings: dict[str, Tuning] = {}
        spent: BudgetExceededError | None = None
        for at, (name, search) in enumerate(self._searches.items()):
            tunings[name] = tuning.beside(name)
            try:
                with tuning.share(name, 1 / (len(self._searches) - at)):
                    reason = str(search(tunings[name]))
            except (ShareSpentError, ChampionUnscoredError) as error:
                reason = str(error)
            except BudgetExceededError as error:
                # What was found until now still races: nothing of it has to be evaluated again.
                spent = error
                break
            reasons.append(f"{name}: {reason}")
        _race(tuning, tunings, together=spent is None)
        if spent is not None:
            raise spent
        return Stopped("own", "; ".join(reasons))


def _race(tuning: Tuning, tunings: Mapping[str, Tuning], *, together: bool) -> None:
    """Make the best of what was found the champion, if it passes the gate."""
    champion = tuning.outcomes("validation")
    combinations = {
        name: combination for name, own in tunings.items() if (combination := _best_of(name, own, tuning)) is not None
    }
    if not combinations:
        return
    with tuning.round(tuning.last_round + 1) as this_round:
        phase = f"round {this_round.n}: race of {len(combinations)} optimizers"

        def evaluate(combination: Combination, against: Sequence[Outcome]) -> Sequence[Outcome]:
            conversations = [outcome.conversation for outcome in against]
            return tuning.measure(
                combination.candidate(tuning.champion), conversations, phase, settings=combination.settings
            )

        racing = list(combinations.values())
        joined = _together(racing)
        if together and joined is not None:
            try:
                tuning.allow(len(champion))
                evaluate(joined, champion)
                racing.insert(0, joined)
            except BudgetExceededError:
                pass  # The others race without it.
        ranked = raced(racing, champion, evaluate)
        for combination in reversed(ranked):
            _note(this_round, combination)
        winner = ranked[0]
        if not winner.accepted:
            return
        keys = [scored.rewrite.key for scored in winner.parts.values()]
        crown_winner(tuning, this_round, keys, winner.candidate(tuning.champion), winner.settings)


def _best_of(name: str, own: Tuning, tuning: Tuning) -> Combination | None:
    """What an optimizer made its champion; None if that is the one it began with."""
    texts = {prompt: text for prompt, text in own.champion.items() if text != tuning.champion[prompt]}
    settings = {
        setting: value for setting, value in own.champion_settings.items() if value != tuning.champion_settings[setting]
    }
    if not texts and not settings:
        return None
    parts = {
        prompt: LocalScore(Rewrite(prompt, text, name, f"the best that {name} found"), 0.0, 0.0, 0, {})
        for prompt, text in texts.items()
    }
    return Combination(parts, settings=settings)


def _together(combinations: Sequence[Combination]) -> Combination | None:
    """The texts and settings of all, where they differ those of the first; None if that is one of them."""
    parts: dict[str, LocalScore] = {}
    settings: dict[str, Setting] = {}
    for combination in reversed(combinations):
        parts |= combination.parts
        settings |= combination.settings
    joined = Combination(parts, settings=settings)
    texts = joined.candidate({})
    if any(texts == combination.candidate({}) and settings == combination.settings for combination in combinations):
        return None
    return joined


def _note(this_round: Round, combination: Combination) -> None:
    decision = combination.decision or GateDecision(GateOutcome.OVERTAKEN)
    sources = {scored.rewrite.source for scored in combination.parts.values()}
    if len(sources) > 1:
        decision = replace(decision, about=f"{' and '.join(sorted(sources))} together")
    for scored in combination.parts.values():
        key = scored.rewrite.key
        record = this_round.rewrites.get(key) or RewriteRecord.of(scored.rewrite)
        alone = len(combination.parts) == 1
        screening = combination.gain if alone else record.screening
        this_round.rewrites[key] = replace(record, gate=decision, screening=screening)
    if settings := dict(combination.settings):
        noted = SettingsRecord(settings, tuple(combination.parts), None, None, combination.gain, decision)
        this_round.settings.append(noted)
    this_round.edits(*combination.parts)
