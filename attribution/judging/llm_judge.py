"""Judging a reply by asking a model whether it says the same as an accepted answer.

Where the endpoint returns log-probabilities, the verdict is a margin: how much likelier `yes` is than `no` as the first
token of its reply. A model leans towards one of the two whatever the question, so the margin has a threshold, fitted on
cases that judging by words decides beyond doubt (the idea of Zhao et al. 2021, "Calibrate before use"). Otherwise
the model writes a label as JSON. A reply that is neither is an abstention, and judging by words decides.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from attribution.judging.metrics import JUDGE
from attribution.judging.words import Judgement, judge
from tracing.errors import CallFailedError, MalformedReplyError
from tracing.llm.booking import note_malformed
from tracing.llm.reply_json import read_json
from tracing.llm.single_flight import SingleFlight
from tracing.package_data import packaged_tables
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace
from tracing.systems.conversations import Question

if TYPE_CHECKING:
    from tracing.llm.models import ChatModel

FEWEST_CASES = 6
"""Least number of cases, right and wrong together, for which a threshold is fitted."""

PROBES = 3
"""Replies after which a model that gave few margins is assumed to have none."""

ALTERNATIVES = 20
LABEL_TOKENS = 160

Mode = Literal["margin", "label"]

_PROMPTS = packaged_tables("attribution", "prompts.toml")["judge"]
_NO_LOGPROBS = re.compile(r"HTTP 4(00|22)\b|the reply is malformed")


@dataclass(frozen=True, slots=True)
class Opinion:
    """The model's verdict on a reply, and the judgement by words.

    `margin` is the log-odds of yes against no, above the threshold for right; 1 or -1 for a label; None if it abstains.
    """

    margin: float | None
    words: Judgement


@dataclass(frozen=True, slots=True)
class JudgeThreshold:
    """The least margin that counts as right (0 for labels), and the cases it was fitted on; 0 if there were too few."""

    mode: Mode = "margin"
    threshold: float = 0.0
    n: int = 0


class LlmJudge:
    """A judge that asks a model at temperature 0, once for each distinct reply to a question.

    `calibration` says how margins are read, as `calibrate` found it.
    """

    def __init__(self, model: ChatModel) -> None:
        self.calibration = JudgeThreshold()
        self._model = model
        self._margins: dict[tuple[Mode, str, tuple[str, ...], str], float | None] = {}
        self._flights = SingleFlight()

    def judge(self, question: Question, reply: str) -> Judgement:
        """The judgement of a reply, its score 1 or 0 by the model; by words if the model abstains.

        Raises:
            ModelError: the call failed.
            BudgetExceededError: a budget does not allow the call.
        """
        opinion = self.opinion(question, reply)
        if opinion.margin is None:
            return opinion.words
        return replace(opinion.words, score=float(opinion.margin > 0))

    def opinion(self, question: Question, reply: str) -> Opinion:
        """The verdicts of the model and of the words on a reply. Raises as `judge`."""
        words = judge(reply, question.answers)
        if not reply.strip():
            return Opinion(-math.inf, words)
        margin = self._margin(self.calibration.mode, question, reply)
        return Opinion(None if margin is None else margin - self.calibration.threshold, words)

    def calibrate(self, replies: Iterable[tuple[Question, str]]) -> JudgeThreshold:
        """Find out whether the endpoint returns log-probabilities, and fit the threshold on replies that words decide.

        Words decide a reply that has the accepted answer and little else, and one that shares no word with it.
        """
        judged = [(question, reply, _decided(question, reply)) for question, reply in replies]
        decided = [(question, reply, right) for question, reply, right in judged if right is not None]
        margins: list[tuple[float, bool]] = []
        for at, (question, reply, right) in enumerate(decided, start=1):
            margin = self._margin("margin", question, reply)
            if margin is not None:
                margins.append((margin, right))
            if at in (PROBES, len(decided)) and len(margins) * 2 < at:
                # No log-probabilities, or replies that are neither yes nor no.
                self.calibration = JudgeThreshold("label")
                return self.calibration
        threshold = _threshold(margins) if len(margins) >= FEWEST_CASES else None
        fitted = 0 if threshold is None else len(margins)
        self.calibration = JudgeThreshold("margin", threshold or 0.0, fitted)
        return self.calibration

    def _margin(self, mode: Mode, question: Question, reply: str) -> float | None:
        key = (mode, question.question, question.answers, reply)
        with self._flights.alone(repr(key)):
            if key not in self._margins:
                # A separate trace: the judge's cost is not the memory system's, but has its own name in the meter.
                with trace(), operation(JUDGE, kind="llm"):
                    self._margins[key] = (self._yes_or_no if mode == "margin" else self._label)(question, reply)
            return self._margins[key]

    def _yes_or_no(self, question: Question, reply: str) -> float | None:
        try:
            completion = self._model.chat(
                _messages("margin", question, reply),
                max_tokens=1,
                temperature=0.0,
                whole=False,
                alternatives=ALTERNATIVES,
            )
        except CallFailedError as error:
            if _NO_LOGPROBS.search(str(error)):
                return None
            raise
        return _yes_minus_no(completion.first_token or {})

    def _label(self, question: Question, reply: str) -> float | None:
        messages = _messages("label", question, reply)
        label = replied_value(self._model, messages, _PROMPTS["label_schema"], "label", max_tokens=LABEL_TOKENS)
        return {"right": 1.0, "wrong": -1.0}.get(label) if isinstance(label, str) else None


def _messages(form: str, question: Question, reply: str) -> list[dict[str, str]]:
    template = _PROMPTS["rules"] + _PROMPTS["case"] + _PROMPTS[form]
    return request(template, question=question.question, answers=question.answers, reply=reply)


def _decided(question: Question, reply: str) -> bool | None:
    """Whether a reply is right, if its words leave no doubt."""
    words = judge(reply, question.answers)
    if words.score == 1:
        return True
    return False if reply.strip() and words.f1 == words.contains == 0 else None


def _yes_minus_no(alternatives: Mapping[str, float]) -> float | None:
    """Log-odds of yes against no among the likeliest first tokens; None if neither is among them.

    A missing one is at most as likely as the least of them.
    """
    logprobs: dict[str, list[float]] = {"yes": [], "no": []}
    for token, logprob in alternatives.items():
        word = token.strip(" \n\t\"'*.▁Ġ").casefold()
        if word in logprobs:
            logprobs[word].append(logprob)
    if not any(logprobs.values()):
        return None
    least = min(alternatives.values())
    yes, no = (_log_of_sum(token_logprobs) if token_logprobs else least for token_logprobs in logprobs.values())
    return yes - no


def _log_of_sum(logs: Sequence[float]) -> float:
    """Logarithm of the sum of numbers given by their logarithms; those may be too small to be numbers themselves."""
    greatest = max(logs)
    return greatest + math.log(sum(math.exp(log - greatest) for log in logs))


def _threshold(margins: Sequence[tuple[float, bool]]) -> float | None:
    """The threshold with the best mean of sensitivity and specificity; of several, the nearest to 0.

    None if all margins are of one kind.
    """
    right = sum(is_right for _, is_right in margins)
    if right in (0, len(margins)):
        return None
    values = sorted({margin for margin, _ in margins})
    between = [(low + high) / 2 for low, high in pairwise(values)]

    def balanced(threshold: float) -> float:
        hits = sum(margin > threshold for margin, is_right in margins if is_right) / right
        rejections = sum(margin <= threshold for margin, is_right in margins if not is_right) / (len(margins) - right)
        return hits + rejections

    return max((0.0, *between), key=lambda threshold: (balanced(threshold), -abs(threshold)))


def replied_value(
    model: ChatModel, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any], key: str, *, max_tokens: int
) -> Any:
    """The value of a key in a model's reply at temperature 0; None if the reply is no JSON object with it."""
    completion = model.chat(messages, max_tokens=max_tokens, schema=schema, temperature=0.0, whole=False)
    try:
        return read_json(completion.text)[key]
    except (MalformedReplyError, KeyError, TypeError):
        note_malformed(completion.text)
        return None


def request(template: str, **texts: str | tuple[str, ...]) -> list[dict[str, str]]:
    """Messages with texts in a template, several in one place as alternatives.

    They are JSON strings, so that none of them can pass for a part of the task.
    """
    alternatives = {name: (text,) if isinstance(text, str) else text for name, text in texts.items()}
    filled = {
        name: " or ".join(json.dumps(text, ensure_ascii=False) for text in listed)
        for name, listed in alternatives.items()
    }
    return [{"role": "user", "content": template.format_map(filled)}]
