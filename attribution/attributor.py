"""Methods of attribution: what they have in common, and how users add their own.

A method is named by its factory, which sets it up for one recording. `docs/extending-loop.md` explains how to write
one, and `attribution.conformance` checks it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from attribution.cases import Attribution
from attribution.survival.matching.matcher import WORDS, open_matcher
from tracing.errors import BudgetExceededError, ConfigError, MemtuneError, in_one_line
from tracing.plugins import PluginRegistry

if TYPE_CHECKING:
    from attribution.cases import Case
    from attribution.recordings import Recording
    from attribution.survival.matching.matcher import MatcherFactory
    from tracing.llm.access import ModelAccess

SURVIVAL = "survival"

ATTRIBUTORS = PluginRegistry(
    "attributors",
    "attribution",
    {SURVIVAL: "attribution.methods:survival"},
    gone=dict.fromkeys(("assisted", "agent", "triage"), f"a model's help bettered no verdict; use {SURVIVAL}"),
)


class Attributor(Protocol):
    """A method of attribution, set up for one recording.

    Example:
        >>> from attribution.cases import Blame
        >>> from attribution.conformance import recorded
        >>> class BlamesAnswer:
        ...     def attribute(self, case):
        ...         return Attribution(case, (Blame("answer", None, "ResponseError", 0.5, "it is the last step"),))
        >>> BlamesAnswer().attribute(recorded()[1][0]).main.operation
        'answer'
    """

    def attribute(self, case: Case) -> Attribution:
        """Whose fault a wrong answer is.

        It is called from several threads. An exception becomes an abstention of this case; other cases go on.

        Raises:
            BudgetExceededError: a hard budget does not allow the next model call; this ends the run.
        """


class AttributorFactory(Protocol):
    """Sets a method up for one recording; a class whose instances are `Attributor`s is one."""

    def __call__(self, recording: Recording, access: ModelAccess, /) -> Attributor:
        """The method for a recording. `access` has the models; nothing is loaded or contacted before the first call."""


@runtime_checkable
class AsksModel(Protocol):
    """An `AttributorFactory` whose method asks a model for most cases.

    memtune then checks the model before it starts, and asks it only about cases that the loop works with.
    """

    def within(self, seconds: float) -> AttributorFactory:
        """The same method with at most this many seconds of a model's time per case."""


@runtime_checkable
class UsesMatcher(Protocol):
    """An `AttributorFactory` whose method asks a matcher what a text carries."""

    def matching(self, matcher: MatcherFactory) -> AttributorFactory:
        """The same method with this matcher in place of words."""


def open_attributor(name: str, *, seconds: float | None = None, matcher: str = WORDS) -> AttributorFactory:
    """The method of this name or `module:Object`.

    Args:
        name: of `ATTRIBUTORS`, or of the form `module:Object`.
        seconds: limit on a model's time per case; None for no limit.
        matcher: name of the matcher that a method which `UsesMatcher` asks, or of the form `module:Object`.

    Raises:
        ConfigError: it does not exist, cannot be imported, or does not take a recording and a model access; the same
            of the matcher, or the method uses none.
    """
    factory = cast("AttributorFactory", ATTRIBUTORS.open_callable(name, "recording", "access"))
    if matcher != WORDS:
        if not isinstance(factory, UsesMatcher):
            raise ConfigError(f"matcher: attribution by {name!r} asks no matcher; leave it at {WORDS}")
        factory = factory.matching(open_matcher(matcher))
    return factory.within(seconds) if seconds is not None and isinstance(factory, AsksModel) else factory


def bound(factory: AttributorFactory, access: ModelAccess | None) -> Callable[[Recording], Attributor]:
    """The factory with its models; only `survival` works without."""
    return lambda recording: factory(recording, cast("ModelAccess", access))


class GuardedAttributor:
    """An `Attributor` around the method that `make` sets up: an exception in it is an abstention of that case."""

    def __init__(self, make: Callable[[], Attributor]) -> None:
        self.trouble: str | None = None
        """The last failure; None if there was none."""
        self._method: Attributor | Exception
        try:
            self._method = make()
        except BudgetExceededError:
            raise
        except Exception as error:
            self._method = error

    def attribute(self, case: Case) -> Attribution:
        """Whose fault the case is, or an abstention that says what went wrong.

        Raises:
            BudgetExceededError: as the method.
        """
        try:
            if isinstance(self._method, Exception):
                raise self._method
            return checked_attribution(self._method.attribute(case), case)
        except BudgetExceededError:
            raise
        except Exception as error:
            self.trouble = f"attribution failed: {in_one_line(error)}"
            return Attribution(case, abstained=self.trouble)


def survival_in(recording: Recording) -> GuardedAttributor:
    """Survival by words, set up for a recording."""
    return GuardedAttributor(lambda: bound(open_attributor(SURVIVAL), None)(recording))


def checked_attribution(result: object, case: Case) -> Attribution:
    """A method's result for a case, checked to be a complete attribution of it.

    Raises:
        MemtuneError: it is not; says why.
    """
    if not isinstance(result, Attribution):
        raise MemtuneError(f"the method returned a {type(result).__name__}, not an Attribution")
    if result.case != case:
        raise MemtuneError("the method returned an Attribution of another case")
    if bool(result.decisive) == (result.abstained is not None):
        raise MemtuneError("the method returned an Attribution that neither blames nor abstains, or does both")
    for blame in (*result.decisive, *result.alternatives):
        if not 0 <= blame.confidence <= 1:
            raise MemtuneError(f"the method blames with confidence {blame.confidence!r}; 0 to 1 is expected")
    return result
