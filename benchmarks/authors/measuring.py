"""What is measured of an author: which of its texts can be used, and what they gain on inputs that it never saw."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.authors.forms import FORMS, Recorded
from optimizer.gating.gate import Comparison, decide
from optimizer.objectives.local_evaluation import LocalEvaluation
from optimizer.proposers.examples import examples_of
from optimizer.proposers.rewrites import Rewrite, RewriteRequest, admit, kind_of
from optimizer.racing.local_scores import alternating, compared
from optimizer.racing.whole_demonstrations import with_right_replies
from tracing.systems.protocol import stage_of

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Evaluator

READ = frozenset({"train-01", "train-02", "train-03", "train-04"})
"""Conversations of the sample whose failures were read while the request was worded: nothing is measured on them."""


def measure_author(recorded: Recorded, form: str, *, count: int, inputs: int, seed: int) -> dict[str, dict[str, Any]]:
    """By prompt: what an author wrote in what time, what of it can be used, and what that gains.

    A text is accepted if the gate, at its own level and with the conversation as unit, finds it better on the recorded
    inputs. A run accepts on whole conversations.

    Args:
        form: one of `FORMS`.
        count: texts wanted of each prompt.
        inputs: on how many recorded inputs each is measured.
    """
    evaluator = recorded.evaluator
    local = LocalEvaluation(evaluator.system, recorded.prompts, recorded.objectives, evaluator.access)
    attributions = [attribution for outcome in recorded.shown for attribution in recorded.failures.of(outcome)]
    figures: dict[str, dict[str, Any]] = {}
    for name, objective in recorded.objectives.items():
        spec = recorded.prompts[name]
        failed, passed = examples_of(spec, recorded.shown, attributions)
        failed = with_right_replies(failed, objective, local.inputs(name, recorded.shown))
        request = RewriteRequest(
            prompt=spec,
            stage=stage_of(evaluator.system.operations, name),
            text=spec.text,
            candidate={other: recorded.prompts[other].text for other in recorded.prompts},
            signal=None,
            failed=failed,
            passed=passed,
            count=count,
            seed=seed,
        )
        met = alternating(local.inputs(name, recorded.unseen), seed)[:inputs]
        figures[name] = {"failures": len(failed), "inputs": len(met)}
        if not failed or not met:
            continue
        before, start = author_calls(evaluator), time.perf_counter()
        drafts = list(itertools.islice(FORMS[form](recorded, request), count))
        figures[name] |= {
            "requests": author_calls(evaluator) - before,
            "seconds": round(time.perf_counter() - start, 1),
            "texts": len(drafts),
        }
        sound = [Rewrite(name, draft.text, form, draft.reason) for draft in drafts if not draft.problems]
        usable, refused = admit(sound, spec, frozenset({spec.text}))
        problems = [problem for draft in drafts for problem in draft.problems[:1]]
        problems += [kind_of(reasons[0]) for _, reasons in refused]
        scores = [
            compared(rewrite, spec.text, met, partial(local.measure, name), objective.weight) for rewrite in usable
        ]
        gains = [score.gain for score in scores]
        accepted = [decide(Comparison(tuple(score.by_conversation.values()))).accepted for score in scores]
        figures[name] |= {
            "usable": len(usable),
            "refused": dict(Counter(problems)),
            "baseline": scores[0].score - gains[0] if scores else None,
            "gained": sum(gain > 0 for gain in gains),
            "accepted": sum(accepted),
            "mean_gain": fmean(gains) if gains else None,
            "best_gain": max(gains, default=None),
            "written": [
                {"reason": rewrite.reason, "gain": gain, "accepted": passed, "text": rewrite.text}
                for rewrite, gain, passed in zip(usable, gains, accepted, strict=True)
            ],
            "unusable": [{"text": rewrite.text, "problems": reasons} for rewrite, reasons in refused],
        }
    return figures


def author_calls(evaluator: Evaluator) -> int:
    """Requests of an author so far, those that the cache answered too."""
    usage = evaluator.access.meter.usage_of("reflect")
    return usage.calls_made + usage.calls_cached
