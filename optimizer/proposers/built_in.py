"""The proposers that memtune ships, created for a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimizer.proposers.bank import BankProposer
from optimizer.proposers.demonstrations import DemonstrationProposer
from optimizer.proposers.reflection import ReflectionProposer
from optimizer.proposers.structure import StructureProposer

if TYPE_CHECKING:
    from optimizer.proposers.rewrites import Means


def bank(means: Means) -> BankProposer:
    """Instructions from the bank."""
    return BankProposer()


def demonstrations(means: Means) -> DemonstrationProposer:
    """Demonstrations from passing train cases."""
    return DemonstrationProposer([conversation.id for conversation in means.train])


def structure(means: Means) -> StructureProposer:
    """Edits of the template's structure."""
    return StructureProposer()


def reflection(means: Means) -> ReflectionProposer:
    """Rewrites by the author."""
    return ReflectionProposer(means.evaluator, means.author)
