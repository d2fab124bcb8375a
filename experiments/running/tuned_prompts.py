"""The prompts that a run may rewrite (`prompts.tuned`): checked at the start."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from optimizer.search.optimizers import LOCAL_SEARCH
from tracing.errors import ConfigError
from tracing.suggestions import unknown_names

if TYPE_CHECKING:
    from experiments.runs.config import RunConfig
    from optimizer.proposers.proposals import Proposal


def check_tuned(config: RunConfig, prompts: Collection[str], rewrites: Sequence[Proposal]) -> None:
    """Refuse a choice of prompts that leaves nothing to do, or not what else was asked for.

    Args:
        prompts: names of those of the memory system.
        rewrites: by hand.

    Raises:
        ConfigError: there is no such prompt, a rewrite is of another one, or nothing at all may be tuned.
    """
    tuned = config.prompts.tuned
    if tuned is None:
        return
    if unknown := [name for name in tuned if name not in prompts]:
        raise ConfigError(
            f"prompts.tuned: there is no prompt {unknown_names(unknown, prompts)}; choose from {', '.join(prompts)}"
        )
    for each in rewrites:
        if each.prompt not in tuned:
            raise ConfigError(
                f"prompts.tuned: leaves out {each.prompt!r}, of which --rewrites gives a text; add it, or take that "
                "file away"
            )
    if tuned or config.rounds == 0:
        return
    if not config.search.settings or config.optimizer != LOCAL_SEARCH:
        raise ConfigError(
            "prompts.tuned: no prompt may be rewritten, so there is nothing to tune; name some, or give "
            f"search.settings and let {LOCAL_SEARCH} alone choose among them"
        )
