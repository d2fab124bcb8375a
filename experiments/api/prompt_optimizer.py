"""memtune as an optimizer of `mlflow.genai.optimize_prompts`: reflective rewrites under contract, and a paired gate.

MLflow runs the program and scores it; what leads to a wrong output inside of it is not known, so prompts take turns.
Rewrites are written and screened on one half of the records and decided on the other half.
"""

from __future__ import annotations

import json
import logging
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from statistics import fmean
from typing import Any

from mlflow.genai.optimize.optimizers import BasePromptOptimizer
from mlflow.genai.optimize.types import EvaluationResultRecord, PromptOptimizerOutput

from experiments.api.starting import Model, model_settings
from experiments.systems.exporting.formats.literal_templates import from_double_braces, with_double_braces
from optimizer.gating.gate import Comparison, decide
from optimizer.proposers.author import CASES_SHOWN, Author, cut
from optimizer.proposers.rewrites import Rewrite, admit
from optimizer.proposers.turns import going_round
from optimizer.proposers.whole_rewrites import Reflector, request_for, rewritten
from tracing.errors import ConfigError, ContractError
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits
from tracing.systems.prompts import Contract, PromptSpec, placeholders_of

_log = logging.getLogger(__name__)

Records = Sequence[Mapping[str, Any]]
EvaluateRecords = Callable[[dict[str, str], list[dict[str, Any]]], list[EvaluationResultRecord]]

FEWEST_RECORDS = 6
"""In all: of fewer than three units on the side that decides, none can be told from noise."""

PASSED = 0.5
"""Of the highest score that a record can have: from here on its output counts as right."""

_NOT_AHEAD = "rejected: not better on the records it was written from"
_PURPOSE = "to lead the program to outputs that its scorers find right"


@dataclass(frozen=True, slots=True)
class _TriedRewrite:
    """A rewrite and how far it got, as `rewrites.json` shows it."""

    round: int
    prompt: str
    gain: float | None
    gate: str
    text: str


