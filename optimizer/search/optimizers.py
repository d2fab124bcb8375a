"""Optimizers: what they have in common, and how users add their own.

`docs/extending-loop.md` explains how to write one, and `optimizer.conformance` checks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from optimizer.tuning.stopped import Stopped
from tracing.errors import ConfigError, ContractError, MemtuneError, RunError, in_one_line
from tracing.plugins import PluginRegistry

if TYPE_CHECKING:
    from optimizer.tuning.tuning import Tuning

CLOSED_LOOP, LOCAL_SEARCH = "closed-loop", "local-search"

OPTIMIZERS = PluginRegistry(
    "optimizers",
    "optimizer",
    {
        CLOSED_LOOP: "optimizer.search.closed_loop:closed_loop",
        LOCAL_SEARCH: "optimizer.search.local_search:local_search",
        "random": "optimizer.search.closed_loop:random_search",
        "gepa": "optimizer.published.plain_gepa:plain_gepa",
        "miprov2": "optimizer.published.dspy_optimizers:miprov2",
        "simba": "optimizer.published.dspy_optimizers:simba",
        "copro": "optimizer.published.dspy_optimizers:copro",
        "bootstrap": "optimizer.published.bootstrap:bootstrap",
        "reference": "optimizer.published.reference:reference",
    },
)


OWN_SEARCHES = (CLOSED_LOOP, LOCAL_SEARCH, "random")
"""Built-in ones that are not from the literature."""


class Optimizer(Protocol):
    """Searches for better prompts; a function of a `Tuning`, or an object that can be called with one.

    Example:
        >>> def keeps_baseline(tuning):
        ...     return Stopped("own", "nothing was tried")
        >>> str(keeps_baseline(None))
        'nothing was tried'
    """

    def __call__(self, tuning: Tuning, /) -> Stopped:
        """Search until done, leave the best candidate as `tuning.champion`, and return why it ended.

        A text, as optimizers returned before there was `Stopped`, is taken as well.

        The same tuning with the same replies leads to the same champion: every random choice is drawn from
        `tuning.settings.seed`. A run is resumed by repeating it on cached replies.

        Raises:
            BudgetExceededError: let through from the tuning's methods; the best so far is kept.
        """


def optimizers_of(names: str) -> tuple[str, ...]:
    """The single names, each once, of one or several optimizers with commas between them."""
    return tuple(dict.fromkeys(name.strip() for name in names.split(",")))


def refuse_rewrites_by_hand(names: str) -> None:
    """Refuse, in a `ConfigError`, rewrites that people wrote: an optimizer from elsewhere knows nothing of them."""
    for name in optimizers_of(names):
        if name in OPTIMIZERS.built_in and name not in OWN_SEARCHES:
            raise ConfigError(
                f"--rewrites: the optimizer {name} takes no rewrites by hand; use one of {', '.join(OWN_SEARCHES)}"
            )


def open_optimizer(names: str) -> Optimizer:
    """The optimizer of this name or `module:Object`, or several side by side, with commas between their names.

    An exception or an invalid result becomes a `RunError`.

    Raises:
        ConfigError: one does not exist, cannot be imported, or does not take a tuning.
    """
    from optimizer.search.side_by_side import SideBySide

    searches = {name: _checked_optimizer(name) for name in optimizers_of(names)}
    return next(iter(searches.values())) if len(searches) == 1 else SideBySide(searches)


def _checked_optimizer(name: str) -> Optimizer:
    search = cast("Optimizer", OPTIMIZERS.open_callable(name, "tuning"))

    def checked(tuning: Tuning, /) -> Stopped:
        try:
            reason: object = search(tuning)
        except ContractError as error:
            raise RunError(f"optimizer: {name!r} gave a candidate that breaks its contracts: {error}") from error
        except MemtuneError:
            raise
        except Exception as error:
            raise RunError(
                f"optimizer: {name!r} failed: {in_one_line(error)}; fix it and start the run again (its calls are "
                "cached)"
            ) from error
        try:
            return Stopped.returned(" ".join(reason.split()) if isinstance(reason, str) else reason)
        except TypeError as error:
            raise RunError(f"optimizer: {name!r} {error}") from None

    return checked
