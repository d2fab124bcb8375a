"""What holds for every text of a run beyond its prompt's own contract: length, pinned lines, no train data, no key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from attribution.text.content import time_words
from attribution.text.languages.language_data import Tongue
from attribution.text.languages.reading_language import language_of, reading
from attribution.text.names import has_capital, is_word, written_as_name
from attribution.text.phrases import is_unknowable
from attribution.text.question_kinds import asks_a_name
from attribution.text.tokens import contains, words
from optimizer.proposers.template import take_apart
from tracing.errors import ConfigError
from tracing.recording.redaction import redact, without
from tracing.suggestions import unknown_names
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import PromptSpec, tokens_of

LEAST_TOKENS, TIMES_BASELINE = 1500, 2
"""Tokens that a text may have by default: those of whole demonstrations, or twice the baseline's if that is more."""

COMMON_IN = 2
"""A word that is said in more train conversations than this is a common one; so is any in more than a fifth."""

ROLES = frozenset({"user", "assistant", "human", "ai", "system"})
"""Speakers that are called by their part in a conversation, and so alike in any other."""

QUOTED_WORDS = 6
"""Words of a piece of speech by which a quotation is known: any eleven in a row hold a whole piece."""


@dataclass(frozen=True, slots=True)
class TextLimits:
    """What users ask of every text.

    Attributes:
        max_tokens: most tokens of a text, estimated; None for the default of its baseline.
        pinned: prompt name → lines that no rewrite may change.
    """

    max_tokens: int | None = None
    pinned: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def check(self, specs: Mapping[str, PromptSpec]) -> None:
        """Refuse, in a `ConfigError`, limits that the baseline prompts do not keep."""
        if unknown := self.pinned.keys() - specs.keys():
            raise ConfigError(
                f"prompts.pinned: there is no prompt {unknown_names(sorted(unknown), specs)}; known: {', '.join(specs)}"
            )
        for name, lines in self.pinned.items():
            for line in lines:
                if line not in specs[name].text.splitlines():
                    raise ConfigError(
                        f"prompts.pinned: {line!r} is not a line of the baseline's prompt {name!r}; "
                        "give a whole line of it"
                    )
        for name, spec in specs.items():
            if self.max_tokens is not None and tokens_of(spec.text) > self.max_tokens:
                raise ConfigError(
                    f"prompts.max_tokens: the baseline's prompt {name!r} has about {tokens_of(spec.text)} tokens; "
                    "allow at least as many"
                )

    def applied(
        self, specs: Mapping[str, PromptSpec], train: Sequence[Conversation], keys: Sequence[str | None] = ()
    ) -> dict[str, PromptSpec]:
        """The prompts with these limits in their contracts; what is in the baseline's texts may stand in any other too.

        Proposers learn from `train`. Those who write texts know the `keys`, which are of the run's models.
        """
        baseline = "\n".join(spec.text for spec in specs.values())
        checks: Sequence[Callable[[str], Sequence[str]]] = (
            TrainValuesStayOut(train_values(train, baseline), word_names(train), speakers_of(train)),
            TrainSpeechStaysOut(train_pieces(train, baseline)),
            CredentialsStayOut(frozenset(baseline.splitlines()), tuple(keys)),
        )
        # A text is checked again with every candidate that has it.
        rules = tuple(cache(check) for check in checks)

        def with_limits(spec: PromptSpec) -> PromptSpec:
            most = self.max_tokens or max(LEAST_TOKENS, TIMES_BASELINE * tokens_of(spec.text))
            own = spec.contract
            most = most if own.max_tokens is None else min(most, own.max_tokens)
            pinned = tuple(dict.fromkeys((*own.pinned, *self.pinned.get(spec.name, ()))))
            contract = replace(own, max_tokens=most, pinned=pinned, rules=(*own.rules, *rules))
            return replace(spec, contract=contract)

        return {name: with_limits(spec) for name, spec in specs.items()}


@dataclass(frozen=True, slots=True)
class TrainValuesStayOut:
    """A rule: no value of the train conversations stands in a text, except in its demonstrations.

    Attributes:
        values: as they are annotated, each with the language of its conversation.
        word_names: those of them that are people's names and common words, too, which count where they are written as
            names.
        speakers: names of those who speak, which count where they have a capital.
    """

    values: Mapping[str, Tongue]
    word_names: frozenset[str]
    speakers: frozenset[str]

    def __call__(self, text: str) -> list[str]:
        own_text = _outside_demonstrations(text)
        tells = [
            value
            for value, tongue in self.values.items()
            if _contains_value(own_text, value, tongue, self.word_names, self.speakers)
        ]
        return [f"{value!r} is a value of the train conversations" for value in tells]


