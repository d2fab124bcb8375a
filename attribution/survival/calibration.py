"""Calibration: how often verdicts by survival with such grounds are right, learnt from cases of four kinds of source.

A logistic regression of being right on the signs of a verdict's grounds. A source counts as the square root of its
cases, so that neither the many that are made nor the few that people labelled decide alone. Labelled are one real run's
failures, injected those of faults in runs with a scripted model, injected-hard the same with parts of the trace gone,
spoiled those with wrong gold answers among sound ones. `python -m benchmarks calibration` fits it, and measures it on
sources left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from attribution.cases import OUTSIDE_THE_SYSTEM, UNUSABLE_REPLY, Blame, ErrorType
from attribution.constants import LEAST_CONFIDENT, MOST_CONFIDENT, UNREAD
from attribution.survival.assertion import Standing
from attribution.survival.case_view import CaseView, Trail
from attribution.text.content import content_of, text_of
from attribution.text.languages.language_data import Tongue
from attribution.text.phrases import says_unknown
from tracing.graph.elements import Variable
from tracing.package_data import packaged_tables


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a blame rests on.

    Attributes:
        error_type: of the blame.
        stated: the product of how strong the kind of verdict is, how the need is known, and how clear-cut its
            survival is.
        named: a text that carried the content last names whom the question is about; true if no text carried it.
        about: part of the question's subject in such a text, 0 to 1; 1 if no text carried it.
        traced: the graph shows that it was made from the evidence; true if no text carried it.
        given: greatest part of what was followed, or else of the gold answer, in one line of what the answer was given,
            0 to 1; 1 if the reply is drawn from it.
        followed: the content was followed through the graph; false for what the reply, or the annotation, shows alone.
        ran: the operation that is blamed is in the graph.
        pieced: the context is a list of entries, not one text.
        answered: a right answer is known.
        unknown: the reply says that it does not know.
        told: greatest part of the gold answer's content in one text that the answer was given, 0 to 1.
        extracted: greatest part of the question's subject in what was made on reading the evidence; None if nothing
            was.
        verbatim: what is stored is cut from the conversation.
        unstated: what was followed is in no words of any turn.
        disputed: what it calls lost is in a text that may come from the evidence and names whom it is about, though
            little of the rest of the question.
        standing: of what the reply asserts; None where a right answer is known.
        language: of the conversation.
        read: whether it, and that of the question, is really one of those in which texts are read.
    """

    error_type: ErrorType
    stated: float
    named: bool
    about: float
    traced: bool
    given: float
    followed: bool
    ran: bool
    pieced: bool
    answered: bool
    unknown: bool
    told: float
    extracted: float | None
    verbatim: bool
    unstated: bool
    disputed: bool
    standing: Standing | None
    language: Tongue
    read: bool


class GroundedBlame(NamedTuple):
    """A blame that is not calibrated yet, and what it rests on."""

    blame: Blame
    grounds: Grounds


def grounds_of(blame: Blame, trail: Trail | None, view: CaseView) -> Grounds:
    """What a blame, with its product of factors as confidence, rests on; no trail where it follows no content."""
    gold = list(map(content_of, view.case.question.answers))
    drawn = _drawn(blame, trail, view)
    carriers = drawn or (trail.last if trail is not None else ())
    words = [content_of(text_of(variable.value)) for variable in carriers]
    return Grounds(
        blame.error_type,
        blame.confidence,
        not words or any(map(view.grader.names_whom, words)),
        max(map(view.grader.about, words), default=1.0),
        trail is None or trail.traced,
        1.0 if drawn else _most_in_a_line(trail.need.forms if trail is not None else gold, view),
        trail is not None,
        blame.operation_id is not None,
        all(view.flow.entry_of(piece) is not None or piece.kind != "context" for piece in view.answering.context),
        view.case.knows_answer,
        says_unknown(view.case.reply),
        _most_in_a_line(gold, view),
        max(map(view.grader.about, _extracted(view)), default=None),
        view.is_verbatim,
        trail is not None and not drawn and trail.need.basis == "unstated",
        trail is not None and _is_disputed(blame, trail, view),
        view.assertion.standing if view.assertion is not None else None,
        view.vocabulary.language,
        view.vocabulary.reads(view.case.question.question, view.case.question.answers),
    )


def _is_disputed(blame: Blame, trail: Trail, view: CaseView) -> bool:
    return blame.error_type == "ExtractionError" and view.is_given(trail.need)


