"""Other settings of the system, compared by what is retrieved under them, before a chat model is asked anything.

Settings depend on each other: smaller chunks pay if more of them are retrieved. So their combinations are compared.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from attribution.survival.flow import rewrites
from optimizer.evaluation.scores import settings_text
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.objectives.objectives import Golds
from optimizer.objectives.retrieval import retrieval_of
from optimizer.tuning.round import SettingsRecord
from tracing.errors import ConfigError, MemorySystemError

if TYPE_CHECKING:
    from optimizer.evaluation.scores import Setting, Settings
    from optimizer.evaluation.variants import Variants
    from optimizer.objectives.retrieval import Retrieval
    from optimizer.tuning.tuning import Champion
    from tracing.systems.conversations import Conversation

MOST_COMBINED = 48
"""Combinations of values that are all compared; where there are more, the values of each setting alone are."""

ENOUGH_QUESTIONS = 200
"""Questions after which no further conversation is asked about, since each option takes time. A choice."""

NOTHING_NEEDED = "no question names evidence turns and no turn states an answer, so nothing tells what retrieves more"
UNSEEN = (
    "what answers are given cannot be seen: the system asks a model before it retrieves or a client of its own, or "
    "records no context"
)


class Considered(NamedTuple):
    """Values that differ from the champion's.

    Attributes:
        settings: name → value.
        retrieval: what is retrieved under them; None if that cannot be measured.
        refused: why they are not tried; None if they may be.
    """

    settings: Settings
    retrieval: Retrieval | None
    refused: str | None = None

    def record(self, gate: GateDecision | None, gain: float | None = None) -> SettingsRecord:
        """What a round notes of them; `gate` and `gain` as there."""
        recall, tokens = (self.retrieval.recall, self.retrieval.tokens) if self.retrieval else (None, None)
        return SettingsRecord(dict(self.settings), (), recall, tokens, gain, gate)

    def not_tried(self, reason: str = "others promise more") -> SettingsRecord:
        """What a round notes of them where they meet no conversation."""
        return self.record(GateDecision(GateOutcome.NOT_TRIED, self.refused or f"{self.retrieval}, and {reason}"))


def considered_settings(
    variants: Variants,
    champion: Champion,
    conversations: Sequence[Conversation],
    step: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Retrieval | None, list[Considered]]:
    """What is retrieved under the champion's settings, and others, the most promising first, the refused ones last.

    What is retrieved under them is worth more the more of what questions need is in it, and less the longer it is.
    Refused are those whose retrieval is worth less than the champion's, is matched in no more tokens by a better
    option or by fewer changes, or cannot be measured, and those that the system does not take together. Where what is
    retrieved under the champion's settings cannot be measured, all are. The embedding calls for that do not count among
    those of the search.

    Args:
        variants: the system under other settings.
        champion: its texts, and its values of the settings.
        conversations: whose questions are asked, as many as are enough.
        step: told how many options are measured, and of how many.

    Raises:
        BudgetExceededError: a hard budget does not allow an embedding call.
    """
    texts, now = champion
    recorded = variants.under(now)
    golds = Golds(verbatim=not rewrites(recorded.system.operations))
    asked = _enough(conversations)

    def measured(settings: Settings) -> Considered:
        try:
            evaluator = variants.under({**now, **settings})
            with recorded.access.budget.beside_parts():
                retrieval = retrieval_of(evaluator, recorded, texts, asked, golds)
        except (ConfigError, MemorySystemError) as error:
            return Considered(settings, None, str(error))
        return Considered(settings, retrieval, None if retrieval else UNSEEN)

    own = measured({}).retrieval
    options: list[Considered] = []
    combinations = _combinations(variants.choices, now)
    if own is None:
        needed = any(gold.needs for conversation in asked for gold in golds.of(conversation))
        reason = UNSEEN if needed else NOTHING_NEEDED
        return None, [Considered(settings, None, reason) for settings in combinations]
    for count, settings in enumerate(combinations):
        step(count, len(combinations))
        options.append(measured(settings))
    step(len(combinations), len(combinations))
    options.sort(key=lambda option: -option.retrieval.worth if option.retrieval else math.inf)
    return own, sorted(_compared(options, own), key=lambda option: option.refused is not None)


def silent(own: Retrieval, considered: Sequence[Considered]) -> list[Considered]:
    """The values, each alone, of settings that change nothing of what is retrieved, whatever the others are.

    They change what is built or replied, which whole conversations tell.
    """
    known = {frozenset(option.settings.items()): option.retrieval for option in considered} | {frozenset(): own}
    alone: list[Considered] = []
    for name in dict.fromkeys(name for option in considered for name in option.settings):
        options = [option for option in considered if name in option.settings and option.retrieval]
        others = [frozenset(option.settings.items()) - {(name, option.settings[name])} for option in options]
        if all(option.retrieval == known.get(rest) for option, rest in zip(options, others, strict=True)):
            alone += [option for option, rest in zip(options, others, strict=True) if not rest]
    return alone


def _enough(conversations: Sequence[Conversation]) -> Sequence[Conversation]:
    """The first in an order of chance, until their questions are enough."""
    asked: list[Conversation] = []
    questions = 0
    for conversation in random.Random(0).sample(conversations, len(conversations)):  # noqa: S311 (no secret)
        if questions >= ENOUGH_QUESTIONS:
            break
        asked.append(conversation)
        questions += len(conversation.questions)
    return asked


def _combinations(choices: Mapping[str, Sequence[Setting]], now: Settings) -> list[Settings]:
    """What differs from the champion's, the fewest changes first."""
    if math.prod(map(len, choices.values())) <= MOST_COMBINED:
        all_values = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    else:
        all_values = [{**now, name: value} for name, values in choices.items() for value in values]
    changed = ({name: value for name, value in values.items() if value != now[name]} for values in all_values)
    return sorted(filter(None, changed), key=len)


def _compared(options: Sequence[Considered], own: Retrieval) -> Iterator[Considered]:
    """The options, where those that promise less than the champion's settings or no more than a better are refused."""
    better: list[tuple[Retrieval, Settings]] = []
    for option in options:
        retrieval = option.retrieval
        if retrieval is None:
            yield option
            continue
        rival = next((settings for known, settings in better if known.covers(retrieval)), None)
        if retrieval.worth < own.worth:
            yield option._replace(refused=f"{retrieval}, and {own} as it is")
        elif rival is not None:
            yield option._replace(refused=f"with {settings_text(rival)} as much is retrieved in no more tokens")
        else:
            better.append((retrieval, option.settings))
            yield option
