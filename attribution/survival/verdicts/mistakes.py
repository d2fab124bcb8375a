"""Wrong answers that no operation is to blame for: the judge or the annotation is mistaken."""

from __future__ import annotations

from collections.abc import Sequence

from attribution.cases import Blame
from attribution.survival.case_view import CaseView
from attribution.survival.quoting import quote
from attribution.text.content import content_of, is_date
from attribution.text.dates import as_precise_as, days_of, same_time, spans_of
from attribution.text.phrases import denies, says_unknown

MISJUDGED = 0.8
CONTRADICTED = 0.6
UNSUPPORTED = 0.5
_SLIP_DAYS = 3


def outside_the_system(view: CaseView) -> list[Blame] | None:
    """Blame for a judge that called the accepted answer wrong, or an annotation that its own evidence contradicts."""
    case = view.case
    if case.judgement.em == 1 or same_answer(case.reply, case.question.answers):
        reason = f"the reply {quote(case.reply)} is the accepted answer, but was judged wrong"
        evidence = (case.prediction,) if case.prediction else ()
        return [Blame("judge", None, "JudgeError", MISJUDGED, reason, evidence)]
    contradicted = _contradicted(view)
    return None if contradicted is None else [contradicted]


def unsupported(view: CaseView) -> Blame:
    """Blame for a gold answer that no turn says and of a kind that cannot be inferred."""
    question = view.case.question
    evidence = tuple(message.id for turn in question.evidence for message in view.flow.messages(turn))
    gold = quote(question.answers[0])
    reason = f"neither the evidence {', '.join(question.evidence)} nor another turn says the gold answer {gold}"
    return Blame("annotation", None, "AnnotationError", UNSUPPORTED, reason, evidence)


def _contradicted(view: CaseView) -> Blame | None:
    """Blame for a gold answer that the evidence contradicts: the evidence says what the reply says instead."""
    case, question = view.case, view.case.question
    turns = [turn for turn in view.conversation.turns() if turn.id in question.evidence]
    gold = spans_of(question.answers[0])
    if not turns or not gold or not is_date(question.answers[0]) or says_unknown(case.reply):
        return None
    days = days_of(view.conversation)
    told = [span for turn in turns for span in spans_of(turn.text, days[turn.id])]
    replied = spans_of(case.reply, days[turns[-1].id])
    near = any(same_time(span, one) or abs(span[0] - one[0]) <= _SLIP_DAYS for span in told for one in gold)
    if near or not any(as_precise_as(reply, span) for reply in replied for span in told):
        return None
    messages = tuple(message.id for turn in turns for message in view.flow.messages(turn.id))
    said = f"{' and '.join(question.evidence)} say what the reply says, {quote(case.reply)}"
    reason = f"{said}, and not the gold answer {quote(question.answers[0])}"
    return Blame("annotation", None, "AnnotationError", CONTRADICTED, reason, messages)


def same_answer(reply: str, answers: Sequence[str]) -> bool:
    """Whether a reply is an accepted answer in other words: the same time, or the same content, and nothing else."""
    said = content_of(reply)
    for answer in answers:
        wanted = content_of(answer)
        if wanted and said == wanted and not denies(reply) and not denies(answer):
            return True
        spans, given = spans_of(answer), spans_of(reply)
        if spans and spans == given and is_date(answer) and is_date(reply):
            return True
    return False
