"""Texts for all places of a target, which fit them and are hard to hold."""

from __future__ import annotations

from typing import Any

from experiments.systems.exporting.library_targets import TARGETS
from experiments.systems.exporting.places import Place
from tracing.systems.prompts import Candidate

LIBRARY_TARGETS = tuple(target.environment.name for target in TARGETS.values())
AWKWARD = '\nMind «é» 😀 {{braces}} $5 100 % \\n "quoted"\n\n    kestrel.  '


def prompts_of(exporter: Any) -> Candidate:
    """A text for each place, with all placeholders that it may have, in turn with awkward characters."""
    return {
        name: "\n".join([f"Mind {name}", *place.markers, *(f"{{{name}}}" for name in sorted(place.needs | place.may))])
        + (AWKWARD.rstrip() if place.strips else AWKWARD)
        for place in exporter.places
        for name in names_of(place)
    }


def names_of(place: Place) -> list[str]:
    """The name of a place; two for one that the user names, with other names within."""
    filled = (
        place.name.replace("*", name, 1).replace("*", f"{name} {number}")
        for name in ("Kestrel", "tea time")
        for number in (1, 2)
    )
    return list(dict.fromkeys(filled))
