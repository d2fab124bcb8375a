"""The reference method of closed-loop tuning: feedback on every failed case, aggregated, one rewrite, always accepted.

After MemTrace's loop: attribute the wrong answers, group them by the prompt of the blamed operation, let a model
comment on each case, merge the comments by fours, and rewrite the prompt once from the merged feedback. Nothing is
compared: a rewrite stays, even if it lowers the score. What cannot be kept is a text that breaks its contract, which
the system would refuse, or one under which it fails. The author rewrites the instruction; the data stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.proposers.author import TEMPERATURE, Author
from optimizer.proposers.examples import Example, examples_of
from optimizer.proposers.whole_rewrites import record_of
from optimizer.published.candidate_search import not_tried
from optimizer.published.carried_prompt import CarriedPrompt
from optimizer.search.rounds import overrule
from optimizer.tuning.round import RewriteRecord, Round, blame_shares
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import Tuning
from tracing.package_data import packaged_tables
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace
from tracing.systems.prompts import PromptSpec

BATCH = 4
"""Comments that are merged by one request."""

_REQUESTS = packaged_tables("optimizer.published", "reference.toml")
_FENCED = re.compile(r"```[^\n]*\n(.*)\n?```", re.DOTALL)
"""From the first fence to the last: an instruction may have some of its own."""


def reference(tuning: Tuning) -> Stopped:
    """An `Optimizer` without a gate; the author model comments, merges and rewrites."""
    writer = _Writer(tuning)
    for n in range(1, tuning.settings.rounds + 1):
        attributions, signals = tuning.attribute(n)
        if not signals.failures:
            return Stopped("nothing-wrong")
        with tuning.round(n) as this_round:
            this_round.blame = blame_shares(signals.signals)
            for name, spec in tuning.prompts.items():
                failed, _ = examples_of(spec, tuning.outcomes("train"), attributions)
                if failed:
                    this_round.edits(name)
                    rewrite = writer.rewrite(n, spec, failed)
                    if rewrite is not None:
                        this_round.rewrites[name] = rewrite
            _accept(tuning, this_round)
    return Stopped("rounds")


def _accept(tuning: Tuning, this_round: Round) -> None:
    """All rewrites of a round become the champion together, whatever they score."""
    usable = {name: rewrite for name, rewrite in this_round.rewrites.items() if rewrite.gate is None}
    approved = {name: rewrite for name, rewrite in usable.items() if tuning.approves(rewrite)}
    overrule(this_round, usable.keys() - approved, GateOutcome.DECLINED)
    candidate = {**tuning.champion, **{name: rewrite.text for name, rewrite in approved.items()}}
    if candidate == tuning.champion:
        return
    tuning.allow(len(tuning.validation))
    outcomes = tuning.measure(candidate, tuning.validation, f"round {this_round.n}: reference")
    tainted = next((outcome.tainted for outcome in outcomes if outcome.tainted is not None), None)
    gate = GateDecision(GateOutcome.UNCOMPARED if tainted is None else GateOutcome.UNSCORED, tainted or "")
    this_round.rewrites.update({name: replace(rewrite, gate=gate) for name, rewrite in approved.items()})
    if tainted is None:
        tuning.crown(candidate, confirm=False)


class _Writer:
    """The author's three jobs."""

    def __init__(self, tuning: Tuning) -> None:
        self._tuning, self._author, self._requests = tuning, Author(tuning.author), 0

    def rewrite(self, n: int, spec: PromptSpec, failed: Sequence[Example]) -> RewriteRecord | None:
        """The champion's prompt rewritten in round `n` from the feedback on its failed cases, with its gate set if it
        can't be tried; None if the author wrote nothing.
        """
        text = self._tuning.champion[spec.name]
        phase = f"round {n}: feedback on cases that {spec.name} failed"
        comment = partial(_REQUESTS["comment"].format, purpose=spec.purpose, text=text)
        feedback = self._replies([comment(case=_case_text(example)) for example in failed], phase)
        while len(feedback) > 1:
            batches = [feedback[start : start + BATCH] for start in range(0, len(feedback), BATCH)]
            merging = f"round {n}: comments of {spec.name} merged"
            requests = [_REQUESTS["merge"].format(comments="\n\n".join(batch)) for batch in batches]
            feedback = self._replies(requests, merging)
        prompt = CarriedPrompt(spec, text)
        request = _REQUESTS["rewrite"].format(
            instruction=prompt.instruction, feedback="\n".join(feedback), rules=prompt.request
        )
        reply = self._reply(request, self._numbers(1)[0]) if feedback else ""
        fenced = _FENCED.search(reply)
        instruction = (fenced[1] if fenced else reply).strip("\n")
        rewritten = prompt.text(instruction)
        if not instruction or rewritten == text:
            return None
        problems = prompt.violations(instruction)
        return RewriteRecord(
            spec.name,
            "reference",
            f"rewritten from the feedback on {len(failed)} failed cases",
            rewritten,
            gate=not_tried(problems) if problems else None,
        )

    def _replies(self, requests: Sequence[str], phase: str) -> list[str]:
        """The author's replies, in the order of the requests; empty ones are left out."""
        replies = self._tuning.threads.map(
            lambda numbered: self._reply(*numbered), list(zip(requests, self._numbers(len(requests)), strict=True))
        )
        written = list[str]()
        self._tuning.step(phase, 0, len(requests))
        for count, reply in enumerate(replies, start=1):
            self._tuning.step(phase, count, len(requests))
            written += [reply] if reply else []
        return written

    def _numbers(self, count: int) -> range:
        """The numbers of the next requests: each samples a reply of its own, the same one in a resumed run."""
        first = self._requests + 1
        self._requests += count
        return range(first, first + count)

    def _reply(self, request: str, number: int) -> str:
        sample = self._tuning.settings.seed * 1000 + number
        with trace(), operation("reflect", kind="llm"):  # the meter counts by operation
            return self._author.text(request, temperature=TEMPERATURE, sample=sample)


def _case_text(example: Example) -> str:
    record = record_of(example)
    inputs = "\n".join(f"{name}: {text}" for name, text in record["Inputs"].items())
    return f"{inputs}\nIt made: {record['Generated Outputs']}\n{record['Feedback']}"
