"""Rewrites for a prompt: what a proposer gets, what it returns, and the contract gate every rewrite passes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from optimizer.proposers.examples import Example
from tracing.errors import MemtuneError, RunError, in_one_line
from tracing.plugins import PluginRegistry
from tracing.recording.redaction import excerpt

if TYPE_CHECKING:
    from attribution.signals import Signal
    from optimizer.evaluation.evaluator import Evaluator
    from tracing.llm.models import ChatModel
    from tracing.systems.conversations import Conversation
    from tracing.systems.prompts import Candidate, PromptSpec
    from tracing.systems.protocol import Stage

HAND = "hand"
"""The source of rewrites that people wrote."""

ANOTHER_TEXT = "another whole text for the task"
"""The reason of a rewrite that is one of the prompt's alternatives."""

PROPOSERS = PluginRegistry(
    "proposers",
    "proposers",
    {name: f"optimizer.proposers.{name}:{name}" for name in ("bank", "demonstrations", "structure", "reflection")},
)


@dataclass(frozen=True, slots=True)
class EarlierText:
    """A text tried before, with what the local objective said of it on recorded inputs of its prompt's operation.

    Attributes:
        text: the text.
        score: mean credit, 0 to 1.
        champion: that of the champion of the time on the same inputs.
    """

    text: str
    score: float
    champion: float

    @property
    def gain(self) -> float:
        """What it gained over that champion: comparable, whatever inputs it met."""
        return self.score - self.champion


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """A proposer's input.

    Attributes:
        prompt: the prompt to rewrite; `text` is its current text.
        stage: what its operation does with information.
        candidate: the champion's texts of all prompts.
        signal: the signal of its operation; None if nothing blames it.
        failed: executions blamed for a wrong answer (train conversations only).
        passed: executions behind right answers (train conversations only).
        count: maximum number of rewrites.
        seed: of every random choice.
        tried: texts already tried.
        earlier: those of them that were measured on recorded inputs, with their scores.
    """

    prompt: PromptSpec
    stage: Stage
    text: str
    candidate: Candidate
    signal: Signal | None
    failed: tuple[Example, ...]
    passed: tuple[Example, ...]
    count: int
    seed: int
    tried: frozenset[str] = frozenset()
    earlier: tuple[EarlierText, ...] = ()


@dataclass(frozen=True, slots=True)
class Demonstration:
    """An example of an operation done right.

    Attributes:
        inputs: placeholder name → text.
        reply: what the operation should reply.
        conversation: id of the one whose content it shows.
        kind: the kind of case it shows, so that a set has different ones; empty for a recorded input shown whole.
        question: id of the question that proves it; empty for a recorded input shown whole.
    """

    inputs: tuple[tuple[str, str], ...]
    reply: str
    conversation: str
    kind: str = ""
    question: str = ""

    @property
    def values(self) -> dict[str, str]:
        """Placeholder name → text."""
        return dict(self.inputs)

    @property
    def length(self) -> int:
        """In characters."""
        return sum(len(value) for value in self.values.values()) + len(self.reply)

    @property
    def tokens(self) -> int:
        """Its length in tokens, estimated."""
        return self.length // 4


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One text for a prompt, which a proposer gives and races compare.

    Attributes:
        prompt: its name.
        text: the text.
        source: name of the proposer; `HAND` if people wrote it.
        reason: what was changed, in one line.
        demonstrations: recorded inputs that the text shows whole, where that is known.

    Example:
        >>> rewrite = Rewrite("answer", "Answer {question} in one word.", "polite", "a shorter reply")
        >>> rewrite.source
        'polite'
    """

    prompt: str
    text: str
    source: str
    reason: str
    demonstrations: tuple[Demonstration, ...] = ()

    @property
    def key(self) -> str:
        """What a round knows it by; two prompts may have the same text."""
        return f"{self.prompt}\n{self.text}"

    @property
    def shows(self) -> frozenset[str]:
        """Ids of the conversations whose content the text is known to show; it is not scored on them."""
        return conversations_of(self.demonstrations)


def conversations_of(demonstrations: Iterable[Demonstration]) -> frozenset[str]:
    """Ids of the conversations whose content they show."""
    return frozenset(demonstration.conversation for demonstration in demonstrations)


@runtime_checkable
class Proposer(Protocol):
    """A source of rewrites. The same request gives the same rewrites; only a spent budget raises.

    `name` is the source shown for its rewrites in tables and reports.

    Example:
        >>> class Polite:
        ...     name = "polite"
        ...
        ...     def propose(self, request):
        ...         text = f"Please be exact. {request.text}"
        ...         return [Rewrite(request.prompt.name, text, self.name, "politer")] if is_new(text, request) else []
        >>> isinstance(Polite(), Proposer)
        True
    """

    name: str

    def propose(self, request: RewriteRequest) -> list[Rewrite]:
        """At most `request.count` texts that are new, best first.

        Raises:
            BudgetExceededError: a hard budget does not allow the next model call.
        """


@dataclass(frozen=True, slots=True)
class Means:
    """What a proposer may work with besides the request.

    Attributes:
        author: the model that writes prompts.
        own_author: whether that is another model than the system's, and so likely a better writer than the rules.
        evaluator: measures a candidate on conversations.
        train: the only conversations it may learn from.
    """

    author: ChatModel
    own_author: bool
    evaluator: Evaluator
    train: tuple[Conversation, ...]


class ProposerFactory(Protocol):
    """Creates a run's proposer; a class whose instances are `Proposer`s is one."""

    def __call__(self, means: Means, /) -> Proposer:
        """The proposer of one run."""


