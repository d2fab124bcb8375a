"""Metrics: how well a reply matches the accepted answers, and how users add their own.

`docs/extending-loop.md` explains how to write one, and `attribution.conformance` checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from numbers import Real
from typing import Protocol, cast

from tracing.errors import ConfigError, MemtuneError, in_one_line
from tracing.plugins import PluginRegistry
from tracing.recording.redaction import excerpt

LLM_JUDGE = "llm_judge"
"""Name of the metric that asks a model; the others are functions of the texts."""

JUDGE = "judge"
"""Operation by whose name the calls of a model that judges are counted."""

_EXCERPT_LENGTH = 60

METRIC_PLUGINS = PluginRegistry(
    "metrics",
    "metric",
    {
        "short_contains": "attribution.judging.words:short_contains",
        "em": "attribution.judging.words:em",
        "f1": "attribution.judging.words:f1",
        "contains": "attribution.judging.words:contains",
        LLM_JUDGE: "attribution.judging.llm_judge:LlmJudge",
    },
)


class Metric(Protocol):
    """Scores a reply against the accepted answers alone, so that a trace can be judged again without its run.

    Example:
        >>> def exact(reply, answers):
        ...     return float(reply in answers)
        >>> exact("Oslo", ["Oslo", "the city of Oslo"])
        1.0
    """

    def __call__(self, reply: str, answers: Sequence[str], /) -> float:
        """From 0 (wrong) to 1 (right), the same for the same arguments.

        Any of `answers` is a full answer. A case passes with `attribution.cases.PASS_SCORE` or more.
        """


@cache
def open_metric(name: str) -> Metric:
    """The metric of this name or `module:function`.

    Raises:
        ConfigError: it does not exist, cannot be imported, or does not take a reply and its answers.
    """
    return cast("Metric", METRIC_PLUGINS.open_callable(name, "reply", "answers"))


def measured(name: str, reply: str, answers: Sequence[str]) -> float:
    """A reply's score by the metric of this name. Raises as `open_metric` and `measured_by`."""
    return measured_by(open_metric(name), name, reply, answers)


def measured_by(metric: Metric, name: str, reply: str, answers: Sequence[str]) -> float:
    """A reply's score by an opened metric; `name` is for messages.

    Raises:
        ConfigError: it fails, or returns something other than a number from 0 to 1.
    """
    try:
        score: object = metric(reply, tuple(answers))
    except MemtuneError:
        raise
    except Exception as error:
        raise ConfigError(f"metric: {name!r} failed on {_excerpt(reply)}: {in_one_line(error)}") from error
    if not isinstance(score, Real) or not 0 <= float(score) <= 1:
        raise ConfigError(
            f"metric: {name!r} returned {_excerpt(score)} for {_excerpt(reply)}; return a number from 0 to 1"
        )
    return float(score)


def _excerpt(value: object) -> str:
    return excerpt(repr(value), _EXCERPT_LENGTH)
