"""What is measured of an author: the texts it writes, and what they gain on recorded inputs that it never saw."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from optimizer.objectives.local_evaluation import LocalEvaluation
from optimizer.proposers.author import CASES_SHOWN, Author
from optimizer.proposers.bank import BankProposer
from optimizer.proposers.examples import examples_of
from optimizer.proposers.reflection import ReflectionProposer
from optimizer.proposers.rewrites import Proposer, Rewrite, RewriteRequest, new_rewrites
from optimizer.proposers.turns import going_round
from optimizer.proposers.whole_rewrites import Reflector, record_of, rewritten
from optimizer.racing.halving import alternating
from optimizer.racing.whole_demonstrations import with_right_replies
from tracing.systems.protocol import stage_of

if TYPE_CHECKING:
    from attribution.cases import Attribution
    from optimizer.evaluation.evaluator import Evaluator, Outcome
    from optimizer.objectives.objective import Objective
    from tracing.llm.models import ChatModel


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the baseline did: the author learns from `shown`, and its texts are measured on inputs of `unseen`."""

    evaluator: Evaluator
    objectives: dict[str, Objective]
    shown: Sequence[Outcome]
    unseen: Sequence[Outcome]
    attributions: Sequence[Attribution]


class WholeTemplates:
    """An author that writes whole templates, by gepa's own request: what line changes are compared with."""

    name = "whole"

    def __init__(self, author: ChatModel) -> None:
        self._author = Author(author)

    def propose(self, request: RewriteRequest) -> list[Rewrite]:
        """As many requests as rewrites are wanted, each with other failures."""
        return new_rewrites(request, self.name, ((text, "") for text in self.texts(request)))

    def texts(self, request: RewriteRequest) -> Iterator[str]:
        """What the author wrote, sound or not."""
        reflector = Reflector(self._author, request.seed)
        for number in range(request.count if request.failed else 0):
            failures = going_round(request.failed, number * CASES_SHOWN, CASES_SHOWN)
            yield rewritten(reflector, request.prompt, request.text, list(map(record_of, failures)))


FORMS: dict[str, Callable[[ChatModel], Proposer]] = {
    "lines": ReflectionProposer,
    "whole": WholeTemplates,
    "bank": lambda _: BankProposer(),
}
"""How texts come about: changes of lines, whole templates, or the lines that people wrote, without an author."""


def measure_author(
    recorded: Recorded, author: ChatModel, form: str, *, count: int, inputs: int, seed: int
) -> dict[str, dict[str, Any]]:
    """By prompt: how many texts an author wrote in what time, and what each gains on inputs that it never saw.

    Args:
        author: the model that writes.
        form: one of `FORMS`.
        count: texts wanted of each prompt.
        inputs: on how many recorded inputs each is measured.
    """
    evaluator = recorded.evaluator
    system, prompts = evaluator.system, evaluator.system.prompts
    local = LocalEvaluation(system, prompts, recorded.objectives, evaluator.access)  # type: ignore[arg-type]
    figures: dict[str, dict[str, Any]] = {}
    for name, objective in recorded.objectives.items():
        spec = prompts[name]
        failed, passed = examples_of(spec, recorded.shown, recorded.attributions)
        failed = with_right_replies(failed, objective, local.inputs(name, recorded.shown))
        request = RewriteRequest(
            prompt=spec,
            stage=stage_of(system.operations, name),
            text=spec.text,
            candidate={other: prompts[other].text for other in prompts},
            signal=None,
            failed=failed,
            passed=passed,
            count=count,
            seed=seed,
        )
        met = alternating(local.inputs(name, recorded.unseen), seed)[:inputs]
        if not failed or not met:
            figures[name] = {"failures": len(failed), "inputs": len(met)}
            continue
        before, start = author_calls(evaluator), time.perf_counter()
        rewrites = FORMS[form](author).propose(request)
        seconds, requests = time.perf_counter() - start, author_calls(evaluator) - before
        weights = [objective.weight(recorded_input) for recorded_input in met]

        def score(text: str) -> float:
            credits = local.measure(name, text, met)  # noqa: B023 (called in this turn of the loop)
            values = [(credit.value, weight) for credit, weight in zip(credits, weights, strict=True) if credit]  # noqa: B023
            return sum(value * weight for value, weight in values) / max(sum(weight for _, weight in values), 1e-9)

        base = score(spec.text)
        gains = {rewrite.text: score(rewrite.text) - base for rewrite in rewrites}
        figures[name] = {
            "failures": len(failed),
            "inputs": len(met),
            "requests": requests,
            "seconds": round(seconds, 1),
            "texts": len(rewrites),
            "baseline": base,
            "gained": sum(gain > 0 for gain in gains.values()),
            "mean_gain": fmean(gains.values()) if gains else None,
            "best_gain": max(gains.values(), default=None),
            "written": [
                {"reason": rewrite.reason, "gain": gains[rewrite.text], "text": rewrite.text} for rewrite in rewrites
            ],
        }
    return figures


def author_calls(evaluator: Evaluator) -> int:
    """Requests of an author so far, those that the cache answered too."""
    usage = evaluator.access.meter.usage_of("reflect")
    return usage.calls_made + usage.calls_cached
