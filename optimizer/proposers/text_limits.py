"""What holds for every text of a run beyond its prompt's own contract: a length, pinned lines, and nothing of train."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from attribution.text.content import time_words
from attribution.text.tokens import contains, words
from optimizer.proposers.template import take_apart
from tracing.errors import ConfigError
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import PromptSpec, tokens_of

LEAST_TOKENS, TIMES_SEED = 1500, 2
"""Tokens that a text may have by default: those of whole demonstrations, or twice the seed's if that is more."""

COMMON_IN = 2
"""A word that is said in more train conversations than this is a common one; so is any in more than a fifth."""


@dataclass(frozen=True, slots=True)
class TextLimits:
    """What users ask of every text.

    Attributes:
        max_tokens: most tokens of a text, estimated; None for the default of its seed.
        pinned: prompt name → lines that no rewrite may change.
    """

    max_tokens: int | None = None
    pinned: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def check(self, specs: Mapping[str, PromptSpec]) -> None:
        """Refuse limits that the seed prompts do not keep.

        Raises:
            ConfigError: names the key and the prompt.
        """
        for name, lines in self.pinned.items():
            if name not in specs:
                raise ConfigError(f"prompts.pinned: there is no prompt {name!r}; known: {', '.join(specs)}")
            for line in lines:
                if line not in specs[name].text.splitlines():
                    raise ConfigError(
                        f"prompts.pinned: {line!r} is no line of the seed's prompt {name!r}; give a whole line of it"
                    )
        for name, spec in specs.items():
            if self.max_tokens is not None and tokens_of(spec.text) > self.max_tokens:
                raise ConfigError(
                    f"prompts.max_tokens: the seed's prompt {name!r} has about {tokens_of(spec.text)} tokens; "
                    "allow at least as many"
                )

    def applied(self, specs: Mapping[str, PromptSpec], train: Sequence[Conversation]) -> dict[str, PromptSpec]:
        """The prompts with these limits in their contracts; what is in the seed texts may stand in any other too."""
        seeds = "\n".join(spec.text for spec in specs.values())
        values = train_values(train, seeds)

        def limited(spec: PromptSpec) -> PromptSpec:
            most = self.max_tokens or max(LEAST_TOKENS, TIMES_SEED * tokens_of(spec.text))
            pinned = tuple(self.pinned.get(spec.name, ()))
            contract = replace(spec.contract, max_tokens=most, pinned=pinned, rules=(TrainValuesStayOut(values),))
            return replace(spec, contract=contract)

        return {name: limited(spec) for name, spec in specs.items()}


@dataclass(frozen=True, slots=True)
class TrainValuesStayOut:
    """A rule: no value of the train conversations stands in a text, except in its demonstrations."""

    values: tuple[str, ...]

    def __call__(self, text: str) -> list[str]:
        try:
            parts = take_apart(text)
        except ValueError:
            return []  # The contract refuses its braces.
        told = replace(parts, demonstrations=()).text
        return [f"{value!r} is a value of the train conversations" for value in self.values if contains(told, value)]


def train_values(train: Sequence[Conversation], seeds: str) -> tuple[str, ...]:
    """Speakers' names, accepted answers and former values that would give a conversation away.

    A value of common words or times alone is left out, such as "two weeks" or "Saturday", and so is what the seed texts
    say.
    """
    said = Counter(word for each in train for word in {word for turn in each.turns() for word in words(turn.spoken)})
    few = max(COMMON_IN, len(train) // 5)

    def telling(value: str) -> bool:
        own = set(words(value)) - set(words(" ".join(time_words(value))))
        return any(_means(word) and said[word] <= few for word in own)

    found: dict[str, None] = {}
    for conversation in train:
        for question in conversation.questions:
            near = [question.near_miss.value] if question.near_miss is not None else []
            found |= dict.fromkeys(value for value in (*question.answers, *near) if telling(value))
        found |= dict.fromkeys(conversation.speakers)
    unknown = {"unknown", "not known", "no longer known"}
    return tuple(value for value in found if value.casefold() not in unknown and not contains(seeds, value))


def _means(word: str) -> bool:
    """Whether a word is long enough to mean something outside its conversation; "2" and "is" are not."""
    return len(word) > 2 or not word.isascii()
