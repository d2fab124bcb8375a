"""GEPA (Agrawal et al. 2025) as its authors run it: `gepa.optimize` over conversations, without attribution or gate.

What evolves is the instruction of each prompt, as with `dspy.GEPA`; the data stays as it is, and gepa's own request to
the author is followed by the prompt's contract. Parents are drawn from the Pareto front, prompts take turns, and a
rewrite that does better on a minibatch of three train conversations meets the validation conversations and joins the
pool. Two descendants of one candidate that were improved apart are merged. The best on validation becomes the champion.
The budget of metric calls is what the closed loop may spend with the same rounds and proposals. A run is resumed as any
other: gepa's own saved state is not used.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any

from optimizer.evaluation.evaluator import Outcome
from optimizer.proposers.author import CASES_SHOWN
from optimizer.proposers.whole_rewrites import DebugLog, Reflector, record_of
from optimizer.published.candidate_search import (
    author_of,
    decision_on_validation,
    not_tried,
)
from optimizer.published.carried_prompt import CarriedPrompt
from optimizer.search.closed_loop import FINALISTS
from optimizer.search.rounds import SCREENED, crown_winner
from optimizer.tuning.failures import unattributed_examples
from optimizer.tuning.round import RewriteRecord, Round
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import Tuning
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate

MINIBATCH = 3
"""Train conversations on which a rewrite is compared with its parent: gepa's own default."""

MERGES = 5
"""Merges of two candidates in one search, and the validation conversations that decide on one: gepa's own defaults."""


def metric_calls(tuning: Tuning) -> int:
    """Conversations that the search may evaluate: the baseline's validation, and what the loop's rounds may take."""
    settings, validation = tuning.settings, len(tuning.validation)
    return validation + settings.rounds * (settings.proposals * SCREENED + FINALISTS * validation + len(tuning.train))


def plain_gepa(tuning: Tuning) -> Stopped:
    """An `Optimizer` that leaves the search to gepa; the author model reflects on one prompt at a time, in turn."""
    return _searched(tuning, "round_robin")


def gepa_on_all(tuning: Tuning) -> Stopped:
    """The same, where each rewrite is of all prompts."""
    return _searched(tuning, "all")


def _searched(tuning: Tuning, module_selector: str) -> Stopped:
    if not tuning.settings.rounds:
        return Stopped("rounds")
    import gepa
    from gepa.strategies.instruction_proposal import InstructionProposalSignature
    from gepa.utils import ScoreThresholdStopper

    prompts = {name: CarriedPrompt(spec, tuning.baseline[name]) for name, spec in tuning.prompts.items()}
    template = InstructionProposalSignature.default_prompt_template
    reflector = Reflector(author_of(tuning, "gepa"), tuning.settings.seed)
    adapter = _Adapter(tuning, prompts)
    with adapter:
        gepa.optimize(
            seed_candidate=by_stable_names({name: prompt.instruction for name, prompt in prompts.items()}),
            trainset=list(tuning.train),
            valset=list(tuning.validation),
            adapter=adapter,
            reflection_lm=reflector,
            reflection_prompt_template=by_stable_names(
                {name: f"{template}\n\n{prompt.request}" for name, prompt in prompts.items()}
            ),
            candidate_selection_strategy="pareto",
            module_selector=module_selector,
            use_merge=True,
            max_merge_invocations=MERGES,
            merge_val_overlap_floor=min(MERGES, len(tuning.validation)),
            reflection_minibatch_size=min(MINIBATCH, len(tuning.train)),
            max_metric_calls=metric_calls(tuning),
            # gepa would keep spending after a perfect score, and keep asking an author whose budget is spent.
            stop_callbacks=[ScoreThresholdStopper(1.0), lambda state: reflector.stopped is not None],
            callbacks=[adapter],
            logger=DebugLog(),
            # gepa's cache returns the wrong conversation's score if train and validation differ.
            cache_evaluation=False,
            run_dir=None,
            display_progress_bar=False,
            raise_on_exception=True,
            seed=tuning.settings.seed,
        )
    if reflector.stopped is not None:
        raise reflector.stopped
    return Stopped("own", "all metric calls of gepa done")


def by_stable_names(texts: Mapping[str, str]) -> dict[str, str]:
    """The texts of prompts under names whose order in a set is the same in every process."""
    return {_Name(name): text for name, text in texts.items()}


class _Name(str):
    """A prompt's name that every process hashes alike.

    gepa merges prompt by prompt in the order of a set of names and draws where two candidates tie. With Python's own
    hashes of strings, a resumed run would merge otherwise.
    """

    __slots__ = ()

    def __hash__(self) -> int:
        return zlib.crc32(self.encode())


def _by_plain_names(named: Mapping[str, str]) -> dict[str, str]:
    """The texts under ordinary names, which other dictionaries find."""
    return {str(name): text for name, text in named.items()}


