"""Wrong answers that no operation is to blame for: the judge or the annotation is mistaken."""

from __future__ import annotations

from attribution.cases import Blame
from attribution.gold_answers.suspicion import Suspicion
from attribution.survival.case_view import CaseView
from attribution.survival.quoting import quote
from attribution.survival.verdicts.other_words import is_right

MISJUDGED = 0.8
UNSUPPORTED = 0.5


def misjudged(view: CaseView) -> list[Blame] | None:
    """Blame for a judge that called the accepted answer wrong."""
    case = view.case
    if case.judgement.em != 1 and not is_right(view):
        return None
    reason = f"the reply {quote(case.reply)} is the accepted answer, but was judged wrong"
    evidence = (case.prediction,) if case.prediction else ()
    return [Blame("judge", None, "JudgeError", MISJUDGED, reason, evidence)]


def misannotated(suspicion: Suspicion, view: CaseView) -> Blame:
    """Blame for a gold answer against which the conversation speaks."""
    messages = tuple(message.id for turn in suspicion.turns for message in view.flow.messages(turn))
    return Blame("annotation", None, "AnnotationError", suspicion.confidence, suspicion.reason, messages)


def unsupported(view: CaseView) -> Blame:
    """Blame for a gold answer that no turn says and of a kind that cannot be inferred."""
    question = view.case.question
    evidence = tuple(message.id for turn in question.evidence for message in view.flow.messages(turn))
    gold = quote(question.answers[0])
    reason = f"neither the evidence {', '.join(question.evidence)} nor another turn says the gold answer {gold}"
    return Blame("annotation", None, "AnnotationError", UNSUPPORTED, reason, evidence)
