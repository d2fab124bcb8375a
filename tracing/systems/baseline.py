"""A memory system that starts from other prompts than those it ships with."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

from tracing.systems.prompts import Candidate, Contract, PromptSpec, check_candidate
from tracing.systems.protocol import MemorySystem


def fitted(contract: Contract, text: str) -> Contract:
    """A contract as a text of a user's own needs it: with room for rewrites of a longer text, in its own spelling.

    A marker that is a word (`JSON`) may be in other letters in a prompt that works; its rewrites keep the text's. One
    that can be waived counts if the text has it.
    """
    spelt = {marker: _spelt(marker, text) for marker in contract.markers}
    markers = tuple(there for marker, there in spelt.items() if marker not in contract.waived or there in text)
    return replace(contract, markers=markers, max_chars=max(contract.max_chars, 2 * len(text)))


def _spelt(marker: str, text: str) -> str:
    place = -1 if marker in text or not marker.isalpha() else text.lower().find(marker.lower())
    return marker if place < 0 else text[place : place + len(marker)]


def check_baseline(specs: Mapping[str, PromptSpec], texts: Candidate) -> None:
    """Raise a `ContractError` for texts that could not be the baseline of these prompts; their author says how long."""
    check_candidate({name: _with_text(spec, texts.get(name)) for name, spec in specs.items()}, texts)


def with_baseline(system: MemorySystem, texts: Candidate) -> MemorySystem:
    """The same system with these texts as its baseline (`check_baseline`); the object that is passed stays."""
    specs = {name: _with_text(spec, texts.get(name)) for name, spec in system.prompts.items()}
    check_candidate(specs, texts)
    kind = type(system)
    members = {
        # As a property it counts before an attribute of the object.
        "prompts": property(lambda self: specs),
        "__doc__": kind.__doc__,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__slots__": (),
    }
    changed = copy.copy(system)
    # A frozen dataclass refuses a plain assignment.
    object.__setattr__(changed, "__class__", type(kind.__name__, (kind,), members))
    return changed


def _with_text(spec: PromptSpec, text: str | None) -> PromptSpec:
    """The same prompt with this text; the system's own becomes one that a search may go back to."""
    if text is None:
        return spec
    others = tuple(alternative for alternative in (spec.text, *spec.alternatives) if alternative != text)
    return replace(spec, text=text, contract=fitted(spec.contract, text), alternatives=others)
