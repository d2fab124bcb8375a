"""What a verdict by survival rests on, by which it is told how often such verdicts are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from attribution.cases import Blame, ErrorType
from attribution.survival.assertion import Standing
from attribution.survival.case_view import CaseView, Trail
from attribution.text.content import content_of, text_of
from attribution.text.languages.language_data import Language
from attribution.text.phrases import says_unknown


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
        followed: the content was followed through the graph; false for what the reply, or the annotation, shows alone.
        ran: the operation that is blamed is in the graph.
        pieced: the context is a list of entries, not one text.
        answered: a right answer is known.
        unknown: the reply says that it does not know.
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
    followed: bool
    ran: bool
    pieced: bool
    answered: bool
    unknown: bool
    disputed: bool
    standing: Standing | None
    language: Language
    read: bool


class GroundedBlame(NamedTuple):
    """A blame that is not calibrated yet, and what it rests on."""

    blame: Blame
    grounds: Grounds


def grounds_of(blame: Blame, trail: Trail | None, view: CaseView) -> Grounds:
    """What a blame rests on.

    Args:
        blame: with its product of factors as confidence.
        trail: where the content is; None for a verdict that does not follow any.
        view: the case.
    """
    # A model that reviewed the trail has read whose the content is.
    carriers = trail.last if trail is not None and not trail.reviewed else ()
    words = [content_of(text_of(variable.value)) for variable in carriers]
    return Grounds(
        blame.error_type,
        blame.confidence,
        not words or any(map(view.grader.names_whom, words)),
        max(map(view.grader.about, words), default=1.0),
        trail is None or trail.traced,
        trail is not None,
        blame.operation_id is not None,
        all(view.flow.entry_of(piece) is not None or piece.kind != "context" for piece in view.answering.context),
        view.case.knows_answer,
        says_unknown(view.case.reply),
        trail is not None and _is_disputed(blame, trail, view),
        view.assertion.standing if view.assertion is not None else None,
        view.vocabulary.language,
        view.vocabulary.reads(view.case.question.question, view.case.question.answers),
    )


def _is_disputed(blame: Blame, trail: Trail, view: CaseView) -> bool:
    return blame.error_type == "ExtractionError" and not trail.reviewed and view.is_given(trail.need)
