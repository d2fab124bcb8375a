"""Whose fault a wrong answer is: judging, cases, attribution by information survival, and the signals drawn from it."""

from attribution.cases import Attribution, Blame, Case, ErrorType
from attribution.judging.words import METRICS, Judgement, judge
from attribution.signals import Signal, Signals, aggregate
from attribution.survival.method import Survival, attribute

__all__ = [
    "METRICS",
    "Attribution",
    "Blame",
    "Case",
    "ErrorType",
    "Judgement",
    "Signal",
    "Signals",
    "Survival",
    "aggregate",
    "attribute",
    "judge",
]