def _drawn(blame: Blame, trail: Trail | None, view: CaseView) -> tuple[Variable, ...]:
    """What a reply is drawn from that shows by this alone that the answer had what the evidence says."""
    if trail is None or trail.context or blame.error_type != "ResponseError":
        return ()
    piece = view.drawn_from(trail.need)
    return (piece,) if piece is not None else ()


def _most_in_a_line(forms: Iterable[frozenset[str]], view: CaseView) -> float:
    """The greatest part of any form in one line of what the answer was given."""
    lines = [content_of(line) for piece in view.answering.context for line in text_of(piece.value).splitlines()]
    return max((view.vocabulary.coverage(form, words) for form in forms for words in lines), default=0.0)


def _extracted(view: CaseView) -> list[frozenset[str]]:
    evidence = view.case.question.evidence
    return [content_of(text_of(fact.value)) for turn in evidence for fact, _ in view.flow.extracted(turn)]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A fitted regression: the constant and the weight of each sign, and on how many verdicts of each source."""

    constant: float
    weights: Mapping[str, float]
    cases: Mapping[str, int]

    def __call__(self, grounds: Grounds) -> float:
        """How likely a verdict with these grounds is right, in (0, 1)."""
        total = self.constant + sum(self.weights[sign] * value for sign, value in signs_of(grounds).items())
        return 1 / (1 + math.exp(-total))


def signs_of(grounds: Grounds) -> dict[str, float]:
    """What the regression reads; most are 0 where all is as it should be.

    No type of error has a sign that stands for it alone: what share of it is right differs from source to source. What
    a verdict states has none either: without it, sources left out are ordered as well or better.
    """
    kind = grounds.error_type
    lost = kind == "ExtractionError"
    off = 1 - grounds.about
    return {
        "not traced": float(not grounds.traced),
        "not named": float(not grounds.named),
        "off the subject, extracted": off if lost else 0.0,
        "off the subject, later": 0.0 if lost else off,
        "not given whole": 1 - grounds.given if kind == "ResponseError" else 0.0,
        "answered unknown": float(grounds.unknown and kind == "ResponseError"),
        "not followed": float(not grounds.followed and kind == "ResponseError"),
        "not run": float(not grounds.ran),
        "context in one text": float(not grounds.pieced),
        "cut from the conversation": float(grounds.verbatim),
        "in no words": float(grounds.unstated),
        "lost, answered unknown": float(lost and grounds.unknown),
        "lost, told": grounds.told if lost else 0.0,
        "lost, nothing extracted": float(lost and grounds.extracted is None),
        "lost, extracted on the subject": (grounds.extracted or 0.0) if lost else 0.0,
        "not found, told": grounds.told if kind == "RetrievalError" else 0.0,
    }


def stated_of(grounds: Grounds) -> float:
    """The product of factors that a verdict states, within what any verdict may claim."""
    return min(MOST_CONFIDENT, max(LEAST_CONFIDENT, grounds.stated))


SURVIVAL = Calibration(**packaged_tables("attribution", "fitted.toml")["survival"])
UNANSWERED: Mapping[Standing, Mapping[ErrorType, float]] = packaged_tables("attribution", "fitted.toml")["unanswered"]


FEW = 0.45
"""The same of the kinds of verdict that there were none of. A choice."""


DISPUTED = 0.89
"""Most confidence in a loss of what a text from the evidence may give: all of 7 were right, so (7 + 1) / (7 + 2)."""


def confidence_of(grounds: Grounds, calibrate: Calibration = SURVIVAL) -> float:
    """How sure a verdict is: calibrated, or as stated where the fault is outside the system.

    Where no right answer is known, it is the share of such verdicts that are right. In a language that is not read it
    is half of that.

    Errors of the annotation have a calibration of their own (`attribution.gold_answers.suspicion`). For those of the
    judge there are no cases to learn from, and that a reply could not be used is recorded.
    """
    if grounds.error_type in OUTSIDE_THE_SYSTEM or grounds.error_type == UNUSABLE_REPLY:
        sure = stated_of(grounds)
    elif grounds.answered:
        sure = min(DISPUTED if grounds.disputed else MOST_CONFIDENT, calibrate(grounds))
    else:
        sure = UNANSWERED[grounds.standing or "nothing"].get(grounds.error_type, FEW)
    return round(sure if grounds.read else UNREAD * sure, 3)


def is_calibrated(grounds: Grounds) -> bool:
    """Whether such verdicts are among those it was fitted on. Errors of the annotation say so themselves."""
    learnt_from = grounds.language == "en" and grounds.error_type != "JudgeError"
    return learnt_from or grounds.error_type == "AnnotationError"