class _Adapter(AbstractContextManager["_Adapter"]):
    """gepa's view of the tuning, and the record of what gepa does: its adapter and its callback."""

    propose_new_texts = None  # gepa asks for the attribute

    def __init__(self, tuning: Tuning, prompts: Mapping[str, CarriedPrompt]) -> None:
        self._tuning, self._prompts = tuning, prompts
        self._open_round = ExitStack()
        self._round: Round | None = None
        self._parent: Candidate | None = None
        self._before: dict[str, float] = {}
        self._best = sum(outcome.score for outcome in tuning.outcomes("validation"))

    def __exit__(self, *error: object) -> None:
        self._open_round.close()

    def on_iteration_start(self, event: Mapping[str, Any]) -> None:
        self._open_round.close()
        self._parent, self._before = None, {}
        self._round = self._open_round.enter_context(self._tuning.round(int(event["iteration"])))

    def on_iteration_end(self, event: Mapping[str, Any]) -> None:
        self._open_round.close()

    def evaluate(self, batch: list[Conversation], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        from gepa.core.adapter import EvaluationBatch

        instructions = _by_plain_names(candidate)
        texts = self._texts(instructions)
        violations = {name: self._prompts[name].violations(instruction) for name, instruction in instructions.items()}
        problems = {name: what for name, what in violations.items() if what}
        outcomes = [None] * len(batch) if problems else self._outcomes(batch, texts)
        # A prompt that breaks its contract is as bad as wrong answers.
        scores = [0.0 if outcome is None else outcome.score_or_zero for outcome in outcomes]
        self._note(
            batch, texts, scores, problems, sound=all(outcome and outcome.tainted is None for outcome in outcomes)
        )
        return EvaluationBatch(
            outputs=[conversation.id for conversation in batch],
            scores=scores,
            trajectories=outcomes if capture_traces else None,
        )

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """Executions behind wrong answers, then behind right ones, as many as fit a small context."""
        self._parent = self._texts(_by_plain_names(candidate))
        outcomes = [outcome for outcome in eval_batch.trajectories if outcome is not None and outcome.tainted is None]
        self._before = {
            outcome.conversation.id: score
            for outcome, score in zip(eval_batch.trajectories, eval_batch.scores, strict=True)
            if outcome is not None
        }
        datasets: dict[str, list[dict[str, Any]]] = {}
        for name in components_to_update:
            failed, passed = unattributed_examples(self._tuning.prompts[str(name)], self._tuning.operations, outcomes)
            right = [{**record_of(example), "Feedback": "The final answer was right."} for example in passed]
            records = [*map(record_of, failed), *right][:CASES_SHOWN]
            datasets[name] = records or [{"Inputs": {}, "Generated Outputs": "", "Feedback": "It was not executed."}]
        return datasets

    def _texts(self, instructions: Mapping[str, str]) -> Candidate:
        """The prompts that the system sends with these instructions."""
        written = {name: self._prompts[name].text(instruction) for name, instruction in instructions.items()}
        return {**self._tuning.baseline, **written}

    def _outcomes(self, batch: list[Conversation], candidate: Candidate) -> Sequence[Outcome]:
        tuning = self._tuning
        if candidate == tuning.baseline and batch == list(tuning.validation):
            return tuning.baseline_validation
        tuning.allow(len(batch))
        number = self._round.n if self._round is not None else 0
        # A merge may be compared on the same validation conversation twice.
        distinct = {conversation.id: conversation for conversation in batch}
        measured = tuning.measure(candidate, list(distinct.values()), f"round {number}: gepa")
        by_id = dict(zip(distinct, measured, strict=True))
        return [by_id[conversation.id] for conversation in batch]

    def _note(
        self,
        batch: Sequence[Conversation],
        candidate: Candidate,
        scores: Sequence[float],
        problems: Mapping[str, Sequence[str]],
        *,
        sound: bool,
    ) -> None:
        """Record a rewrite and how far it got; the best on validation so far becomes the champion if it may."""
        tuning, this_round = self._tuning, self._round
        # Without a parent that was shown to the author, it is a merge; its texts are known, their combination is new.
        merged, parent = self._parent is None, self._parent or tuning.baseline
        validated = list(batch) == list(tuning.validation)
        changed = [name for name, text in candidate.items() if text != parent[name]]
        if this_round is None or not changed or (merged and not validated):
            return
        best = validated and sound and sum(scores) > self._best
        reason = "merged from two candidates" if merged else "rewritten by reflection"
        for name in changed:
            rewrite = this_round.rewrites.get(name) or RewriteRecord(name, "gepa", reason, candidate[name])
            if validated:
                decision = decision_on_validation(sum(scores) / len(scores), len(scores), best=best)
                rewrite = replace(rewrite, gate=decision)
            elif name in problems:
                rewrite = replace(rewrite, gate=not_tried(problems[name]))
            elif sound:
                gain = sum(scores) - sum(self._before.get(conversation.id, 0.0) for conversation in batch)
                rewrite = replace(rewrite, screening=round(gain / len(scores), 9))
            this_round.rewrites[name] = rewrite
        this_round.edits(*changed)
        if not best:
            return
        inherited = [
            RewriteRecord(name, "gepa", "rewritten in an earlier round", text)
            for name, text in candidate.items()
            if name not in changed and text != tuning.champion[name]
        ]
        if crown_winner(tuning, this_round, changed, candidate, inherited=inherited):
            self._best = sum(scores)
