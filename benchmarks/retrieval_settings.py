"""How much of the annotated evidence RAG retrieves, with its own settings and with those chosen by what is retrieved.

Settings are chosen on some conversations and measured on others. The choice goes by what questions need, as attribution
sees it; what is measured is whether the annotated turns themselves are in the context.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

from experiments.data.loaders import load_dataset
from experiments.running.parts import choices_of, configured_system, evaluator_of
from experiments.runs.config import RunConfig
from optimizer.evaluation.evaluator import Evaluator
from optimizer.evaluation.scores import Interval, Settings
from optimizer.evaluation.statistics import difference_interval
from optimizer.evaluation.variants import Variants
from optimizer.objectives.retrieval import retrieved_by
from optimizer.search.retrieved_settings import considered_settings
from tracing.errors import ConfigError
from tracing.llm.access import ModelAccess
from tracing.suggestions import unknown_names
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate, baseline_candidate, tokens_of


@dataclass(frozen=True, slots=True)
class Found:
    """What is retrieved for the questions of some conversations.

    Attributes:
        questions: those with annotated evidence.
        recall: share of the annotated turns that are retrieved, mean over the questions of a conversation.
        tokens: of what is retrieved for a question, mean.
    """

    questions: int
    recall: float
    tokens: float


@dataclass(frozen=True, slots=True)
class Choice:
    """Settings chosen on some conversations, and what is retrieved under them on others.

    Attributes:
        settings: what was chosen; empty for the system's own.
        compared: other settings that were compared.
        cpu_seconds: of the choice.
        own, chosen: by conversation, under the system's own settings and the chosen ones.
    """

    settings: Settings
    compared: int
    cpu_seconds: float
    own: Mapping[str, Found]
    chosen: Mapping[str, Found]

    @property
    def gain(self) -> float:
        """Difference in recall, mean over conversations."""
        return fmean(self._differences)

    @property
    def interval(self) -> Interval | None:
        """Its 95 % interval; None for a single conversation."""
        return difference_interval(self._differences, sum(found.questions for found in self.own.values()))

    @property
    def tokens_saved(self) -> float:
        """Share of what is read under the system's own settings, mean over conversations."""
        return 1 - fmean(found.tokens for found in self.chosen.values()) / fmean(
            found.tokens for found in self.own.values()
        )

    @property
    def _differences(self) -> list[float]:
        return [self.chosen[name].recall - found.recall for name, found in self.own.items()]


def parted(config: RunConfig, learn: str | None) -> tuple[list[Conversation], list[Conversation]]:
    """The conversations to choose on, and those that are held out.

    Args:
        config: of the data.
        learn: names of the first, with commas; None for train and test.

    Raises:
        ConfigError: there is no such conversation, or no other one.
    """
    splits = load_dataset(config).splits
    if learn is None:
        return list(splits.train), list(splits.test)
    conversations = {conversation.id: conversation for group in splits.named().values() for conversation in group}
    names = learn.split(",")
    if unknown := [name for name in names if name not in conversations]:
        raise ConfigError(
            f"--learn: there is no conversation {unknown_names(unknown, conversations)}; choose from "
            f"{', '.join(conversations)}"
        )
    held_out = [conversation for name, conversation in conversations.items() if name not in names]
    if not held_out:
        raise ConfigError("--learn: no conversation is left to be held out; name fewer")
    return [conversations[name] for name in names], held_out


def choose_and_measure(
    config: RunConfig,
    access: ModelAccess,
    home: Path,
    learned_from: Sequence[Conversation],
    held_out: Sequence[Conversation],
    step: Callable[[int, int], None],
) -> Choice:
    """Choose settings by what is retrieved on some conversations, and measure them on others, without a chat model."""
    system = configured_system(config)
    own = evaluator_of(config, system, access, home)
    variants = Variants(own, choices_of(config, system), partial(configured_system, config))
    texts = baseline_candidate(system.prompts)
    began = time.process_time()
    _, considered = considered_settings(variants, (texts, variants.own), learned_from, step)
    seconds = time.process_time() - began
    settings = next((option.settings for option in considered if option.refused is None), {})
    under = variants.under({**variants.own, **settings})
    found = [
        {conversation.id: _found(evaluator, own, texts, conversation) for conversation in held_out}
        for evaluator in (own, under)
    ]
    return Choice(settings, len(considered), seconds, *found)


def _found(evaluator: Evaluator, recorded: Evaluator, texts: Candidate, conversation: Conversation) -> Found:
    turns = {turn.id: turn.text for turn in conversation.turns()}
    contexts = retrieved_by(evaluator, recorded, texts, conversation)
    recalls: list[float] = []
    for question in conversation.questions:
        evidence = [turns[turn] for turn in question.evidence if turn in turns]
        if evidence:
            recalls.append(fmean(any(text in piece for piece in contexts[question.id]) for text in evidence))
    tokens = fmean(sum(map(tokens_of, context)) for context in contexts.values())
    return Found(len(recalls), fmean(recalls), tokens)
