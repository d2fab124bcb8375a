"""The figures of `python -m benchmarks trace-memory`, and the bars they are compared with."""

from __future__ import annotations

from pydantic import BaseModel

from benchmarks.figures import Bar

FEWER = 0.6
"""The share of tokens that is claimed to be saved against keeping the conversation; 60 to 70 percent."""

WRITE_MS = 10.0
"""The most that an asynchronous write may add to the agent, at the 99th percentile."""


class RecallFigures(BaseModel):
    """One way to recall, as means over the questions.

    Attributes:
        precision: share of the recalled events that are evidence.
        recall: share of the evidence that is recalled.
        tokens: of the recalled events, as a model would be shown them.
        fewer: share of the tokens of the kept conversation that this saves.
    """

    precision: float
    recall: float
    tokens: float
    fewer: float


class QualityFigures(BaseModel):
    """What is saved and found on the data set.

    Attributes:
        events, questions: in the data set.
        conversation_tokens: mean tokens of a project's conversation, which an agent without memory keeps.
        tokens_an_event: mean tokens of an event as a model is shown it.
        kept_tokens_an_event: the same turn in the conversation.
        stored_fewer: share of tokens saved if every event is shown.
        filtered: recall by the filter of the question, the newest events first.
        worded: recall by the filter that the question's words give, then by meaning; what the memory system does.
        semantic: search by meaning alone, among the same events.
        semantic_as_many: the same, but of as many events as the question's filter recalled.
    """

    events: int
    questions: int
    conversation_tokens: float
    tokens_an_event: float
    kept_tokens_an_event: float
    stored_fewer: float
    filtered: RecallFigures
    worded: RecallFigures
    semantic: RecallFigures
    semantic_as_many: RecallFigures


class Latency(BaseModel):
    """Wall-clock milliseconds of a call."""

    p50_ms: float
    p99_ms: float
    worst_ms: float


class SizeFigures(BaseModel):
    """A store of so many events.

    Attributes:
        events: in the store, of all entities.
        events_s: events written and durable a second while it grew to this size.
        recall_ms: of an entity, by key and limit, at this size.
        bytes_an_event: size of the file; None in Postgres.
    """

    events: int
    events_s: float
    recall_ms: Latency
    bytes_an_event: float | None


class SpeedFigures(BaseModel):
    """How fast a store is.

    Attributes:
        write_ms: what an asynchronous write adds to an agent that does something else in between.
        burst_write_ms: what it adds to one that writes and does nothing else, so that it competes with its own writer.
        sync_write_ms: a write that returns once it is durable.
        sizes: at growing sizes.
        recall_growth_exponent: of the time of a recall, from the smallest to the largest size; 1 is linear.
    """

    write_ms: Latency
    burst_write_ms: Latency
    sync_write_ms: Latency
    sizes: list[SizeFigures]
    recall_growth_exponent: float


class TraceMemoryFigures(BaseModel):
    """All figures of the bench; `store` is `sqlite` or `postgres`."""

    store: str
    quality: QualityFigures
    speed: SpeedFigures


def bars(figures: TraceMemoryFigures) -> list[tuple[Bar, bool]]:
    """Each bar, and whether its limit is the least that is wanted instead of the most."""
    quality, speed = figures.quality, figures.speed
    return [
        (Bar("write_ms.p99_ms", speed.write_ms.p99_ms, WRITE_MS), False),
        (Bar("quality.worded.fewer", quality.worded.fewer, FEWER), True),
        (Bar("quality.filtered.precision", quality.filtered.precision, quality.semantic_as_many.precision), True),
        (Bar("quality.filtered.recall", quality.filtered.recall, quality.semantic.recall), True),
    ]
