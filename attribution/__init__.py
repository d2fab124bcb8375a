"""Whose fault a wrong answer is: judged cases, their attribution to operations, and the signals drawn from it.

`judging` scores replies, `text` compares words, numbers, dates and names, and `benchmark` measures the methods;
`gold_answers` finds evidence that a gold answer is wrong;
`survival` (no model) and `replay` (runs the system again) attribute cases;
the modules on top (`cases`, `signals`, `evidence`, `recordings`, `failures` and others) are shared by all subpackages.
"""

from attribution.attributor import Attributor
from attribution.cases import Attribution, Blame, Case, ErrorType
from attribution.judging.words import METRICS, Judgement, judge
from attribution.signals import Signal, Signals, aggregate
from attribution.survival.survival_method import Survival, attribute

__all__ = [
    "METRICS",
    "Attribution",
    "Attributor",
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
