"""Clusters of episodes that are alike and near in time. No model is asked beside the embedding model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tracing.systems.entries import similarity
from tracing.systems.session_times import moment_of


@dataclass(slots=True)
class Cluster:
    """Episodes on one matter.

    Attributes:
        name: of the cluster.
        total: sum of the vectors of its episodes.
        last: time of its latest episode; None if no time is known.
        profile: name of the entry that is its profile; None before there is one.
    """

    name: str
    total: tuple[float, ...]
    last: datetime | None
    profile: str | None = None

    def likeness(self, vector: Sequence[float]) -> float:
        """Cosine of a normalised vector and the cluster's mean."""
        length = math.hypot(*self.total) or 1.0
        return similarity(vector, self.total) / length

    def is_near(self, moment: datetime | None, days: float) -> bool:
        """Whether a time is within so many days of the latest episode; so is one that is not known."""
        return moment is None or self.last is None or abs(moment - self.last) <= timedelta(days=days)


class Clusters:
    """The clusters of one memory.

    Args:
        similarity: cosine from which an episode is like a cluster.
        days: most days between an episode and the latest one of its cluster.
    """

    def __init__(self, *, similarity: float, days: float) -> None:
        self._similarity, self._days = similarity, days
        self._known: list[Cluster] = []

    def joined(self, vector: Sequence[float], time: str) -> Cluster:
        """The cluster of a new episode: the likest that is near in time, or a new one."""
        moment = _local(time)
        near = [cluster for cluster in self._known if cluster.is_near(moment, self._days)]
        likest = max(near, key=lambda cluster: cluster.likeness(vector), default=None)
        if likest is None or likest.likeness(vector) < self._similarity:
            likest = Cluster(f"g{len(self._known) + 1}", tuple(vector), moment)
            self._known.append(likest)
            return likest
        likest.total = tuple(a + b for a, b in zip(likest.total, vector, strict=True))
        likest.last = max(filter(None, (likest.last, moment)), default=None)
        return likest


def _local(time: str) -> datetime | None:
    """A session's time without its zone, so that it can be compared with that of any other; None if not known."""
    moment = moment_of(time)
    return None if moment is None else moment.replace(tzinfo=None)
