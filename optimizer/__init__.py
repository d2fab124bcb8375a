"""Rewrite the blamed prompts: rewrites from several sources, measured first where they act, then end to end.

proposers, objectives   who writes new texts; how good a text is on its own operation's recorded inputs
evaluation, racing      scores of candidates and the memories they built; many texts compared on few inputs
gating                  whether a difference is real
tuning                  a tuning in progress, which every optimizer works with
search                  the optimizers, and the steps around each of them
published               optimizers from the literature
"""

from optimizer.evaluation.evaluator import Evaluator, Outcome
from optimizer.evaluation.scores import Score, Splits
from optimizer.gating.verdict import Verdict
from optimizer.objectives.objective import Credit, Objective, RecordedInput
from optimizer.proposers.rewrites import Proposer, Rewrite, RewriteRequest
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import Optimizer
from optimizer.tuning.results import LoopResult, LoopSettings, Observer
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import Tuning

__all__ = [
    "Credit",
    "Evaluator",
    "LoopResult",
    "LoopSettings",
    "Objective",
    "Observer",
    "Optimizer",
    "Outcome",
    "Proposer",
    "RecordedInput",
    "Rewrite",
    "RewriteRequest",
    "Score",
    "Splits",
    "Stopped",
    "Tuning",
    "Verdict",
    "optimize",
]
