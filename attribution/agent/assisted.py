"""Survival with a model's help: if words do not show whether a variable carries the answer, ask about that variable.

A probe shows a model the question, the right answer and one variable's text, never more of the trace, and asks whether
the text gives the answer, with a quote from it. A malformed reply, or a quote that is not in the text,
counts as no opinion, and the words decide.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from attribution.agent.agent_prompts import tokens_at_most
from attribution.recordings import Recording
from attribution.survival.case_view import CaseView, Trail
from attribution.survival.matching.matcher import Matcher
from attribution.survival.needs import PRIORS
from attribution.survival.survival_method import Survival
from attribution.text.content import text_of
from attribution.text.tokens import contains
from tracing.errors import BudgetExceededError, ModelError
from tracing.graph.elements import Variable
from tracing.llm.booking import note_malformed
from tracing.llm.reply_json import object_in
from tracing.package_data import packaged_tables
from tracing.recording.operations import operation

if TYPE_CHECKING:
    from tracing.llm.models import ChatModel

SURE = 0.8
"""No model is asked if the need's prior times the loss's clarity is at least this."""

MOST_PROBES = 3
"""Variables asked about in each stage, the likeliest first."""

MOST_TOKENS = 2000
"""Tokens of all probes about one case, sent and received; what they leave open is decided by the matcher."""

_LONGEST_TEXT = 900
_REPLY_TOKENS = 160
_PROBED = 0.9
_PROBE = packaged_tables("attribution", "prompts.toml")["probe"]


def assisted(
    recording: Recording, model: ChatModel, *, seconds: float | None = None, matcher: Matcher | None = None
) -> Survival:
    """Survival that asks `model` where the matcher leaves it unsure; no further probes for a need after `seconds`."""
    probe = Probe(model, seconds)
    return Survival(recording.graph, recording.conversation, recording.operations, review=probe.review, matcher=matcher)


@dataclass(slots=True)
class Probe:
    """Asks a model about single variables. What was asked about a case is not asked again, so its verdict stays.

    `unusable` are probes without an opinion: failed, empty, malformed or with an invented quote; `tokens` is the most
    that those about one case may cost.
    """

    model: ChatModel
    seconds: float | None = None
    clock: Callable[[], float] = time.monotonic
    probes: int = 0
    unusable: int = 0
    tokens: int = MOST_TOKENS
    _spent: dict[tuple[str, str | None], int] = field(default_factory=dict, repr=False)
    """By case: its question and prediction."""
    _opinions: dict[tuple[tuple[str, str | None], str], bool | None] = field(default_factory=dict, repr=False)
    """By case and prompt; None as well where time or tokens did not allow to ask."""

    def review(self, view: CaseView, trail: Trail) -> Trail:
        """The trail as the model sees it, from the context backwards; unchanged where it has no opinion.

        A stage that gives the answer ends the review: later losses happen after it.
        """
        if PRIORS[trail.need.basis] * trail.clarity >= SURE or not view.case.knows_answer:
            return trail
        stages = (
            _likeliest(view, trail, view.answering.context),
            _likeliest(view, trail, view.flow.current),
            _likeliest(view, trail, [fact for fact, _ in view.read(trail.need)]),
        )
        deadline = None if self.seconds is None else self.clock() + self.seconds
        telling_stages: list[tuple[Variable, ...]] = []
        for texts in stages:
            opinions = [(variable, self._tells(view, text, deadline)) for variable, text in texts]
            telling = tuple(variable for variable, opinion in opinions if opinion)
            if not telling and any(opinion is None for _, opinion in opinions):
                return trail
            telling_stages.append(telling)
            if telling:
                break
        context, stored, extracted = [
            *telling_stages,
            *(trail.context, trail.stored, trail.extracted)[len(telling_stages) :],
        ]
        return replace(trail, context=context, stored=stored, extracted=extracted, clarity=_PROBED, reviewed=True)

    def _tells(self, view: CaseView, text: str, deadline: float | None) -> bool | None:
        question = view.case.question
        prompt = _PROBE["task"].format(question=question.question, answer=question.answers[0], text=text)
        case = question.id, view.case.prediction
        if (case, prompt) not in self._opinions:
            try:
                self._opinions[case, prompt] = self._ask(case, prompt, text, deadline)
            except (ModelError, BudgetExceededError):
                # Another time the model may answer.
                self.unusable += 1
                return None
        return self._opinions[case, prompt]

    def _ask(self, case: tuple[str, str | None], prompt: str, text: str, deadline: float | None) -> bool | None:
        if deadline is not None and self.clock() > deadline:
            return None
        spent = self._spent.get(case, 0)
        if spent + tokens_at_most(prompt) + _REPLY_TOKENS > self.tokens:
            return None
        self.probes += 1
        with operation("attribution_probe", kind="llm", inputs={"text": text}):
            reply = self.model.chat(
                [{"role": "user", "content": prompt}],
                max_tokens=_REPLY_TOKENS,
                schema=_PROBE["schema"],
                temperature=0.0,
            )
            opinion = opinion_of(reply.text, text)
            if opinion is None:
                self.unusable += 1
                note_malformed(reply.text)
        self._spent[case] = spent + reply.prompt_tokens + reply.completion_tokens
        return opinion


def opinion_of(reply: str, text: str) -> bool | None:
    """What a reply says about a text; None if it is malformed, or quotes words that are not in the text."""
    verdict = object_in(reply)
    if verdict is None or not isinstance(verdict.get("tells"), bool):
        return None
    if not verdict["tells"]:
        return False
    quoted = verdict.get("quote")
    if not isinstance(quoted, str) or not contains(text, quoted):
        return None
    return True


def _likeliest(view: CaseView, trail: Trail, variables: Iterable[Variable]) -> Sequence[tuple[Variable, str]]:
    """The variables to ask about, each with the part of its text that is nearest to question and answer."""
    near: list[tuple[float, Variable, str]] = []
    for variable in variables:
        lines = [(view.nearness(line, trail.need), line) for line in text_of(variable.value).splitlines() if line]
        best = max((score for score, _ in lines), default=0.0)
        if best > 0:
            near.append((best, variable, _cut(lines)))
    near.sort(key=lambda scored_line: -scored_line[0])
    return [(variable, text) for _, variable, text in near[:MOST_PROBES]]


def _cut(lines: Sequence[tuple[float, str]]) -> str:
    """The nearest lines, as many as a short request holds, in their original order."""
    chosen: set[int] = set()
    size = 0
    for at in sorted(range(len(lines)), key=lambda at: -lines[at][0]):
        size += len(lines[at][1])
        if chosen and size > _LONGEST_TEXT:
            break
        chosen.add(at)
    return "\n".join(lines[at][1] for at in sorted(chosen))[: 2 * _LONGEST_TEXT]