@dataclass(frozen=True, slots=True)
class TrainSpeechStaysOut:
    """A rule: no text quotes what is said in a train conversation, except in its demonstrations."""

    pieces: frozenset[tuple[str, ...]]

    def __call__(self, text: str) -> list[str]:
        own_words = words(_outside_demonstrations(text))
        for start in range(len(own_words) - QUOTED_WORDS + 1):
            piece = tuple(own_words[start : start + QUOTED_WORDS])
            if piece in self.pieces:
                return [f"{' '.join(piece)!r} is said in a train conversation"]
        return []


@dataclass(frozen=True, slots=True)
class CredentialsStayOut:
    """A rule: no text has a credential in it, demonstrations included. Lines of the baseline's texts are not looked at.

    Attributes:
        baseline: those lines.
        keys: known keys, refused in whatever form.
    """

    baseline: frozenset[str]
    keys: tuple[str | None, ...] = field(repr=False)

    def __call__(self, text: str) -> list[str]:
        own_lines = "\n".join(line for line in text.splitlines() if line not in self.baseline)
        return ["a credential stands in the text"] if without(redact(own_lines), *self.keys) != own_lines else []


def _contains_value(
    text: str, value: str, tongue: Tongue, word_names: frozenset[str], speakers: frozenset[str]
) -> bool:
    if value in word_names:
        return written_as_name(text, value)
    with reading(tongue):
        return contains(text, value) and (value not in speakers or has_capital(text, value))


def _outside_demonstrations(text: str) -> str:
    """What a text says itself; nothing where its braces are broken, which the contract refuses."""
    try:
        return replace(take_apart(text), demonstrations=()).text
    except ValueError:
        return ""


def train_pieces(train: Sequence[Conversation], baseline: str) -> frozenset[tuple[str, ...]]:
    """What turns say, in pieces of `QUOTED_WORDS` words; those of common words, and of the baseline, are left out."""
    rare = _rare_words(train)
    pieces: set[tuple[str, ...]] = set()
    for conversation in train:
        for turn in conversation.turns():
            turn_words = words(turn.text)
            turn_pieces = zip(*[iter(turn_words)] * QUOTED_WORDS, strict=False)
            pieces.update(piece for piece in turn_pieces if any(_has_meaning(word) and rare(word) for word in piece))
    baseline_words = words(baseline)
    return frozenset(pieces - set(zip(*(baseline_words[start:] for start in range(QUOTED_WORDS)), strict=False)))


def train_values(train: Sequence[Conversation], baseline: str) -> dict[str, Tongue]:
    """Speakers' names, accepted answers and former values that would give a conversation away, with its language.

    A value of common words or times alone is left out, such as "two weeks" or "Saturday", and so are the speakers of
    many conversations, roles such as "user", answers that nothing is known, and what the baseline's texts say.
    """
    rare = _rare_words(train)

    def telling(value: str) -> bool:
        own = set(words(value)) - set(words(" ".join(time_words(value))))
        return any(_has_meaning(word) and rare(word) for word in own)

    values: dict[str, Tongue] = {}
    for conversation in train:
        tongue = language_of(turn.text for turn in conversation.turns())
        for question in conversation.questions:
            near = [question.near_miss.value] if question.near_miss is not None else []
            accepted = () if is_unknowable(question) else question.answers
            values |= dict.fromkeys((value for value in (*accepted, *near) if telling(value)), tongue)
        names = (name for name in conversation.speakers if any(map(rare, {*words(name)} - ROLES)))
        values |= dict.fromkeys(names, tongue)
    common, speakers = word_names(train), speakers_of(train)
    return {
        value: tongue
        for value, tongue in values.items()
        if not _contains_value(baseline, value, tongue, common, speakers)
    }


def speakers_of(train: Sequence[Conversation]) -> frozenset[str]:
    """The names of speakers that are single words with a capital: any may be a common word, too, in some language."""
    names = (name for conversation in train for name in conversation.speakers)
    return frozenset(name for name in names if name[:1].isupper() and name.isalpha())


def word_names(train: Sequence[Conversation]) -> frozenset[str]:
    """Names of speakers, and of people and places that were asked for, that are common words: Will, Mark, Rose."""
    questions = [question for conversation in train for question in conversation.questions if asks_a_name(question)]
    near = (question.near_miss.value for question in questions if question.near_miss is not None)
    speakers = (name for conversation in train for name in conversation.speakers)
    accepted = (answer for question in questions for answer in question.answers)
    return frozenset(name for name in (*speakers, *accepted, *near) if name[:1].isupper() and is_word(name))


def _rare_words(train: Sequence[Conversation]) -> Callable[[str], bool]:
    """Tells whether a word is said in few train conversations; speakers' names count as said."""
    counts = Counter(
        word
        for conversation in train
        for word in {word for turn in conversation.turns() for word in words(turn.spoken)}
    )
    few = max(COMMON_IN, len(train) // 5)
    return lambda word: counts[word] <= few


def _has_meaning(word: str) -> bool:
    """Whether a word is long enough to mean something outside its conversation; "2" and "is" are not."""
    return len(word) > 2 or not word.isascii()