class MemtunePromptOptimizer(BasePromptOptimizer):  # type: ignore[misc]
    """Rewrites prompts that MLflow's registry holds; pass it to `mlflow.genai.optimize_prompts`.

    A rewrite keeps the variables of its prompt, or it is rejected before it costs a call. One becomes the champion
    only if it is better on records that it was not written from, by a paired sign-flip test over units.

    Args:
        model: writes the prompts: `http://host/v1#name`, a name, or a mapping of settings.
        rounds: how many prompts are rewritten, in turns.
        proposals: rewrites that are written in one round, at most.
        unit: the input by which records belong together, such as the id of a conversation whose memory they share.
            Such records vary together, so they count as one. By default each record is a unit.
        calls: model calls for writing, at most; None for any number.
        seed: of every random choice.
    """

    def __init__(
        self,
        model: Model,
        *,
        rounds: int = 3,
        proposals: int = 3,
        unit: str | None = None,
        calls: int | None = None,
        seed: int = 0,
    ) -> None:
        self._model = model_settings("model", model)
        self._rounds, self._proposals, self._unit, self._calls, self._seed = rounds, proposals, unit, calls, seed

    def optimize(
        self,
        eval_fn: EvaluateRecords,
        train_data: list[dict[str, Any]],
        target_prompts: dict[str, str],
        enable_tracking: bool = True,
    ) -> PromptOptimizerOutput:
        """The best prompts found, those given if none was better; scores are means over the records that decided.

        Raises:
            ConfigError: there are no scorers, too few records, or a prompt is a list of chat messages.
        """
        specs = {name: _spec(name, text) for name, text in target_prompts.items()}
        written, deciding = self._halves(train_data)
        if eval_fn is None:
            raise ConfigError("optimize_prompts: memtune needs train_data and scorers to tell what is better")
        limits = Limits(calls=self._calls)
        with ModelAccess.open({"task": self._model}, cache_dir=None, limits=limits) as access:
            reflector = Reflector(Author(access.task), self._seed)
            search = _Search(eval_fn, specs, written, deciding, self._unit, reflector)
            for n, name in enumerate(islice(cycle(specs), self._rounds), start=1):
                if enable_tracking:
                    search.track(n - 1)
                search.round(n, name, self._proposals)
            if enable_tracking:
                search.track(self._rounds)
        if reflector.stopped is not None:
            _log.warning("optimize_prompts: no more was written after %s", reflector.stopped)
        return search.output()

    def _halves(self, records: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The records that rewrites are written from, and those that decide; no unit is in both."""
        groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for number, record in enumerate(records):
            groups[_unit_of(record, self._unit, number)].append(record)
        if len(groups) < FEWEST_RECORDS:
            raise ConfigError(f"train_data: has {len(groups)} units, at least {FEWEST_RECORDS} are needed to compare")
        names = list(groups)
        random.Random(self._seed).shuffle(names)  # noqa: S311 (a draw, not a secret)
        half = len(names) // 2
        return ([r for n in names[:half] for r in groups[n]], [r for n in names[half:] for r in groups[n]])


class _Search:
    """The state of one search: the champion, what was tried, and scores that were measured already."""

    def __init__(
        self,
        evaluate: EvaluateRecords,
        specs: Mapping[str, PromptSpec],
        written: list[dict[str, Any]],
        deciding: list[dict[str, Any]],
        unit: str | None,
        reflector: Reflector,
    ) -> None:
        self._evaluate, self._specs, self._unit, self._reflector = evaluate, specs, unit, reflector
        self._sides = {"written": written, "deciding": deciding}
        self._champion = {name: spec.text for name, spec in specs.items()}
        self._baseline = dict(self._champion)
        self._tried: list[_TriedRewrite] = []
        self._known: dict[tuple[str, tuple[str, ...]], list[EvaluationResultRecord]] = {}

    def round(self, n: int, name: str, proposals: int) -> None:
        """Rewrite one prompt; the best of the rewrites meets the gate."""
        wrong = [result for result in self._results("written", self._champion) if not _passed(result)]
        if not wrong:
            return
        ranked: list[tuple[float, str]] = []
        before = self._mean("written", self._champion)
        for text in self._rewrites(n, name, wrong, proposals):
            gain = self._mean("written", {**self._champion, name: text}) - before
            if gain > 0:
                ranked.append((gain, text))
            else:
                self._tried.append(_TriedRewrite(n, name, gain, _NOT_AHEAD, text))
        ranked.sort(key=lambda candidate: -candidate[0])
        for place, (gain, text) in enumerate(ranked):
            if place:
                self._tried.append(_TriedRewrite(n, name, gain, "not tried: another was ahead", text))
                continue
            decision = decide(self._comparison({**self._champion, name: text}))
            self._tried.append(_TriedRewrite(n, name, gain, str(decision), text))
            if decision.accepted:
                self._champion = {**self._champion, name: text}

    def _rewrites(self, n: int, name: str, wrong: list[EvaluationResultRecord], count: int) -> Iterator[str]:
        spec, current = self._specs[name], self._champion[name]
        known_texts = {rewrite.text for rewrite in self._tried} | {current}
        for place in range(count):
            sample = going_round(wrong, place * CASES_SHOWN, CASES_SHOWN)
            text = rewritten(self._reflector, current, request_for(spec), list(map(_feedback, sample)))
            if self._reflector.stopped is not None:
                return
            _, rejected = admit([Rewrite(name, text, "reflection", "")], spec, frozenset(known_texts))
            if rejected:
                self._tried.append(_TriedRewrite(n, name, None, f"rejected: {'; '.join(rejected[0][1])}", text))
                continue
            known_texts.add(text)
            yield text

    def _comparison(self, challenger: Mapping[str, str]) -> Comparison:
        sides = [self._results("deciding", texts) for texts in (self._champion, challenger, self._baseline)]
        units: dict[str, list[float]] = defaultdict(list)
        gained = lost = anchors = 0
        for number, (old, new, first) in enumerate(zip(*sides, strict=True)):
            units[_unit_of({"inputs": old.inputs}, self._unit, number)].append(_score(new) - _score(old))
            anchor = _passed(old) and _passed(first)
            anchors += anchor
            lost += anchor and not _passed(new)
            gained += _passed(new) and not _passed(old)
        return Comparison(tuple(fmean(differences) for differences in units.values()), gained, lost, anchors)

    def _results(self, side: str, texts: Mapping[str, str]) -> list[EvaluationResultRecord]:
        key = side, tuple(texts.values())
        if key not in self._known:
            written = {name: with_double_braces(text) for name, text in texts.items()}
            self._known[key] = results = self._evaluate(written, self._sides[side])
            beyond = next((result for result in results if _score(result) > _highest(result) + 1e-9), None)
            if beyond is not None:
                raise ConfigError(
                    f"optimize_prompts: a record scored {_score(beyond):g}, and {_highest(beyond):g} is taken for "
                    "right; give scorers from 0 to 1, or an aggregation that returns 0 to 1"
                )
        return self._known[key]

    def _mean(self, side: str, texts: Mapping[str, str]) -> float:
        return fmean(map(_score, self._results(side, texts)))

    def track(self, n: int) -> None:
        """Log the champion's score after round `n`, and what was tried, in the active run."""
        import mlflow

        mlflow.log_metric("answers/validation_score", self._mean("deciding", self._champion), step=n)
        columns = ("round", "prompt", "gain", "gate", "text")
        rows = [[getattr(rewrite, name) for name in columns] for rewrite in self._tried]
        mlflow.log_text(json.dumps({"columns": columns, "data": rows}, ensure_ascii=False), "rewrites.json")

    def output(self) -> PromptOptimizerOutput:
        """What MLflow registers and reports."""
        first, last = (self._results("deciding", texts) for texts in (self._baseline, self._champion))
        return PromptOptimizerOutput(
            optimized_prompts={name: with_double_braces(text) for name, text in self._champion.items()},
            initial_eval_score=fmean(map(_score, first)),
            final_eval_score=fmean(map(_score, last)),
            initial_eval_score_per_scorer=_by_scorer(first),
            final_eval_score_per_scorer=_by_scorer(last),
        )


def _spec(name: str, template: str) -> PromptSpec:
    """A prompt of the registry with the contract that its variables stay."""
    try:
        messages = json.loads(template)
    except ValueError:
        messages = None
    if isinstance(messages, list):
        raise ConfigError(f"{name}: is a list of chat messages; memtune optimizes text prompts")
    try:
        text = from_double_braces(template)
        with_double_braces(text)
    except ContractError as error:
        raise ConfigError(f"{name}: {error}") from None
    contract = Contract(placeholders=frozenset(placeholders_of(text)), rules=(_unwritable,))
    return PromptSpec(name=name, text=text, operation=name, contract=contract, purpose=_PURPOSE, builds=False)


def _unwritable(text: str) -> list[str]:
    """Why the registry could not hold a text."""
    try:
        with_double_braces(text)
    except (ContractError, ValueError) as error:
        return [str(error)]
    return []


def _feedback(result: EvaluationResultRecord) -> dict[str, Any]:
    explanation = "; ".join(f"{name}: {why}" for name, why in result.rationales.items() if why)
    return {
        "Inputs": {name: cut(str(value)) for name, value in result.inputs.items()},
        "Generated Outputs": cut(str(result.outputs)),
        "Feedback": f"Expected: {cut(str(result.expectations))}. Scored {_score(result):.2f}. {cut(explanation)}",
    }


def _score(result: EvaluationResultRecord) -> float:
    if result.score is None:
        raise ConfigError("optimize_prompts: give scorers; without a score memtune cannot tell what is better")
    return float(result.score)


def _passed(result: EvaluationResultRecord) -> bool:
    return _score(result) >= PASSED * _highest(result)


def _highest(result: EvaluationResultRecord) -> float:
    """The score of an output that all scorers hold right: MLflow adds up what they say, unless an aggregation does."""
    scores = result.individual_scores.values()
    return max(1.0, len(scores)) if math.isclose(_score(result), sum(scores)) else 1.0


def _unit_of(record: Mapping[str, Any], unit: str | None, number: int) -> str:
    if unit is None:
        return str(number)
    if unit not in record["inputs"]:
        raise ConfigError(f"unit: record {number} has no input {unit!r}; it has {', '.join(record['inputs'])}")
    return str(record["inputs"][unit])


def _by_scorer(results: Sequence[EvaluationResultRecord]) -> dict[str, float]:
    names = results[0].individual_scores
    return {name: fmean(result.individual_scores.get(name, 0.0) for result in results) for name in names}