@runtime_checkable
class Authored(Protocol):
    """A `Proposer` whose texts are written by a model: an author that costs calls.

    It comes first if the author is a separate model. If the task model writes, it comes last, with one text.
    """

    author: ChatModel


def open_proposers(names: Sequence[str] = tuple(PROPOSERS.built_in)) -> list[ProposerFactory]:
    """The proposers of these names or `module:Object`s, in order.

    Raises:
        ConfigError: one does not exist, cannot be imported, or does not take the means.
    """
    return [_checked_factory(name, cast("ProposerFactory", PROPOSERS.open_callable(name, "means"))) for name in names]


def _checked_factory(name: str, factory: ProposerFactory) -> ProposerFactory:
    def create(means: Means, /) -> Proposer:
        try:
            proposer = factory(means)
        except MemtuneError:
            raise
        except Exception as error:
            raise RunError(f"proposers: {name!r} cannot be made: {in_one_line(error)}") from error
        if not isinstance(proposer, Proposer) or not isinstance(proposer.name, str):
            raise RunError(f"proposers: {name!r} makes a {type(proposer).__name__}, which has no `name` and `propose`")
        return proposer

    return create


def offers_of(proposer: Proposer, request: RewriteRequest) -> list[Rewrite]:
    """The rewrites that a proposer offers and the contract admits, in its order and under its name.

    Raises:
        RunError: it fails, or returns something other than rewrites.
        BudgetExceededError: as `Proposer.propose`.
    """
    try:
        offered: object = proposer.propose(request)
    except MemtuneError:
        raise
    except Exception as error:
        raise RunError(
            f"proposers: {proposer.name!r} failed: {in_one_line(error)}; fix it and start the run again (its calls "
            "are cached)"
        ) from error
    if not isinstance(offered, list) or not all(
        isinstance(offer, Rewrite) and isinstance(offer.text, str) and isinstance(offer.reason, str)
        for offer in offered
    ):
        raise RunError(f"proposers: {proposer.name!r} returned {excerpt(repr(offered), 80)}, not a list of `Rewrite`s")
    named = [replace(rewrite, source=proposer.name) for rewrite in offered]
    return admit(named, request.prompt, request.tried)[0]


def admit(
    rewrites: Sequence[Rewrite], spec: PromptSpec, tried: frozenset[str] = frozenset()
) -> tuple[list[Rewrite], list[tuple[Rewrite, list[str]]]]:
    """The contract gate, before a rewrite costs anything: reject, never repair.

    Returns:
        The admitted rewrites in order, and the rejected ones, each with everything wrong with it: a broken
        contract, another prompt's name, or a text already tried or proposed.
    """
    admitted: list[Rewrite] = []
    rejected: list[tuple[Rewrite, list[str]]] = []
    texts = set(tried)
    for rewrite in rewrites:
        problems = spec.contract.violations(rewrite.text)
        if rewrite.prompt != spec.name:
            problems.append(f"it is for the prompt {rewrite.prompt!r}, not {spec.name!r}")
        if rewrite.text in texts:
            problems.append("the text was tried or proposed already")
        if problems:
            rejected.append((rewrite, problems))
        else:
            admitted.append(rewrite)
            texts.add(rewrite.text)
    return admitted, rejected


def kind_of(problem: str) -> str:
    """What is wrong with a text, without what it quotes of it.

    Example:
        >>> kind_of("'Oslo' is a value of the train conversations")
        'it is a value of the train conversations'
    """
    return re.sub(r"^(['\"]).*\1 (?=is )", "it ", problem, flags=re.DOTALL)


def new_rewrites(request: RewriteRequest, source: str, texts: Iterable[tuple[str, str]]) -> list[Rewrite]:
    """Rewrites of the first texts, each with its reason, that are new: each once, at most as many as are asked for."""
    rewrites: dict[str, Rewrite] = {}
    for text, reason in texts if request.count > 0 else ():
        if text not in rewrites and is_new(text, request):
            rewrites[text] = Rewrite(request.prompt.name, text, source, reason)
            if len(rewrites) == request.count:
                # The next text may cost a call of an author.
                break
    return list(rewrites.values())


def is_new(text: str, request: RewriteRequest) -> bool:
    """Whether a text is worth proposing: within the contract, not the current one, and not tried.

    Example:
        >>> from tracing.systems.suite.notebook import Notebook
        >>> prompt = Notebook.prompts["answer"]
        >>> request = RewriteRequest(prompt, "answer", prompt.text, {}, None, (), (), count=1, seed=0)
        >>> is_new(f"Please be exact. {prompt.text}", request), is_new(prompt.text, request)
        (True, False)
    """
    return text != request.text and text not in request.tried and not request.prompt.contract.violations(text)
