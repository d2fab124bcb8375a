"""Which conversations are for train, which for validation, and which for test."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from optimizer.evaluation.scores import Splits
from tracing.errors import DataError
from tracing.systems.conversations import Conversation

FEWEST = 3
"""The minimum of conversations: one each for train, validation and test."""

TEST_SHARE, VALIDATION_SHARE = 0.4, 0.25


def assign_splits(conversations: Sequence[Conversation], *, where: str) -> Splits:
    """Conversations with questions by their `split`, or where none has one, by a fixed rule; without the sealed ones.

    The rule orders conversations by the SHA-256 of their id, so it depends on neither their order in the file nor on a
    seed, and gives 40 % to test, 25 % to validation and the rest to train, each at least one: 3 are split 1/1/1, 10 are
    split 3/3/4 (train/validation/test).

    Raises:
        DataError: only some have a split, a split is empty, or there are fewer than three.
    """
    usable = [c for c in conversations if c.questions and c.split != "sealed"]
    without = [conversation.id for conversation in usable if conversation.split is None]
    if without and len(without) < len(usable):
        raise DataError(
            f"{where}: conversation {without[0]!r} has no split but others have; give every row a split, or none"
        )
    if usable and not without:
        by_name = {name: tuple(c for c in usable if c.split == name) for name in ("train", "validation", "test")}
        empty = [name for name, group in by_name.items() if not group]
        if empty:
            raise DataError(
                f"{where}: no conversation with questions has the split {empty[0]!r}; "
                f'give some rows "split": "{empty[0]}"'
            )
        return Splits(**by_name)
    count = len(usable)
    if count < FEWEST:
        raise DataError(
            f"{where}: holds {count} conversations with questions; "
            f"at least {FEWEST} are needed for train, validation and test"
        )
    order = sorted(usable, key=lambda c: hashlib.sha256(c.id.encode()).hexdigest())
    test = min(math.ceil(count * TEST_SHARE), count - 2)
    validation = min(max(1, math.ceil(count * VALIDATION_SHARE)), count - test - 1)
    chosen = {c.id: place for place, c in enumerate(order)}

    def between(first: int, last: int) -> tuple[Conversation, ...]:
        return tuple(c for c in usable if first <= chosen[c.id] < last)

    return Splits(
        train=between(test + validation, count), validation=between(test, test + validation), test=between(0, test)
    )


def test_ids(conversations: Sequence[Conversation]) -> frozenset[str]:
    """The ids of the conversations that are for the test, or sealed; none where they cannot be split."""
    try:
        tested = [conversation.id for conversation in assign_splits(conversations, where="data").test]
    except DataError:
        tested = []
    return frozenset((*tested, *(c.id for c in conversations if c.split in ("test", "sealed"))))
